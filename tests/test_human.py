"""Rating sheets: blinded, filled in, read back; and the statistics."""

import csv
import io
import re
import shutil
import subprocess

import numpy as np
import pytest

from lib.human.__main__ import main
from lib.human.ratings import BEST_WORST, QUESTIONS, Rating, agreement, by_system, compare_systems, read_ratings
from lib.human.sheets import CRITERIA, RatingError, read_summaries, write_summaries

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
    ratings = read_ratings(folder)
    assert {r.rater for r in ratings} == {"", "anna"} and agreement(ratings, BEST_WORST) == 1.0
    values = by_system(ratings, BEST_WORST)
    assert {s: len(v) for s, v in values.items()} == dict.fromkeys(SYSTEMS, 4 * 3), "a mean of both for each"
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
    assert {s: np.mean(v) for s, v in by_system(read_ratings(folder), QUESTIONS).items()} == {
        "good": 100,
        "fair": 50,
        "poor": 50,
        "bad": 0,
    }


def test_ratings_by_criterion(folder, capsys):
    """Two people, one of them a point harder to please: the same ranks, so that they nearly agree."""
    points = {"good": 5, "fair": 4, "poor": 3, "bad": 2}
    for rater, harder in (("anna", 0), ("bert", 1)):
        given = lambda row, harder=harder: dict.fromkeys(CRITERIA, str(points[row["summary"].split()[0]] - harder))  # noqa: E731
        fill(folder / "ratings.csv", given, folder / f"ratings-{rater}.csv")
    rows = rows_in(folder / "ratings.csv")
    assert len(rows) == 4 * 4 and not {"system", *SYSTEMS} & set(rows[0])
    orders = {tuple(row["summary"].split()[0] for row in rows[i : i + 4]) for i in range(0, 16, 4)}
    assert len(orders) > 1, "in random order, document by document"
    ratings = read_ratings(folder)
    assert {s: np.mean(v) for s, v in by_system(ratings, "fluency").items()} == {
        s: p - 0.5 for s, p in points.items()
    }
    assert 0.5 < agreement(ratings, "fluency") < 0.9
    main(["scores", str(folder)])
    assert "fluency (2 raters, Krippendorff's alpha 0." in capsys.readouterr().out


def test_agreement_by_hand():
    """Krippendorff (2011), the worked example of two observers with binary data: alpha = 0.095."""
    first, second = "0100000000", "1110010100"
    given = [
        Rating(r, str(i), "s", "c", float(v)) for r, vs in (("a", first), ("b", second)) for i, v in enumerate(vs)
    ]
    assert agreement(given, "c") == pytest.approx(0.095, abs=5e-4)
    assert agreement(given[:10], "c") is None, "one rater"
    assert agreement([Rating(r, "1", "s", "c", 3.0) for r in "ab"], "c") is None, "one value"


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


@pytest.mark.parametrize("value", ["6", "1.5", "good"])
def test_a_rating_is_one_to_five(folder, value):
    fill(folder / "ratings.csv", lambda row: {"fluency": value} if row["item"] == "r2" else {})
    with pytest.raises(SystemExit, match=rf"ratings\.csv, line 3: fluency is 1, 2, 3, 4 or 5, not '{value}'"):
        main(["scores", str(folder)])


def test_criteria_can_be_chosen(tmp_path, folder):
    systems = [f"{s}={tmp_path / s}.jsonl" for s in SYSTEMS[:2]]
    main(["sheet", str(tmp_path / "own"), *systems, "--documents", "2", "--criteria", "fluency", "well sourced"])
    assert list(rows_in(tmp_path / "own" / "ratings.csv")[0])[-2:] == ["fluency", "well sourced"]


# ------------------------------------------------------------------------------------------------- in a browser

FILL_IN = """<pre id="saved"></pre><script>
for (const name of new Set([...document.querySelectorAll("article [name]")].map(e => e.name))) {
  const inputs = [...document.getElementsByName(name)], text = inputs[0].closest("article").textContent;
  const of = what => inputs.find(e => e.value === what(text));
  let chosen = inputs[0];
  if (name.startsWith("ratings")) chosen = of(t => ({good: "5", fair: "4", poor: "3"})[t.split(" ")[0]] || "2");
  if (name.endsWith(" worst")) chosen = inputs[inputs.length - 1];
  if (name.endsWith(" response")) { chosen.value = 'so, "yes"'; chosen.dispatchEvent(new Event("input")); continue; }
  chosen.click();
}
document.getElementById("saved").textContent = csv();
</script>"""


CHANGE_OF_MIND = """<pre id="saved"></pre><script>
for (const field of ["best", "worst"]) document.getElementsByName(`best_worst b1 ${field}`)[0].click();
document.getElementById("saved").textContent = csv();
</script>"""


def filled_in_by_chromium(form, script=FILL_IN):
    """The file that the form saves after a person, or a script in their place, has clicked through it."""
    page = form.with_name("filled.html")
    page.write_text(form.read_text(encoding="utf-8").replace("</html>", script + "</html>"), encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
    command = ["chromium", *flags, f"--user-data-dir={form.parent / 'profile'}", "--dump-dom", page.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    saved = re.search(r'<pre id="saved">(.*?)</pre>', shown, re.DOTALL)[1]
    return shown, saved.replace("&amp;", "&")


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs the browser chromium")
def test_the_form_is_filled_in_and_read_back(folder):
    shown, saved = filled_in_by_chromium(folder / "form.html")
    assert shown.count('class="done"') == 4 * 4 + 4 * 4, "every summary and every three of them"
    assert "160 of 160" not in shown and "96 of 96 filled in" in shown
    assert len(list(csv.DictReader(io.StringIO(saved)))) == 4 * 4 * 4 + 2 * 16
    (folder / "form-anna.csv").write_text(saved, newline="")
    ratings = read_ratings(folder)
    assert {r.rater for r in ratings} == {"anna"}
    means = {s: np.mean(v) for s, v in by_system(ratings, "coherence").items()}
    assert means == {"good": 5, "fair": 4, "poor": 3, "bad": 2}, "what was clicked is what is read, system by system"
    assert sum(r.value == 1 for r in ratings if r.criterion == BEST_WORST) == 16


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs the browser chromium")
def test_one_summary_cannot_be_best_and_worst(folder):
    _, saved = filled_in_by_chromium(folder / "form.html", CHANGE_OF_MIND)
    rows = [tuple(row.values()) for row in csv.DictReader(io.StringIO(saved))]
    assert rows == [("best_worst", "b1", "worst", "A")], "the later choice holds"


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs the browser chromium")
def test_answers_in_a_browser(folder):
    fill(folder / "questions.csv", lambda row: {"question": "</script><b>What?</b>", "answer": "x & y"})
    main(["answers", str(folder)])
    shown, saved = filled_in_by_chromium(folder / "answers.html")
    assert "&lt;/script&gt;&lt;b&gt;What?" in shown, "no text is taken for markup"
    (folder / "form-bert.csv").write_text(saved, newline="")
    assert 'so, ""yes""' in saved
    ratings = [r for r in read_ratings(folder) if r.criterion == QUESTIONS]
    assert len(ratings) == 4 * 3 * 4 and {r.value for r in ratings} == {100.0}


def test_the_form_needs_nothing_else(folder):
    text = (folder / "form.html").read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)\s*=\s*["']|https?:|@import|url\(""", text)
    assert not [s for s in SYSTEMS if f'"{s}"' in text], "nor says whose a summary is"
