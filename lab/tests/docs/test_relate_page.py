"""The page on relating says what happens."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "relate.md"


def test_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    names: dict = {}
    exec(compile(code, "relate.md", "exec"), names)
    found = names["found"]
    assert found.different() == [("north", "south"), ("east", "south")]
    assert (tmp_path / "page.html").stat().st_size > 10_000
    for name in re.findall(
        r"`(\w+)(?:\([^`]*\))?`",
        PAGE.read_text(encoding="utf-8").split("`found` has")[1].split("`relation_test(")[0],
    ):
        assert hasattr(found, name), name
