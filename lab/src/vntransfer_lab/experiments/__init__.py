"""The kinds of experiments, one file each; `vntransfer_lab.runner.kinds` lists them."""
