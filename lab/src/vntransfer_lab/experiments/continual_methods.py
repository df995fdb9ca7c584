"""The methods of the continual experiments, and how their hyper-parameters are chosen.

Methods are those of the registry, and variants of them by name. Plain data: a preset is checked
without importing torch.

Hyper-parameters are chosen among candidates, each an ordinary cell. The streams of the search have
other seeds than any table, hence other permutations or angles and other rows, and test rows held
out of the training part: what is chosen depends on no seed that is reported. The plan of a run has
every candidate computed once, for all cells that choose from it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from vntransfer_lab.errors import PresetError
from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.kinds import CellMethod
from vntransfer_lab.runner.schema import Natural, Positive, Schema, Settings, resolve, schema

_Memory = Literal["task", "stream", "fisher", ""]


@dataclass(frozen=True)
class ContinualVariant:
    """A method of `vntransfer.continual.METHODS` under a name of its own."""

    id: str
    tuned: Mapping[str, float] = field(default_factory=dict)  # defaults of what presets list
    options: Mapping[str, Any] = field(default_factory=dict)
    # what so many samples per task of the experiment mean to it: a memory per "task", one for the
    # "stream", samples for the "fisher" information, or nothing
    memory: _Memory = ""
    version: int = 1  # raised when its results change
    features: int = 2000  # of the random ones, for closed forms
    by_gradients: bool = True  # False: has no learning rate


def _ewc(strength: float = 10.0, memory: _Memory = "fisher", **options: Any) -> ContinualVariant:
    return ContinualVariant("ewc", {"strength": strength}, options, memory)


def _rsp(strength: float = 1.0, **options: Any) -> ContinualVariant:
    return ContinualVariant("rsp", {"strength": strength}, options, "fisher")


def _covp(strength: float = 10.0, **options: Any) -> ContinualVariant:
    return ContinualVariant("covp", {"strength": strength}, options)


_PUBLISHED: Settings = {"fisher": "squared_mean", "update": "explicit"}
_RIDGE = {"ridge": 0.03}

VARIANTS: dict[str, ContinualVariant] = {
    "sgd": ContinualVariant("sgd"),
    "ewc": _ewc(),
    "ewc_online": _ewc(form="online"),
    "ewc_all": _ewc(memory=""),  # Fisher information on all samples of a task
    # what the public code behind the paper's EWC does, explicit steps included
    "ewc_squared_mean": _ewc(100.0, **_PUBLISHED),
    # the mean of squared gradients instead, as the paper's text has it
    "ewc_explicit": _ewc(100.0, update="explicit"),
    "rewc": ContinualVariant("rewc", {"strength": 10.0}, memory="fisher"),
    # with the rotation, the memory and the steps of its public code
    "rewc_published": ContinualVariant(
        "rewc",
        {"strength": 10.0},
        {"rotation": "published", "form": "last", "update": "explicit"},
        "fisher",
    ),
    "agem": ContinualVariant("agem", {"margin": 0.0}, memory="task"),
    "mer": ContinualVariant("mer", {"beta": 0.01}, memory="stream"),
    "rsp": _rsp(),
    "rsp_untuned": _rsp(),
    # explicit steps, and on the first layer the Fisher information of the code below the paper's
    "rsp_published": _rsp(**_PUBLISHED),
    "rsp_published_cut": _rsp(**_PUBLISHED),
    "rsp_explicit": _rsp(update="explicit"),
    "rsp_constant": _rsp(relatedness="constant"),
    "rsp_published_constant": _rsp(**_PUBLISHED, relatedness="constant"),
    "rsp_reversed": _rsp(relatedness="reversed"),
    "rsp_random": _rsp(grouping="random"),
    "rsp_index": _rsp(response="index"),
    "rsp_upper": _rsp(first_layer="none"),
    "rsp_over_groups": _rsp(3.0, normalize="groups"),
    **{f"rsp_{k}_groups": _rsp(groups=k) for k in (5, 10, 15, 20)},
    **{f"rsp_published_{k}_groups": _rsp(**_PUBLISHED, groups=k) for k in (5, 10, 15, 20)},
    # so weak that it only watches
    "rsp_watching": ContinualVariant("rsp", {}, {"strength": 1e-12}, "fisher"),
    "l2": ContinualVariant("l2", {"strength": 1.0}),
    "freeze": ContinualVariant("freeze"),
    "si": ContinualVariant("si", {"strength": 0.1}),
    "er": ContinualVariant("er", {"replay": 10}, memory="stream"),
    "derpp": ContinualVariant("derpp", {"alpha": 0.5, "beta": 0.5}, memory="stream"),
    "gpm": ContinualVariant("gpm", {"threshold": 0.95}),
    "sgp": ContinualVariant("sgp", {"threshold": 0.95, "scale": 10.0}),
    "kfac": ContinualVariant("kfac", {"strength": 10.0}),
    "kfac_ten": ContinualVariant("kfac", {"strength": 10.0}, memory="fisher"),
    "covp": _covp(),
    "covp_input": _covp(1.0, sides="input"),
    "covp_exponential": _covp(4.0, filter="exponential"),
    # with replay of ten samples per step
    "covp_er": replace(_covp(), memory="stream", version=2),
    "covp_rank_100": _covp(rank=100),
    "covp_open": _covp(open_share=0.01),
    "covp_forgetting": _covp(decay=0.95),
    "covp_centered": _covp(centered=True),
    "covp_diagonal": _covp(directions="diagonal"),
    "covp_random": _covp(directions="random"),
    "covp_first": _covp(history="first"),
    "covp_last": _covp(history="last"),
    "closed_form": ContinualVariant("closed_form", _RIDGE, by_gradients=False),
    # fewer bytes than covp keeps with 784-100-100-10 units
    "closed_form_half": ContinualVariant(
        "closed_form", _RIDGE, {"precision": "half"}, features=2900, by_gradients=False
    ),
    "closed_form_covp": ContinualVariant(
        "closed_form_covp", {"strength": 10.0, **_RIDGE}, {"precision": "half"}
    ),
}


def _candidates(value: float) -> Any:
    """Type and default of a list of numbers like this one: keys of cells tell 10 from 10.0."""
    kind: Any = Annotated[type(value), Field(ge=0)]
    return list[kind], Field([value], min_length=1)


SHARED: dict[str, Any] = {
    "lr": _candidates(0.01),
    "batch_size": (Natural, 0),  # 0: the experiment's
    "epochs": (Natural, 0),
}


def options() -> dict[str, CellMethod]:
    """Return what a preset may say about each method: lists of candidates for what is tuned."""
    found = {}
    for name, variant in VARIANTS.items():
        tuned = {key: _candidates(value) for key, value in variant.tuned.items()}
        extra = {"ewc_strength": _candidates(10.0)} if name == "rsp_untuned" else {}
        fields = {**SHARED, **tuned, **extra}
        found[name] = CellMethod(schema(**fields), version=variant.version)
    return found


SEARCH_SEED = 1000
"""First seed of the streams on which hyper-parameters are chosen; those of tables start at 0."""


class SearchSettings(Schema):
    """Size and number of the streams on which hyper-parameters are chosen."""

    search_tasks: int = Field(5, ge=2)
    search_train: int = Field(300, ge=2)
    search_test: int = Field(1000, ge=2)
    search_streams: Positive = 1


_DEFAULTS = resolve(SearchSettings, {}, "")


def candidates(name: str, hyper: Settings, settings: Settings) -> list[Settings]:
    """All combinations of what a preset lists for a method, in the order of the lists."""
    lists = {key: hyper[key] for key in ("lr", *VARIANTS[name].tuned)}
    for key in ("lr", "strength"):
        if settings[key] and key in lists:
            lists[key] = [settings[key]]
    fixed = {key: hyper[key] for key in SHARED if key not in lists}
    return [
        {**fixed, **dict(zip(lists, values, strict=True))} for values in product(*lists.values())
    ]


def choose(cell: Cell, learn: Callable[[Cell], float]) -> Settings:
    """Find the hyper-parameters of a cell, by its rule: the best mean RA over the search's streams.

    ``learn`` computes RA of a cell of the search that is not among what ``cell`` was given.
    """
    own = candidates(cell.method, cell.hyper, cell.settings)
    name, found = _listed(cell)
    chosen = found[0]
    if len(found) > 1:
        if cell.selection == "fixed":
            raise PresetError(
                f"methods.{cell.method}: {len(found)} candidates, but selection 'fixed' chooses "
                f"none; use 'short_stream' or 'full_stream', or one value each"
            )
        known, best = dict(cell.given), -np.inf
        for hyper in found:
            trials = _trials(cell, name, hyper)
            scores = [known[t.key] if t.key in known else learn(t) for t in trials]
            if np.isfinite(scores).all() and np.mean(scores) > best:
                best, chosen = float(np.mean(scores)), hyper
    return chosen if name == cell.method else {**own[0], "lr": chosen["lr"]}


def first(cell: Cell) -> list[Cell]:
    """Return the cells of the search that a cell chooses from; none if it has no choice."""
    name, found = _listed(cell)
    if len(found) == 1 or cell.selection == "fixed":
        return []
    return [trial for hyper in found for trial in _trials(cell, name, hyper)]


def _listed(cell: Cell) -> tuple[str, list[Settings]]:
    """Which method is searched for a cell, and its candidates."""
    if cell.method == "rsp_untuned" and cell.selection != "fixed":
        # "without any further tuning": EWC's learning rate, a strength of its own below 10
        listed = {**cell.hyper, "strength": cell.hyper["ewc_strength"]}
        return "ewc", candidates("ewc", listed, cell.settings)
    return cell.method, candidates(cell.method, cell.hyper, cell.settings)


def _trials(cell: Cell, name: str, hyper: Settings) -> list[Cell]:
    """One candidate on every stream of the search; the same cells whoever asks for them."""
    own = cell.settings
    settings = {**own, **_DEFAULTS, "lr": 0.0, "strength": 0.0}
    settings |= {"n_test": own["search_test"], "held_out": True}
    if cell.selection == "short_stream":
        settings |= {"n_tasks": own["search_tasks"], "n_train": own["search_train"]}
    trial = replace(
        cell,
        version=f"{cell.version.partition('.')[0]}.{VARIANTS[name].version}",
        method=name,
        hyper={key: v if key in ("batch_size", "epochs") else [v] for key, v in hyper.items()},
        selection="fixed",
        settings=settings,
        given=(),
    )
    return [replace(trial, seed=SEARCH_SEED + i) for i in range(own["search_streams"])]
