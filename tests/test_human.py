"""Rating sheets: blinded, filled in, read back; and the statistics."""

import csv

import numpy as np
import pytest

from lib.human import (
    RatingError,
    best_worst,
    compare_systems,
    main,
    question_marks,
    read_summaries,
    write_summaries,
)

IDS = [f"d{i}" for i in range(6)]
SYSTEMS = ("good", "fair", "poor", "bad")


@pytest.fixture
def folder(tmp_path):
    for system in SYSTEMS:
        summaries = [[f"{system} summary of {i}.", "It ends."] for i in IDS]
        write_summaries(tmp_path / f"{system}.jsonl", IDS, summaries, [["The reference."]] * 6)
    main(["sheet", str(tmp_path / "r"), "--documents", "4", *(f"{s}={tmp_path / s}.jsonl" for s in SYSTEMS)])
    return tmp_path / "r"


def rows_in(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def fill(path, change, to=None):
    rows = rows_in(path)
    with open(to or path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, **change(row)} for row in rows)


def judge(row):
    """The order of SYSTEMS, by what the summaries say of themselves."""
    ranks = {letter: SYSTEMS.index(row[letter].split()[0]) for letter in "ABC"}
    return {"best": min(ranks, key=ranks.get), "worst": max(ranks, key=ranks.get).lower()}


def test_sheets_are_blinded_and_fair(folder):
    rows = rows_in(folder / "best_worst.csv")
    assert len(rows) == 4 * 4, "every three of four systems for every document"
    assert not {"system", *SYSTEMS} & set(rows[0])
    assert len({row["document"] for row in rows}) == 4
    positions = {tuple(SYSTEMS.index(row[x].split()[0]) for x in "ABC") for row in rows}
    assert any(list(p) != sorted(p) for p in positions), "in random order"
    assert all(len(set(p)) == 3 for p in positions)


def test_best_worst_scaling(folder, capsys):
    for rater in ("", "-anna"):
        fill(folder / "best_worst.csv", judge, folder / f"best_worst{rater}.csv")
    values = best_worst(folder)
    assert {s: len(v) for s, v in values.items()} == dict.fromkeys(SYSTEMS, 2 * 4 * 3)
    means = {s: np.mean(v) for s, v in values.items()}
    assert means["good"] == 1 and means["bad"] == -1
    assert means["fair"] == pytest.approx(1 / 3) and means["poor"] == pytest.approx(-1 / 3)
    main(["scores", str(folder)])
    out = capsys.readouterr().out
    assert "good - bad" in out and "questions answered, %: nothing is filled in yet" in out


def test_questions(folder):
    fill(folder / "questions.csv", lambda row: {"question": f"What of {row['document']}?", "answer": "x"})
    main(["answers", str(folder)])
    rows = rows_in(folder / "answers.csv")
    assert len(rows) == 4 * 3 * 4
    assert not any(s in row["item"] for row in rows for s in SYSTEMS)
    assert "reference" not in rows[0], "answered from the summary alone"
    marks = {"good": "1", "fair": "0,5", "poor": "0.5", "bad": "0"}
    fill(folder / "answers.csv", lambda row: {"mark": marks[row["summary"].split()[0]]})
    assert {s: np.mean(v) for s, v in question_marks(folder).items()} == {
        "good": 100,
        "fair": 50,
        "poor": 50,
        "bad": 0,
    }


def test_statistics_by_hand():
    """Groups of three with means 1, 2, 6 and a variance of 1 each: F = 21, and p of F(2, 6)."""
    values = {"a": [0.0, 1, 2], "b": [1.0, 2, 3], "c": [5.0, 6, 7]}
    means, pairs, p = compare_systems(values)
    assert p == pytest.approx(0.00195, abs=1e-5)
    assert pairs.loc["a - c", "difference"] == -5 and pairs.loc["a - c", "p"] < 0.01
    assert pairs.loc["a - b", "p"] > 0.4 and pairs.loc["a - b", "low"] < 0 < pairs.loc["a - b", "high"]
    assert means.loc["b", "ratings"] == 3
    with pytest.raises(RatingError, match="two systems"):
        compare_systems({"a": [1.0, 2.0]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"best": "A", "worst": "a"}, "line 2: best and worst must be two of A, B, C"),
        ({"best": "A"}, "not 'A' and ''"),
        ({"best": "D", "worst": "A"}, "two of A, B, C"),
        ({"item": "b99", "best": "A", "worst": "B"}, "line 2: no item 'b99'"),
    ],
)
def test_wrong_ratings_are_named(folder, change, message, capsys):
    fill(folder / "best_worst.csv", lambda row: change if row["item"] == "b1" else {})
    with pytest.raises(SystemExit, match=message):
        main(["scores", str(folder)])


def test_other_mistakes_are_named(folder, tmp_path):
    with pytest.raises(SystemExit, match="holds no question yet"):
        main(["answers", str(folder)])
    with pytest.raises(SystemExit, match="holds sheets already"):
        main(["sheet", str(folder), f"a={tmp_path / 'good.jsonl'}", f"b={tmp_path / 'bad.jsonl'}"])
    with pytest.raises(SystemExit, match="NAME=FILE"):
        main(["sheet", str(tmp_path / "n"), str(tmp_path / "good.jsonl")])
    with pytest.raises(SystemExit, match="share 6 documents"):
        main(["sheet", str(tmp_path / "n"), f"a={tmp_path / 'good.jsonl'}", f"b={tmp_path / 'bad.jsonl'}"])
    with pytest.raises(SystemExit, match="begin with"):
        main(["scores", str(tmp_path / "nothing")])
    (tmp_path / "wrong.jsonl").write_text('{"id": "x", "summary": "y", "reference": "z"}\n{"id": 1}\n')
    with pytest.raises(RatingError, match="line 2: id, summary and reference"):
        read_summaries(tmp_path / "wrong.jsonl")
    fill(folder / "questions.csv", lambda row: {"question": "?", "answer": "!"})
    main(["answers", str(folder)])
    with pytest.raises(SystemExit, match=r"answers\.csv is there already"):
        main(["answers", str(folder)])
    fill(folder / "answers.csv", lambda row: {"mark": "2"})
    with pytest.raises(SystemExit, match=r"a mark is 1, 0\.5 or 0, not '2'"):
        main(["scores", str(folder)])
