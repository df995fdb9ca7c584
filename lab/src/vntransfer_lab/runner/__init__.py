"""Computing the cells of an experiment: plan, store, workers, checkpoints."""
