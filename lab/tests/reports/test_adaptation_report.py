"""Tables and figures of ``adaptation``, against calculations from the raw records."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr

from lab_helpers.runs import changed, finished
from vntransfer.errors import ArgumentError
from vntransfer.pages import Heatmap, Intervals, Lines
from vntransfer.pages.layout import colors, panels
from vntransfer.pages.picture import picture
from vntransfer_lab.experiments.adaptation_report import (
    choice_table,
    error_panels,
    figures,
    ratio_map,
    relative_table,
    summary_table,
    tables,
)
from vntransfer_lab.experiments.adaptation_weights import (
    Weights,
    agreement,
    asymmetry,
    changes,
    closeness,
    collect,
    epoch_curves,
    heat_maps,
)
from vntransfer_lab.reports.report import Report, View, load_report, value_table
from vntransfer_lab.reports.statistics import Estimate
from vntransfer_lab.reports.tables import Number, NumberPair, ReportTable, render, sort_key
from vntransfer_lab.runner.cells import IDENTITY, expand
from vntransfer_lab.runner.kinds import load_kind
from vntransfer_lab.runner.preset import check, override, read_preset
from vntransfer_lab.runner.records import Record

METHODS = ["constant", "source_only", "mdd_paper", "darn"]
SIZES = [30, 60]
GROUP = ("synthetic", (("rows", 60),))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run: two sizes as two 'data sets', all six targets, two seeds, three epochs."""
    settings = {"grid.rows": SIZES, "common.epochs": 3}
    preset = changed("synthetic", methods=METHODS, seeds=2, settings=settings)
    return finished(tmp_path_factory.mktemp("adaptation"), preset)


@pytest.fixture(scope="module")
def loaded(folder: Path) -> Report:
    return load_report(folder)


def column(table: ReportTable, name: str) -> list[Any]:
    return [row[table.header.index(name)] for row in table.rows]


def last(record: Record, name: str) -> float:
    return record.metrics[name][max(record.metrics[name])]


def test_summary_shows_means_ranks_and_ratios(loaded: Report) -> None:
    table = summary_table(loaded)
    assert column(table, "method") == METHODS
    errors = np.array(
        [
            [
                np.mean(
                    [
                        last(r, "mae")
                        for r in loaded.records
                        if (r.method, r.settings["rows"]) == (method, size)
                    ]
                )
                for size in SIZES
            ]
            for method in METHODS
        ]
    )
    for j, size in enumerate(SIZES):
        shown = [sort_key(value) for value in column(table, f"synthetic, rows={size}")]
        assert shown == pytest.approx(errors[:, j])
    assert column(table, "rank") == pytest.approx(rankdata(errors, axis=0).mean(1))
    ratios = np.exp(np.log(errors / errors[METHODS.index("source_only")]).mean(1))
    assert column(table, "ratio") == pytest.approx(ratios)


def test_summary_marks_agree_with_the_tests(loaded: Report) -> None:
    baseline = {
        (r.target, r.seed, r.settings["rows"]): last(r, "mae")
        for r in loaded.records
        if r.method == "source_only"
    }
    shifts = {"constant": 1.0, "darn": -0.05}
    records = [
        replace(r, metrics={"mae": {3: shifts[r.method] + baseline[r.target, r.seed, rows]}})
        if r.method in shifts and (rows := r.settings["rows"]) == 60
        else r
        for r in loaded.records
    ]
    table = summary_table(Report(loaded.preset, loaded.kind, records))
    rows = dict(zip(column(table, "method"), column(table, "synthetic, rows=60"), strict=True))
    assert [rows[m].verdict for m in ("constant", "darn", "source_only")] == ["worse", "better", ""]
    counts = dict(zip(column(table, "method"), column(table, "better/worse"), strict=True))
    assert (counts["darn"], counts["source_only"]) == (NumberPair(1, 0, "/"), None)


