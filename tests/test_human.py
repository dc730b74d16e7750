"""Rating sheets: blinded, filled in, read back; and the statistics."""

import csv
import gzip
import io
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from companion.human.__main__ import main
from companion.human.ratings import BEST_WORST, QUESTIONS, Rating, agreement, by_system, compare_systems, read_ratings
from companion.human.sheets import CRITERIA, RatingError, read_rows
from lib.data.documents import Document
from lib.evaluation.summaries import read_summaries, write_summaries

IDS = [f"d{i}" for i in range(6)]
SYSTEMS = ("good", "fair", "poor", "bad")


def write(path, summaries, references, titles=None, sources=None, ids=IDS):
    """Without sources: as a file of the reader's own may be."""
    titles, texts = titles or [""] * len(ids), sources or [[]] * len(ids)
    rows = zip(ids, titles, texts, references)
    documents = [Document(i, title, [""] * len(text), [[part] for part in text], of) for i, title, text, of in rows]
    write_summaries(path, documents, summaries, "a corpus")
    if sources is None:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
        path.write_text(
            "".join(json.dumps({k: v for k, v in x.items() if k != "source"}) + "\n" for x in lines), encoding="utf-8"
        )


@pytest.fixture
def folder(tmp_path):
    for system in SYSTEMS:
        summaries = [[f"{system} summary of {i}.", "It ends."] for i in IDS]
        write(tmp_path / f"{system}.jsonl", summaries, [["The reference."]] * 6)
    main(["sheet", str(tmp_path / "r"), "--documents", "4", *(f"{s}={tmp_path / s}.jsonl" for s in SYSTEMS)])
    return tmp_path / "r"


def rows_in(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def fill(path, change, to=None):
    rows = rows_in(path)
    with open(to or path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, **change(row)} for row in rows)


def judge(row):
    """The order of SYSTEMS, by what the summaries say of themselves."""
    ranks = {letter: SYSTEMS.index(row[letter].split()[0]) for letter in "ABCD" if row[letter]}
    return {"best": min(ranks, key=ranks.get), "worst": max(ranks, key=ranks.get).lower()}


def test_sheets_are_blinded_and_fair(folder):
    rows = rows_in(folder / "best_worst.csv")
    assert len(rows) == 4 * 4, "every three of four systems for every document"
    assert not {"system", *SYSTEMS} & set(rows[0])
    assert len({row["document"] for row in rows}) == 4
    positions = {tuple(SYSTEMS.index(row[x].split()[0]) for x in "ABCD" if row[x]) for row in rows}
    assert any(list(p) != sorted(p) for p in positions), "in random order"
    assert all(len(set(p)) == 3 for p in positions)
    named = {(row["document"], row["letter"]): row["summary"] for row in rows_in(folder / "ratings.csv")}
    assert len(named) == 16 and all(row[x] in ("", named[row["document"], x]) for row in rows for x in "ABCD")


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


@pytest.mark.parametrize(("delimiter", "encoding"), [(";", "utf-8"), (";", "utf-8-sig"), ("\t", "utf-8-sig")])
def test_sheets_as_spreadsheets_of_other_countries_save_them(folder, delimiter, encoding):
    fill(folder / "best_worst.csv", judge)
    expected = read_ratings(folder)
    rows = rows_in(folder / "best_worst.csv")
    with open(folder / "best_worst.csv", "w", newline="", encoding=encoding) as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    assert read_ratings(folder) == expected != []


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


def test_finished_criteria_are_shown_beside_unfinished_ones(folder, capsys):
    """Complete ratings, and one answer of best and worst."""
    fill(folder / "ratings.csv", lambda row: {"fluency": str(5 - SYSTEMS.index(row["summary"].split()[0]))})
    fill(folder / "best_worst.csv", lambda row: judge(row) if row["item"] == "b1" else {})
    main(["scores", str(folder)])
    out = capsys.readouterr().out
    assert "fluency (1 raters" in out and "good - bad" in out
    assert f"{BEST_WORST}: two systems with two ratings each are needed for a comparison" in out


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


def test_a_summary_is_shown_once_beside_its_document_and_its_reference(tmp_path):
    """And the best and the worst are asked for by the criteria of Liu and Lapata (2019)."""
    for system in SYSTEMS:
        sources = [["First paragraph.", f"Paragraph two of {i}."] for i in IDS]
        summaries = [[f"{system} summary of {i}."] for i in IDS]
        write(tmp_path / f"{system}.jsonl", summaries, [["Reference."]] * 6, ["T"] * 6, sources)
    main(["sheet", str(tmp_path / "r"), "--documents", "2", *(f"{s}={tmp_path / s}.jsonl" for s in SYSTEMS)])
    form, rows = (tmp_path / "r" / "form.html").read_text(encoding="utf-8"), rows_in(tmp_path / "r" / "ratings.csv")
    for row in rows:
        assert form.count(row["summary"]) == 1
        text = (tmp_path / "r" / row["text"]).read_text(encoding="utf-8").splitlines()
        assert text == [row["document"], "T", "", "First paragraph.", f"Paragraph two of {row['document']}."]
    assert form.count("First paragraph.") == 2, "once for each document"
    assert all(asked in form for asked in ("informativeness", "fluency", "succinctness", "avoid repetition"))


