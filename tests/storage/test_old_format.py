"""Folders that 0.1.0.dev0 wrote give the same predictions today."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn

from helpers.saved import contents
from helpers.towns import towns
from helpers.worlds import easy
from vntransfer import DataError, load

SAVED = Path(__file__).parent / "saved" / "0.1.0.dev0"
EXPECTED = json.loads((SAVED / "predictions.json").read_text())


def same_scikit_learn(folder: Path) -> bool:
    """Whether scikit-learn, which reads its own estimators, is the one that they were made with."""
    records = [json.loads(path.read_text()) for path in folder.rglob("model.json")]
    made = {record["scikit-learn"] for record in records if "scikit-learn" in record}
    return made <= {sklearn.__version__}


def predictions(model: Any, name: str) -> Any:
    if name == "table":
        found = model.predict(towns(), target="new")
        return np.stack((found.value, found.low, found.high))[:, -5:]
    return model.predict(easy(20)[0] if name not in ("classes", "tasks") else towns())[-5:]


@pytest.mark.parametrize("name", EXPECTED)
def test_predictions_are_the_same(name: str, tmp_path: Path) -> None:
    if not same_scikit_learn(SAVED / name):
        pytest.skip("made with another scikit-learn")
    model = load(SAVED / name)
    assert predictions(model, name).tolist() == EXPECTED[name]
    shutil.copytree(SAVED / name, tmp_path / "m")
    model.save(tmp_path / "m")  # in the new format, and nothing is left of the old one
    assert all(file.startswith("model") for file in contents(tmp_path / "m"))
    assert [path for path in (tmp_path / "m").iterdir() if path.is_dir()] == []
    assert predictions(load(tmp_path / "m"), name).tolist() == EXPECTED[name]


@pytest.mark.parametrize("name", ["table", "auto", "tasks", "mdd", "weighted_network", "boosting"])
def test_damage_is_found(name: str, tmp_path: Path) -> None:
    original = contents(SAVED / name)
    for file in original:
        if file == "model.json":
            continue
        folder = tmp_path / file.replace("/", "_")
        shutil.copytree(SAVED / name, folder)
        (folder / file).write_bytes(original[file][:-1])
        with pytest.raises(DataError, match="does not match"):
            load(folder)
        (folder / file).unlink()
        with pytest.raises(DataError, match="is missing"):
            load(folder)


def test_other_files_are_refused_and_kept(tmp_path: Path) -> None:
    shutil.copytree(SAVED / "table", tmp_path / "m")
    (tmp_path / "m" / "estimator0" / "more.pkl").write_bytes(b"cos\nsystem\n")
    with pytest.raises(DataError, match=r"more\.pkl is not part of the model"):
        load(tmp_path / "m")
