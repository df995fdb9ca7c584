"""Derived files of all tests go to one temporary folder; real data are used where present."""

from collections.abc import Iterator
from pathlib import Path

import pytest

REAL = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(scope="session", autouse=True)
def _derived_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VNT_CACHE", str(tmp_path_factory.mktemp("derived")))
        yield


@pytest.fixture(scope="session")
def real() -> Path:
    if not REAL.is_dir():
        pytest.skip("no folder ../shared/data with the genuine files")
    return REAL
