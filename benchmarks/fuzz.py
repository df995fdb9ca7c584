"""Attack the library and the laboratory with random input until time is up, and count.

    python benchmarks/fuzz.py --minutes 10 --only numeric

A finding is a wrong number without a warning, a traceback or a lost file. It is saved with its part
and seed in tests/findings, where a test replays it. Seeds continue where the last call ended.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "lab" / "tests")]

import lab_helpers.fuzzing  # noqa: E402
from helpers import fuzz_files, fuzz_numbers  # noqa: E402
from helpers.fuzzing import attack  # noqa: E402

ALL = {**fuzz_numbers.PARTS, **fuzz_files.PARTS, **lab_helpers.fuzzing.PARTS}


def one(part: str, seed: int) -> str:
    with tempfile.TemporaryDirectory() as place:
        try:
            return attack(ALL[part], seed, Path(place))
        except Exception as error:
            found = {"part": part, "seed": seed, "what": f"{type(error).__name__}: {error}"[:500]}
            path = ROOT / "tests" / "findings" / f"{part}-{seed}.json"
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
            print(f"finding: {path.name}: {found['what']}", flush=True)
            return "finding"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--only", choices=ALL, metavar="PART", help=", ".join(ALL))
    parser.add_argument("--first", type=int, default=0, help="seed of the first case")
    parser.add_argument("--counts", type=Path, default=ROOT / "build" / "fuzz.json")
    options = parser.parse_args()
    kept = json.loads(options.counts.read_text()) if options.counts.exists() else {}
    counts = {part: Counter(kept.get(part, {})) for part in ALL}
    parts, end = (
        [options.only] if options.only else list(ALL),
        time.monotonic() + 60 * options.minutes,
    )
    while time.monotonic() < end:
        for part in parts:  # each gets an equal share of the time, not of the seeds
            turn = time.monotonic() + 5
            while time.monotonic() < min(turn, end):
                counts[part][one(part, options.first + counts[part].total())] += 1
        options.counts.parent.mkdir(exist_ok=True)
        options.counts.write_text(json.dumps(counts), encoding="utf-8")
    words = sorted({word for each in counts.values() for word in each})
    print(f"{'part':<12}" + "".join(f"{word:>10}" for word in words))
    for part, each in counts.items():
        print(f"{part:<12}" + "".join(f"{each[word]:>10}" for word in words))
    sys.exit(any(each["finding"] for each in counts.values()))


if __name__ == "__main__":
    main()
