"""Which public name to use when: groups of docs/api.md, in the order of the page.

A test checks that every public name is here exactly once.
"""

Group = dict[str, str]

TOP: dict[str, Group] = {
    "From a table to an answer": {
        "relate": "You want to know which places of a table behave alike.",
        "adapt": "You want predictions for a place without labels.",
        "learn_tasks": "Tasks arrive one after another, and old rows are gone.",
        "update_tasks": "More rows, tasks or classes arrive for a saved model.",
        "load": "You want to load a saved model or estimator.",
        "example_table": "You want to try something before you use your own table.",
        "ReadOptions": "A csv file is not read as intended.",
        "Relation": "What `relate` returns: rankings, groups, page.",
        "TableModel": "What `adapt` returns: predict, save, page.",
        "ContinualModel": "What `learn_tasks` returns: predict, scores, save.",
    },
    "Estimators for a target without labels": {
        "stack": "Your domains are separate arrays; start here.",
        "AutoTransferRegressor": "You want the best guess and can wait. The default of `adapt`.",
        "ClosedFormRegressor": "Rows come in parts or from several machines, or must be removable.",
        "ClosedFormClassifier": "The same for classes; new classes may come later.",
        "PooledRegressor": "You want a fast, strong baseline: ridge regression or boosting.",
        "SourceOnlyRegressor": "You want a network without adaptation, as a baseline.",
        "MomentAlignmentRegressor": "Sources and target are text or images, and inputs shift.",
        "WeightedSourceRegressor": "You have your own scikit-learn regressor and unequal sources.",
        "WeightedSourceClassifier": "The same with your own classifier.",
        "source_weights": "You want only the weights of the sources.",
    },
    "Estimators to compare with": {
        "MDDRegressor": "You reproduce the paper's adversarial method.",
        "DANNRegressor": "You compare with one domain classifier and reversed gradients.",
        "MDANRegressor": "You compare with one domain classifier per source.",
        "AHDRegressor": "You compare with adversarial hypothesis discrepancy.",
        "DARNRegressor": "You compare with weights from a spectral discrepancy.",
        "DeepCORALRegressor": "You compare with alignment of feature covariances.",
        "DAREGRAMRegressor": "You compare with alignment of inverse Gram matrices.",
    },
    "Model selection without target labels": {
        "LeaveOneSourceOut": "You tune any estimator: each source is the target once.",
        "SourceScorer": "You score on labeled rows of the sources.",
        "ImportanceWeightedScorer": "The same, with rows that resemble the target counting more.",
    },
    "Do two domains share their relation?": {
        "relation_test": "You have arrays and want p-values for all pairs.",
        "RelationTest": "What `relation_test` returns.",
        "pairwise": "You want all divergences at once, without a test.",
        "response_divergence": "You compare two responses to the same features, with gradient.",
    },
    "Divergences between matrices": {
        "DIVERGENCES": "You choose a divergence by its id or its properties.",
        "von_neumann": "You need the paper's divergence. It is not symmetric.",
        "jeffreys": "You need its symmetric form J.",
        "conditional_von_neumann": "You compare how the response depends on the features.",
        "conditional_log_det": "The same, unchanged by the scales of the columns.",
        "log_det": "You need Stein's loss: fast and invariant, but not symmetric.",
        "jensen_von_neumann": "You need a metric based on the von Neumann entropy.",
        "affine_invariant": "You need a metric that no linear map changes.",
        "log_euclidean": "You need a metric that is a plain norm of logarithms.",
        "bures_wasserstein": "You need the optimal-transport metric between Gaussians.",
    },
    "Matrices from samples": {
        "Moments": "Rows stream by, or come from several machines.",
        "covariance": "You have all rows in memory.",
        "correntropy": "Rows have outliers, or the dependence is not linear.",
    },
    "Losses for your own training loop": {
        "JeffreysLoss": "You train with the paper's loss √J between response and prediction.",
    },
    "Theory": {
        "discrepancy": "You compare two given hypotheses on two domains.",
        "max_discrepancy": "You want the largest discrepancy over a class of hypotheses.",
        "Ascent": "You control the search of `max_discrepancy`.",
        "bound_terms": "You evaluate the terms of the paper's Theorem 1.",
        "convergence_terms": "You check the paper's Proposition 1 on your matrices.",
    },
    "Errors and warnings": {
        "VnError": "You catch everything that a user can fix.",
        "ArgumentError": "An argument is wrong.",
        "DataError": "A file or a table is wrong.",
        "DomainError": "Places, sources or targets are wrong.",
        "NotPositiveDefiniteError": "A matrix has no logarithm.",
        "DivergedError": "Training has diverged.",
        "DataWarning": "A column was dropped, leaks, or rows repeat.",
        "NumericalWarning": "Digits were lost; the warning states how many.",
    },
}
"""Group -> name of ``vntransfer`` -> when to prefer it."""

