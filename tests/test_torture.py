"""A few of what `make torture` generates, what it once found, and how its programs keep their counts."""

import json
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lib.system.files import project_root
from tests.properties import Property
from tests.tools import torture, torture_properties
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


# -------------------------------------------------------------------------------------------------------- properties


def test_properties_are_in_the_table():
    """All that there are, each once, with the number of examples that `make test` tries."""
    table = json.loads((project_root() / "figures" / "properties_table.json").read_text(encoding="utf-8"))
    few = [(one.says, one.few) for one in torture_properties.properties()]
    assert [(says, line[0]) for says, line in table["lines"].items()] == few
    assert len({says for says, _ in few}) == len(few) > 30 and all(says.endswith(".") for says, _ in few)
    assert all(int(line[1].replace(",", "")) >= line[0] for line in table["lines"].values())


def test_examples_of_properties_are_counted(tmp_path, monkeypatch, capsys):
    """Those that were turned down do not count; the smallest example of what does not hold is shown."""
    seen = []
    small = Property("A number is small.", 5, lambda n: seen.append(n), {"n": st.integers(0, 10**6)})
    assert small.tried(3, 20) == 20 and len(set(seen)) > 10
    again, seen[:] = list(seen), []
    assert small.tried(3, 20) == 20 and seen == again
    assert small.tried(4, 20) == 20 and seen[20:] != again
    monkeypatch.setattr(torture_properties, "project_root", lambda: tmp_path)
    monkeypatch.setattr(torture_properties, "render", lambda: seen.append("shown"))
    monkeypatch.setattr(torture_properties, "properties", lambda: [small])
    assert torture_properties.main(["--minutes", "0"]) == 1
    assert capsys.readouterr().out.endswith("never tried: A number is small. Give it more --minutes.\n")
    assert torture_properties.main(["--minutes", "1e-9", "--seed", "2"]) == 1 and not list(tmp_path.iterdir())
    assert torture_properties.main(["--minutes", "0.0005", "--seed", "2", "--keep"]) == 0 and seen[-1] == "shown"
    table = json.loads((tmp_path / "figures" / "properties_table.json").read_text(encoding="utf-8"))
    assert table["command"] == "python -m tests.tools.torture_properties --minutes 0.0005 --seed 2"
    few, many, outcome = table["lines"]["A number is small."]
    assert (few, outcome) == (5, "held") and int(many) % 5 == 0

    def fails(n: int) -> None:
        assert n < 1_000

    with pytest.raises(AssertionError) as raised:
        Property("A number is small.", 5, fails, {"n": st.integers(0, 10**6)}).tried(0, 50)
    assert any("n=1000" in note.replace("1_000", "1000") for note in raised.value.__notes__)
