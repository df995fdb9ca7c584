"""Random attacks on the library, each of one seed: a part gives a word for how it ended.

"right" and "refused" (one of our errors) are fine, and so is a number with a `NumericalWarning`.
Whatever else is raised is a finding: `WrongError` for a wrong number or a lost file, any other
exception for a traceback that a user would see.
"""

import gzip
import random
import shutil
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import torch

from helpers import oracles, saved, tiny, worlds
from vntransfer import DIVERGENCES, load, response_divergence
from vntransfer.adaptation import METHODS
from vntransfer.continual import METHODS as CONTINUAL
from vntransfer.errors import NumericalWarning, VnError
from vntransfer.tables import ReadOptions
from vntransfer.tables.frame import read_frame

Part = Callable[[int, Path], str]


class WrongError(AssertionError):
    """A wrong number without a warning, or a file that is lost."""


def attack(part: Part, seed: int, place: Path) -> str:
    """Run a part in an empty folder; our own errors are refusals."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            return part(seed, place)
        except VnError:
            return "refused"
        except WrongError:
            if any(issubclass(one.category, NumericalWarning) for one in caught):
                return "warned"
            raise


def require(condition: object, what: str) -> None:
    if not condition:
        raise WrongError(what)


def numeric(seed: int, place: Path) -> str:
    """Divergences of matrices and samples of any scale, rank and type against 50 digits."""
    rng = np.random.default_rng(seed)
    kind = torch.float32 if rng.random() < 0.3 else torch.float64
    scale, d = 10 ** rng.uniform(-6, 6), int(rng.integers(2, 6))
    if rng.random() < 0.4:
        n, rank = int(rng.integers(3, 12)), int(rng.integers(1, d + 1))
        low = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) * scale
        parts = [torch.tensor(v).to(kind) for v in (low, *(rng.normal(size=(2, n)) * scale))]
        ridge = float(torch.tensor(scale**2 * 10 ** rng.uniform(-4, 0)).to(kind))
        x, a, b = parts
        got = float(response_divergence(x, a, b, ridge=ridge))
        exact = [oracles.exact(part) for part in parts]
        want = oracles.response_divergence(exact[0], exact[1], exact[2], ridge)
        size = scale**2
    else:
        name = str(rng.choice(sorted(oracles.ORACLES)))
        spread = rng.uniform(0, 3 if kind == torch.float64 else 1)
        pair = []
        for _ in range(2):
            q = np.linalg.qr(rng.normal(size=(d, d)))[0]
            m = (q * 10 ** rng.uniform(-spread, spread, d)) @ q.T * scale
            pair.append(torch.tensor((m + m.T) / 2).to(kind))
        got = float(DIVERGENCES[name].function(*pair))
        want = oracles.ORACLES[name](*map(oracles.exact, pair))
        size = 10 ** (2 * spread) * max(1.0, scale)
    room = 1e-3 * abs(float(want)) + 1e3 * torch.finfo(kind).eps * size
    require(abs(got - float(want)) <= room, f"got {got!r}, expected {float(want)!r}")
    return "right"


def _world(rng: np.random.Generator) -> worlds.World:
    x, y, domain = worlds.easy(int(rng.integers(12, 40)), int(rng.integers(1000)))
    x, y = x * 10 ** rng.uniform(-5, 5), y * 10 ** rng.uniform(-5, 5)
    for column in range(x.shape[1]):
        if rng.random() < 0.2:
            x[:, column] = rng.choice([0.0, 1e12, float(x[0, column])])
    keep = rng.random(len(x)) < rng.choice([1.0, 0.5, 0.1])
    return x[keep], y[keep], domain[keep]


def estimators(seed: int, place: Path) -> str:
    """Any method on hostile data: finite predictions, and the same ones again."""
    rng = np.random.default_rng(seed)
    x, y, domain = _world(rng)
    method = METHODS[str(rng.choice([name for name, one in METHODS.items() if one.neural]))]
    made = [
        method.make(epochs=1, steps=4, batch_size=8, random_state=0).fit(x, y, sample_domain=domain)
        for _ in range(2)
    ]
    one, two = (model.predict(x) for model in made)
    require(np.isfinite(one).all(), f"{method.estimator.__name__} predicts what is not finite")
    require(np.array_equal(one, two), f"{method.estimator.__name__} is not reproducible")
    return "right"


def continual(seed: int, place: Path) -> str:
    """Any method on tasks of any scale: finite parameters."""
    rng = np.random.default_rng(seed)
    name = str(rng.choice(sorted(CONTINUAL)))
    tasks = (tiny.classes if rng.random() < 0.5 else tiny.responses)(2, int(rng.integers(1, 9)))
    scale = float(10 ** rng.uniform(-6, 6))
    tasks = [replace(task, x=task.x * scale) for task in tasks]
    model = tiny.net(3 if not tasks[0].y.is_floating_point() else 1)
    method = tiny.learn(tiny.make(name, model), tasks, lr=float(10 ** rng.uniform(-6, 0)))
    require(torch.isfinite(tiny.flat(method.model)).all(), f"{name}: parameters are not finite")
    return "right"


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


@cache
def _model() -> tuple[Path, Any, Any]:
    x, y, domain = worlds.easy(20)
    model = (
        METHODS["source_only"]
        .make(epochs=1, steps=4, random_state=0)
        .fit(x, y, sample_domain=domain)
    )
    folder = Path(mkdtemp()) / "model"
    model.save(folder)
    return folder, x, model.predict(x)


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
    original, x, expected = _model()
    folder = shutil.copytree(original, place / "model")
    if rng.random() < 0.5:

        def change(content: dict[str, Any]) -> None:
            mutated = _mutate(content, rng)
            content.clear()
            content.update(mutated)
            content.setdefault("sha256", "")

        saved.edit(folder, change)  # a forged record: whatever it says, no traceback
        load(folder).predict(x)
        return "forged"
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = rng.choice(files)
    raw = path.read_bytes()
    place_of = rng.randrange(len(raw))
    flipped = bytes([raw[place_of] ^ 1 << rng.randrange(8)])
    path.write_bytes(
        rng.choice(
            [
                raw[:place_of],
                raw[:place_of] + flipped + raw[place_of + 1 :],
                rng.choice(files).read_bytes(),
            ]
        )
    )
    require(np.array_equal(load(folder).predict(x), expected), f"{path.name}: other predictions")
    return "right"


PARTS: Mapping[str, Part] = {
    "numeric": numeric,
    "estimators": estimators,
    "continual": continual,
    "tables": tables,
    "folders": folders,
}
