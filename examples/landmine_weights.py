"""Which fields are most like a new one? Source weights on Landmine, without target labels.

Run `vnt data fetch landmine`, then `python examples/landmine_weights.py`.
"""

import numpy as np
from sklearn.metrics import roc_auc_score

from vntransfer import DataError, WeightedSourceClassifier, stack
from vntransfer_lab.data import Domains, load


def compare(fields: Domains) -> None:
    """Compare pooled and weighted logistic regression with each field as the target."""
    terrain = fields.extras["terrain"]  # known to us, not to the model
    auc: dict[float, list[float]] = {0.0: [], 3.0: []}
    kin = []
    for target, (X_new, y_new) in fields.items():
        others = {name: pair for name, pair in fields.items() if name != target}
        X, y, domain = stack(others, target=X_new)
        for sharpness, found in auc.items():
            model = WeightedSourceClassifier(sharpness=sharpness).fit(X, y, domain)
            found.append(roc_auc_score(y_new, model.predict_proba(X_new)[:, 1]))
        weights = model.source_weights_
        kin.append(sum(w for name, w in weights.items() if terrain[name] == terrain[target]))
    pooled, weighted = (np.mean(found) for found in auc.values())
    print(f"mean AUC over {len(fields)} fields: pooled {pooled:.3f}, weighted {weighted:.3f}")
    print(f"weight on fields of the same terrain: {np.mean(kin):.0%} (pooled: about half)")


try:
    compare(load("landmine"))
except DataError as error:
    print(error)
