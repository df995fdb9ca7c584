"""Names of data sets in presets, with parameters of the set: ``cal_housing:k=5,seed=3``.

A table of your own is named by its file: ``houses.csv:domain=town,response=price``, where need be
with ``delimiter=;`` (or tab) and ``drop=COLUMN|COLUMN``.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from vntransfer_lab.data import Domains, TaskStream, load
from vntransfer_lab.errors import PresetError

TABLES = (".csv", ".csv.gz", ".parquet", ".pq")


def parse_data(text: str) -> tuple[str, dict[str, Any]]:
    """Split a name from parameters; numbers, true and false are read as such.

    Parameters of a table name its columns and stay as they are written.
    """
    name, _, rest = text.partition(":")
    own = _is_table(name)
    parameters: dict[str, Any] = {}
    for part in rest.split(",") if rest else []:
        key, equals, value = (word.strip() for word in part.partition("="))
        if not key or not equals or not value or key in parameters:
            raise PresetError(
                f"data: expected NAME or NAME:PARAMETER=VALUE,... with different parameters, got "
                f"{text!r}"
            )
        parameters[key] = value if own else _value(value)
    return name, parameters


def split_names(text: str) -> list[str]:
    """Names between commas; parameters, between commas too, stay with their set."""
    names: list[str] = []
    for part in filter(None, map(str.strip, text.split(","))):
        if names and "=" in part.partition(":")[0]:
            names[-1] += f",{part}"
        else:
            names.append(part)
    return names


def _is_table(name: str) -> bool:
    return name.lower().endswith(TABLES)


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def load_data(text: str) -> Domains | TaskStream:
    """Load the data set that a preset names, once; your own table again when its file changes."""
    file = Path(parse_data(text)[0])
    found = file.stat() if _is_table(file.name) and file.is_file() else None
    return _load(text, found and (found.st_mtime_ns, found.st_size))


@lru_cache(maxsize=4)
def _load(text: str, state: object) -> Domains | TaskStream:
    """Load a data set; ``state`` distinguishes versions of your own file."""
    name, parameters = parse_data(text)
    return _own_table(name, parameters) if _is_table(name) else load(name, **parameters)


def _own_table(file: str, parameters: dict[str, str]) -> Domains:
    """Make domains of the places of a table, of their rows that have a response.

    Columns are encoded as `vntransfer.tables` does it, learned from the inputs of all these rows.
    """
    from vntransfer.tables import ReadOptions, TableColumns, TableEncoder
    from vntransfer.tables.problem import read_places, read_responses

    domain, response = (parameters.pop(key, "") for key in ("domain", "response"))
    delimiter, drop = parameters.pop("delimiter", None), parameters.pop("drop", None)
    if not domain or not response or parameters:
        raise PresetError(
            f"data: a table is named FILE:domain=COLUMN,response=COLUMN (and delimiter=;, "
            f"drop=COLUMN|COLUMN), got {file!r} with domain {domain!r}, response {response!r}"
            + "".join(f" and {key!r}" for key in parameters)
        )
    left = () if drop is None else [name.strip("'") for name in drop.split("|")]
    frame, names = TableColumns(domain, response, drop=left).read(file, ReadOptions(delimiter))
    places, y = read_places(frame, domain), read_responses(frame, response)
    rows = np.flatnonzero(~np.isnan(y))
    columns = {name: frame.columns[name].take(rows) for name in names}
    numbers = np.asarray(frame.rows)[rows].tolist()
    encoder = TableEncoder.fit(columns, numbers, called="labeled rows")
    X, y, places = encoder.encode(columns, numbers).X, y[rows], places[rows]
    own = {name: places == name for name in dict.fromkeys(places.tolist())}
    return Domains(
        Path(file).name,
        {name: (X[at], y[at]) for name, at in own.items()},
        feature_names=tuple(encoder.names),
        response_name=response,
    )