def test_a_method_that_lacks_a_target_has_no_mean_and_no_rank(loaded: Report) -> None:
    kept = [r for r in loaded.records if (r.method, r.target) != ("darn", "s4")]
    table = summary_table(Report(loaded.preset, loaded.kind, kept))
    row = table.rows[METHODS.index("darn")]
    assert row[1:5] == [None, None, None, None]
    assert column(table, "rank")[:3] != [None] * 3


def test_all_tables_have_every_form(loaded: Report) -> None:
    found = tables(loaded)
    assert [table.title for table in found] == [
        "all data sets",
        "errors relative to source_only",
        "synthetic",
        "difference to source_only",
        "wins and losses against source_only",
        "weights of the sources",
    ]
    for form in ("terminal", "markdown", "csv"):
        assert render(found, form).count("darn") >= 4


def test_a_view_keeps_methods_and_tests_against_another(loaded: Report, folder: Path) -> None:
    seen = load_report(folder, View("darn", ("mdd_paper",)))
    assert list(seen.preset.methods) == ["mdd_paper", "darn"]
    titles = [table.title for table in seen.tables()]
    assert "difference to darn" in titles
    whole = value_table(loaded, "synthetic")
    shown = value_table(seen, "synthetic")
    assert all(column(shown, name) == column(whole, name) for name in ("mdd_paper", "darn"))
    assert list(load_report(folder, View(methods=("darn",))).preset.methods) == [
        "source_only",  # which the preset compares with
        "darn",
    ]
    with pytest.raises(ArgumentError, match=r"baseline: expected one of .*darn.*, got 'boosting'"):
        load_report(folder, View("boosting"))
    with pytest.raises(ArgumentError, match=r"methods: expected one of .*, got 'dan'"):
        load_report(folder, View(methods=("dan",)))


def test_papers_numbers_stand_beside_ours_in_their_unit(tmp_path: Path) -> None:
    raw = override(read_preset("ct_slices")[1], methods=["constant"], seeds=1)
    paper = {"values": {"synthetic": {"s1": {"constant": {"mae_raw": 50.0}}}}}
    preset = check(raw | {"data": "synthetic", "paper": paper}, "mine")
    plain, raw_unit = tables(load_report(finished(tmp_path, preset)))
    assert plain.header == ["target", "constant"]
    assert [row[1] for row in raw_unit.rows[:3]] == ["ours", "paper", "difference"]
    ours, theirs, gap = (row[2] for row in raw_unit.rows[:3])
    assert isinstance(ours, Estimate)
    assert (theirs, sort_key(gap)) == (50.0, pytest.approx(ours.mean - 50))


def test_weights_are_collected_from_methods_that_learn_them(loaded: Report) -> None:
    found = collect(loaded, *GROUP)
    assert list(found) == ["mdd_paper", "darn"]
    weights = found["darn"]
    assert weights.domains == [f"s{i}" for i in range(1, 7)]
    assert sorted(weights.final) == sorted(weights.curves) == [0, 1]
    for matrix in weights.final.values():
        assert np.isnan(np.diag(matrix)).all()
        np.testing.assert_allclose(np.nansum(matrix, axis=1), 1, rtol=1e-5)
    (record,) = (
        r
        for r in loaded.records
        if (r.method, r.target, r.seed, r.settings["rows"]) == ("darn", "s3", 1, 60)
    )
    assert weights.final[1][2, 4] == last(record, "weight/s5")
    assert list(weights.curves[1]["s3"]["s5"]) == list(record.metrics["weight/s5"].values())
    assert len(weights.curves[1]["s3"]["s5"]) == 3


def test_weight_table_against_scipy(loaded: Report) -> None:
    table = tables(loaded)[-1]
    row = next(row for row in table.rows if row[:2] == ["synthetic, rows=60", "mdd_paper"])
    final = collect(loaded, *GROUP)["mdd_paper"].final
    expected = []
    for matrix in final.values():
        rows = []
        for i in range(6):
            others = [j for j in range(6) if j != i]
            gaps = [-abs(i - j) for j in others]
            rows.append(spearmanr(matrix[i, others], gaps).statistic)
        expected.append(np.mean(rows))
    found = row[table.header.index("closeness")]
    assert isinstance(found, Estimate)
    assert found.mean == pytest.approx(np.mean(expected))
    flat = [matrix[~np.eye(6, dtype=bool)] for matrix in final.values()]
    assert row[table.header.index("run to run")] == pytest.approx(np.corrcoef(flat)[0, 1])
    gap = np.mean([abs(m - m.T)[~np.eye(6, dtype=bool)].mean() for m in final.values()])
    assert row[table.header.index("asymmetry")].mean == pytest.approx(gap)  # type: ignore[union-attr]


