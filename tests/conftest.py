"""What all tests share: deterministic hypothesis, one thread, and an environment like any other."""

import hypothesis
import pytest
import torch

hypothesis.settings.register_profile(
    "vntransfer",
    max_examples=15,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("vntransfer")
torch.set_num_threads(1)

COLOURS = ("FORCE_COLOR", "PY_COLORS", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
GIT = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")  # hooks of git set these


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No colours that were forced, no proxy before servers of our own, no repository but ours."""
    for name in (*COLOURS, *GIT):
        monkeypatch.delenv(name, raising=False)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1,localhost")
