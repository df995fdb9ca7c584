"""What `make site` adds to the pages, and what it refuses."""

from pathlib import Path

import pytest

from lab_helpers.docs_code import ROOT, load_tool
from vntransfer.pages import palette

HOOKS, CHECK = load_tool("site_hooks"), load_tool("check_site")


@pytest.mark.parametrize(
    ("source", "link", "found"),
    [
        ("docs/claims.md", "theory.md#a", "theory.md#a"),
        ("docs/claims.md", "../REPRODUCIBILITY.md", "reproducibility.md"),
        (
            "docs/data/bike.md",
            "../../tests/helpers/samples.py",
            "../files/tests/helpers/samples.py.md",
        ),
        ("docs/data/bike.md", "../theory.md", "../theory.md"),
        ("README.md", "docs/img/page.png", "img/page.png"),
        ("README.md", "docs/data/README.md", "data/README.md"),
        ("docs/claims.md", "https://example.org/a", "https://example.org/a"),
        ("docs/claims.md", "#here", "#here"),
    ],
)
def test_links_lead_to_the_same_thing(source: str, link: str, found: str) -> None:
    text, _ = HOOKS.relink(f"see [it]({link}).", source, HOOKS.moved(source))
    assert text == f"see [it]({found})."


def test_code_is_left_alone_and_comments_go() -> None:
    text = "<!-- mark -->\n```md\n[a](../x.py) <!-- kept -->\n```\n[b](../README.md)\n"
    found, outside = HOOKS.relink(text, "docs/a.md", "a.md")
    assert found == "\n\n```md\n[a](../x.py) <!-- kept -->\n```\n[b](quickstart.md)\n"
    assert outside == set()


def test_files_are_shown_and_folders_listed() -> None:
    shown = HOOKS.shown("lab/tests/lab_helpers/docs_code.py")
    text = (ROOT / "lab" / "tests" / "lab_helpers" / "docs_code.py").read_text(encoding="utf-8")
    assert text.rstrip() in shown
    assert "\n```` python\n" in shown  # the file itself has three ticks
    assert "| run.json | " in HOOKS.shown("lab/results/synthetic")


def test_colors_are_those_of_the_pages_of_vnt_and_can_be_read() -> None:
    css = HOOKS.colors()
    for theme in palette.GROUND:
        link = palette.SERIES[theme][0 if theme == "light" else 5]
        assert f"--md-typeset-a-color:{link}" in css
        assert palette.contrast(link, palette.GROUND[theme]) > 4.5
    assert palette.contrast("#ffffff", palette.SERIES["light"][0]) > 7


GOOD = {
    "index.html": '<img src="a.svg"><a href="b/#top">b</a><a href="https://example.org">x</a>',
    "b/index.html": '<p id="top"><a href="../index.html">a</a>',
    "a.svg": "<svg/>",
    "s.css": "p{background:url(data:image/png;base64,AA==)}",
}
BAD = {
    "loads https://example.org/s.js": ("index.html", '<script src="https://example.org/s.js">'),
    "loads //example.org/f.css": ("index.html", '<link href="//example.org/f.css">'),
    "gone.html, which is not there": ("index.html", '<a href="gone.html">'),
    "b/#nowhere: no such place": ("index.html", '<a href="b/#nowhere">'),
    "s.css loads https://example.org/f": ("s.css", "p{background:url(https://example.org/f)}"),
}


def write(site: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_text(text, encoding="utf-8")
    return site


def test_a_whole_site_is_accepted(tmp_path: Path) -> None:
    assert CHECK.complaints(write(tmp_path, GOOD)) == []


@pytest.mark.parametrize("complaint", BAD)
def test_what_is_wrong_is_said(complaint: str, tmp_path: Path) -> None:
    name, text = BAD[complaint]
    (found,) = CHECK.complaints(write(tmp_path, {**GOOD, name: text}))
    assert complaint in found
    with pytest.raises(SystemExit, match="1 complaints"):
        CHECK.main(tmp_path)