def fading(sharpness: float) -> np.ndarray:
    i = np.arange(6.0)
    matrix = np.exp(-sharpness * abs(i[:, None] - i) + 1e-3 * i)
    np.fill_diagonal(matrix, np.nan)
    return np.asarray(matrix / np.nansum(matrix, axis=1, keepdims=True))


def test_measures_of_known_matrices() -> None:
    assert closeness(fading(1.0)) == pytest.approx(0.974, abs=1e-3)
    assert closeness(fading(-1.0)) == pytest.approx(-0.974, abs=2e-3)
    uniform = np.where(np.eye(6) == 1, np.nan, 0.2)
    assert closeness(uniform) == 0
    assert asymmetry(uniform) == 0
    assert asymmetry(np.full((2, 2), np.nan)) is None
    assert agreement([fading(1.0), fading(1.0)]) == pytest.approx(1)
    assert agreement([fading(1.0), fading(-1.0)]) < 0  # type: ignore[operator]
    assert agreement([fading(1.0)]) is None


def chosen_report(shares: list[dict[str, float]]) -> Report:
    """Cells of one method that chose among candidates, one per seed, with an error of .5 each."""
    raw = {"title": "t", "experiment": "adaptation", "data": "synthetic", "seeds": len(shares)}
    raw |= {"targets": ["s1"], "methods": {"darn": {}, "source_only": {}}}
    preset = check(raw | {"baseline": "source_only"}, "mine")
    records = []
    for cell in expand(preset):
        metrics = {"mae": 1.0}
        if cell.method == "darn":
            by_name = shares[cell.seed]
            metrics = {"mae": 0.5, **{f"share/{name}": value for name, value in by_name.items()}}
            metrics["adapted"] = float(max(by_name.values()) > next(iter(by_name.values())))
        own = {name: getattr(cell, name) for name in IDENTITY}
        steps = {name: {1: value} for name, value in metrics.items()}
        records.append(Record(**own, key=cell.key, status="done", metrics=steps))
    return Report(preset, load_kind("adaptation"), records)


def test_choice_table_counts_and_averages() -> None:
    table = choice_table(chosen_report([{"so": 0.8, "0.1": 0.2}, {"so": 0.3, "0.1": 0.7}]))
    candidates = "so: 1 times, 0.55; 0.1: 1 times, 0.45"
    outcome, often = Number(0.5, ".3f", won=1, lost=0), NumberPair(1, 2, " of ")
    assert table.rows == [["synthetic", "darn", often, outcome, outcome, candidates]]
    (row,) = choice_table(chosen_report([{"so": 0.8, "0.1": 0.2}])).rows
    assert row[2:5] == [NumberPair(0, 1, " of "), None, outcome]


def test_relative_errors_count_targets() -> None:
    table = relative_table(chosen_report([{"so": 0.8, "0.1": 0.2}, {"so": 0.3, "0.1": 0.7}]))
    assert table.header == ["method", "synthetic"]
    assert table.rows == [["darn", Number(0.5, ".3f", won=1, lost=0)]]


def test_figures_of_a_run(loaded: Report) -> None:
    found = {drawing.name: drawing for drawing in figures(loaded)}
    expected = {"errors", "ratios"}
    for size in SIZES:
        group = f"synthetic-rows={size}"
        expected.add(f"weights-{group}")
        expected |= {f"epochs-{group}-{method}" for method in ("mdd_paper", "darn")}
    assert set(found) == expected
    for drawing in found.values():
        assert picture(drawing.chart, drawing.title).count("<svg") == 1


