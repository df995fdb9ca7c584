"""What a person with a table calls; the functions are at the top: `vntransfer.adapt` and others."""
