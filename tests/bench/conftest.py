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
    preset = tmp_path / "troubled.toml"
    preset.write_text(TROUBLED)
    return preset
