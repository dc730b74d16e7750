"""How mutants are counted, and that their table is of the modules and tests that there are."""

import json
from itertools import islice

import pytest

from lib.system.files import project_root
from tests.tools import mutants


def test_modules_and_their_tests_are_there():
    files = {
        name.partition("::")[0] for tests in mutants.TESTS.values() for name in tests if name.startswith("tests/")
    }
    assert all((project_root() / name).is_file() for name in files | mutants.TESTS.keys())
    assert mutants.EQUIVALENT.keys() <= mutants.TESTS.keys()


def test_the_table_is_of_all_modules():
    table = json.loads((project_root() / "figures" / "mutants_table.json").read_text(encoding="utf-8"))
    *rows, total = table["lines"].values()
    assert list(table["lines"]) == [*(f"`{module}`" for module in mutants.TESTS), "**all**"]
    assert total[:4] == [sum(column) for column in zip(*(row[:4] for row in rows))]
    assert all(row[0] == sum(row[1:4]) > 0 for row in rows)


def test_mutants_are_counted(monkeypatch):
    monkeypatch.setattr(mutants, "EQUIVALENT", {"a.py": {"x >= 0": "never negative"}})
    results = [
        {"module": module, "now": now, "outcome": outcome}
        for module, now, outcome in [
            ("a.py", "if x >= 0:", "survived"), ("b.py", "if x >= 0:", "survived"), ("a.py", "x - 1", "killed"),
        ]
    ]  # fmt: skip
    assert mutants.row(results) == [3, 1, 1, 1, "50%"] and mutants.row(results[:1]) == [1, 0, 0, 1, ""]
    with pytest.raises(ValueError, match="killed, so not equivalent"):
        mutants.row([{**results[0], "outcome": "killed"}])


def test_what_a_type_is_said_to_be_is_no_place():
    source = "def f(x: int | None, y=1 | 2) -> str | None: ..."
    places = sorted(mutants._annotations(source))
    assert [source[begin:end] for (_, begin), (_, end) in places] == ["int | None", "str | None"]


def test_mutants_are_drawn():
    """Each is another, has one changed line, and is drawn again by the same seed."""
    pytest.importorskip("cosmic_ray", reason="needs the extra `mutants`")
    module = "lib/evaluation/bootstrap.py"
    first, again, other = (list(islice(mutants.drawn(module, seed), 8)) for seed in (1, 1, 2))
    assert first == again != other and len({mutant.text for mutant in first}) == 8
    source = (project_root() / module).read_text(encoding="utf-8").splitlines()
    for mutant in first:
        differ = [i for i, (was, now) in enumerate(zip(source, mutant.text.splitlines()), start=1) if was != now]
        assert differ == [mutant.line] and source[mutant.line - 1].strip() == mutant.was != mutant.now


def test_without_their_package_one_line_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(mutants, "find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        mutants.main(["--minutes", "0"])
    assert capsys.readouterr().err.endswith(
        'error: the changes are those of cosmic-ray: pip install -c constraints.txt -e ".[mutants]"\n'
    )
