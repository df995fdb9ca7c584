"""Schemas: what settings and options may be, and errors that name the key and what was seen."""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, TypeVar, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    create_model,
    model_validator,
)

from vntransfer.checks import meant, one_of
from vntransfer_lab.errors import PresetError

Settings = dict[str, Any]
Values = Annotated[list[Any], Field(min_length=1)]
Natural = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
STRICT = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

_T = TypeVar("_T")


class Schema(BaseModel):
    """Fields with defaults; an integer may stand for a float, nothing else is converted."""

    model_config = STRICT

    @model_validator(mode="before")
    @classmethod
    def _names(cls, given: Any) -> Any:
        for name in given if isinstance(given, Mapping) else ():
            one_of("key", name, cls.model_fields, error=ValueError)
        return given


def schema(**fields: Any) -> type[Schema]:
    """Make a schema of ``name=(type, default)``, for options that are known only at run time."""
    return create_model("Options", __base__=Schema, **fields)


def words(*allowed: str) -> WrapValidator:
    """Accept words in place of a number, as in ``Annotated[float, words("auto")]``."""

    def check(value: Any, number: ValidatorFunctionWrapHandler) -> Any:
        if isinstance(value, str):
            return one_of("in place of a number", value, allowed, error=ValueError)
        return number(value)

    return WrapValidator(check)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    own = isinstance(kind, type) and issubclass(kind, BaseModel)
    return TypeAdapter(kind, config=None if own else STRICT)


def parse(kind: type[_T], given: Any, name: str, *place: str) -> _T:
    """Check a value that a preset gives against a schema, or any type that pydantic knows.

    ``name`` and ``place`` (preset and the keys that lead to the value) are for the error.
    """
    try:
        return cast(_T, _adapter(cast(Any, kind)).validate_python(given))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    where = ".".join(map(str, (*place, *first["loc"])))
    context, seen = first.get("ctx", {}), f", got {first['input']!r:.80}"
    if first["type"] == "missing":
        text = "is missing; add it"
    elif first["type"] == "value_error":
        text = str(context["error"])
    else:
        text = first["msg"].removeprefix("Input ") + seen
        text += meant(first["input"], str(context.get("expected", "")).split("'")[1::2])
    raise PresetError(": ".join(filter(None, (name, where, text))))


def resolve(options: type[Schema], given: Any, name: str, *place: str) -> Settings:
    """Check given options and fill in the defaults of the others."""
    return dict(parse(options, given, name, *place))


def listed(options: type[Schema], given: Any, name: str, *place: str) -> dict[str, list[Any]]:
    """Check a table of lists of values for options."""
    tables = parse(dict[str, Values], given, name, *place)
    return {
        key: [resolve(options, {key: value}, name, *place)[key] for value in values]
        for key, values in tables.items()
    }
