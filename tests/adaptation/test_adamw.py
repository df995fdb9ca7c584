"""Our AdamW takes the steps of torch's, bit for bit, and its state survives a checkpoint."""

import torch

from vntransfer.adaptation._adamw import AdamW

BETAS, DECAY = (0.9, 0.99), 0.3


def _parameters() -> list[torch.Tensor]:
    g = torch.Generator().manual_seed(0)
    return [torch.randn(*shape, generator=g) for shape in ((3, 5, 4), (3, 1, 4), (2, 7))]


def test_steps_are_those_of_torch() -> None:
    ours, theirs = _parameters(), [p.requires_grad_() for p in _parameters()]
    own = AdamW(ours, betas=BETAS, weight_decay=DECAY)
    reference = torch.optim.AdamW(theirs, betas=BETAS, weight_decay=DECAY, fused=True)
    g = torch.Generator().manual_seed(1)
    for t in range(40):
        gradients = [torch.randn(p.shape, generator=g) for p in ours]
        given = [None if t % 3 == i else own for i, own in enumerate(gradients)]
        for p, gradient in zip(theirs, given, strict=True):
            p.grad = None if gradient is None else gradient.clone()
        lr = 0.01 * (t + 1)
        reference.param_groups[0]["lr"] = lr
        reference.step()
        own.step(given, lr)
        for mine, other in zip(ours, theirs, strict=True):
            assert torch.equal(mine, other)


def test_state_goes_on_where_it_stopped() -> None:
    g = torch.Generator().manual_seed(1)
    gradients = [[torch.randn(p.shape, generator=g) for p in _parameters()] for _ in range(6)]
    whole = _parameters()
    optimizer = AdamW(whole, betas=BETAS, weight_decay=DECAY)
    for own in gradients:
        optimizer.step(own, 0.1)
    parts = _parameters()
    first = AdamW(parts, betas=BETAS, weight_decay=DECAY)
    for own in gradients[:3]:
        first.step(own, 0.1)
    second = AdamW(parts, betas=BETAS, weight_decay=DECAY)
    second.load_state_dict(first.state_dict())
    for own in gradients[3:]:
        second.step(own, 0.1)
    assert all(map(torch.equal, whole, parts))
