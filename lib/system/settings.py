"""Configurations: dataclasses that pydantic checks in Python, in JSON files and on the command
line."""

import functools
import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, TypeVar, dataclass_transform

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from lib.system.errors import InputError

Kind = TypeVar("Kind")

Count = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]
Even = Annotated[int, Field(ge=2, multiple_of=2)]  # a half for each direction
Layers = Annotated[int, Field(ge=1, le=1_000)]
FewLayers = Annotated[int, Field(ge=0, le=1_000)]
Positive = Annotated[float, Field(gt=0)]
Weight = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
BelowOne = Annotated[float, Field(ge=0, lt=1)]


@dataclass_transform(frozen_default=True)
def checked(cls: type[Kind]) -> type[Kind]:
    """Make a frozen dataclass that raises InputError for an unknown field, another type, or a value
    out of range."""
    config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    made: Any = dataclass(cls, frozen=True, config=config)
    check = made.__init__

    @functools.wraps(check)
    def __init__(self, *args, **kwargs):
        try:
            check(self, *args, **kwargs)
        except ValidationError as error:
            raise InputError(describe(error)) from None

    made.__init__ = __init__
    return made


def describe(error: ValidationError) -> str:
    """Name the fields that are wrong, what pydantic finds wrong with each, and the values."""
    reasons = []
    for each in error.errors(include_url=False):
        place = ".".join(map(str, each["loc"]))
        message = each["msg"].removeprefix("Value error, ")
        given = f", not {each['input']!r:.40}" if message.startswith("Input should be") else ""
        reasons.append(f"{place}: {message}{given}" if place else message)
    return "; ".join(reasons)


def from_json(kind: type[Kind], values: Mapping, where: object) -> Kind:
    """Make a `checked` dataclass from what a JSON file holds. `where` names it in the
    InputError."""
    try:
        return TypeAdapter(kind).validate_json(json.dumps(values))
    except ValidationError as error:
        raise InputError(f"{where}: {describe(error)}") from None


def field_names(kind: Any) -> set[str]:
    """Names of a dataclass's fields."""
    return {field.name for field in fields(kind)}


def as_kind(value: Any, kind: Any) -> Any:
    """Reduce a dataclass to `kind`, a class that its own is derived from."""
    return kind(**{name: getattr(value, name) for name in field_names(kind)})
