"""Names of methods, data sets and metrics in words, for pages; other forms keep the ids."""

import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from vntransfer_lab.reports.report import Report, condition_text, label_of

WORDS = {
    "agem": "A-GEM",
    "ahd_1s": "AHD-1S",
    "ahd_msda": "AHD-MSDA",
    "align": "moment alignment",
    "auto": "default method",
    "boosting": "boosted trees",
    "catboost": "CatBoost",
    "closed_form": "random features",
    "closed_form_covp": "random features, projected",
    "conditional_von_neumann": "conditional von Neumann",
    "constant": "one constant",
    "coral": "CORAL",
    "covp": "projected training",
    "dann": "DANN",
    "dare_gram": "DARE-GRAM",
    "darn": "DARN",
    "derpp": "DER++",
    "er": "experience replay",
    "ewc": "EWC",
    "gpm": "GPM",
    "jeffreys": "Jeffreys",
    "kfac": "K-FAC",
    "l2": "L2",
    "mdan_dyn": "MDAN (soft maximum)",
    "mdan_max": "MDAN (maximum)",
    "mdd": "MDD",
    "mdd_paper": "MDD",
    "mer": "MER",
    "mse": "squared error",
    "rewc": "R-EWC",
    "ridge": "ridge regression",
    "rsp": "RSP",
    "sgd": "plain training",
    "sgp": "SGP",
    "si": "SI",
    "source_only": "plain network",
    "source_only_5": "plain ensemble",
    "von_neumann": "von Neumann",
    "weighted": "weighted ridge",
    "weighted_boosting": "weighted boosted trees",
}
"""Methods; one with a longer id is called by its family and the rest of its id."""

METRICS = {
    "mae": "mean absolute error",
    "mae_raw": "mean absolute error in the unit of the response",
    "ra": "retained accuracy",
    "rmse": "root mean squared error",
    "game2": "GAME(2)",
    "train_mae": "error on the training pictures",
}

ENGLISH = (
    *("absolute", "align", "area", "auto", "boosting", "constant", "freeze", "huber", "oracle"),
    *("ridge", "si", "squared", "weighted"),
)
"""Ids that can be words of a sentence: they are names only where they stand alone."""


def method_name(method: str) -> str:
    """Name a method in words.

    Examples
    --------
    >>> method_name("covp_rank_100"), method_name("rsp_published"), method_name("my_own")
    ('projected training (rank 100)', 'RSP (published)', 'my own')
    """
    if method in WORDS:
        return WORDS[method]
    family = max((known for known in WORDS if method.startswith(f"{known}_")), key=len, default="")
    rest = method.removeprefix(family).replace("_", " ").strip()
    return f"{WORDS[family]} ({rest})" if family else rest


def data_names(data: Iterable[str]) -> dict[str, str]:
    """Name data sets by what distinguishes them.

    Examples
    --------
    >>> list(data_names(["bike:k=7,seed=2", "bike:k=7,cut=9", "pol:k=7,seed=2"]).values())
    ['bike, seed 2', 'bike, cut 9', 'pol']
    """
    split = {name: name.partition(":")[::2] for name in data}
    options = {name: own.split(",") if own else [] for name, (_, own) in split.items()}
    shared: dict[str, set[str]] = {}
    for name, (base, _) in split.items():
        shared[base] = shared.get(base, set(options[name])) & set(options[name])
    names = {}
    for name, (base, _) in split.items():
        own = [part.replace("=", " ") for part in options[name] if part not in shared[base]]
        names[name] = ", ".join(own if own and len(shared) == 1 else [base, *own])
    return names


class Names:
    """The words for all ids of a report."""

    def __init__(self, loaded: Report) -> None:
        data = data_names(loaded.preset.data)
        methods = {m: method_name(m) for m in loaded.preset.methods} | dict(loaded.kind.words)
        self.words = METRICS | methods | data
        for group, condition in loaded.chosen:
            targets = {target for _, target, _ in loaded.chosen[group, condition]}
            for name in (group, *targets, "mean") if condition else ():
                told = ", ".join(
                    f"{k.removeprefix('n_').replace('_', ' ')} "
                    + (f"{v:g}" if isinstance(v, float) else str(v))
                    for k, v in condition
                )
                self.words[label_of(name, condition)] = f"{data.get(name, name)}, {told}"
                self.words[condition_text(condition)] = told
        ids = [name for name, said in self.words.items() if name != said and name not in ENGLISH]
        listed = "|".join(map(re.escape, sorted(ids, key=len, reverse=True)))
        self.pattern = re.compile(rf"(?<![\w:=])(?:{listed})(?![\w=]|:\w)" if ids else r"(?!)")

    def __call__(self, text: str) -> str:
        """Put the words for ids into a text."""
        return self.words.get(text) or self.pattern.sub(lambda own: self.words[own[0]], text)

    def inside(self, thing: Any) -> Any:
        """Return a table, a drawing or a part of one with words for the ids in its texts."""
        if type(thing) is str:
            return self(thing)
        if isinstance(thing, list | tuple):
            return type(thing)(map(self.inside, thing))
        if is_dataclass(thing) and not isinstance(thing, type):
            own = {field.name: getattr(thing, field.name) for field in fields(thing)}
            return replace(thing, **{name: self.inside(value) for name, value in own.items()})
        return thing
