"""Columns and rows that mislead: what models, pages and commands make of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from helpers.towns import towns, write
from vntransfer import DataWarning, adapt, learn_tasks, load
from vntransfer.cli import app
from vntransfer.workflows import learn

ROLES: dict[str, Any] = {"domain": "town", "response": "price"}
RIDGE: dict[str, Any] = {**ROLES, "target": "new", "method": "ridge", "compare": ()}
QUICK = ["--domain", "town", "--response", "price", "--target", "new", "--method", "ridge"]


def true_prices(n: int = 60) -> tuple[dict[str, Any], np.ndarray]:
    """Towns whose prices depend on the size and much else, and the prices that are hidden."""
    rng = np.random.default_rng(7)
    table = {name: np.array(cells, dtype=object) for name, cells in towns(n).items()}
    price = 3 * table["size"].astype(float) + rng.normal(0, 40, 5 * n)
    new = table["town"] == "new"
    return {**table, "price": np.where(new, np.nan, price)}, price


def test_a_leak_is_dropped_and_the_expected_error_is_honest(tmp_path: Path) -> None:
    table, price = true_prices()
    table["price_eur"] = 1.08 * table["price"]
    with pytest.warns(DataWarning, match=r"'price_eur'.*dropped.* 60 rows"):
        model = adapt(table, **RIDGE)
    new = table["town"] == "new"
    rows = {name: cells[new] for name, cells in table.items() if name != "price_eur"}
    found = model.predict(rows)  # what was dropped is not needed
    error = float(np.abs(found.value - price[new]).mean())
    mean, spread = model.outcomes["new"].expected()
    assert abs(error - mean) < max(3 * spread, 0.3 * error)
    covered = (found.low <= price[new]) & (price[new] <= found.high)
    assert covered.mean() > 0.75
    assert any("'price_eur' is dropped" in note for note in model.notes)
    assert "'price_eur' is dropped" in model.summary()
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.details == model.details
    assert "columns not used" not in " ".join(again.check(list(table), None))
    page = model.to_page(tmp_path / "p.html").read_text(encoding="utf-8")
    assert page.index("1 column dropped") < page.index("price_eur")


def test_a_leak_that_the_target_has_stays_until_it_is_dropped(tmp_path: Path) -> None:
    table, price = true_prices()
    table["fee"] = 0.03 * price
    path = write(tmp_path / "a.csv", {k: [*v] for k, v in table.items()})
    told = CliRunner().invoke(app, ["adapt", str(path), *QUICK, "--no-compare"])
    assert "Warning: 'fee' is kept" in told.output
    assert "--drop" in told.output
    with pytest.warns(DataWarning, match="'fee' is kept"):
        leaking = adapt(table, **RIDGE).outcomes["new"].expected()[0]
    assert adapt(table, **RIDGE, drop=["fee"]).outcomes["new"].expected()[0] > 100 * leaking


def test_a_leak_of_several_columns_is_too_good_to_be_true() -> None:
    table, price = true_prices()
    net = price * np.random.default_rng(8).uniform(0.2, 0.8, len(price))
    outcome = adapt({**table, "net": net, "tax": price - net}, **RIDGE).outcomes["new"]
    assert any("sum of columns" in text for text in outcome.warnings)
    assert not any(
        "sum of columns" in text for text in adapt(table, **RIDGE).outcomes["new"].warnings
    )


def test_files_in_blocks_are_checked_too(tmp_path: Path) -> None:
    table, _ = true_prices()
    columns = {
        **{name: cells.tolist() for name, cells in table.items()},
        "price_eur": (1.08 * table["price"]).tolist(),
        "customer": np.random.default_rng(0).permutation(300).tolist(),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=50)
    options = {**RIDGE, "method": "closed_form"}
    with pytest.warns(DataWarning, match="'price_eur' is dropped"):
        streamed = adapt(tmp_path / "a.parquet", engine="local", **options)
    with pytest.warns(DataWarning, match="'price_eur' is dropped"):
        held = adapt(tmp_path / "a.parquet", **options)
    assert streamed.encoder == held.encoder
    assert streamed.encoder.needed == ["size", "garden", "kind"]
    dropped = [note for note in held.details if note.done == "dropped"]
    assert [note for note in streamed.details if note.done == "dropped"] == dropped


def test_many_notes_are_counted_unless_all_are_asked_for(tmp_path: Path) -> None:
    new = np.array([name == "new" for name in towns()["town"]])
    rng = np.random.default_rng(0)
    empty = {f"e{i}": np.where(new, "", rng.integers(0, 9, len(new))).tolist() for i in range(8)}
    path = write(tmp_path / "a.csv", {**towns(), **empty})
    command = ["adapt", str(path), *QUICK, "--no-compare"]
    short, full = (CliRunner().invoke(app, [*command, *more]) for more in ([], ["--verbose"]))
    assert short.output.count("is dropped: empty in all 25 rows") == 3
    assert "8 columns dropped" in short.output
    assert full.output.count("is dropped: empty in all 25 rows") == 8
    assert "--verbose" not in full.output


def test_tripled_rows_and_an_id_change_nothing_but_the_count() -> None:
    table, _ = true_prices()
    plain = adapt(table, **RIDGE)
    ids = np.random.default_rng(1).permutation(len(table["town"]))
    tripled = {name: np.repeat(cells, 3) for name, cells in {**table, "id": ids}.items()}
    with pytest.warns(DataWarning, match=r"480 of 720 rows.*repeat"):
        model = adapt(tripled, **RIDGE)
    assert model.encoder.needed == plain.encoder.needed
    assert any("'id' is dropped: an id" in note for note in model.notes)
    np.testing.assert_allclose(
        model.outcomes["new"].expected()[0], plain.outcomes["new"].expected()[0], rtol=0.02
    )


def test_outliers_and_sources_of_other_sizes_cause_no_false_alarm() -> None:
    rng = np.random.default_rng(3)
    town = np.repeat(["tiny", "large", "mid", "new"], [3, 50_000, 400, 100])
    x = rng.normal(size=(len(town), 3))
    price = np.exp(1.5 * x[:, 0] + rng.normal(0, 0.5, len(town)))
    price[rng.integers(0, 50_000, 20)] *= 1e3
    columns = {f"x{i}": x[:, i] for i in range(3)}
    table = {"town": town, **columns, "price": np.where(town == "new", np.nan, price)}
    model = adapt(table, **RIDGE)
    assert model.encoder.needed == list(columns)
    assert not [note for note in model.details if note.warning]
    told = {**table, "fee": np.where(town == "new", x[:, 0], 0.1 * price)}
    with pytest.warns(DataWarning, match=r"'fee'.*kept.*determines"):
        adapt(told, **RIDGE)


def test_equal_rows_of_a_task_are_learned_or_scored() -> None:
    rng = np.random.default_rng(0)
    x = np.repeat(rng.normal(size=(60, 2)), 4, axis=0)
    table = {"week": np.repeat([1, 2], 120), "a": x[:, 0], "b": x[:, 1], "y": x.sum(1)}
    parts = []

    def recorded(*arguments: Any) -> Any:
        learned, scored = split(*arguments)
        keys = arguments[3]
        parts.append((set(keys[learned].tolist()) & set(keys[scored].tolist()), len(scored)))
        return learned, scored

    split = learn._split
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learn, "_split", recorded)
        learn_tasks(table, task="week", response="y", epochs=1)
    assert [shared for shared, _ in parts] == [set(), set()]
    assert all(n % 4 == 0 and n > 0 for _, n in parts)
