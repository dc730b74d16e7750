"""A few of what `make torture` generates, and what it once found."""

import json
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings

from tests.tools import torture
from tests.tools.torture import KINDS, corpora, read, report

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


def test_what_was_never_tried_is_no_success(capsys, monkeypatch):
    assert report({"rows": Counter(read=3), "files": Counter()}, "", "", keep=True) == 1
    assert capsys.readouterr().out == "never tried: files. Give it more --minutes.\n"
    monkeypatch.setattr("sys.argv", ["torture", "--minutes", "0"])
    assert torture.main() == 1


def test_counts_are_kept(tmp_path, monkeypatch, capsys):
    """Beside those of other commands, in the table that is shown."""
    rendered = []
    monkeypatch.setattr(torture, "project_root", lambda: tmp_path)
    monkeypatch.setattr(torture, "render", lambda: rendered.append(1))
    for what, count in (("rows", 3), ("files", 1_000), ("rows", 4)):
        assert report({what: Counter(read=count, refused=2)}, "all well", f"try {count}", keep=True) == 0
    table = json.loads((tmp_path / "figures" / "tried_table.json").read_text(encoding="utf-8"))
    assert table["lines"]["rows"] == ["6", "4 read, 2 refused", "all well"]
    assert table["lines"]["files"][0] == "1,002" and len(rendered) == 3
    assert table["commands"] == {"rows": "try 4", "files": "try 1000"} and table["command"] == "try 4` and `try 1000"
    assert "files: 1,000 read, 2 refused\nall well\n" in capsys.readouterr().out
