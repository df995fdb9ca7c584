"""``vnt --help`` and ``import vntransfer`` stay light: checked on modules, not on a clock."""

import pytest

from helpers.imports import HEAVY, loaded_after


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_command_line_help_imports_nothing_heavy(flag: str) -> None:
    code = (
        "from vntransfer.cli import app\n"
        f"try:\n    app(['{flag}'])\nexcept SystemExit as stop:\n    assert not stop.code"
    )
    assert not loaded_after(code) & HEAVY


def test_import_is_light() -> None:
    assert not loaded_after("import vntransfer") & HEAVY


def test_names_are_found_on_first_use() -> None:
    import vntransfer

    for name in vntransfer.__all__:
        assert getattr(vntransfer, name) is not None
    assert {"adapt", "continual", "relate"} <= set(dir(vntransfer))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        vntransfer.nothing  # noqa: B018
