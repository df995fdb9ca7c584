"""``vnt bench`` as a user types it."""

import subprocess
import sys
from pathlib import Path

import pytest

from vntransfer.cli import main

VNT = [sys.executable, "-c", "from vntransfer.cli import main; main()", "bench"]


def vnt(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*VNT, *map(str, arguments)], capture_output=True, text=True)


def test_list_names_the_presets() -> None:
    done = vnt("list")
    assert done.returncode == 0
    assert "smoke" in done.stdout


def test_run_report_export(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    size = ("--targets", "s1,s2", "--methods", "constant", "--seeds", "1", "--jobs", "1")
    ran = vnt("run", "smoke", *size, "--set", "n_samples=60", "--out", folder)
    assert ran.returncode == 0, ran.stderr
    assert "2 cells are done; see: vnt bench report" in ran.stdout
    shown = vnt("report", folder, "--format", "markdown", "--figures", tmp_path / "figures")
    assert shown.stdout.startswith(
        "**Everyday predictors on the six synthetic domains: synthetic**"
    )
    assert (tmp_path / "figures" / "smoke-values.svg").exists()
    page = tmp_path / "page.html"
    shown = vnt("report", folder, "--format", "html", "--out", page)
    assert shown.stdout.strip() == str(page)
    assert page.read_text("utf-8").startswith("<!doctype html>")
    rows = vnt("export", folder, tmp_path / "rows.csv")
    assert "wrote 4 rows" in rows.stdout
    assert "settings.n_samples" in (tmp_path / "rows.csv").read_text().splitlines()[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "smok"), "got 'smok'; did you mean 'smoke'?"),
        (("run", "smoke", "--methods", "rigde"), "got 'rigde'; did you mean 'ridge'?"),
        (("run", "smoke", "--set", "n_samples"), "--set: expected key=value (got 'n_samples')"),
        (
            ("run", "smoke", "--set", "n_samples=few"),
            "n_samples: should be a valid integer",
        ),
        (("report", "absent"), "absent: no run here (store.sqlite is absent); start one with"),
        (("retry", "absent"), "absent: no run here"),
        (("export", "absent", "a.csv"), "absent: no run here"),
    ],
)
def test_mistakes_are_one_sentence_and_leave_nothing(
    arguments: tuple[str, ...],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["vnt", "bench", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
    assert not list(tmp_path.iterdir())
