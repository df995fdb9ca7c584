"""The page for people who come from 0.1.0.dev names things that exist, beside ones that do not."""

import re
from importlib import import_module
from typing import Any

import pytest

from lab_helpers.docs_code import ROOT

PAGE = ROOT / "docs" / "coming-from-dev.md"
ROWS = re.findall(r"^\| (.*?) \| (.*?) \|$", PAGE.read_text(encoding="utf-8"), re.M)
DOTTED = re.compile(r"`(vntransfer(?:_lab)?(?:\.\w+)*)`")


def exists(name: str) -> bool:
    found: Any = import_module(name.partition(".")[0])
    done = found.__name__
    for part in name.split(".")[1:]:
        done += f".{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = import_module(done)
            except ImportError:
                return False
    return True


@pytest.mark.parametrize("name", sorted({n for _, new in ROWS for n in DOTTED.findall(new)}))
def test_new_names_exist(name: str) -> None:
    assert exists(name)


KEPT = {"vntransfer.relate"}  # a function now


@pytest.mark.parametrize("name", sorted({n for old, _ in ROWS for n in DOTTED.findall(old)} - KEPT))
def test_old_names_are_gone(name: str) -> None:
    assert not exists(name)
