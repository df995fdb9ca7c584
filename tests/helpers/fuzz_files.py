"""Attacks on files of a user: tables, what is made of them, and folders of saved models."""

import gzip
import random
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

from helpers import saved
from helpers.fuzzing import Part, require
from helpers.towns import write
from vntransfer import adapt, learn_tasks, load, relate
from vntransfer.tables import ReadOptions
from vntransfer.tables.frame import read_frame


def tables(seed: int, place: Path) -> str:
    """A csv or parquet file of any dialect: what was written, or a refusal."""
    rng = random.Random(seed)
    rows = rng.randrange(1, 40)
    numbers = [rng.choice([rng.gauss(0, 1), rng.randrange(-9999, 9999) / 8]) for _ in range(rows)]
    letters = "abc äß,;\t\"'|#"
    texts = ["".join(rng.choices(letters, k=rng.randrange(1, 8))).strip() for _ in range(rows)]
    if rng.random() < 0.2:
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = place / "t.parquet"
        pq.write_table(pa.table({"n": numbers, "t": texts}), path)
        options = ReadOptions()
    else:
        decimal, delimiter = rng.choice([(".", ","), (".", ";"), (".", "\t"), (",", ";")])
        quote = lambda text: '"' + text.replace('"', '""') + '"'  # noqa: E731
        cells = [repr(v).replace(".", decimal) for v in numbers]
        lines = [f"n{delimiter}t"]
        lines += [f"{n}{delimiter}{quote(t)}" for n, t in zip(cells, texts, strict=True)]
        content = rng.choice(["\n", "\r\n"]).join(lines).encode(rng.choice(["utf-8", "utf-8-sig"]))
        path = place / rng.choice(["t.csv", "t.csv.gz"])
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        options = ReadOptions(decimal=decimal, delimiter=delimiter)
    if rng.random() < 0.3:
        raw = bytearray(path.read_bytes())
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        path.write_bytes(raw[: rng.choice([len(raw), rng.randrange(len(raw))])])
        read_frame(path, options=options)
        return "damaged"
    frame = read_frame(path, options=options)
    require(np.array_equal(frame.columns["n"].numbers(), numbers), "other numbers")
    require(list(map(str, frame.columns["t"].values.to_pylist())) == texts, "other texts")
    return "right"


def _column(rng: random.Random, n: int) -> list[Any]:
    """A column as people have them."""
    kind = rng.randrange(9)
    if kind == 0:
        scale = 10 ** rng.uniform(-9, 9)
        cells: list[Any] = [rng.gauss(rng.choice([0, 5]), 1) * scale for _ in range(n)]
    elif kind == 1:
        cells = [rng.choice([0, 1, 2, 1_000_000]) for _ in range(n)]
    elif kind == 2:
        cells = [rng.choice(["yes", "no"]) for _ in range(n)]
    elif kind == 3:
        cells = [rng.choice(["flat", "house", "hut", "ä b"]) for _ in range(n)]
    elif kind == 4:
        cells = [f"20{rng.randrange(10, 30)}-0{rng.randrange(1, 9)}-1{i % 9}" for i in range(n)]
    elif kind == 5:
        cells = [rng.choice(["", "7"]) for _ in range(n)]
    elif kind == 6:
        cells = [f"{rng.randrange(1, 99)} %" for _ in range(n)]
    elif kind == 7:
        cells = [f"id{i}" for i in range(n)]
    else:
        cells = [rng.choice([12.5, 13.5]) for _ in range(n)]
    for _ in range(rng.choice([0, 0, 0, 0, 0, 0, 0, 0, 1, 3])):
        bad = rng.choice(["", None, "nan", "inf", "-", 1e308, -1e200, "1e999", "?", "x" * 300])
        cells[rng.randrange(n)] = bad
    return cells


