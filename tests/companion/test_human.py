"""Blinded forms: drawn, filled in, read back; and the statistics."""

import csv
import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from companion.human.__main__ import main
from companion.human.ratings import (
    BEST_WORST,
    COLUMNS,
    agreement,
    by_system,
    compare_systems,
    read_ratings,
)
from companion.human.sheets import CRITERIA
from lib.data.documents import Document
from lib.evaluation.summaries import read_summaries, read_summary_sentences, write_summaries
from lib.system.errors import InputError
from tests.tools.browser import data_of

IDS = [f"d{i}" for i in range(6)]
POINTS = {"good": 5, "fair": 4, "poor": 3, "bad": 2}
SYSTEMS = tuple(POINTS)


def write(path, summaries, references, ids=IDS, title="", source=()):
    documents = [
        Document(i, title, [""] * len(source), [[part] for part in source], r)
        for i, r in zip(ids, references)
    ]
    write_summaries(path, documents, summaries, "a corpus")


def files(folder, systems=SYSTEMS, text="", source=()):
    """A file of summaries for each system, as arguments of the command."""
    for system in systems:
        summaries = [[f"{system} summary of {i}.{text}", "It ends."] for i in IDS]
        write(
            folder / f"{system}.jsonl",
            summaries,
            [[f"The reference.{text}"]] * 6,
            title=text,
            source=source,
        )
    return [f"{system}={folder / system}.jsonl" for system in systems]


@pytest.fixture
def folder(tmp_path):
    main(["sheet", str(tmp_path / "r"), "--documents", "4", *files(tmp_path)])
    return tmp_path / "r"


def key(folder):
    return json.loads((folder / "key.json").read_text(encoding="utf-8"))


def save_form(folder, rater, rows):
    """A form as a browser saves it; rows of (sheet, item, field, value)."""
    table = pd.DataFrame(rows, columns=["sheet", "item", "field", "value"])
    table.to_csv(folder / f"form-{rater}.csv", index=False)


def all_ratings(folder, points=POINTS):
    rows = key(folder)["ratings"].items()
    return [
        ("ratings", item, name, points[system]) for item, (_, system) in rows for name in CRITERIA
    ]


def all_choices(folder):
    for item, letters in key(folder)["best_worst"].items():
        first, *_, last = sorted(letters, key=lambda letter: SYSTEMS.index(letters[letter]))
        yield from (("best_worst", item, "best", first), ("best_worst", item, "worst", last))


def test_a_form_is_blinded_and_complete(tmp_path):
    arguments = files(tmp_path, source=["First paragraph.", "Another."])
    main(["sheet", str(tmp_path / "r"), "--documents", "4", *arguments])
    form = data_of(tmp_path / "r" / "form.html")
    assert len(form["ratings"]) == 4 * 4 and len(form["best_worst"]) == 4 * 4, (
        "every three of four summaries"
    )
    assert not [s for s in SYSTEMS if f'"{s}"' in json.dumps(form)], "no system is named"
    orders = {
        tuple(row["summary"].split()[0] for row in form["ratings"][i : i + 4])
        for i in range(0, 16, 4)
    }
    assert len(orders) > 1, "in random order, document by document"
    shown = {row["item"]: (row["document"], row["summary"]) for row in form["ratings"]}
    for item, (document, system) in key(tmp_path / "r")["ratings"].items():
        assert shown[item] == (document, f"{system} summary of {document}. It ends.")
    assert set(form["texts"].values()) == {"First paragraph.\nAnother."} and set(
        form["criteria"]
    ) == set(CRITERIA)
    page = (tmp_path / "r" / "form.html").read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)\s*=\s*["']|https?:|@import|url\(""", page), (
        "it loads nothing"
    )
    main(["sheet", str(tmp_path / "s"), "--documents", "4", "--seed", "1", *arguments])
    assert data_of(tmp_path / "s" / "form.html")["digest"] != form["digest"]


def test_people_read_text_and_scores_are_of_the_models_words(tmp_path):
    """`lib.score run` writes both; a line of `lib.summarize --json` has only the readable text and
    `sentences`."""
    own, shown = ["l . in <dig> cities .", "it ends ."], ["L. in [number] cities.", "It ends."]
    both = {"id": "a", "summary": own, "readable": shown}
    for line, scored in ((both, own), ({"name": "a", "readable": shown, "sentences": own}, shown)):
        (tmp_path / "s.jsonl").write_text(json.dumps(line), encoding="utf-8")
        assert read_summaries(tmp_path / "s.jsonl")["a"]["summary"] == " ".join(shown)
        assert read_summary_sentences(tmp_path / "s.jsonl") == {"a": scored}


def test_two_people_who_agree(folder, capsys):
    """One is a point harder to please: the same ranks, so that they nearly agree."""
    for rater, harder in (("anna", 0), ("bert", 1)):
        points = {system: value - harder for system, value in POINTS.items()}
        save_form(folder, rater, [*all_ratings(folder, points), *all_choices(folder)])
    ratings = read_ratings(folder)
    assert {s: np.mean(v) for s, v in by_system(ratings, "fluency").items()} == pytest.approx(
        {"good": 4.5, "fair": 3.5, "poor": 2.5, "bad": 1.5}
    )
    values = by_system(ratings, BEST_WORST)
    assert {s: len(v) for s, v in values.items()} == dict.fromkeys(SYSTEMS, 4 * 3), (
        "a mean of both for each"
    )
    assert {s: np.mean(v) for s, v in values.items()} == pytest.approx(
        {"good": 1, "fair": 1 / 3, "poor": -1 / 3, "bad": -1}
    )
    assert agreement(ratings, BEST_WORST) == 1.0 and 0.5 < agreement(ratings, "fluency") < 0.9
    main(["scores", str(folder)])
    out = capsys.readouterr().out
    assert "fluency (2 raters, Krippendorff's alpha 0." in out and "good - bad" in out