def test_the_map_of_ratios_is_that_of_the_summary(loaded: Report) -> None:
    (drawing,) = ratio_map(loaded)
    chart = drawing.chart
    assert isinstance(chart, Heatmap)
    table = summary_table(loaded)
    by_name = {row[0]: row for row in table.rows}
    assert set(chart.rows) == set(METHODS) - {"oracle"}
    ranks = column(table, "rank")
    assert [float(own) for own in dict(chart.side)["rank"]] == pytest.approx(
        sorted(rank for rank in ranks if rank is not None), abs=0.06
    )
    baseline = [sort_key(value) for value in by_name["source_only"][1:3]]
    for method, row in zip(chart.rows, chart.values, strict=True):
        own = [sort_key(value) for value in by_name[method][1:3]]
        ratios = [a / b for a, b in zip(own, baseline, strict=True)]  # type: ignore[operator]
        assert row == pytest.approx(100 * np.log(ratios))
        worst = dict(chart.side)["worst"][list(chart.rows).index(method)]
        assert float(worst) == pytest.approx(max(ratios), abs=0.006)


def test_one_data_set_is_drawn_per_target(loaded: Report) -> None:
    kept = [r for r in loaded.records if r.settings["rows"] == 60 and r.method == "constant"]
    names = [d.name for d in figures(Report(loaded.preset, loaded.kind, kept))]
    assert names == ["values"]


def test_heat_maps_show_the_matrices_on_one_scale() -> None:
    maps = {"a": fading(0.5), "b": fading(2.0)}
    names = [f"s{i}" for i in range(6)]
    chart = heat_maps({name: Weights(names, {0: matrix}, {}) for name, matrix in maps.items()})
    for panel, (name, matrix) in zip(panels(chart), maps.items(), strict=True):
        assert isinstance(panel, Heatmap)
        assert panel.title == name
        np.testing.assert_array_equal(panel.values, matrix)
        assert panel.limits == (0, np.nanmax(fading(2.0)))


def test_epoch_curves_show_raw_and_smoothed_weights() -> None:
    rng = np.random.default_rng(0)
    names = [f"s{i}" for i in range(6)]
    curves = {t: {s: rng.random(9) for s in names if s != t} for t in names}
    chart = epoch_curves(curves)
    assert [panel.title for panel in chart.charts] == [f"target {name}" for name in names]
    panel = chart.charts[1]
    assert isinstance(panel, Lines)
    assert len(panel.series) == 10
    raw, smoothed = (np.asarray(s.y, dtype=float) for s in panel.series[:2])
    np.testing.assert_array_equal(raw, curves["s1"]["s0"])
    assert smoothed[4] == pytest.approx(raw[2:7].mean())
    assert smoothed[0] == pytest.approx(raw[:3].mean())
    assert len(smoothed) == len(raw)
    assert colors(chart) == {name: i for i, name in enumerate(names)}


def test_changes_are_the_share_that_changes_hands() -> None:
    still = {"t": {"a": np.full(4, 0.5), "b": np.full(4, 0.5)}}
    jumping = {"t": {"a": np.array([1.0, 0, 1, 0]), "b": np.array([0.0, 1, 0, 1])}}
    np.testing.assert_array_equal(changes(jumping), [1, 1, 1])
    np.testing.assert_array_equal(changes(still), [0, 0, 0])


def test_error_panels_mark_the_baseline() -> None:
    groups = [("a", ()), ("b", ())]
    means = {
        "source_only": {group: Estimate(0.5, 0.1, 5) for group in groups},
        "darn": {groups[0]: Estimate(0.4, None, 1)},
    }
    left, right = error_panels(means, "source_only").charts
    assert isinstance(left, Intervals)
    assert isinstance(right, Intervals)
    assert (left.title, right.title) == ("a", "b")
    assert (left.names, right.names) == (["source_only", "darn"], ["source_only"])
    assert (left.reference, left.highlight) == (0.5, "source_only")
    assert (left.low, left.high) == ([0.4, 0.4], [0.6, 0.4])