PACKAGES: dict[str, dict[str, Group]] = {
    "continual": {
        "Continual learning: methods": {
            "ClosedForm": "You want high accuracy in any order of tasks, without training.",
            "CovarianceProjection": "You train a network and may not keep samples.",
            "ClosedFormProjection": "You have many tasks and memory for both.",
            "DarkReplay": "You may store a few samples.",
            "Replay": "The same, in its simplest form.",
            "EWC": "You compare with the usual quadratic penalty.",
            "RSP": "You reproduce the paper's method.",
            "REWC": "You reproduce the paper's closest rival: EWC in rotated coordinates.",
            "KFAC": "You want a penalty with covariances of layers instead of a diagonal.",
            "GPM": "You want hard projections instead of damped ones.",
            "ScaledGPM": "The same with shorter steps along used directions instead of none.",
            "SI": "You want importance from the path of training, without an extra pass.",
            "L2Anchor": "You compare with the plainest penalty.",
            "Freeze": "You compare with layers that stay as the first task left them.",
            "AGEM": "You compare with one constraint from stored samples.",
            "MER": "You compare with replay and meta-learning; it is slow.",
            "SGD": "You want the baseline: training that protects nothing.",
        },
        "Continual learning: train, score, save": {
            "train": "You train on one task in one call.",
            "steps": "You want that loop step by step: to stop, save or resume in it.",
            "as_tasks": "Your stream consists of arrays.",
            "Task": "You pass training and test rows of one task.",
            "accuracy_matrix": "You train on a whole stream and score all tasks after each.",
            "summary": "You want retained accuracy, learning accuracy and transfer.",
            "forgetting_curve": "You want the score 0, 1, 2, ... tasks later.",
            "score": "You score one network on one task.",
            "save_checkpoint": "You stop in the middle of a stream.",
            "load_checkpoint": "You resume bit for bit.",
        },
        "Continual learning: networks and parts": {
            "dense": "You need a plain network.",
            "character_cnn": "You need the network for Omniglot.",
            "RandomFeatureNet": "You use `ClosedForm` without training.",
            "JoinedNet": "You use `ClosedFormProjection`.",
            "MultiHead": "Each task has its own classes and output layer.",
            "Heads": "You need a loss for outputs of several heads.",
            "ContinualMethod": "You write your own method.",
            "Quadratic": "Your method is a quadratic penalty.",
            "diagonal_fisher": "You need the Fisher information of a network.",
            "default_loss": "You want the loss that a method would choose.",
        },
    },
    "adaptation": {
        "Write your own adaptation": {
            "DomainRegressor": "You write a network method on the shared training loop.",
            "train_network": "You train your own network with a method of the registry.",
            "OwnNetwork": "You describe that network to the loop.",
            "TrainedNetwork": "What `train_network` returns.",
            "Batch": "You read the rows of one training step.",
            "AdaptationMethod": "You list what the registry knows about a method.",
            "Selection": "You read what was chosen, and why (`selection_`).",
            "ScaledRidge": "You need ridge regression on scaled columns that saves as numbers.",
            "LogisticLearner": "You have text with ratings, or another response with few values.",
            "MedianLearner": "You need the median of the sources as a baseline.",
            "BoostedTrees": "You need LightGBM as a scikit-learn estimator that can be saved.",
        },
    },
    "linalg": {
        "Matrix functions": {
            "sym_logm": "You need the logarithm of a matrix with an exact gradient."
        }
    },
}
"""Package -> group -> name -> when to prefer it."""
