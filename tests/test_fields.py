"""Fields of dataclasses, checked by their types."""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import pytest

from lib.system.errors import InputError
from lib.system.fields import BelowOne, Checked, Count, Even, Natural, Positive, Rule, Share, Weight


@dataclass(frozen=True)
class Sizes(Checked):
    count: Count = 1
    at_most: Count | None = None
    natural: Natural = 0
    even: Even = 2
    positive: Positive = 0.5
    weight: Weight = 0.0
    share: Share = 0.0
    below: BelowOne = 0.0
    kind: Literal["a", "b", ""] = "a"
    single: Literal["only"] = "only"
    odd: Annotated[int, Rule("odd", lambda n: n % 2 == 1)] = 1
    free: int = 0


@dataclass(frozen=True)
class Both(Sizes):
    def __post_init__(self):
        super().__post_init__()
        if self.count > self.free:
            raise InputError("count is above free")


@pytest.mark.parametrize(
    ("field", "good", "bad", "words"),
    [
        ("count", 1, 0, "at least 1"),
        ("at_most", None, 0, "at least 1"),
        ("at_most", 1, -3, "at least 1"),
        ("natural", 0, -1, "at least 0"),
        ("even", 0, 7, "even, a half for each direction"),
        ("positive", 1e-9, 0, "a number above 0"),
        ("positive", 1, math.inf, "a number above 0"),
        ("weight", 0, math.nan, "a number of at least 0"),
        ("share", 1, 1.1, "in [0, 1]"),
        ("below", 0.99, 1, "in [0, 1)"),
        ("kind", "", "c", "'a', 'b' or ''"),
        ("single", "only", "other", "'only'"),
        ("odd", 3, 4, "odd"),
    ],
)
def test_a_field_is_what_its_type_says(field, good, bad, words):
    assert getattr(Sizes(**{field: good}), field) == good
    for kind in (Sizes, Both):
        with pytest.raises(InputError) as raised:
            kind(**{"free": 9, field: bad})
        assert str(raised.value) == f"{field} must be {words}, not {bad!r}"


def test_a_class_that_says_more_says_it_as_well():
    with pytest.raises(InputError, match="count is above free"):
        Both(count=2, free=1)
    assert Both(count=2, free=2).free == 2 and Sizes(free=-5).free == -5, "what has no rule is free"
