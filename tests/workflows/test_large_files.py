"""Files larger than memory: the same model however rows are split and whoever reads them."""

import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vntransfer import adapt, load
from vntransfer.errors import ArgumentError, DataError, DomainError
from vntransfer.row_sample import RowSample
from vntransfer.workflows import adapt_settings, adapt_streamed
from vntransfer.workflows.prediction_intervals import KEPT

ROLES: dict[str, Any] = {"domain": "town", "response": "price", "target": "new"}


def table(n: int = 400, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    town = np.array(["A", "B", "C", "new"])[rng.integers(0, 4, n)]
    x, z = rng.normal(size=n), rng.normal(1e3, 5, size=n)
    kind = np.array(["flat", "house", "hut"])[rng.integers(0, 3, n)]
    price = np.sin(x) + 0.1 * z + (kind == "hut") + 0.1 * rng.normal(size=n)
    unknown = (town == "new") | (rng.random(n) < 0.05)
    return pa.table(
        {
            "town": town,
            "x": x,
            "z": z,
            "kind": kind,
            "price": pa.array(price, mask=unknown),
        }
    )


def write(rows: pa.Table, path: Path) -> Path:
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(rows, path)
    else:
        pyarrow.parquet.write_table(rows, path, row_group_size=77)
    return path


def pieces(rows: pa.Table, cuts: list[int], folder: Path, kind: str) -> list[Path]:
    bounds = sorted({0, *cuts, len(rows)})
    return [
        write(rows.slice(a, b - a), folder / f"part-{i:03}.{kind}")
        for i, (a, b) in enumerate(pairwise(bounds))
    ]


def new_rows() -> pa.Table:
    return table(100, seed=1).drop_columns("price")


def predicted(model: Any) -> Any:
    found = model.predict({name: new_rows()[name].to_pylist() for name in ("x", "z", "kind")})
    return np.stack((found.value, found.low, found.high))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_blocks_give_the_model_of_all_rows_in_memory(tmp_path: Path, kind: str) -> None:
    path = write(table(), tmp_path / f"rows.{kind}")
    whole = adapt(path, **ROLES, method="closed_form", compare=())
    streamed = adapt(path, **ROLES, method="closed_form", engine="local")
    np.testing.assert_allclose(predicted(streamed)[0], predicted(whole)[0], rtol=1e-9)
    own, other = streamed.outcomes["new"], whole.outcomes["new"]
    assert (own.rows, set(own.source_weights)) == (other.rows, {"A", "B", "C"})
    # the same rows are held out; in memory, scales are learned without the source
    assert own.expected()[0] == pytest.approx(other.expected()[0], rel=0.1)
    # a median of an even number of rows is the lower of the two in the middle
    assert own.errors["constant"] == pytest.approx(other.errors["constant"], rel=1e-3)


@settings(deadline=None, max_examples=25)
@given(
    cuts=st.lists(st.integers(1, 399), max_size=8),
    kind=st.sampled_from(["csv", "parquet"]),
    look=st.sampled_from([2000, 150]),
)
def test_any_split_gives_the_same_predictions(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], kind: str, look: int
) -> None:
    folder = tmp_path_factory.mktemp("split")
    one = write(table(), folder / f"whole.{kind}")
    parts = pieces(table(), cuts, folder, kind)
    with pytest.MonkeyPatch.context() as patch:
        fixed = adapt_streamed.read_fixed
        patch.setattr(adapt_streamed, "read_fixed", lambda f, c, o, n, k: fixed(f, c, o, look, k))
        models = [adapt(data, **ROLES, method="closed_form", engine="local")
                  for data in (one, parts)]  # fmt: skip
    first, second = map(predicted, models)
    np.testing.assert_allclose(second, first, rtol=1e-9)


@given(st.lists(st.integers(0, 40), max_size=300), st.integers(0, 9))
def test_samples_do_not_depend_on_order_or_split(values: list[int], seed: int) -> None:
    rows = np.array(values, dtype=float).reshape(-1, 1) * [1.0, -0.5]
    rng = np.random.default_rng(seed)
    made = []
    for order in (np.arange(len(rows)), rng.permutation(len(rows))):
        total = RowSample()
        for part in np.array_split(rows[order], 3):
            own = RowSample()
            own.add(part)
            total.merge(own)
        made.append((total.keys.tolist(), total.counts.tolist()))
    assert made[0] == made[1]
    assert sum(made[0][1]) == len(rows)


