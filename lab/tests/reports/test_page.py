"""The page of a report: its verdicts, tables and figures, and what stands at its foot."""

import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.browser import chromium, resize, visit
from lab_helpers.large import DATA, METHODS, SEEDS, TARGETS, large_report
from vntransfer.pages import Intervals, Panels, Scatter
from vntransfer_lab import run
from vntransfer_lab.reports.costs import cost_drawings, memory, seconds, step_seconds
from vntransfer_lab.reports.drawings import POINTS, domain_drawings
from vntransfer_lab.reports.page import cell, make_page, write_page
from vntransfer_lab.reports.report import Report, load_report
from vntransfer_lab.reports.run_facts import footer
from vntransfer_lab.reports.statistics import Estimate
from vntransfer_lab.reports.tables import PROBABILITY, SIGNED, Number, NumberPair, Value, Verdict
from vntransfer_lab.reports.verdicts import agreement, paper_words, sentences, tally


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("run")
    run(
        "smoke",
        methods=["constant", "ridge"],
        seeds=3,
        settings={"n_samples": 60},
        jobs=1,
        out=place,
    )
    return place


@pytest.fixture(scope="module")
def loaded(folder: Path) -> Report:
    return load_report(folder)


@pytest.fixture(scope="module")
def large() -> Report:
    return large_report()


def words(markup: str) -> str:
    body = re.sub(r"<(style|script)>.*?</\1>", "", markup, flags=re.S)
    return unescape(re.sub(r"<[^>]+>", " ", body))


def test_the_page_of_a_run(folder: Path, loaded: Report) -> None:
    path = write_page(folder)
    assert path == folder / "report.html"
    said = words(path.read_text("utf-8"))
    done = str(len(loaded.records))
    assert f"Cells done {done} of {done}" in re.sub(r"\s+", " ", said)
    parts = ("Summary", "Tables", "Figures", "Data", "Cost")
    assert [said.index(f" {part} ") for part in parts] == sorted(
        said.index(f" {part} ") for part in parts
    )
    for expected in (
        "vnt bench run smoke --methods constant,ridge --seeds 3 --set n_samples=60",
        "vnt bench report",
        "source_validation: smallest error on held-out source rows",
        f"synthetic {loaded.records[0].data_hash}",
        "torch ",
        "scikit-learn ",  # of the versions that the run recorded
        "Domains of synthetic",
        "time per cell relative to constant",
    ):
        assert expected in said, expected


def test_verdicts_stand_first_and_agree_with_the_tables(large: Report) -> None:
    found = tally(large)
    assert set(found) == set(METHODS) - {"source_only"}
    for own in found.values():
        assert sum(map(len, own.values())) == len(DATA)
    (comparison,) = (t for t in large.tables() if t.title.endswith("difference to source_only"))
    for row in comparison.rows:
        assert row[0] in found[str(row[1])][str(row[-1])]
    named = " ".join(text for _, text in sentences(found, "source_only"))
    assert all(method in named for method in found)
    page = make_page(large, (), "vnt", domains=False).html()
    assert page.index("and nowhere worse") < page.index("<table")


def test_ten_thousand_cells_stay_small(large: Report) -> None:
    assert len(large.records) == len(DATA) * len(TARGETS) * len(METHODS) * SEEDS > 10_000
    size = len(make_page(large, (), "vnt", domains=False).html().encode())
    assert 200_000 < size < 5_000_000


def test_the_papers_numbers_are_compared_without_judgment(loaded: Report) -> None:
    def against(values: dict[str, Any]) -> Report:
        paper = {"source": "Table 1", "claim": "ridge wins", "values": {"synthetic": values}}
        return replace(loaded, preset=replace(loaded.preset, paper=paper))

    ours = {
        (m, t): np.mean(list(loaded.values("synthetic", ())[m][t].values()))
        for m in ("constant", "ridge")
        for t in ("s1", "s2")
    }
    same = {t: {m: {"mae": ours[m, t]} for m in ("constant", "ridge")} for t in ("s1", "s2")}
    found = agreement(against(same))
    assert found is not None
    assert (found.pairs, found.closer_than_tenth, found.better) == (4, 4, 0)
    assert (found.rows, found.same_best) == (2, 2)
    turned = {
        "s1": {"constant": {"mae": ours["ridge", "s1"]}, "ridge": {"mae": ours["constant", "s1"]}}
    }
    found = agreement(against(turned))
    assert found is not None
    assert (found.rows, found.same_best, found.better) == (1, 0, 1)
    assert "best here on 0 of 1 targets" in paper_words(against(turned))[-1]
    assert agreement(loaded) is None