FORMULAS = ("=cmd|' /C calc'!A0", "+1", "-1", "@x", "\tx", "\rx", "'=1", "plain", "'plain", "")


def test_no_cell_is_a_formula_and_none_is_lost(tmp_path):
    """Ids, titles, summaries and questions that a spreadsheet would run."""
    ids = [f"{text}{i}" for i, text in enumerate(FORMULAS)]
    for system in "ab":
        summaries = [[f"{text} of {system}"] for text in FORMULAS]
        write(tmp_path / f"{system}.jsonl", summaries, [[text] for text in FORMULAS], FORMULAS, ids=ids)
    folder, given = tmp_path / "r", [f"{s}={tmp_path / s}.jsonl" for s in "ab"]
    main(["sheet", str(folder), *given, "--documents", "10", "--criteria", "=x", "b"])
    fill(folder / "questions.csv", lambda row: {"question": "=2+3", "answer": "-5"})
    main(["answers", str(folder)])
    for name in ("ratings", "best_worst", "questions", "answers"):
        for row in rows_in(folder / f"{name}.csv"):
            if name != "questions":
                assert not [cell for pair in row.items() for cell in pair if cell[:1] in tuple("=+-@\t\r")]
    assert {d for _, row in read_rows(folder / "ratings.csv", ("document",)) for d in row.values()} == set(ids)
    fill(folder / "ratings.csv", lambda row: {"'=x": "3", "b": "4"})
    assert {(r.criterion, r.value) for r in read_ratings(folder)} == {("=x", 3), ("b", 4)}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("7", "id and summary are needed"),
        ("null", "id and summary are needed"),
        ('["a"]', None),
        ('{"id": null, "summary": "a", "reference": "b"}', "id must be a text or a whole number, not null"),
        ('{"id": ["x"], "summary": "a", "reference": "b"}', 'not ["x"]'),
        ('{"id": {}, "summary": "a", "reference": "b"}', "id must be a text"),
        ('{"id": true, "summary": "a", "reference": "b"}', "id must be a text"),
        ('{"id": " ", "summary": "a", "reference": "b"}', "id must be a text"),
        ('{"id": 1.5, "summary": "a", "reference": "b"}', "id must be a text"),
        ('{"id": "x", "summary": null, "reference": "b"}', "summary is null"),
        ('{"id": "x", "summary": "a", "reference": 7}', "reference must be a text or a list of sentences"),
        ('{"id": "x", "summary": ["a", null], "reference": "b"}', "summary must be a text or a list of sentences"),
        ('{"id": "x", "summary": "\\udfff", "reference": "b"}', None),
        ('{"id": "d0", "summary": "a", "reference": "b"}', "a second summary of the document 'd0'"),
        ('{"id": ', "not JSON"),
    ],
)
def test_records_that_are_no_summaries(tmp_path, folder, line, message):
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    lines = good.read_text(encoding="utf-8").splitlines()
    bad.write_text("\n".join([lines[0], line, *lines[1:]]) + "\n", encoding="utf-8")
    with pytest.raises(SystemExit, match=rf"^error: .*bad\.jsonl, line 2: .*{re.escape(message or '')}") as stopped:
        main(["sheet", str(tmp_path / "n"), f"a={good}", f"b={bad}", "--documents", "2"])
    assert "\n" not in str(stopped.value.code) and not (tmp_path / "n").exists()


