"""The methods of the continual experiments: those of the registry, and variants of them by name.

Plain data: a preset is checked without importing torch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from vntransfer_lab.runner.kinds import CellMethod
from vntransfer_lab.runner.schema import Natural, schema


@dataclass(frozen=True)
class ContinualVariant:
    """A method under a name of its own.

    Parameters
    ----------
    id
        Id in `vntransfer.continual.METHODS`.
    tuned
        Hyper-parameter -> its default; a preset gives lists of candidates.
    options
        Fixed options that make it this variant.
    memory
        What the experiment's memory of so many samples per task means to it: a memory per "task",
        one for the "stream", samples for the "fisher" information, or nothing.
    version
        Raised when its results change.
    """

    id: str
    tuned: Mapping[str, float] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    memory: Literal["task", "stream", "fisher", ""] = ""
    version: int = 1


_RSP = {"strength": 1.0}
_COVP = {"strength": 10.0}

VARIANTS: dict[str, ContinualVariant] = {
    "sgd": ContinualVariant("sgd"),
    "ewc": ContinualVariant("ewc", {"strength": 10.0}, memory="fisher"),
    "ewc_online": ContinualVariant("ewc", {"strength": 10.0}, {"form": "online"}, "fisher"),
    "ewc_all": ContinualVariant(
        "ewc", {"strength": 10.0}
    ),  # Fisher information on all samples of a task
    "ewc_explicit": ContinualVariant("ewc", {"strength": 10.0}, {"update": "explicit"}, "fisher"),
    # what the public code behind the paper's EWC does, explicit steps included
    "ewc_squared_mean": ContinualVariant(
        "ewc", {"strength": 100.0}, {"fisher": "squared_mean", "update": "explicit"}, "fisher"
    ),
    "rewc": ContinualVariant("rewc", {"strength": 10.0}, memory="fisher"),
    "agem": ContinualVariant("agem", {"margin": 0.0}, memory="task"),
    "gem": ContinualVariant("gem", {"margin": 0.5}, memory="task"),
    "mer": ContinualVariant("mer", {"beta": 0.01}, memory="stream"),
    "rsp": ContinualVariant("rsp", _RSP, memory="fisher"),
    "rsp_untuned": ContinualVariant("rsp", _RSP, memory="fisher"),
    "rsp_constant": ContinualVariant("rsp", _RSP, {"relatedness": "constant"}, "fisher"),
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
    # so weak that it only watches
    "rsp_watching": ContinualVariant("rsp", {}, {"strength": 1e-12}, "fisher"),
    "l2": ContinualVariant("l2", {"strength": 1.0}),
    "l2_separate": ContinualVariant("l2", {"strength": 1.0}, {"anchor": "separate"}),
    "freeze": ContinualVariant("freeze"),
    "si": ContinualVariant("si", {"strength": 0.1}),
    "er": ContinualVariant("er", {"replay": 10}, memory="stream"),
    "derpp": ContinualVariant("derpp", {"alpha": 0.5, "beta": 0.5}, memory="stream"),
    "gpm": ContinualVariant("gpm", {"threshold": 0.95}),
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
    """Give what a preset may say about each method: lists of candidates for what is tuned.

    Examples
    --------
    >>> options()["ewc"].options().strength
    [10.0]
    """
    found = {}
    for name, variant in VARIANTS.items():
        tuned = {key: _candidates(value) for key, value in variant.tuned.items()}
        extra = {"ewc_strength": _candidates(10.0)} if name == "rsp_untuned" else {}
        fields = {**SHARED, **tuned, **extra}
        found[name] = CellMethod(schema(**fields), version=variant.version)
    return found
