import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TROUBLED = """
title = "Trouble"
experiment = "troubled.kind"
data = "none"
seeds = 2
[methods.fine]
[methods.raises]
"""


@pytest.fixture
def troubled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A preset whose experiment lives outside the package; subprocesses find it too."""
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setenv("PYTHONPATH", str(HERE), prepend=os.pathsep)
    monkeypatch.syspath_prepend(HERE)
    preset = tmp_path / "troubled.toml"
    preset.write_text(TROUBLED)
    return preset


TUNABLE = """
title = "Search"
experiment = "troubled.tunable"
data = "none"
seeds = 2
selection = "source_validation"
[methods.one]
[methods.two]
[methods.plain]
[search]
sampler = "tpe"
trials = 8
fixed = ["plain"]
[search.space.one]
x = {low = 0.0, high = 1.0}
[search.space.two]
x = {low = 0.001, high = 1.0, log = true}
"""


@pytest.fixture
def tunable(troubled: Path) -> Path:
    """A preset with a search."""
    preset = troubled.with_name("tunable.toml")
    preset.write_text(TUNABLE)
    return preset