def test_summaries_of_another_system_have_no_references(tmp_path):
    """They are those of the files that have them; one at least."""
    write(tmp_path / "ours.jsonl", [["Ours."]] * 6, [["The reference."]] * 6, sources=[["The document."]] * 6)
    lines = [json.dumps({"id": i, "summary": "Theirs."}) for i in IDS]
    (tmp_path / "theirs.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    theirs = tmp_path / "theirs.jsonl"
    main(["sheet", str(tmp_path / "r"), f"a={tmp_path / 'ours.jsonl'}", f"b={theirs}", "--documents", "2"])
    assert {row["reference"] for row in rows_in(tmp_path / "r" / "ratings.csv")} == {"The reference."}
    with pytest.raises(SystemExit, match="no file has a reference"):
        main(["sheet", str(tmp_path / "n"), f"a={theirs}", f"b={theirs}", "--documents", "2"])
    assert not (tmp_path / "n").exists()


def test_ids_that_are_numbers(tmp_path):
    for system in "ab":
        lines = [json.dumps({"id": i, "summary": f"{system} {i}", "reference": "r"}) for i in (1, 2, "three")]
        (tmp_path / f"{system}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    main(["sheet", str(tmp_path / "r"), "--documents", "3", *(f"{s}={tmp_path / s}.jsonl" for s in "ab")])
    fill(tmp_path / "r" / "ratings.csv", lambda row: {"fluency": "3"})
    assert len(read_ratings(tmp_path / "r")) == 6


@pytest.mark.parametrize("cut", [5, 40, -5])
def test_a_gzip_file_that_was_cut_short(tmp_path, folder, cut):
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(gzip.compress((tmp_path / "good.jsonl").read_bytes())[:cut])
    with pytest.raises(
        SystemExit, match=r"^error: .*cut\.jsonl\.gz: damaged gzip data \(.*\)\. Download or make it again\.$"
    ):
        main(["sheet", str(tmp_path / "n"), f"a={path}", f"b={tmp_path / 'bad.jsonl'}"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--documents", "0"], "at least one document is drawn"),
        (["--documents", "-1"], "at least one document is drawn"),
        (["--documents", "2", "--seed", "-1"], "a seed of at least 0"),
        (["--documents", "2", "--criteria"], "criteria are names"),
    ],
)
def test_numbers_and_names_that_cannot_be(tmp_path, folder, arguments, message):
    with pytest.raises(SystemExit, match=f"error: .*{message}"):
        main(["sheet", str(tmp_path / "n"), *(f"{s}={tmp_path / s}.jsonl" for s in SYSTEMS), *arguments])


@pytest.mark.parametrize("name", ["item", "document", "title", "reference", "text", "letter", "summary"])
def test_a_criterion_is_no_other_column(tmp_path, folder, name):
    systems = [f"{s}={tmp_path / s}.jsonl" for s in SYSTEMS]
    with pytest.raises(SystemExit, match=f"not '{name}': a column of ratings.csv"):
        main(["sheet", str(tmp_path / "n"), *systems, "--documents", "2", "--criteria", "fluency", name])
    assert not (tmp_path / "n").exists()


def test_files_that_cannot_be_used(tmp_path, folder):
    good = tmp_path / "good.jsonl"
    with pytest.raises(SystemExit, match=r"python -m lib\.score run FOLDER --dataset NAME writes one"):
        main(["sheet", str(tmp_path / "n"), f"a={tmp_path / 'gone.jsonl'}", f"b={good}"])
    with pytest.raises(SystemExit, match="two systems are named 'a'"):
        main(["sheet", str(tmp_path / "n"), f"a={good}", f"a={good}"])
    with pytest.raises(SystemExit, match=r"^error: .*good\.jsonl"):
        main(["sheet", str(good), f"a={good}", f"b={good}", "--documents", "2"])
    (folder / "ratings.csv").write_bytes(b"item,coherence\n\xff,3\n")
    with pytest.raises(SystemExit, match=r"ratings\.csv"):
        main(["scores", str(folder)])
    for text in ("{", "[]", "{}", '{"documents": 3}'):
        (folder / "key.json").write_text(text, encoding="utf-8")
        with pytest.raises(SystemExit, match=r"^error: .*key\.json is damaged"):
            main(["scores", str(folder)])


@pytest.mark.parametrize(
    "change",
    [
        {"ratings": {"r1": 5}},
        {"ratings": {"r1": ["d0", "nobody"]}},
        {"best_worst": {"b1": 5}},
        {"best_worst": {"b1": {"A": "nobody"}}},
        {"summaries": {}},
    ],
    ids=str,
)
def test_a_key_that_is_damaged_inside(folder, change):
    path = folder / "key.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | change), encoding="utf-8")
    for command in ("scores", "answers"):
        with pytest.raises(SystemExit, match=r"^error: .*key\.json is damaged"):
            main([command, str(folder)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"best": "A", "worst": "a"}, "line 2: best and worst must be two of A, B, C"),
        ({"best": "A"}, "not 'A' and ''"),
        ({"best": "D", "worst": "A"}, "two of A, B, C"),
        ({"best": "AB", "worst": "C"}, "two of A, B, C"),
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
    (tmp_path / "wrong.jsonl").write_text(
        '{"id": "x", "summary": "y", "reference": "z"}\n{"id": 1}\n', encoding="utf-8"
    )
    with pytest.raises(InputError, match="line 2: id and summary are needed"):
        read_summaries(tmp_path / "wrong.jsonl")
    fill(folder / "questions.csv", lambda row: {"question": "?", "answer": "!"})
    main(["answers", str(folder)])
    with pytest.raises(SystemExit, match=r"answers\.csv is there already"):
        main(["answers", str(folder)])
    fill(folder / "answers.csv", lambda row: {"mark": "2"})
    with pytest.raises(SystemExit, match=r"a mark is 1, 0\.5 or 0, not '2'"):
        main(["scores", str(folder)])


def test_one_person_says_one_thing(folder):
    """Two people's sheets put into one file, or a form that was joined with another."""
    fill(folder / "ratings.csv", lambda row: {"fluency": "4"} if row["item"] == "r2" else {})
    rows = (folder / "ratings.csv").read_bytes().splitlines(keepends=True)
    (folder / "ratings.csv").write_bytes(b"".join([*rows, rows[2]]))
    with pytest.raises(RatingError, match=rf"line {len(rows) + 1}: item 'r2' is filled in twice, in line 3 too"):
        read_ratings(folder)
    (folder / "ratings.csv").write_bytes(b"".join(rows))
    line = "ratings,r2,fluency,{}\n"
    (folder / "form-ann.csv").write_text(
        "sheet,item,field,value\n" + line.format(4) + line.format(5), encoding="utf-8"
    )
    with pytest.raises(RatingError, match=r"form-ann\.csv, line 3: fluency of item 'r2' is filled in twice"):
        read_ratings(folder)


@pytest.mark.parametrize("value", ["6", "1.5", "good", "12", "23", "45", "0"])
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
  const system = t => t.slice(1).split(" ")[0];  // behind the letter
  if (name.startsWith("ratings")) chosen = of(t => ({good: "5", fair: "4", poor: "3"})[system(t)] || "2");
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
    (folder / "form-anna.csv").write_text(saved, newline="", encoding="utf-8")
    ratings = read_ratings(folder)
    assert {r.rater for r in ratings} == {"anna"}
    means = {s: np.mean(v) for s, v in by_system(ratings, "coherence").items()}
    assert means == {"good": 5, "fair": 4, "poor": 3, "bad": 2}, "what was clicked is what is read, system by system"
    assert sum(r.value == 1 for r in ratings if r.criterion == BEST_WORST) == 16


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs the browser chromium")
@pytest.mark.parametrize("text", ["<!--<script>", "</script><b>x</b>", "<!-- <script> -->", "\u2028 SHEETS"])
def test_texts_that_look_like_markup(tmp_path, text):
    for system in "ab":
        write(tmp_path / f"{system}.jsonl", [[f"{system} {text}"]] * 6, [[text]] * 6, [text] * 6)
    main(["sheet", str(tmp_path / "r"), "--documents", "2", *(f"{s}={tmp_path / s}.jsonl" for s in "ab")])
    shown, saved = filled_in_by_chromium(tmp_path / "r" / "form.html")
    assert shown.count('class="done"') == 2 * 2 + 2 and len(saved.splitlines()) == 1 + 2 * 2 * 4 + 2 * 2


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
    (folder / "form-bert.csv").write_text(saved, newline="", encoding="utf-8")
    assert 'so, ""yes""' in saved
    ratings = [r for r in read_ratings(folder) if r.criterion == QUESTIONS]
    assert len(ratings) == 4 * 3 * 4 and {r.value for r in ratings} == {100.0}


def sheets_in(form):
    page = form.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_other_sheets_begin_empty(tmp_path, folder):
    """With another seed or other letters the page is as long, and what was filled in before is not for it."""
    systems, found = [f"{s}={tmp_path / s}.jsonl" for s in SYSTEMS], {}
    for name, seed in (("again", "0"), ("other", "1")):
        main(["sheet", str(tmp_path / name), *systems, "--documents", "4", "--seed", seed])
        found[name] = tmp_path / name / "form.html"
    assert len({path.stat().st_size for path in found.values()}) == 1
    first = sheets_in(folder / "form.html")["digest"]
    assert sheets_in(found["again"])["digest"] == first != sheets_in(found["other"])["digest"]
    page = found["other"].read_text(encoding="utf-8")
    assert re.findall(r"localStorage\.\w+\((\w+)", page) == ["memory", "memory"]
    assert re.search(r"const memory = (.*?);", page)[1] == "`form ${location.pathname} ${sheets.digest}`"


def test_the_form_needs_nothing_else(folder):
    text = (folder / "form.html").read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)\s*=\s*["']|https?:|@import|url\(""", text)
    assert not [s for s in SYSTEMS if f'"{s}"' in text], "nor says whose a summary is"
