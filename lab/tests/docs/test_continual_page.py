"""The how-to of continual learning runs, from top to bottom, and prints what it says."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

from vntransfer.continual import METHODS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "continual.md"


def test_the_page_runs() -> None:
    text = PAGE.read_text(encoding="utf-8")
    shared: dict[str, Any] = {}
    printed = []
    for code in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(code, PAGE.name, "exec"), shared)
        printed.append(out.getvalue())
    assert shared["place"] == {"task": 0, "step": 50}
    table = next(out for out in printed if "e+63" in out)
    assert f"```text\n{table}```" in text
    assert shared["R"].shape == (3, 3)


def test_every_method_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, method in METHODS.items():
        assert f"| `{name}` | `{method.__name__}` |" in text
