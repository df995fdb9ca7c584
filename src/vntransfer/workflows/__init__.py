"""Functions for people with a table, such as `vntransfer.adapt`."""