def test_values_sort_by_their_number_and_never_by_their_text() -> None:
    values: dict[Value, float | None] = {
        Estimate(1.5, 0.1, 3): 1.5,
        NumberPair(-2.0, 3.0, " to ", SIGNED): -2.0,
        NumberPair(4, 6, " of "): 4.0,
        Number(-0.5, SIGNED): -0.5,
        Number(1e-9, PROBABILITY): 1e-9,
        Number(40.0, ".0f", unit=" %"): 40.0,
        7: 7.0,
        None: None,
        "2dplanes": None,
        "12.5 ± 0.1 [-]": None,
    }
    for value, expected in values.items():
        assert getattr(cell(value), "value", None) == expected
    judged: list[Value] = [Number(0.1, verdict="worse"), Verdict("better"), "better"]
    assert [getattr(cell(value), "tone", "") for value in judged] == ["bad", "good", ""]


def test_costs_are_ratios_on_the_same_place(large: Report) -> None:
    steps, _, cells = cost_drawings(large)
    for drawing, found in ((steps, step_seconds(large)), (cells, seconds(large))):
        chart = drawing.chart
        assert isinstance(chart, Intervals)
        place = chart.names.index("align")
        ratios = [found["align"][k] / found["source_only"][k] for k in found["align"]]
        assert chart.values[place] == pytest.approx(np.exp(np.mean(np.log(ratios))))
        assert chart.values[chart.names.index("source_only")] == pytest.approx(1)
    assert "Without steps: weighted, ridge, boosting, constant." in steps.caption
    assert chart.names == list(METHODS)


def test_memory_is_shown_as_it_is(large: Report) -> None:
    _, drawing, _ = cost_drawings(large)
    chart = drawing.chart
    assert isinstance(chart, Intervals)
    middle = np.median(list(memory(large)["align"].values()))
    assert chart.values[chart.names.index("align")] == pytest.approx(middle)
    assert chart.reference is None


def test_what_is_not_known_of_costs_is_left_out(large: Report) -> None:
    unknown = [replace(record, cost=None) for record in large.records]
    (only,) = cost_drawings(replace(large, records=unknown))
    assert only.title == "Time per cell"
    undone = [replace(record, status="pending", seconds=None) for record in unknown[:5]]
    assert list(cost_drawings(replace(large, records=undone))) == []


def test_domains_are_drawn_where_the_data_are(loaded: Report, large: Report) -> None:
    (drawing,) = domain_drawings(loaded)
    assert isinstance(drawing.chart, Panels)
    left, right = drawing.chart.charts
    assert isinstance(left, Scatter)
    assert 0 < sum(len(s.x) for s in left.series) <= POINTS
    assert [s.name for s in left.series] == [s.name for s in right.series]  # type: ignore[union-attr]
    absent = replace(large, preset=replace(large.preset, data=("houses",)))
    assert list(domain_drawings(absent)) == []


def test_failed_and_missing_cells_are_stated(loaded: Report) -> None:
    first, second, *rest = loaded.records
    bad = replace(first, status="failed", error="ValueError: <b>boom</b>\nmore", metrics={})
    gone = replace(second, status="pending", metrics={})
    page = make_page(replace(loaded, records=[bad, gone, *rest]), (), "vnt", domains=False)
    said = words(page.html())
    for expected in (
        "Failed cells",
        "ValueError: <b>boom</b>",
        f"1 of {len(rest) + 2} cells failed",
    ):
        assert expected in said
    none = replace(
        loaded, records=[replace(r, status="pending", metrics={}) for r in loaded.records]
    )
    assert "are not computed yet" in words(make_page(none, (), "vnt", domains=False).html())


def test_a_store_without_a_record_of_its_command_says_so(loaded: Report) -> None:
    found = footer(loaded, (), "vnt")
    assert "not recorded" in found["Run"]
    assert "smoke" in found["Preset"]


@pytest.fixture(scope="module")
def opened() -> Iterator[Any]:
    with chromium() as driver:
        yield driver


def test_the_page_in_a_browser(opened: Any, folder: Path) -> None:
    visit(opened, write_page(folder, folder / "other.html", domains=False))
    assert opened.get_log("browser") == []
    heads = [h.text for h in opened.find_elements("css selector", "section > h2")]
    assert heads == ["Summary", "Tables", "Figures", "Cost"]
    column = opened.find_elements("css selector", "thead button")[1]
    column.click()
    column.click()
    script = (
        "const t = arguments[0].closest('table'), i = arguments[0].parentElement.cellIndex;"
        "return [...t.tBodies[0].rows].map(r => Number(r.cells[i].dataset.v))"
    )
    values = opened.execute_script(script, column)
    assert values == sorted(values, reverse=True)
    resize(opened, 390, 844)
    assert opened.execute_script("return document.documentElement.scrollWidth") == 390
