"""Names of a package that are imported on first use."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def exporter(
    package: str, exports: Mapping[str, Sequence[str]], modules: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Give ``__getattr__`` and ``__dir__`` of a package that exports names of its modules.

    Parameters
    ----------
    package
        Its full name.
    exports
        Module, relative to the package -> names.
    modules
        Modules that are names themselves.
    """
    homes = {name: module for module, names in exports.items() for name in names}

    def find(name: str) -> Any:
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes, *modules})

    return find, names
