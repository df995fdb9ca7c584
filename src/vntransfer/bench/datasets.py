"""Names of data sets in presets, with parameters of the set: ``cal_housing:k=5,seed=3``."""

from typing import Any

from vntransfer.data import Domains, TaskStream, load
from vntransfer.errors import PresetError


def parse_data(text: str) -> tuple[str, dict[str, Any]]:
    """Split a name from parameters; numbers, true and false are read as such.

    Examples
    --------
    >>> parse_data("families:shift=both,seed=3")
    ('families', {'shift': 'both', 'seed': 3})
    >>> parse_data("bike")
    ('bike', {})
    """
    name, _, rest = text.partition(":")
    parameters: dict[str, Any] = {}
    for part in rest.split(",") if rest else []:
        key, equals, value = (word.strip() for word in part.partition("="))
        if not key or not equals or not value or key in parameters:
            raise PresetError(
                f"data: expected NAME or NAME:PARAMETER=VALUE,... with different parameters, got "
                f"{text!r}"
            )
        parameters[key] = _value(value)
    return name, parameters


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
    """Load the data set that a preset names.

    Examples
    --------
    >>> load_data("synthetic:n_samples=50")
    <Domains synthetic: 6 domains, 300 rows x 12 features>
    """
    name, parameters = parse_data(text)
    return load(name, **parameters)
