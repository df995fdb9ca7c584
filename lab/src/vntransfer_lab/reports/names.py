"""Names of methods, data sets and metrics in words, for pages; other forms keep the ids."""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from importlib.resources import files
from typing import Any

from vntransfer_lab.reports.report import Report, condition_text, label_of

_KNOWN = tomllib.loads((files("vntransfer_lab.reports") / "names.toml").read_text("utf-8"))
WORDS: dict[str, str] = _KNOWN["methods"]


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
        self.words = _KNOWN["metrics"] | methods | data
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
        ids = [
            name
            for name, said in self.words.items()
            if name != said and name not in _KNOWN["english"]
        ]
        listed = "|".join(map(re.escape, sorted(ids, key=len, reverse=True)))
        self.pattern = re.compile(rf"(?<![\w:=])(?:{listed})(?![\w=]|:\w)" if ids else r"(?!)")

    def __call__(self, text: str) -> str:
        """Put the words for ids into a text; its end may be an id that is also an English word."""
        head, comma, last = text.rpartition(", ")
        if comma and last in self.words:
            return f"{self(head)}, {self.words[last]}"
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