def test_large_samples_are_bounded_and_fair() -> None:
    rng = np.random.default_rng(0)
    sample, rows = RowSample(), rng.integers(0, 5000, size=(60_000, 1)).astype(float)
    for part in np.array_split(rows, 40):
        sample.add(part)
    assert len(sample.keys) == KEPT
    assert sample.rows is not None
    counts = np.bincount(rows[:, 0].astype(int), minlength=5000)
    assert (counts[sample.rows[:, 0].astype(int)] == sample.counts).all()
    assert np.average(sample.rows[:, 0], weights=sample.counts) == pytest.approx(2500, rel=0.05)


def test_labels_of_the_target_are_not_read(tmp_path: Path) -> None:
    rows = table()
    price = ["" if v is None else repr(v) for v in rows["price"].to_pylist()]
    poisoned = [
        "poison" if town == "new" else cell
        for town, cell in zip(rows["town"].to_pylist(), price, strict=True)
    ]
    at = rows.schema.get_field_index("price")
    models = []
    for i, cells in enumerate((price, poisoned)):
        path = write(rows.set_column(at, "price", pa.array(cells)), tmp_path / f"{i}.csv")
        models.append(adapt(path, **ROLES, method="closed_form", engine="local"))
    assert (predicted(models[0]) == predicted(models[1])).all()
    assert any("rows of targets have a response" in note for note in models[1].notes)


def test_labeled_rows_of_the_target_can_help(tmp_path: Path) -> None:
    rows = table()
    price = [
        7.0 + i % 3 if town == "new" and i % 2 else value
        for i, (town, value) in enumerate(
            zip(rows["town"].to_pylist(), rows["price"].to_pylist(), strict=True)
        )
    ]
    at = rows.schema.get_field_index("price")
    path = write(rows.set_column(at, "price", pa.array(price)), tmp_path / "rows.parquet")
    options: dict[str, Any] = {**ROLES, "method": "closed_form", "use_target_labels": True}
    streamed, whole = adapt(path, **options, engine="local"), adapt(path, **options, compare=())
    assert "new (labeled)" in streamed.outcomes["new"].source_weights
    np.testing.assert_allclose(predicted(streamed)[0], predicted(whole)[0], rtol=1e-9)


def test_the_saved_model_is_an_ordinary_one(tmp_path: Path) -> None:
    model = adapt(
        pieces(table(), [100, 250], tmp_path, "parquet"),
        **ROLES,
        method="closed_form",
        engine="local",
    )
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(predicted(load(tmp_path / "model")), predicted(model))
    page = model.to_page(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "rows were streamed: " in page


def test_bad_cells_are_named_with_file_row_and_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = pieces(table(), [200], tmp_path, "csv")
    lines = second.read_text().splitlines()
    cells = lines[41].split(",")
    cells[1] = "oops"
    lines[41] = ",".join(cells)
    second.write_text("\n".join(lines))
    fixed = adapt_streamed.read_fixed
    monkeypatch.setattr(adapt_streamed, "read_fixed", lambda f, c, o, n, k: fixed(f, c, o, 100, k))
    with pytest.raises(DataError) as caught:
        adapt([first, second], **ROLES, method="closed_form", engine="local")
    for part in (str(second), "row 42", "'x'", "oops"):
        assert part in str(caught.value)


def test_wrong_requests_are_named(tmp_path: Path) -> None:
    path = write(table(), tmp_path / "rows.csv")
    with pytest.raises(ArgumentError, match=r"engine: only method 'closed_form' .* got 'ridge'"):
        adapt(path, **ROLES, method="ridge", engine="local")
    with pytest.raises(ArgumentError, match="engine: the table is in memory"):
        adapt(table().to_pydict(), **ROLES, method="closed_form", engine="local")
    with pytest.raises(ArgumentError, match="engine: expected one of local, dask"):
        adapt(path, **ROLES, method="closed_form", engine="spark")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="scheduler: needs engine 'dask'"):
        adapt(path, **ROLES, method="closed_form", scheduler="tcp://here")
    with pytest.raises(DomainError, match=r"target: .* has no place 'nw'"):
        adapt(path, **{**ROLES, "target": "nw"}, method="closed_form", engine="local")


