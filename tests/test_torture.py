"""A few of what `make torture` generates, and what it once found."""

import pytest
from hypothesis import HealthCheck, given, settings

from tests.torture import KINDS, corpora, read

FEW = settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@FEW
@given(KINDS["JSON lines"])
def test_json_lines(case):
    read(*case)


@FEW
@given(KINDS["rows"])
def test_rows(case):
    read(*case)


@FEW
@given(KINDS["damaged files"])
def test_damaged_files(case):
    read(*case)


@pytest.mark.parametrize("name", sorted(corpora()))
def test_what_is_not_damaged_is_read(name):
    assert read(corpora()[name]) == "read"
