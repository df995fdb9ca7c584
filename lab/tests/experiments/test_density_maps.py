"""Counting: cells as rows, masks, the second decoder; every method on tiny pictures."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from vntransfer.adaptation import METHODS
from vntransfer.adaptation._objective import Batch, Setup, mean_square, source_errors
from vntransfer.adaptation._training_loop import train
from vntransfer.divergences import response_divergence
from vntransfer.domains import balanced
from vntransfer.errors import ArgumentError
from vntransfer_lab.errors import PresetError
from vntransfer_lab.experiments import density_maps
from vntransfer_lab.experiments.density_maps import (
    Album,
    DensityCounter,
    Pictures,
    inputs,
    train_counter,
)
from vntransfer_lab.experiments.hourglass import decoder, hourglass, to_patches

H, W, BLOCKS, CHANNELS = 16, 24, 2, 4
CELLS, PIXELS = 24, 16
NEURAL = [name for name, method in METHODS.items() if method.neural]
TINY = {"epochs": 1, "steps": 2, "batch_size": 2, "lr": 1e-3, "weight_decay": 0.0}


def draw(n: int, seed: int, *, vehicles: int = 6) -> Pictures:
    """Bright squares on noise: each is one vehicle."""
    rng = np.random.default_rng(seed)
    photographs = rng.integers(0, 60, (n, H, W, 3)).astype(np.uint8)
    density = np.zeros((n, H, W), dtype=np.float32)
    mask = np.ones((n, H, W), dtype=bool)
    mask[:, :, :4] = False
    for i in range(n):
        for top, left in zip(
            rng.integers(0, H - 3, vehicles), rng.integers(0, W - 3, vehicles), strict=True
        ):
            photographs[i, top : top + 3, left : left + 3] = 250
            density[i, top : top + 3, left : left + 3] += 1 / 9
    return Pictures(photographs, mask, density)


SOURCES = {"a": draw(4, 0), "b": draw(5, 1, vehicles=3), "c": draw(3, 2)}
TARGET = draw(4, 3)


def make(name: str, **options: Any) -> Any:
    given = {**TINY, **options}
    if name == "align":
        given.setdefault("trade_off", 1.0)
    return METHODS[name].make(**given)


def fit(name: str, target: Pictures | None = TARGET, **options: Any) -> DensityCounter:
    shape = {k: options.pop(k) for k in ("random_state", "scale") if k in options}
    method = make(name, **options)
    return train_counter(method, SOURCES, target, blocks=BLOCKS, channels=CHANNELS, **shape)


def state(counter: DensityCounter) -> dict[str, Tensor]:
    return dict(counter.net.state_dict())


def first_batch(size: int = 2) -> Batch:
    album = Album([*SOURCES.values(), TARGET], BLOCKS, 100.0)
    drawn = balanced(album.rows(), size, random_state=0)
    return album.read(list(next(drawn)), 3)


def test_a_batch_holds_cells_of_the_pictures_that_were_drawn() -> None:
    batch = first_batch(size=4)
    assert batch.mask is not None
    assert batch.x.shape == (4, 4, 3, H, W)
    assert batch.y.shape == (3, 4 * CELLS, PIXELS)
    assert batch.mask.shape == (4, 4 * CELLS, PIXELS)
    order = np.random.default_rng(0).permutation(4)  # of the first source, which has four
    own = SOURCES["a"].take(order)
    torch.testing.assert_close(batch.x[0], inputs(own.photographs))
    dense = torch.from_numpy(100 * own.density * own.mask)
    torch.testing.assert_close(batch.y[0], to_patches(dense, 4).flatten(0, 1))
    assert float(batch.x.min()) >= -2
    assert float(batch.x.max()) <= 2


def test_pixels_outside_the_mask_change_neither_errors_nor_responses() -> None:
    batch = first_batch()
    assert batch.mask is not None
    g = torch.Generator().manual_seed(0)
    guess = torch.randn(1, 4, 2 * CELLS, PIXELS, generator=g)
    wild = guess + 1e3 * (1 - batch.mask)
    for kind in ("mse", "rmse", "huber", "mixed"):
        torch.testing.assert_close(
            source_errors(kind, batch, guess[:, :3]), source_errors(kind, batch, wild[:, :3])
        )
    torch.testing.assert_close(batch.response(guess), batch.response(wild))
    unlike = Batch(batch.x, batch.y)
    assert not torch.allclose(
        source_errors("mse", unlike, guess[:, :3]), source_errors("mse", unlike, wild[:, :3])
    )


def test_response_is_what_a_patch_adds_up_to_in_vehicles() -> None:
    batch = first_batch()
    assert batch.mask is not None
    g = torch.Generator().manual_seed(0)
    guess = torch.randn(1, 4, 2 * CELLS, PIXELS, generator=g)
    found = batch.response(guess)
    for domain in range(4):
        for cell in (0, 7, 2 * CELLS - 1):
            own = sum(
                float(guess[0, domain, cell, q]) * float(batch.mask[domain, cell, q]) / 100
                for q in range(PIXELS)
            )
            assert float(found[0, domain, cell, 0]) == pytest.approx(own, abs=1e-5)
    truth = batch.response(batch.y[None])  # of all sources: the counts of their pictures
    own = SOURCES["a"].take(np.random.default_rng(0).permutation(4)[:2])
    assert float(truth[0, 0].sum()) == pytest.approx(own.masked_density().sum(), rel=1e-4)


def test_members_with_an_order_of_their_own_get_their_masks() -> None:
    mask = torch.tensor([0.0, 1.0, 2.0])[:, None, None].expand(3, 5, 4)
    order = torch.tensor([[0, 1, 2], [2, 0, 1]])
    batch = Batch(torch.zeros(3, 5, 2), torch.zeros(2, 2, 5, 4), order, mask)
    ones = torch.ones(2, 3, 5, 4)
    assert batch.masked(ones)[:, :, 0, 0].tolist() == [[0, 1, 2], [2, 0, 1]]
    assert batch.masked(ones[:, :2])[:, :, 0, 0].tolist() == [[0, 1], [2, 0]]


def test_tables_are_left_as_they_are() -> None:
    batch = Batch(torch.zeros(2, 3, 4), torch.zeros(1, 3, 1))
    guess = torch.randn(1, 2, 3, 1)
    assert batch.response(guess) is guess
    assert batch.masked(guess) is guess
    head = Setup(2, 4, 1, torch.Generator().manual_seed(0)).second_head()
    assert head(torch.zeros(1, 2, 3, 4)).shape == (1, 2, 3, 1)


class Case:
    """An objective, a network and a batch of pictures in float64."""

    def __init__(self, method: str, **options: Any) -> None:
        g = torch.Generator().manual_seed(0)
        shape = (H // 4, W // 4), BLOCKS, CHANNELS, g
        self.net = hourglass(*shape).double()
        setup = Setup(3, CHANNELS, PIXELS, g, make_head=lambda: decoder(*shape))
        self.objective = make(method, **options)._objective(setup).double()
        batch = first_batch()
        assert batch.mask is not None
        self.batch = Batch(
            batch.x.double(), batch.y.double(), mask=batch.mask.double(), scale=batch.scale
        )
        self.net.train()
        self.z = self.net.extractor(self.batch.x)

    def vehicles(self, head: torch.nn.Module) -> Tensor:
        """Vehicles under each cell, (4 domains, cells)."""
        assert self.batch.mask is not None
        return (head(self.z)[0] * self.batch.mask).sum(-1) / self.batch.scale


def test_the_paper_s_discrepancy_is_that_of_cells() -> None:
    case = Case("mdd_paper", trade_off=1.0, anchor=0.0, warm_up=0, first_term="rmse")
    ((_, loss),) = case.objective(case.net, case.batch)
    a, b = (case.vehicles(head) for head in (case.net.head, case.objective.adversary))
    every = case.z[0].detach().numpy()
    ridge = 1e-3 * every.var(1, ddof=1).mean()  # one for all domains
    roots = []
    for i in range(4):
        z = every[i]
        columns = [own[i, :, None].detach().numpy() for own in (a, b)]
        roots.append(float(response_divergence(z, *columns, sqrt=True, ridge=ridge)))
    gap = abs(roots[3] - np.mean(roots[:3]))
    assert float(case.objective.seen["discrepancy"]) == pytest.approx(gap, rel=1e-6)
    error = source_errors("rmse", case.batch, case.net.head(case.z[:, :3])).mean()
    assert float(loss.detach()) == pytest.approx(float(error.detach()) + gap, rel=1e-6)


def test_the_alignment_is_that_of_features_and_vehicles_of_cells() -> None:
    case = Case("align", standardize=False, learn_weights=False, warm_up=0, ridge=1e-3)
    list(case.objective(case.net, case.batch))
    q = torch.cat((case.z[0], case.vehicles(case.net.head)[..., None]), -1)
    C = torch.stack([torch.cov(own.mT) for own in q])
    X, Y = C[:3].mean(0), C[3]
    eye = 1e-3 * (X + Y).trace() / (2 * len(X)) * torch.eye(len(X), dtype=X.dtype)
    logs = []
    for own in (X + eye, Y + eye):
        s, V = torch.linalg.eigh(own)
        logs.append((V * s.log()) @ V.mT)
    J = 0.5 * ((X - Y) @ (logs[0] - logs[1])).trace() / len(X)
    assert float(case.objective.seen["discrepancy"]) == pytest.approx(float(J.detach()), rel=1e-6)


def test_ahd_compares_pixels_inside_the_mask() -> None:
    case = Case("ahd_msda", trade_off=1.0)
    steps = iter(case.objective(case.net, case.batch))
    next(steps)
    _, second = next(steps)
    assert case.batch.mask is not None
    h, guess = case.net.head(case.z), case.objective.adversary(case.z)
    apart = mean_square((h - guess)[0] * case.batch.mask)
    fitted = ((guess[0, :3] * case.batch.mask[:3] - case.batch.y) ** 2).mean((-2, -1)).mean()
    assert float(second.detach()) == pytest.approx(float((fitted - apart[3]).detach()), rel=1e-6)


@pytest.mark.parametrize("name", NEURAL)
def test_every_method_trains_with_finite_values(name: str) -> None:
    counter = fit(name)
    assert all(bool(torch.isfinite(value).all()) for value in state(counter).values())
    w = np.array(list(counter.trained.source_weights.values()))
    assert list(counter.trained.source_weights) == ["a", "b", "c"]
    assert w.min() >= 0
    assert w.sum() == pytest.approx(1)
    density = counter.density(TARGET)
    assert density.shape == (4, H, W)
    assert not density[~TARGET.mask].any()


@pytest.mark.parametrize("name", ["source_only", "align", "mdd_paper"])
def test_training_lowers_the_error(name: str) -> None:
    own = {} if name == "source_only" else {"trade_off": 0.1}
    counter = fit(name, epochs=4, steps=15, lr=1e-2, **own)
    losses = [record["loss"] for record in counter.trained.history]
    assert losses[-1] < 0.8 * losses[0]


def test_one_step_lowers_the_loss_of_its_batch() -> None:
    case = Case("source_only", loss="mse")
    batch = Batch(
        case.batch.x[:3],
        case.batch.y,
        mask=None if case.batch.mask is None else case.batch.mask[:3],
        scale=case.batch.scale,
    )
    options = make("source_only", steps=1, epochs=4)._training(4, 2, 1.0)
    history, times = train(
        case.net,
        case.objective,
        lambda skip: iter([batch] * 4),
        options,
        shares=torch.ones(1).double(),
    )
    assert times.made == 4
    losses = [record["loss"] for record in history]
    assert losses == sorted(losses, reverse=True)
    assert losses[1] < losses[0]


def test_more_vehicles_give_larger_counts_after_training() -> None:
    method = make("source_only", epochs=8, steps=25, lr=1e-2, loss="mse")
    labeled = {"few": draw(20, 5, vehicles=2), "many": draw(20, 6, vehicles=9)}
    counter = train_counter(method, labeled, blocks=BLOCKS, channels=8)
    few, many = (counter.density(draw(10, 7 + v, vehicles=v)).sum() / 10 for v in (2, 9))
    assert many > 2 * few


@pytest.mark.parametrize("name", ["dann", "mdd_paper", "darn"])
def test_the_density_of_the_target_is_never_read(name: str) -> None:
    poisoned = Pictures(TARGET.photographs, TARGET.mask, np.full_like(TARGET.density, np.nan))
    clean, other = state(fit(name)), state(fit(name, poisoned))
    assert all(torch.equal(clean[key], other[key]) for key in clean)


def test_parameters_are_those_that_the_statistics_of_batch_normalisation_belong_to() -> None:
    plain, averaged = (state(fit("source_only", average=share, steps=6)) for share in (0.0, 0.9))
    assert all(torch.equal(plain[key], averaged[key]) for key in plain)


def test_the_same_seed_gives_the_same_network_and_no_global_state_is_touched() -> None:
    before = torch.get_rng_state()
    one, same, other = (
        state(fit("mdd_paper")),
        state(fit("mdd_paper")),
        fit("mdd_paper", random_state=1),
    )
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(one[key], same[key]) for key in one)
    assert not all(torch.equal(one[key], state(other)[key]) for key in one)


class Interrupted(Album):
    """Pictures that stop training after two epochs."""

    reads = 0

    def read(self, chosen: Any, n_sources: int) -> Batch:
        type(self).reads += 1
        if self.reads > 4:
            raise KeyboardInterrupt
        return super().read(chosen, n_sources)


def test_training_resumes_from_its_checkpoint_with_the_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fit("mdd_paper", epochs=3)
    options: dict[str, Any] = {"epochs": 3, "checkpoint": tmp_path}
    monkeypatch.setattr(density_maps, "Album", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit("mdd_paper", **options)
    monkeypatch.undo()
    again = fit("mdd_paper", **options)
    assert again.trained.history == whole.trained.history
    assert 3 * again.trained.step_times.made == whole.trained.step_times.made
    assert all(torch.equal(value, state(again)[key]) for key, value in state(whole).items())
    fit("mdd_paper", random_state=1, **options)
    assert len(list(tmp_path.iterdir())) == 2  # another fit has its own file


def test_merged_sources_fill_a_batch_as_several_do() -> None:
    seen: list[tuple[int, ...]] = []
    method = make("dann")
    objective = method._objective

    def spy(setup: Setup, adapts: bool) -> Any:
        made = objective(setup, adapts)
        made.register_forward_pre_hook(lambda _, given: seen.append(tuple(given[1].x.shape)))
        return made

    method._objective = spy
    counter = train_counter(method, SOURCES, TARGET, blocks=BLOCKS, channels=CHANNELS)
    assert seen == [(2, 6, 3, H, W)] * 2
    assert counter.trained.source_weights == {"a": 4 / 12, "b": 5 / 12, "c": 3 / 12}


def test_what_does_not_fit_is_named() -> None:
    parts = TARGET.photographs, TARGET.mask, TARGET.density
    short = Pictures(*(own[:, :15] for own in parts))
    with pytest.raises(PresetError, match="multiples of 4, got 15 x 24"):
        train_counter(make("source_only"), {"a": short}, blocks=2)
    with pytest.raises(ArgumentError, match="'jeffreys' compares a response with input columns"):
        fit("source_only", loss="jeffreys")
    with pytest.raises(ArgumentError, match=r"^epochs: .*from 1.* 0"):
        fit("darn", epochs=0)


def test_an_unknown_error_is_named() -> None:
    with pytest.raises(ArgumentError, match="kind: expected one of"):
        source_errors("foo", first_batch(), torch.zeros(1, 3, 2 * CELLS, PIXELS))  # type: ignore[arg-type]
