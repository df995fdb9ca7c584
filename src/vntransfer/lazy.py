"""Names of a package that are imported on first use; ``if TYPE_CHECKING`` lists them, once."""

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

_LISTED = re.compile(r"^    from ([\w.]+) import \(?\s*(\w+) as \2\b", re.MULTILINE)


def exporter(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Give ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    Its source lists the names under ``if TYPE_CHECKING``, where type checkers read them: ``from
    module import name as name``. Modules of the package are no part of ``__all__``.
    """
    module = sys.modules[package]
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    homes = {name: home for home, name in _LISTED.findall(source)}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if (home := homes[name]) == package:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(home), name)
        setattr(module, name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(module), *homes})

    return find, names, sorted(name for name, home in homes.items() if home != package)
