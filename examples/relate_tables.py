"""Which of several tables is most like another? Divergences between named domains in NumPy.

Run `python examples/relate_tables.py`.
"""

import numpy as np

from vntransfer import pairwise
from vntransfer_lab.data.synthetic import load_synthetic

domains = load_synthetic({}, n_samples=500, seed=1)  # {"s1": (X, y), ...}: use your own
spread = np.concatenate([y for _, y in domains.values()]).std()
table = pairwise({name: (x, y / spread) for name, (x, y) in domains.items()})

names = list(domains)
for name, row in zip(names, table, strict=True):
    order = [names[k] for k in np.argsort(row) if names[k] != name]
    print(f"{name}: nearest to farthest {', '.join(order)}")
