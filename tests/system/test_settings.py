"""Configurations: what `checked` refuses in Python and in JSON."""

from dataclasses import asdict
from typing import Literal

import pytest

from lib.system.errors import InputError
from lib.system.settings import Count, Even, Natural, Positive, Share, checked, from_json


@checked
class Sizes:
    count: Count = 1
    limit: Count | None = None
    even: Even = 2
    positive: Positive = 0.5
    share: Share = 0.0
    kind: Literal["a", "b", ""] = "a"
    ids: tuple[Natural, ...] = (0, 1)


@checked
class Both(Sizes):
    def __post_init__(self):
        if self.limit is not None and self.count > self.limit:
            raise InputError("count is above limit")


FIELDS = [  # name, a good value, a bad one
    ("count", 1, 0), ("count", 1, True), ("even", 4, 7), ("positive", 1, float("inf")), ("share", 1, 1.1),
    ("kind", "", "c"), ("ids", (3,), (-1,)), ("unknown", None, 1),
]  # fmt: skip


@pytest.mark.parametrize(("field", "good", "bad"), FIELDS)
def test_a_field_has_the_values_of_its_type(field, good, bad):
    if field != "unknown":
        assert getattr(from_json(Both, asdict(Sizes(**{field: good})), "x"), field) == good
    for kind in (Sizes, Both):
        with pytest.raises(InputError, match=f"^{field}"):
            kind(**{field: bad})
        with pytest.raises(InputError, match=f"config.json: {field}"):
            from_json(kind, {field: bad}, "config.json")


def test_a_class_may_check_several_fields_together():
    with pytest.raises(InputError, match="count is above limit"):
        Both(count=2, limit=1)
    assert Both(count=2, limit=2).limit == 2
