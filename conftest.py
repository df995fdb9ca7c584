"""Shared by all tests: one thread, a plain environment, the genuine files, caches of their own."""

from pathlib import Path

import hypothesis
import pytest
import torch

# Property tests explore: other examples on every run, also where the variable CI is set. To search
# longer: pytest --hypothesis-profile=explore.
EXPLORING = {"deadline": None, "derandomize": False, "print_blob": True}
TOO_SLOW = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile("vntransfer", **EXPLORING, suppress_health_check=TOO_SLOW)
hypothesis.settings.register_profile(
    "explore", hypothesis.settings.get_profile("vntransfer"), max_examples=1000
)
hypothesis.settings.load_profile("vntransfer")
torch.set_num_threads(1)

COLORS = ("FORCE_COLOR", "PY_COLORS", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
GIT = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")  # hooks of git set these


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No colors that were forced, no proxy before servers of our own, no repository but ours."""
    for name in (*COLORS, *GIT):
        monkeypatch.delenv(name, raising=False)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1,localhost")


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
