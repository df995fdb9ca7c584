"""Folders of saved models, for tests that damage them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vntransfer.storage import folder as storage


def contents(folder: Path) -> dict[str, bytes]:
    """Give all files of a folder by name."""
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def data_file(folder: Path, ending: str = "safetensors") -> Path:
    """Give the only file of a model with this ending."""
    (path,) = folder.glob(f"model-*.{ending}")
    return path


def edit(folder: Path, change: Callable[[dict[str, Any]], Any], *, sign: bool = True) -> None:
    """Change the record of a model by hand, with the digest that it should have then."""
    path = folder / "model.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    if sign:
        content.pop("sha256")
        content["sha256"] = storage._record_digest(content)
    path.write_text(json.dumps(content), encoding="utf-8")
