"""The kinds of experiments, one file each; their registry is `vntransfer.bench.kinds.KINDS`."""
