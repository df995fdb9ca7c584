"""Train a small network with the paper's loss √J, then correct the mean, which √J ignores.

Run `python examples/train_with_jeffreys.py`.
"""

import torch
from torch import nn

from vntransfer import JeffreysLoss

torch.manual_seed(0)
x = torch.randn(1000, 5)
y = 3 + x @ torch.tensor([1.0, -2.0, 0.5, 0.0, 0.0]) + 0.1 * torch.randn(1000)

model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0))
loss = JeffreysLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(301):
    batch = torch.randint(0, 1000, (200,))
    value = loss(x[batch], model(x[batch]), y[batch])
    optimizer.zero_grad()
    value.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step:3d}: √J = {value.item():.3f}")

with torch.no_grad():
    prediction = model(x)
    loss.fit_bias(prediction, y)
    before, after = ((p - y).square().mean().sqrt() for p in (prediction, loss.correct(prediction)))
print(f"RMSE before the bias correction {before:.2f}, after it {after:.2f}")
