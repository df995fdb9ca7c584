"""Which of several tables resembles a new one? Divergences between named domains, as NumPy arrays.

Run: python examples/relate_tables.py
"""

import numpy as np

from vntransfer import pairwise
from vntransfer_lab.data.synthetic import load_synthetic

domains = load_synthetic({}, n_samples=500, seed=1)  # {"s1": (X, y), ...}: replace by your own
spread = np.concatenate([y for _, y in domains.values()]).std()
table = pairwise({name: (x, y / spread) for name, (x, y) in domains.items()})

names = list(domains)
for name, row in zip(names, table, strict=True):
    order = [names[k] for k in np.argsort(row) if names[k] != name]
    print(f"{name}: nearest to farthest {', '.join(order)}")