def test_large_files_are_streamed_without_being_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(table(), tmp_path / "rows.csv")
    seen = []
    monkeypatch.setattr(adapt_settings, "LARGE", 100)
    model = adapt(path, **ROLES, method="closed_form", progress=lambda *step: seen.append(step))
    assert model.notes[0].startswith("rows were streamed: ")
    assert seen[-1] == ("rows", 400, 400)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_killed_worker_loses_nothing(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    paths = pieces(table(), [*range(10, 400, 10)], tmp_path, "csv")
    here = adapt(paths, **ROLES, method="closed_form", engine="local")
    killed = []
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as cluster:

        def kill_one(what: str, done: int, total: int | None) -> None:
            if done == 5 and not killed:
                killed.append(cluster.workers[0].pid)
                os.kill(killed[0], signal.SIGKILL)

        there = adapt(
            paths,
            **ROLES,
            method="closed_form",
            engine="dask",
            scheduler=cluster.scheduler_address,
            progress=kill_one,
        )
    assert killed
    np.testing.assert_allclose(predicted(there), predicted(here), rtol=1e-9)
    assert there.outcomes["new"].rows == here.outcomes["new"].rows


def test_the_command_takes_a_pattern(tmp_path: Path) -> None:
    pieces(table(), [100, 250], tmp_path, "parquet")
    command = [str(Path(sys.executable).parent / "vnt"), "adapt", str(tmp_path / "part-*.parquet")]
    roles = ["--domain", "town", "--response", "price", "--target", "new"]
    how = ["--method", "closed_form", "--engine", "local", "--save", str(tmp_path / "model")]
    done = subprocess.run([*command, *roles, *how], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "rows were streamed: " in done.stdout
    new = write(new_rows(), tmp_path / "new.csv")
    command = [
        str(Path(sys.executable).parent / "vnt"),
        "predict",
        str(tmp_path / "model"),
        str(new),
    ]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "out.csv")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 101


def nothing_half_made(folder: Path) -> None:
    """Fail unless only the table is left, and the model if it was saved as a whole before."""
    left = {own.name for own in folder.iterdir()}
    assert left <= {"rows.csv", "model"}
    if "model" in left:
        load(folder / "model")


def test_sigterm_leaves_nothing_behind(tmp_path: Path) -> None:
    big = pa.concat_tables([table(20_000, seed=k) for k in range(20)])
    path = write(big, tmp_path / "rows.csv")
    command = [
        str(Path(sys.executable).parent / "vnt"),
        "adapt",
        str(path),
        "--method",
        "closed_form",
    ]
    roles = ["--domain", "town", "--response", "price", "--target", "new", "--engine", "local"]
    files = ["--save", str(tmp_path / "model"), "--out", str(tmp_path / "page.html")]
    process = subprocess.Popen([*command, *roles, *files], stderr=subprocess.PIPE, text=True)
    time.sleep(4)
    process.terminate()
    _, said = process.communicate(timeout=30)
    if process.returncode in (0, -signal.SIGTERM):
        pytest.skip("the command was done before the signal, or had not begun")
    assert process.returncode == 143
    assert "SIGTERM" in said
    nothing_half_made(tmp_path)


@pytest.mark.parametrize("moment", ["starting", "reading"])
@pytest.mark.parametrize("command", ["relate", "adapt"])
def test_sigterm_ends_a_cluster_of_our_own(command: str, moment: str, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    import psutil  # a dependency of distributed

    path = write(
        pa.concat_tables([table(20_000, seed=k) for k in range(10)]), tmp_path / "rows.csv"
    )
    words = [command, str(path), "--domain", "town", "--response", "price", "--engine", "dask"]
    words += ["--out", str(tmp_path / "page.html")]
    if command == "adapt":
        words += ["--target", "new", "--method", "closed_form", "--save", str(tmp_path / "model")]
    process = subprocess.Popen(
        [str(Path(sys.executable).parent / "vnt"), *words], stderr=subprocess.PIPE, text=True
    )
    own, end = psutil.Process(process.pid), time.monotonic() + 60
    while len(children := own.children(recursive=True)) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    if moment == "reading":
        time.sleep(2)
        children = own.children(recursive=True)
    process.terminate()
    _, said = process.communicate(timeout=60)
    if (tmp_path / "page.html").exists() and process.returncode in (0, -signal.SIGTERM):
        pytest.skip("the command was done before the signal")
    assert process.returncode == 143
    assert "Traceback" not in said
    assert said.splitlines()[-1] == "vnt: stopped; no incomplete file was left (SIGTERM)"
    nothing_half_made(tmp_path)
    _, alive = psutil.wait_procs(children, timeout=20)
    assert not [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]
