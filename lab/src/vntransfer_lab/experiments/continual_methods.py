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


@dataclass(frozen=True)
class ContinualVariant:
    """A method of `vntransfer.continual.METHODS` under a name of its own."""

    id: str
    tuned: Mapping[str, float] = field(default_factory=dict)  # defaults of what presets list
    options: Mapping[str, Any] = field(default_factory=dict)
    # what so many samples per task of the experiment mean to it: a memory per "task", one for the
    # "stream", samples for the "fisher" information, or nothing
    memory: Literal["task", "stream", "fisher", ""] = ""
    version: int = 1  # raised when its results change
    features: int = 2000  # of the random ones, for closed forms
    by_gradients: bool = True  # False: has no learning rate


_RSP = {"strength": 1.0}
_PUBLISHED = {"fisher": "squared_mean", "update": "explicit"}
_COVP = {"strength": 10.0}
_RIDGE = {"ridge": 0.03}

VARIANTS: dict[str, ContinualVariant] = {
    "sgd": ContinualVariant("sgd"),
    "ewc": ContinualVariant("ewc", {"strength": 10.0}, memory="fisher"),
    "ewc_online": ContinualVariant("ewc", {"strength": 10.0}, {"form": "online"}, "fisher"),
    # Fisher information on all samples of a task
    "ewc_all": ContinualVariant("ewc", {"strength": 10.0}),
    # what the public code behind the paper's EWC does, explicit steps included
    "ewc_squared_mean": ContinualVariant(
        "ewc", {"strength": 100.0}, {"fisher": "squared_mean", "update": "explicit"}, "fisher"
    ),
    # the mean of squared gradients instead, as the paper's text has it
    "ewc_explicit": ContinualVariant("ewc", {"strength": 100.0}, {"update": "explicit"}, "fisher"),
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
    "rsp": ContinualVariant("rsp", _RSP, memory="fisher"),
    "rsp_untuned": ContinualVariant("rsp", _RSP, memory="fisher"),
    # explicit steps, and on the first layer the Fisher information of the code below the paper's
    "rsp_published": ContinualVariant("rsp", _RSP, _PUBLISHED, "fisher"),
    "rsp_published_cut": ContinualVariant("rsp", _RSP, _PUBLISHED, "fisher"),
    "rsp_explicit": ContinualVariant("rsp", _RSP, {"update": "explicit"}, "fisher"),
    "rsp_constant": ContinualVariant("rsp", _RSP, {"relatedness": "constant"}, "fisher"),
    "rsp_published_constant": ContinualVariant(
        "rsp", _RSP, {**_PUBLISHED, "relatedness": "constant"}, "fisher"
    ),
    "rsp_reversed": ContinualVariant("rsp", _RSP, {"relatedness": "reversed"}, "fisher"),
    "rsp_random": ContinualVariant("rsp", _RSP, {"grouping": "random"}, "fisher"),
    "rsp_index": ContinualVariant("rsp", _RSP, {"response": "index"}, "fisher"),
    "rsp_upper": ContinualVariant("rsp", _RSP, {"first_layer": "none"}, "fisher"),
    "rsp_over_groups": ContinualVariant(
        "rsp", {"strength": 3.0}, {"normalize": "groups"}, "fisher"
    ),
    **{
        f"rsp_{k}_groups": ContinualVariant("rsp", _RSP, {"groups": k}, "fisher")
        for k in (5, 10, 15, 20)
    },
    **{
        f"rsp_published_{k}_groups": ContinualVariant(
            "rsp", _RSP, {**_PUBLISHED, "groups": k}, "fisher"
        )
        for k in (5, 10, 15, 20)
    },
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
    "covp": ContinualVariant("covp", _COVP),
    "covp_input": ContinualVariant("covp", {"strength": 1.0}, {"sides": "input"}),
    "covp_exponential": ContinualVariant("covp", {"strength": 4.0}, {"filter": "exponential"}),
    # with replay of ten samples per step
    "covp_er": ContinualVariant("covp", _COVP, memory="stream", version=2),
    "covp_rank_100": ContinualVariant("covp", _COVP, {"rank": 100}),
    "covp_open": ContinualVariant("covp", _COVP, {"open_share": 0.01}),
    "covp_forgetting": ContinualVariant("covp", _COVP, {"decay": 0.95}),
    "covp_centered": ContinualVariant("covp", _COVP, {"centered": True}),
    "covp_diagonal": ContinualVariant("covp", _COVP, {"directions": "diagonal"}),
    "covp_random": ContinualVariant("covp", _COVP, {"directions": "random"}),
    "covp_first": ContinualVariant("covp", _COVP, {"history": "first"}),
    "covp_last": ContinualVariant("covp", _COVP, {"history": "last"}),
    "closed_form": ContinualVariant("closed_form", _RIDGE, by_gradients=False),
    # fewer bytes than covp keeps with 784-100-100-10 units
    "closed_form_half": ContinualVariant(
        "closed_form", _RIDGE, {"precision": "half"}, features=2900, by_gradients=False
    ),
    "closed_form_covp": ContinualVariant(
        "closed_form_covp", {**_COVP, **_RIDGE}, {"precision": "half"}
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