def frame(values_by_rater):
    rows = [
        (rater, str(i), "s", "c", float(v))
        for rater, values in values_by_rater.items()
        for i, v in enumerate(values)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def test_agreement_by_hand():
    """Krippendorff (2011), the worked example of two observers with binary data: alpha = 0.095."""
    assert agreement(frame({"a": "0100000000", "b": "1110010100"}), "c") == pytest.approx(
        0.095, abs=5e-4
    )
    assert agreement(frame({"a": "0100"}), "c") is None, "one rater"
    assert agreement(frame({"a": "3", "b": "3"}), "c") is None, "one value"


def test_statistics_by_hand():
    """Groups of three with means 1, 2, 6 and a variance of 1 each: F = 21, and p of F(2, 6)."""
    means, pairs, p = compare_systems({"a": [0.0, 1, 2], "b": [1.0, 2, 3], "c": [5.0, 6, 7]})
    assert p == pytest.approx(0.00195, abs=1e-5)
    assert pairs.loc["a - c", "difference"] == -5 and pairs.loc["a - c", "p"] < 0.01
    assert (
        pairs.loc["a - b", "p"] > 0.4 and pairs.loc["a - b", "low"] < 0 < pairs.loc["a - b", "high"]
    )
    assert means.loc["b", "ratings"] == 3
    with pytest.raises(InputError, match="two systems"):
        compare_systems({"a": [1.0, 2.0]})


WRONG = [
    ("ratings", "r1", "fluency", "12"),  # of no scale
    ("ratings", "r99", "fluency", "3"),  # of another folder
    ("best_worst", "b1", "best", "Z"),  # of no summary
]


@pytest.mark.parametrize("row", WRONG)
def test_judgements_of_nothing_are_refused(folder, row):
    rest = [("best_worst", "b1", "worst", "A")] if row[0] == "best_worst" else []
    save_form(folder, "a", [row, *rest])
    with pytest.raises(InputError, match=r"form-a\.csv: .* is no judgement of"):
        read_ratings(folder)


def test_what_cannot_be_used(tmp_path, folder):
    systems, new = files(tmp_path, SYSTEMS[:2]), str(tmp_path / "n")
    bad = tmp_path / "bad.jsonl"
    bad.write_text("{}\n", encoding="utf-8")
    nothing = tmp_path / "alone.jsonl"
    nothing.write_text('{"id": "d0", "summary": "Theirs."}\n', encoding="utf-8")
    refused = {
        "share 6 documents": ["sheet", new, *systems],
        "1 systems": ["sheet", new, systems[0], "--documents", "1"],
        "is not LABEL=FILE": ["sheet", new, systems[0], str(nothing)],
        "a label of its own": ["sheet", new, systems[0], systems[0]],
        "holds a form already": ["sheet", str(folder), *systems, "--documents", "1"],
        "no such file; python -m lib.score run": [
            "sheet",
            new,
            f"a={tmp_path / 'gone.jsonl'}",
            systems[0],
        ],
        "bad.jsonl: no summary. ": ["sheet", new, f"a={bad}", systems[0]],
        "begin with": ["scores", new],
    }
    for message, arguments in refused.items():
        with pytest.raises(SystemExit, match=f"^error: .*{re.escape(message)}"):
            main(arguments)
    save_form(folder, "a", [("ratings", "r1", "fluency", "3")] * 2)
    with pytest.raises(SystemExit, match="filled in twice"):
        main(["scores", str(folder)])
    (folder / "form-a.csv").write_bytes(b"item,coherence\n\xff,3\n")
    with pytest.raises(SystemExit, match=r"form-a\.csv: a CSV file in UTF-8"):
        main(["scores", str(folder)])


# ---------------------------------------------------------------------------------
# in a browser

FILL_IN = (Path(__file__).parents[1] / "cases" / "fill_in.html").read_text(encoding="utf-8")


def filled_in_by_chromium(form):
    """What the form saves after a script has clicked through it instead of a person."""
    page = form.with_name("filled.html")
    page.write_text(
        form.read_text(encoding="utf-8").replace("</html>", FILL_IN + "</html>"), encoding="utf-8"
    )
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-sync",
    ]
    command = [
        "chromium",
        *flags,
        f"--user-data-dir={form.parent / 'profile'}",
        "--dump-dom",
        page.as_uri(),
    ]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    saved = re.search(r'<pre id="saved">(.*?)</pre>', shown, re.DOTALL)[1].replace("&amp;", "&")
    (form.parent / "form-anna.csv").write_text(saved, newline="", encoding="utf-8")
    return shown, list(csv.DictReader(io.StringIO(saved)))


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs the browser chromium")
def test_forms_in_a_browser(tmp_path):
    """With texts that look like markup."""
    folder = tmp_path / "r"
    arguments = files(tmp_path, text=" <!--<script> </script><b>x</b> \u2028 SHEETS")
    main(["sheet", str(folder), "--documents", "4", *arguments])
    shown, rows = filled_in_by_chromium(folder / "form.html")
    assert "95 of 96 filled in" in shown and len(rows) == 95
    assert [row["field"] for row in rows if row["item"] == "b1"] == ["worst"]
    ratings = read_ratings(folder)
    means = {s: np.mean(v) for s, v in by_system(ratings, "coherence").items()}
    assert set(ratings["rater"]) == {"anna"} and means == POINTS
