"""What `make fuzz` found stays fixed, and its parts run."""

import json
from pathlib import Path

import pytest

from helpers import fuzz_files, fuzz_numbers
from helpers.fuzzing import attack

PARTS = {**fuzz_numbers.PARTS, **fuzz_files.PARTS}

FOUND = [
    json.loads(path.read_text()) for path in (Path(__file__).parent / "findings").glob("*.json")
]
CASES = [(one["part"], one["seed"]) for one in FOUND if one["part"] in PARTS]


@pytest.mark.parametrize(("part", "seed"), CASES + [(part, 0) for part in PARTS])
def test_no_wrong_number_and_no_traceback(part: str, seed: int, tmp_path: Path) -> None:
    attack(PARTS[part], seed, tmp_path)
