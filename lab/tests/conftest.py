import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "lab_helpers"
TROUBLED = """
title = "Trouble"
experiment = "troubled.kind"
data = "none"
seeds = 2
[methods.fine]
[methods.raises]
"""


PATIENT = """
title = "Patience"
experiment = "troubled.patient"
data = "none"
seeds = 2
[methods.waits]
"""


@pytest.fixture
def troubled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A preset whose experiment lives outside the package; subprocesses find it too."""
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setenv("PYTHONPATH", str(HERE), prepend=os.pathsep)
    preset = tmp_path / "troubled.toml"
    preset.write_text(TROUBLED)
    return preset


@pytest.fixture
def patient(troubled: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A preset whose cells wait in the middle until the file ``go`` is beside it."""
    monkeypatch.setenv("VNT_TEST_GO", str(troubled.with_name("go")))
    monkeypatch.setenv("VNT_CHECKPOINT_SECONDS", "0")
    preset = troubled.with_name("patient.toml")
    preset.write_text(PATIENT)
    return preset


TUNABLE = """
title = "Grids"
experiment = "troubled.tunable"
data = "none"
seeds = 2
selection = "source_validation"
[methods.one.grid]
x = [0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0]
[methods.two.grid]
x = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0]
[methods.plain]
"""


@pytest.fixture
def tunable(troubled: Path) -> Path:
    """A preset with grids to choose from."""
    preset = troubled.with_name("tunable.toml")
    preset.write_text(TUNABLE)
    return preset
