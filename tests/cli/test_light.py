"""Commands import what they use and no more: checked on modules, not on a clock."""

from pathlib import Path

import pytest

from helpers.imports import HEAVY, loaded_after, loaded_by_command
from helpers.towns import towns, write
from vntransfer import adapt, learn_tasks


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_command_line_help_imports_nothing_heavy(flag: str) -> None:
    assert not loaded_by_command(flag) & {*HEAVY, "numpy", "vntransfer_lab"}


@pytest.mark.parametrize(
    "method", ["auto", "source_only", "boosting", "ridge", "closed_form", "learn", "learn sgd"]
)
def test_predict_needs_neither_torch_nor_learners(method: str, tmp_path: Path) -> None:
    table = towns()
    if method.startswith("learn"):
        labeled = {name: own[:100] for name, own in table.items()}
        how = "sgd" if method == "learn sgd" else "closed_form"
        learn_tasks(labeled, task="town", response="price", method=how).save(tmp_path / "m")
    else:
        known = {"domain": "town", "response": "price", "target": "new", "compare": ()}
        candidates = ["source_only", "linear_trees", "ridge"] if method == "auto" else None
        adapt(table, **known, method=method, candidates=candidates).save(tmp_path / "m")
    file = write(tmp_path / "rows.csv", {n: own[100:] for n, own in table.items()})
    out = str(tmp_path / "out.csv")
    used = loaded_by_command("predict", str(tmp_path / "m"), str(file), "--out", out)
    assert not used & {"torch", "sklearn", "lightgbm", "joblib", "skops", "matplotlib"}
    assert Path(out).read_text().count("\n") == 26


def test_import_is_light() -> None:
    assert not loaded_after("import vntransfer") & HEAVY


def test_names_are_found_on_first_use() -> None:
    import vntransfer

    for name in vntransfer.__all__:
        assert getattr(vntransfer, name) is not None
    assert {"adapt", "continual", "relate"} <= set(dir(vntransfer))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        vntransfer.nothing  # noqa: B018
