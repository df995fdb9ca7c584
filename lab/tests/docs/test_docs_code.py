"""Every block of code on every page is run, or says why it is not."""

import re
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

import pytest

from lab_helpers.docs_code import (
    PAGES,
    ROOT,
    RUNNABLE,
    SHELLS,
    Block,
    blocks,
    commands,
    name,
    parse,
    run,
)
from vntransfer_lab.data.registry import DATASETS
from vntransfer_lab.runner.preset import shipped

# pages with a test of their own, which checks more than that they run
ELSEWHERE = {
    "docs/adapt.md": (("python",), "lab/tests/docs/test_page_code.py"),
    "docs/tutorial.md": (("python",), "lab/tests/docs/test_page_code.py"),
    "docs/gallery.md": (("python",), "lab/tests/docs/test_page_code.py"),
    "docs/continual-tables.md": (RUNNABLE, "lab/tests/docs/test_page_code.py"),
    "docs/data/*.md": (("python",), "lab/tests/data/test_plots.py"),
}
# README.md is the first thing that people see as plain text: its marks are here
README = {
    "vnt example": "`make test-wheel` runs these commands; the tutorial's are run one by one",
    "pip install": "installs into an environment; `make test-wheel` does it",
}


def of(page: Path) -> list[Block]:
    found = blocks(page.read_text(encoding="utf-8"))
    if name(page) != "README.md":
        return found
    marks = [next((w for s, w in README.items() if b.code.startswith(s)), None) for b in found]
    return [replace(block, reason=mark) for block, mark in zip(found, marks, strict=True)]


def kinds_here(page: Path) -> tuple[str, ...]:
    """Return the kinds of blocks that no other test runs."""
    for pattern, (kinds, _) in ELSEWHERE.items():
        if fnmatch(name(page), pattern):
            return tuple(kind for kind in RUNNABLE if kind not in kinds)
    return RUNNABLE


CODED = [page for page in PAGES if any(b.wanted and b.kind in kinds_here(page) for b in of(page))]


@pytest.mark.parametrize("page", CODED, ids=name)
def test_code_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(of(page), {}, kinds_here(page))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_what_is_not_run_can_be_read(page: Path) -> None:
    for block in of(page):
        place = f"{name(page)}, line {block.line}"
        if block.kind == "setup":
            continue
        if block.kind not in RUNNABLE:
            first = block.code.lstrip().partition("\n")[0]
            assert not re.match(r"(\$ )?vnt ", first), f"{place}: commands are tagged sh"
            continue
        assert block.reason is None or len(block.reason) > 10, f"{place}: why is it not run?"
        if block.kind == "python" and not re.search(r", \.\.\.[})\]]", block.code):
            compile(block.code, place, "exec")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_have_their_arguments(page: Path) -> None:
    for block in of(page):
        if block.kind in SHELLS:
            for words in commands(block.code):
                if words[0] == "vnt":
                    parse(words)
                    known = {"bench run": shipped(), "data show": DATASETS}
                    for start, names in known.items():
                        if " ".join(words[1:3]) == start:
                            assert words[3] in names, f"{name(page)}: {words}"


@pytest.mark.parametrize(("pattern", "found"), ELSEWHERE.items(), ids=list(ELSEWHERE))
def test_other_tests_run_the_rest(pattern: str, found: tuple[tuple[str, ...], str]) -> None:
    assert any(fnmatch(name(page), pattern) for page in PAGES)
    text = (ROOT / found[1]).read_text(encoding="utf-8")
    wanted = Path(pattern).name
    assert wanted in text or ("*" in wanted and "run_examples" in text)


def test_a_block_without_a_mark_is_found() -> None:
    text = "<!-- not run: takes long -->\n\n```sh\nvnt demo\n```\n\nand\n\n```sh\nvnt demo\n```\n"
    first, second = blocks(text)
    assert (first.reason, first.wanted) == ("takes long", False)
    assert (second.reason, second.wanted) == (None, True)
    with pytest.raises(AssertionError, match="mark the block"):
        run([Block("sh", "make demo\n", 1)], {})
    with pytest.raises(AssertionError, match="it prints"):
        run([Block("python", "print(1)\n", 1), Block("text", "2\n", 2, follows=True)], {})
    with pytest.raises(KeyError):
        parse(["vnt", "bench", "cook", "eggs"])
    with pytest.raises(Exception, match="--nonsense"):
        parse(["vnt", "demo", "--nonsense"])


def test_setup_comes_before_its_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = blocks("<!-- setup\na = 1\n-->\n```python\nprint(a)\n```\n```text\n1\n```\n")
    run(page, {})
    run(blocks("<!-- setup\nvnt example houses.csv\n-->\n"), {})
    assert (tmp_path / "houses.csv").exists()
