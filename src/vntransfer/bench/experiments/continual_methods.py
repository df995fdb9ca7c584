"""The methods of the continual experiments: those of the registry, and variants of them by name.

Plain data: a preset is checked without importing torch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from vntransfer.bench.kinds import Method
from vntransfer.bench.options import Option


@dataclass(frozen=True)
class Variant:
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

VARIANTS: dict[str, Variant] = {
    "sgd": Variant("sgd"),
    "ewc": Variant("ewc", {"strength": 10.0}, memory="fisher"),
    "ewc_online": Variant("ewc", {"strength": 10.0}, {"form": "online"}, "fisher"),
    "ewc_all": Variant("ewc", {"strength": 10.0}),  # Fisher information on all samples of a task
    "ewc_explicit": Variant("ewc", {"strength": 10.0}, {"update": "explicit"}, "fisher"),
    # what the public code behind the paper's EWC does, explicit steps included
    "ewc_squared_mean": Variant(
        "ewc", {"strength": 100.0}, {"fisher": "squared_mean", "update": "explicit"}, "fisher"
    ),
    "rewc": Variant("rewc", {"strength": 10.0}, memory="fisher"),
    "agem": Variant("agem", {"margin": 0.0}, memory="task"),
    "gem": Variant("gem", {"margin": 0.5}, memory="task"),
    "mer": Variant("mer", {"beta": 0.01}, memory="stream"),
    "rsp": Variant("rsp", _RSP, memory="fisher"),
    "rsp_untuned": Variant("rsp", _RSP, memory="fisher"),
    "rsp_constant": Variant("rsp", _RSP, {"relatedness": "constant"}, "fisher"),
    "rsp_reversed": Variant("rsp", _RSP, {"relatedness": "reversed"}, "fisher"),
    "rsp_random": Variant("rsp", _RSP, {"grouping": "random"}, "fisher"),
    "rsp_index": Variant("rsp", _RSP, {"response": "index"}, "fisher"),
    "rsp_upper": Variant("rsp", _RSP, {"first_layer": "none"}, "fisher"),
    "rsp_over_groups": Variant("rsp", {"strength": 3.0}, {"normalise": "groups"}, "fisher"),
    **{f"rsp_{k}_groups": Variant("rsp", _RSP, {"groups": k}, "fisher") for k in (5, 10, 15, 20)},
    # so weak that it only watches
    "rsp_watching": Variant("rsp", {}, {"strength": 1e-12}, "fisher"),
    "l2": Variant("l2", {"strength": 1.0}),
    "l2_separate": Variant("l2", {"strength": 1.0}, {"anchor": "separate"}),
    "freeze": Variant("freeze"),
    "si": Variant("si", {"strength": 0.1}),
    "er": Variant("er", {"replay": 10}, memory="stream"),
    "derpp": Variant("derpp", {"alpha": 0.5, "beta": 0.5}, memory="stream"),
    "gpm": Variant("gpm", {"threshold": 0.95}),
    "kfac": Variant("kfac", {"strength": 10.0}),
    "kfac_ten": Variant("kfac", {"strength": 10.0}, memory="fisher"),
    "covp": Variant("covp", _COVP),
    "covp_input": Variant("covp", {"strength": 1.0}, {"sides": "input"}),
    "covp_exponential": Variant("covp", {"strength": 4.0}, {"filter": "exponential"}),
    # with replay of ten samples per step
    "covp_er": Variant("covp", _COVP, memory="stream", version=2),
    "covp_rank_100": Variant("covp", _COVP, {"rank": 100}),
    "covp_open": Variant("covp", _COVP, {"open_share": 0.01}),
    "covp_forgetting": Variant("covp", _COVP, {"decay": 0.95}),
    "covp_centred": Variant("covp", _COVP, {"centred": True}),
    "covp_diagonal": Variant("covp", _COVP, {"directions": "diagonal"}),
    "covp_random": Variant("covp", _COVP, {"directions": "random"}),
    "covp_first": Variant("covp", _COVP, {"history": "first"}),
    "covp_last": Variant("covp", _COVP, {"history": "last"}),
}

SHARED = {
    "lr": Option([0.01], low=0),
    "batch_size": Option(0, low=0),  # 0: the experiment's
    "epochs": Option(0, low=0),
}


def options() -> dict[str, Method]:
    """Give what a preset may say about each method: lists of candidates for what is tuned.

    Examples
    --------
    >>> options()["ewc"].options["strength"].default
    [10.0]
    """
    found = {}
    for name, variant in VARIANTS.items():
        tuned = {key: Option([value], low=0) for key, value in variant.tuned.items()}
        extra = {"ewc_strength": Option([10.0], low=0)} if name == "rsp_untuned" else {}
        found[name] = Method({**SHARED, **tuned, **extra}, version=variant.version)
    return found