def workflows(seed: int, place: Path) -> str:
    """A table of people through relate, adapt and learn: finite numbers, or a refusal."""
    rng = random.Random(seed)
    least = rng.choice([1, 12, 12])
    names = "abcde"[: rng.choice([1, 2, 3, 4, 5, 5, 5])]
    towns = [name for name in names for _ in range(rng.randrange(least, 30))]
    n = len(towns)
    columns = {f"x{i}": _column(rng, n) for i in range(rng.randrange(1, 5))}
    size = 10 ** rng.uniform(-6, 6)
    price: list[Any] = [rng.gauss(0, 1) * size for _ in range(n)]
    for _ in range(rng.choice([0, 0, 0, 0, 0, 0, 0, 1])):
        price[rng.randrange(n)] = rng.choice([1e308, 1e120, "?", "nan", float("inf")])
    target, way = towns[-1], rng.choice(["relate", "adapt", "adapt", "learn"])
    if rng.random() < 0.7 and way != "learn":
        price = [None if town == target else p for town, p in zip(towns, price, strict=True)]
    table: Any = {"town": towns, **columns, "price": price}
    if rng.random() < 0.5:
        table = write(place / "t.csv", table)
    if way == "relate":
        found = relate(table, domain="town", response="price", n_resamples=39, n_bootstrap=20)
        k = len(found.labeled)
        own = [found.names.index(name) for name in found.labeled]
        p = np.asarray(found.p_values)[np.ix_(own, own)][~np.eye(k, dtype=bool)]
        tested = p[np.isfinite(p)]
        require(((tested > 0) & (tested <= 1)).all(), f"p-values {tested}")
        require(np.isfinite(found.divergences[np.ix_(own, own)]).all(), "divergences")
        found.to_page(place / "p.html")
        return "right"
    if way == "learn":
        tasks = learn_tasks(table, task="town", response="price", method="sgd", random_state=0)
        tasks.save(place / "m")
        values = tasks.predict(table)
        require(all(v is not None for v in values), "no prediction")
        same = np.array_equal(values, load(place / "m").predict(table))
        require(same, "other predictions after loading")
        return "right"
    method = rng.choice(["ridge", "weighted", "closed_form", "boosting"])
    model = adapt(table, domain="town", response="price", target=target, method=method, compare=())
    model.save(place / "m")
    one, two = model.predict(table, target=target), load(place / "m").predict(table, target=target)
    parts, loaded = ((p.low, p.value, p.high) for p in (one, two))
    require(np.array_equal(parts, loaded, equal_nan=True), f"{method}: other when loaded")
    if len(model.sources) == 1:  # none to hold out, so there are no intervals
        parts = (one.value,) * 3
    require(np.isfinite(parts).all(), f"{method}: not finite")
    require(bool((np.diff(parts, axis=0) >= 0).all()), f"{method}: not in its interval")
    model.to_page(place / "p.html")
    return "right"


@cache
def _models() -> dict[str, tuple[Path, Any]]:
    """Give folders with models of all kinds, and what they predict."""
    place, models = Path(mkdtemp()), {}
    for kind in saved.KINDS:
        model = saved.fitted(kind)
        model.save(place / kind)
        models[kind] = place / kind, saved.predictions(model, kind)
    return models


def _mutate(value: Any, rng: random.Random) -> Any:
    """Change one value somewhere in JSON."""
    if isinstance(value, dict) and value:
        key = rng.choice(sorted(value))
        if rng.random() < 0.2:
            return {name: other for name, other in value.items() if name != key}
        return value | {key: _mutate(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        i = rng.randrange(len(value))
        return [*value[:i], _mutate(value[i], rng), *value[i + 1 :]]
    return rng.choice([None, -1, 0, 1e308, "", "x" * 50, [], {}, True, [value], 10**30])


def folders(seed: int, place: Path) -> str:
    """A saved model with a damaged file is refused or gives the same predictions."""
    rng = random.Random(seed)
    kind = rng.choice(saved.KINDS)
    original, expected = _models()[kind]
    folder = shutil.copytree(original, place / "model")
    if rng.random() < 0.5:

        def change(content: dict[str, Any]) -> None:
            mutated = _mutate(content, rng)
            content.clear()
            content.update(mutated)
            content.setdefault("sha256", "")

        saved.edit(folder, change)  # a forged record: whatever it says, no traceback
        found = saved.predictions(load(folder), kind)
        require(found.dtype == object or np.isfinite(found).all(), f"{kind}: not finite")
        return "forged"
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = rng.choice(files)
    raw = path.read_bytes()
    at = rng.randrange(len(raw))
    flipped = raw[:at] + bytes([raw[at] ^ 1 << rng.randrange(8)]) + raw[at + 1 :]
    swapped = rng.choice(files).read_bytes()
    path.write_bytes(rng.choice([raw[:at], flipped, swapped]))
    found = saved.predictions(load(folder), kind)
    require(np.array_equal(found, expected), f"{kind}, {path.name}: other predictions")
    return "right"


PARTS: Mapping[str, Part] = {"tables": tables, "workflows": workflows, "folders": folders}
