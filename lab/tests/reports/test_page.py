"""The page of a report: its verdicts, tables and figures, and what stands at its foot."""

import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.browser import chromium, resize, visit
from lab_helpers.large import DATA, METHODS, SEEDS, TARGETS, large_report
from vntransfer_lab import run
from vntransfer_lab.reports.answers import lead, paper_words, sentences, tally
from vntransfer_lab.reports.names import Names, data_names
from vntransfer_lab.reports.page import cell, footer, make_page, write_page
from vntransfer_lab.reports.report import Report, load_report
from vntransfer_lab.reports.statistics import Estimate
from vntransfer_lab.reports.tables import PROBABILITY, SIGNED, Number, NumberPair, Value, Verdict


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
    assert f"Cells {done} of {done} done" in re.sub(r"\s+", " ", said)
    parts = ("Answer", "Figures", "Tables", "How it was done")
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
        "seconds per cell",
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
    named = " ".join(text for _, text in sentences(found))
    assert all(method in named for method in found)
    page = make_page(large, (), "vnt").html()
    assert page.index("and nowhere worse") < page.index("<table")


def test_the_head_of_a_page_asks_and_answers(loaded: Report, large: Report) -> None:
    for own in (loaded, large):
        asked, answer = lead(own, Names(own), tally(own)).split("? ", 1)
        assert asked.startswith(("Does this claim", "Which methods", "How do"))
        assert "Best mean rank over" in answer
    assert "Of 16 methods, " in answer


def test_a_page_shows_words_for_ids_and_says_which_is_which(large: Report) -> None:
    page = words(make_page(large, (), "vnt").html())
    shown, listed = page.split("in the preset", 1)
    for method in METHODS:
        assert re.search(rf"\b{method}\b", listed) or method in ("oracle",)
        assert not ("_" in method and re.search(rf"\b{method}\b", shown)), method


def test_columns_without_values_are_not_shown(large: Report) -> None:
    (table,) = (t for t in large.tables() if t.title == "weights of the sources")
    place = table.header.index("closeness")
    assert {row[place] for row in table.rows} == {None}
    heads = re.findall(
        r'<button type="button">([^<]*)</button></th>', make_page(large, (), "").html()
    )
    assert "asymmetry" in heads
    assert "closeness" not in heads


@given(st.lists(st.sampled_from(["a", "b:k=1", "b:k=2", "a:k=1,s=1", "c:s=3,k=1"]), unique=True))
def test_names_of_data_sets_stay_distinct(data: list[str]) -> None:
    names = data_names(data)
    assert len(set(names.values())) == len(data)
    assert all("=" not in name and name for name in names.values())


def test_ten_thousand_cells_stay_small(large: Report) -> None:
    assert len(large.records) == len(DATA) * len(TARGETS) * len(METHODS) * SEEDS > 10_000
    size = len(make_page(large, (), "vnt").html().encode())
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
    assert paper_words(against(same)) == [
        "The method that is best in the paper is best here on 2 of 2 targets.",
        "4 of our 4 values are within 10 % of the paper's (Table 1).",
    ]
    turned = {
        "s1": {"constant": {"mae": ours["ridge", "s1"]}, "ridge": {"mae": ours["constant", "s1"]}}
    }
    said = paper_words(against(turned))
    assert "best here on 0 of 1 target." in said[0]
    assert "0 of our 2 values are within 10 %" in said[1]
    assert paper_words(against({})) == paper_words(loaded) == []


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


def test_failed_and_missing_cells_are_stated(loaded: Report) -> None:
    first, second, *rest = loaded.records
    bad = replace(first, status="failed", error="ValueError: <b>boom</b>\nmore", metrics={})
    gone = replace(second, status="pending", metrics={})
    page = make_page(replace(loaded, records=[bad, gone, *rest]), (), "vnt")
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
    assert "are not computed yet" in words(make_page(none, (), "vnt").html())


def test_a_store_without_a_record_of_its_command_says_so(loaded: Report) -> None:
    found = footer(loaded, (), "vnt")
    assert "not recorded" in found["Run"]
    assert "smoke" in found["Preset"]


@pytest.fixture(scope="module")
def opened() -> Iterator[Any]:
    with chromium() as driver:
        yield driver


def test_the_page_in_a_browser(opened: Any, folder: Path) -> None:
    visit(opened, write_page(folder, folder / "other.html"))
    assert opened.get_log("browser") == []
    heads = [h.text for h in opened.find_elements("css selector", "section > h2")]
    assert heads == ["Answer", "Figures", "Tables", "How it was done"]
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
