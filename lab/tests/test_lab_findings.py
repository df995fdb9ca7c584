"""What `make fuzz` found in the laboratory stays fixed, and its parts run."""

import json
from pathlib import Path

import pytest

from helpers.fuzzing import attack
from lab_helpers.fuzzing import PARTS

FOUND = [
    json.loads(path.read_text())
    for path in (Path(__file__).parents[2] / "tests" / "findings").glob("*.json")
]
CASES = [(one["part"], one["seed"]) for one in FOUND if one["part"] in PARTS]


@pytest.mark.parametrize(
    ("part", "seed"), CASES + [(part, 0) for part in PARTS if part != "signals"]
)
def test_no_wrong_number_and_no_traceback(part: str, seed: int, tmp_path: Path) -> None:
    attack(PARTS[part], seed, tmp_path)
