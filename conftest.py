"""Shared by all tests: the genuine files, and nobody's own cache folder is read or written."""

from pathlib import Path

import pytest

REAL = Path(__file__).parents[1] / "shared" / "data"


@pytest.fixture(scope="session")
def derived_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of hashes and parsed arrays of all tests."""
    return tmp_path_factory.mktemp("derived")


@pytest.fixture(autouse=True)
def _own_cache_folders(derived_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VNT_DATA", raising=False)
    monkeypatch.setenv("VNT_CACHE", str(derived_folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(derived_folder / "xdg"))


@pytest.fixture(scope="session")
def real() -> Path:
    """Return the folder of genuine files; skip where it is absent."""
    if not REAL.is_dir():
        pytest.skip("no folder ../shared/data with the genuine files")
    return REAL
