"""`companion.solve`: rows and seeds of a made-up task, kept and gone on with."""

import json

import pytest

import companion.solve
from companion.tasks.task import Task, by_row


@pytest.fixture
def trained(monkeypatch):
    """The rows and seeds that were trained, in order, of a task `known` with rows `a` and `b`."""
    calls = []

    def row(name):
        return lambda seed: calls.append((name, seed)) or {"right": seed / 10, "kind": name}

    task = Task("a task", {"a": row("a"), "b": row("b")}, seeds=(0, 1))
    monkeypatch.setattr(companion.solve, "tasks", lambda: {"known": task, "other": task})
    return calls


def test_all_rows_and_seeds_are_in_the_table(trained, capsys):
    companion.solve.main(["known"])
    assert trained == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| row | seed | right | kind |"
    assert lines[2:] == ["| a | 0 / 1 | 0 / 0.1 | a / a |", "| b | 0 / 1 | 0 / 0.1 | b / b |"]


def test_what_a_file_holds_is_not_trained_again(trained, tmp_path):
    output = tmp_path / "known.json"
    companion.solve.main(["known", "b", "--seeds", "1", "--output", str(output)])
    companion.solve.main(["known", "--output", str(output)])
    assert trained == [("b", 1), ("a", 0), ("a", 1), ("b", 0)]
    held = json.loads(output.read_text("utf-8"))
    assert held["task"] == "known"
    assert by_row(held["results"]) == {
        "a": {"seed": [0, 1], "right": [0.0, 0.1], "kind": ["a", "a"]},
        "b": {"seed": [0, 1], "right": [0.0, 0.1], "kind": ["b", "b"]},
    }


def test_what_was_trained_is_kept_when_a_later_row_fails(trained, tmp_path, monkeypatch):
    output = tmp_path / "known.json"

    def fails(seed):
        raise RuntimeError("a fault")

    task = Task("a task", {"a": companion.solve.tasks()["known"].rows["a"], "b": fails})
    monkeypatch.setattr(companion.solve, "tasks", lambda: {"known": task})
    with pytest.raises(RuntimeError, match="a fault"):
        companion.solve.main(["known", "--seeds", "3", "--output", str(output)])
    assert [(r["row"], r["seed"]) for r in json.loads(output.read_text("utf-8"))["results"]] == [("a", 3)]


@pytest.mark.parametrize(
    "arguments, message",
    [(["knwon"], "knwon"), (["known", "c"], "c"), (["other", "--output", "known.json"], "name another file")],
)
def test_a_wrong_name_is_one_line(trained, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    companion.solve.main(["known", "--output", "known.json"])
    with pytest.raises(SystemExit) as stopped:
        companion.solve.main(arguments)
    assert str(stopped.value).startswith("error: ") and message in str(stopped.value)


def test_every_task_is_listed(capsys):
    companion.solve.main(["--list"])
    names = [line.partition(":")[0] for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    assert names == list(companion.tasks.tasks())
