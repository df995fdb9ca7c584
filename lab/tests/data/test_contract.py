"""What every data set of the registry keeps, on tiny official files and on the genuine ones."""

import warnings
from pathlib import Path

import numpy as np
import pytest

from lab_helpers.hashes import digest
from lab_helpers.makers import MAKERS, SMALL
from vntransfer.errors import ArgumentError, DataError, DataWarning
from vntransfer_lab.data import Domains, TaskStream, load
from vntransfer_lab.data.files import locate
from vntransfer_lab.data.registry import DATASETS

GENUINE = {
    "mnistP": {"n_tasks": 3, "n_test": 500},
    "mnistR": {"n_tasks": 3, "n_test": 500},
    "mnistS": {"n_test": 500},
    "fashionP": {"n_tasks": 3, "n_test": 500},
    "fashionS": {"n_test": 500},
    "notmnistP": {"n_tasks": 3, "n_test": 500},
    "trancos": {"size": (60, 80)},
    "yearpredictionmsd": {},
}
ROWS = {  # of the genuine files, where the registry's pages state them
    "amazon4": [1956, 1954, 1966, 1978],
    "amazon7i": [4083, 2623, 5301, 1439, 4476, 1380, 2471],
    "trancos": [363, 280, 274, 252, 75],
}


def check(loaded: Domains | TaskStream, name: str) -> None:
    entry = DATASETS[name]
    assert loaded.name == name
    assert isinstance(loaded, TaskStream if entry.kind == "stream" else Domains)
    assert (entry.kind == "table") == (isinstance(loaded, Domains) and len(loaded) == 1)
    assert loaded.provenance.built
    assert loaded.provenance.license
    assert all(loaded.provenance.built)
    assert len(loaded.provenance.sha256) == len(entry.files)
    if isinstance(loaded, TaskStream):
        for task, head in zip(loaded, loaded.head_sizes or [10] * len(loaded), strict=True):
            assert task.name
            assert task.x.dtype == np.float32
            assert task.x.min() >= 0
            assert task.x.max() <= 1
            assert task.y.dtype == task.y_test.dtype == np.int64
            assert 0 <= task.y.min() <= task.y.max() < head <= loaded.n_classes
    else:
        assert set(loaded.targets) <= set(loaded)
        shape = next(iter(loaded.values()))[0].shape[1:]
        assert len(shape) > 1 or len(loaded.feature_names) == shape[0]


def test_every_set_has_a_maker_of_official_files() -> None:
    assert MAKERS.keys() == {name for name, entry in DATASETS.items() if entry.files}


@pytest.mark.parametrize("name", DATASETS)
def test_loads_from_tiny_official_files(name: str, tmp_path: Path) -> None:
    if name in MAKERS:
        MAKERS[name](tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # made files have other hashes
        first = load(name, folder=tmp_path, **SMALL.get(name, {}))
        again = load(name, folder=tmp_path, **SMALL.get(name, {}))
    check(first, name)
    assert digest(first) == digest(again)
    assert first.summary().startswith(f"{name}: ")


@pytest.mark.parametrize("name", [n for n, e in DATASETS.items() if e.files])
def test_absent_files_are_named(name: str, tmp_path: Path) -> None:
    if name == "2dplanes":
        assert "generated" in load(name, folder=tmp_path, n_samples=10).provenance.built[0]
        return
    remote = DATASETS[name].files[0]
    with pytest.raises(DataError, match="absent") as caught:
        load(name, folder=tmp_path)
    text = str(caught.value)
    assert all(word in text for word in (remote.name, remote.folder, *remote.urls[:1]))
    assert f"{remote.name} or {remote.name}" not in text
    assert ("vnt data fetch" in text) == bool(remote.urls)


@pytest.mark.parametrize("name", DATASETS)
def test_unknown_parameter_is_named(name: str, tmp_path: Path) -> None:
    if name in MAKERS:
        MAKERS[name](tmp_path)
    with pytest.raises(ArgumentError, match="no_such"):
        load(name, folder=tmp_path, no_such=1)


@pytest.mark.parametrize("name", DATASETS)
def test_loads_the_genuine_files(name: str, real: Path) -> None:
    entry = DATASETS[name]
    if len(locate(entry, real)) < len(entry.files):
        pytest.skip(f"{name}: no files in ../shared/data")
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        if name == "ct_slices":
            with pytest.warns(DataWarning, match="ct_slices_partial"):
                loaded = load(name, folder=real)
        else:
            loaded = load(name, folder=real, **GENUINE.get(name, {}))
    check(loaded, name)
    assert loaded.provenance.verified == bool(entry.files)
    if isinstance(loaded, Domains):
        sizes = [len(y) for _, y in loaded.values()]
        assert ROWS.get(name, sizes) == sizes
    if name == "amazon4":
        assert set(np.unique(np.concatenate([y for _, y in loaded.values()]))) == {1, 2, 4, 5}
    if name == "amazon7i":
        assert loaded.targets == tuple(loaded)
