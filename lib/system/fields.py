"""Dataclasses whose fields are checked by their types: numbers in a range, words of a list."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from lib.system.errors import InputError


@dataclass(frozen=True)
class Rule:
    """A rule that the value of a field keeps, beside its type."""

    words: str
    holds: Callable[[Any], bool]


Count = Annotated[int, Rule("at least 1", lambda n: n >= 1)]
Natural = Annotated[int, Rule("at least 0", lambda n: n >= 0)]
_MOST_LAYERS = 1_000  # each is a module that Python makes
Layers = Annotated[int, Rule(f"from 1 to {_MOST_LAYERS:,}", lambda n: 1 <= n <= _MOST_LAYERS)]
FewLayers = Annotated[int, Rule(f"from 0 to {_MOST_LAYERS:,}", lambda n: 0 <= n <= _MOST_LAYERS)]
Even = Annotated[int, Rule("even, a half for each direction", lambda n: n % 2 == 0)]
Positive = Annotated[float, Rule("a number above 0", lambda x: 0 < x < math.inf)]
Weight = Annotated[float, Rule("a number of at least 0", lambda x: 0 <= x < math.inf)]
Share = Annotated[float, Rule("in [0, 1]", lambda x: 0 <= x <= 1)]
BelowOne = Annotated[float, Rule("in [0, 1)", lambda x: 0 <= x < 1)]


class Checked:
    """A dataclass that raises InputError for a field whose value its type does not allow; None passes."""

    def __post_init__(self) -> None:
        for name, rules in _rules(type(self)).items():
            value = getattr(self, name)
            for rule in rules if value is not None else ():
                if not rule.holds(value):
                    raise InputError(f"{name} must be {rule.words}, not {value!r}")


@cache
def _rules(kind: type) -> dict[str, list[Rule]]:
    return {name: list(_rules_of(hint)) for name, hint in get_type_hints(kind, include_extras=True).items()}


def _rules_of(hint: Any) -> Iterator[Rule]:
    """Rules of a type: a `Literal`, an `Annotated` one, or a union with such."""
    if get_origin(hint) is Literal:
        *others, last = map(repr, get_args(hint))
        yield Rule(" or ".join(filter(None, (", ".join(others), last))), get_args(hint).__contains__)
    yield from (rule for rule in getattr(hint, "__metadata__", ()) if isinstance(rule, Rule))
    if get_origin(hint) in (Union, UnionType):
        for part in get_args(hint):
            yield from _rules_of(part)


def field_names(kind: Any) -> set[str]:
    """Names of a dataclass's fields."""
    return {field.name for field in fields(kind)}


def as_kind(value: Any, kind: Any) -> Any:
    """An object of a dataclass that `value`'s class is derived from, with the values that `value` has."""
    return kind(**{name: getattr(value, name) for name in field_names(kind)})
