"""Support of a summary by its text: what is not in the text, and which of its sentences carry the
summary's."""

import json
import re
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from companion.make_tables import main as make_tables
from lib import score
from lib.data.documents import own_id
from lib.decoding.readable import Reading
from lib.evaluation.comparison import AS_WRITTEN, CUT
from lib.evaluation.measures import MEASURES, SUPPORT
from lib.evaluation.scores import intervals
from lib.evaluation.summaries import read_summary_sentences
from lib.evaluation.support import Names, SourceText, not_in_text, support_counts, terms
from lib.page.summary_page import TITLE, ShownText
from lib.system.errors import InputError
from tests.conftest import case_tables

TEXT = [
    "We measured the sleep of 1,635 nurses in Lisbon.",
    "Their age was 0.50 of the limit (p < .001), and 12,13 were left out.",
    "Night shifts shortened sleep by 40 min; the BMI did not change.",
    "In Lisbon the p53 gene was not looked at.",
]
NOBODY = Names([])


def keys(sentence):
    return [term.key for term in terms(sentence)]


def missing(sentence, text=TEXT, names=NOBODY):
    found = not_in_text(terms(sentence), SourceText(text), names)
    return [(sentence[term.start : term.end], kind) for term, kind in found]


# ---------------------------------------------------------------------------------
# numbers


@pytest.mark.parametrize(("written", "value"), case_tables("support")["number"])
def test_a_number_has_one_value_in_all_spellings(written, value):
    assert " ".join(keys(written)) == value


def test_numbers_are_found_by_value():
    assert missing("of 1635 nurses 0.5 were; 40.0") == []
    assert missing("1,636 nurses, 0.51, 4 min, 16") == [
        (n, "number") for n in ("1,636", "0.51", "4", "16")
    ]
    assert missing("53", ["The p53 gene."]) == [("53", "number")], "digits in a word make no number"


# ---------------------------------------------------------------------------------
# words and names


def test_words_are_found_in_any_case_and_script():
    assert missing("SLEEP of the nurses") == []
    assert missing("the nurse’s age") == [("nurse", "word"), ("’s", "word")]
    german = ["Größere Straßen führen nach İzmir."]
    assert missing("größere straßen führen nach izmir", german) == []
    assert missing("睡眠", ["睡不好"]) == [("眠", "word")], (
        "of a script without spaces each character is a word"
    )


def test_a_name_is_known_by_the_texts():
    """A capital inside of sentences, nine times of ten; the first word of a sentence says
    nothing."""
    names = Names(
        [
            *TEXT,
            "Porto was first.",
            "It rained in Porto.",
            "We and We slept as we did.",
            "Ask I and X.",
        ]
    )
    known = {
        word
        for word in ("lisbon", "bmi", "porto", "we", "night", "nurses", "i", "x", "12")
        if terms(word)[0] in names
    }
    assert known == {"lisbon", "bmi", "porto"}
    assert missing("in porto 7 cats", names=names) == [
        ("porto", "name"),
        ("7", "number"),
        ("cats", "word"),
    ]
    assert missing("in Porto") == [("Porto", "word")], "where no text says so it is a word"


# ---------------------------------------------------------------------------------
# counts


def test_counts_of_a_summary():
    names = Names([*TEXT, "It rained in Porto."])
    summary = ["We measured the sleep of 1,635 nurses in Porto.", "Cats slept 40 hours.", " . ."]
    counts = support_counts(summary, SourceText(TEXT), names)
    assert counts == {
        "numbers": (0, 2),
        "names": (1, 1),
        "words": (4, 11),  # porto, cats, slept, hours
        "pairs": (4, 11),  # in porto, cats slept, slept 40, 40 hours
        "carried": (1, 2),  # marks alone are no sentence
    }
    assert support_counts(summary * 2, SourceText(TEXT), names)["words"] == (8, 22), (
        "each time that they occur"
    )


def test_pairs_stand_in_one_sentence_and_not_across_a_mask():
    text = SourceText(["We saw rats.", "Mice, cats <dig> dogs."])
    assert text.pairs == {("we", "saw"), ("saw", "rats"), ("mice", "cats")}


def test_shares_are_pooled_over_documents():
    part = {"support": {kind: [(1, 1), (0, 3)] for kind in SUPPORT}}
    values, weights = MEASURES["support"].numbers(part)
    assert values.sum(1).tolist() == [100] * 5 and weights.sum(1).tolist() == [4] * 5
    assert intervals("support", part)["words not in the text"].mean == 25


# ---------------------------------------------------------------------------------
# what carries


def carried(sentence, text=TEXT):
    return [
        (number, round(share, 2)) for number, share in SourceText(text).carriers(terms(sentence))
    ]


def test_a_copied_sentence_is_carried_by_its_source():
    for number, sentence in enumerate(TEXT):
        assert carried(sentence) == [(number, 1.0)]
    assert carried("The Nurses of Lisbon slept")[0][0] == 0


def test_two_sources_carry_what_joins_them():
    (first, a), (second, b) = carried("Night shifts shortened the sleep of 1,635 nurses in Lisbon.")
    assert {first, second} == {0, 2} and a > b and a + b == pytest.approx(1, abs=0.02)


# ---------------------------------------------------------------------------------
# beside a text


def reading(rows, unread=()):
    return Reading(rows, list(unread), 0, 0, [], 0.0)


def test_tokens_that_are_not_in_the_text():
    """Words of a model or pieces of words: each that has a part in what is missing."""
    text = ShownText(reading([["We", " saw", " 1,635", " rats", "."]]), "sentence")
    lacks, carriers = text.support([[" we", " saw", " 1635", " cats", " ."]], NOBODY)
    assert lacks == ["", "", "", "word", ""] and carriers[0][0][0] == 0
    pieces = [[" We", " sa", "w", " 1", ",", "6", "36", " r", "ats", "."]]
    assert text.support(pieces, NOBODY)[0] == [
        "",
        "",
        "",
        "number",
        "number",
        "number",
        "number",
        "",
        "",
        "",
    ]
    lacks, _ = text.support([[" a", " <", "dig", ">", " cat"]], Names(["No Cat."]))
    assert lacks == ["word", "", "", "", "name"]


def test_sentences_of_a_text_have_places():
    rows = [["Rats", " slept", ".", " Mice", " ate", "."], [" It", " rained", "."]]
    unread = [("Methods", "Dogs barked. Birds sang."), ("", "The end.")]
    text = ShownText(reading(rows, unread), "paragraph", "Quokkas")
    assert text.spans == [(0, 3), (3, 6), (6, 9)]
    said = ["mice ate", "it rained", "dogs barked", "birds sang", "the end", "quokkas"]
    _, carriers = text.support([[f" {word}" for word in one.split()] for one in said], NOBODY)
    assert [found[0][0] for found in carriers] == [1, 2, 3, 4, 5, TITLE]
    assert ShownText(reading(rows), "sentence").spans == [(0, 6), (6, 9)], (
        "a row is one, however many stops it has"
    )
    titled = ShownText(reading([["Quokkas"], [" ate", "."]]), "paragraph", "Quokkas")
    assert titled.support([["Quokkas"]], NOBODY)[1] == [[(0, 1.0)]], (
        "a title that was read is a row"
    )


# ---------------------------------------------------------------------------------
# commands


@pytest.fixture
def corpus(tmp_path):
    """Twelve documents, and a system that writes a sentence of each and a number that half of them
    have."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    records = [
        {
            "id": f"d{i}",
            "title": "",
            "article": f"We saw {i} rats in Porto. They slept well. It rained.",
            "abstract": "In Porto rats slept.",
        }
        for i in range(12)
    ]
    for name in ("train", "val", "test"):
        (folder / f"{name}.jsonl").write_text(
            "".join(json.dumps(r) + "\n" for r in records), encoding="utf-8"
        )
    summaries = [
        {"id": f"d{i}", "summary": ["They slept well.", f"We saw {i if i % 2 else 77} rats."]}
        for i in range(12)
    ]
    write_lines(tmp_path / "theirs.jsonl", summaries)
    return folder


def write_lines(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def test_summaries_of_any_system_are_scored(corpus, tmp_path, capsys):
    output = tmp_path / "scores.json"
    score.main(
        [
            "summaries",
            str(tmp_path / "theirs.jsonl"),
            "--dataset",
            str(corpus),
            "--output",
            str(output),
        ]
    )
    out = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert out.startswith("12 test documents of ") and "R-1 R-2 R-Lsum words" in lines
    assert "numbers names words pairs carried" in lines and f"All scores: {output}" in lines
    assert any(line.startswith("summaries 50.00 [") for line in lines)
    assert any(line.startswith("reference 100.00 100.00 100.00") for line in lines)
    scores = json.loads(output.read_text(encoding="utf-8"))
    assert scores["parts"]["summaries"]["support"]["numbers"] == [
        [i % 2 == 0, 1] for i in range(12)
    ]
    assert scores["parts"]["summaries"]["support"]["carried"] == [[2, 2]] * 12
    assert scores["parts"]["reference"]["support"]["names"] == [[0, 1]] * 12
    assert np.allclose(scores["parts"]["reference"]["rouge"], 100) and len(scores["ids"]) == 12


THEIRS = [f"They slept well. We saw {i if i % 2 else 77} rats." for i in range(12)]
BY_ID = {f"d{i}": text for i, text in enumerate(THEIRS)}
AS_RECORDS = [{"id": name, "summary": text} for name, text in BY_ID.items()]


def in_lines(records):
    return "".join(json.dumps(record) + "\n" for record in records)


def of_chat(text):
    """An answer as OpenAI's interface for batches writes it."""
    message = {"role": "assistant", "content": text, "refusal": None}
    return {"status_code": 200, "body": {"id": "x", "choices": [{"index": 0, "message": message}]}}


def of_fairseq(texts):
    """fairseq-generate's output: the longest text first, each with two hypotheses."""
    lines = ["| loaded 12 examples"]
    for number, text in reversed(list(enumerate(texts))):
        lines += [f"S-{number}\tA text", f"T-{number}\tIts summary", f"H-{number}\t-0.4\tpieces"]
        lines += [f"D-{number}\t-0.4\t{text}", f"P-{number}\t-0.1 -0.3"]
        lines += [f"D-{number}\t-0.9\tThe second best."]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("generate-test.txt", of_fairseq(THEIRS)),
        ("hypotheses.txt", "".join(f"H-{i}\t-0.4\t{t}\n" for i, t in enumerate(THEIRS))),
        (
            "batch.jsonl",
            in_lines(
                {"id": f"batch_{n}", "custom_id": n, "response": of_chat(t), "error": None}
                for n, t in reversed(BY_ID.items())
            ),
        ),
        (
            "results.jsonl",
            in_lines(
                {"custom_id": n, "result": {"message": {"content": [{"type": "x"}, {"text": t}]}}}
                for n, t in BY_ID.items()
            ),
        ),
        ("pipeline.json", json.dumps([[{"summary_text": text}] for text in THEIRS], indent=1)),
        (
            "generated_predictions.jsonl",
            in_lines({"prompt": "Shorten", "predict": t, "label": "No"} for t in THEIRS),
        ),
        ("lines.txt", "\n".join(THEIRS) + "\n"),
        ("records.jsonl", in_lines(AS_RECORDS)),
        ("texts.jsonl", in_lines(THEIRS)),
        ("list.json", json.dumps(AS_RECORDS, indent=1)),
        ("texts.json", json.dumps(THEIRS)),
        ("map.json", json.dumps(BY_ID, indent=1)),
        ("table.csv", pd.DataFrame(AS_RECORDS).to_csv(index=False)),
        ("generated.csv", pd.DataFrame({"generated_text": THEIRS}).to_csv(index=False)),
        (
            "ours.jsonl",
            in_lines(
                {"id": n, "name": "a.jsonl, line 1", "readable": t, "sentences": ["no"]}
                for n, t in BY_ID.items()
            ),
        ),
    ],
)
def test_summaries_in_any_form_have_the_same_scores(corpus, tmp_path, capsys, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    found = scored_file(corpus, tmp_path / name)
    expected = scored_file(corpus, tmp_path / "theirs.jsonl")
    assert found["parts"] == expected["parts"] and found["ids"] == expected["ids"]
    assert capsys.readouterr().err == ""


def scored_file(corpus, path):
    output = path.with_name("of_file.json")
    score.main(["summaries", str(path), "--dataset", str(corpus), "--output", str(output)])
    return json.loads(output.read_text(encoding="utf-8"))


def test_what_may_be_wrong_with_summaries_is_counted(corpus, tmp_path, capsys):
    """Missing documents, empty summaries, and answers of a chat."""
    chat = "Here is a summary of the text: They slept well."
    texts = {"d0": chat, "d1": "", "d2": "Summary: They slept.", "d3": "Here we saw rats: two."}
    write_lines(tmp_path / "a.jsonl", [{"id": n, "summary": t} for n, t in texts.items()])
    found = scored_file(corpus, tmp_path / "a.jsonl")
    out, err = capsys.readouterr()
    empty, chats, missing = err.splitlines()
    assert empty.endswith("1 of 4 summaries are empty, and counted as such (d1)")
    assert "2 of 4 summaries are scored with the marks of a chat or a tokenizer" in chats
    assert "'Here is a summary of the text:' in 1, 'Summary:' in 1" in chats
    assert chats.endswith("(d0, d2)") and found["ids"] == ["d0", "d1", "d2", "d3"]
    assert "no summary of 8 of 12 documents (d4, d5, d6, ...): scores are of the other 4" in missing
    rows = {line.split("  ")[0]: line for line in out.splitlines()}
    assert " none written     0.00 of 4 " in rows["reference"], "no number, four names"
    assert "summaries: what the system wrote; reference: the authors' summaries" in out


def test_a_prediction_is_scored_and_not_the_reference_beside_it(tmp_path):
    row = {"ID": "d0", "article": "Rats slept.", "highlights": "Rats.", "Prediction": "They slept."}
    write_lines(tmp_path / "a.jsonl", [row])
    assert read_summary_sentences(tmp_path / "a.jsonl") == {"d0": ["They slept."]}
    write_lines(tmp_path / "b.jsonl", [{"id": "d0", "pred": "They slept.", "summary": "Rats."}])
    assert read_summary_sentences(tmp_path / "b.jsonl") == {"d0": ["They slept."]}


def test_a_folder_of_summaries_is_refused_as_such(tmp_path):
    with pytest.raises(InputError, match=r"a folder: give one file .*summary a line"):
        read_summary_sentences(tmp_path)


@pytest.mark.parametrize("name", ["101.0", 101.0])
def test_ids_that_became_floats_are_those_of_the_documents(tmp_path, name):
    pd.DataFrame([{"id": name, "summary": "They slept."}]).to_csv(tmp_path / "a.csv", index=False)
    write_lines(tmp_path / "a.jsonl", [{"id": name, "summary": "They slept."}])
    for file in ("a.csv", "a.jsonl"):
        found = read_summary_sentences(tmp_path / file, ["101", "102"])
        assert found == {"101": ["They slept."]}
    assert own_id({"id": 101.0}) == "101" and own_id({"id": "2.0"}) == "2.0"
    release = [{"id": "2.0", "summary": "They slept."}]
    write_lines(tmp_path / "b.jsonl", release)
    assert read_summary_sentences(tmp_path / "b.jsonl", ["2.0"]) == {"2.0": ["They slept."]}


def test_systems_are_compared_on_the_same_documents(corpus, tmp_path, capsys):
    """Also at the length of the references: four words. A file of ten documents decides which."""
    long = [{"id": f"d{i}", "summary": "In Porto rats slept. It rained a lot."} for i in range(10)]
    short = [{"id": f"d{i}", "summary": "In Porto rats slept."} for i in range(12)]
    write_lines(tmp_path / "long.jsonl", long)
    write_lines(tmp_path / "short.jsonl", short)
    files = [str(tmp_path / f"{name}.jsonl") for name in ("long", "short")]
    data = ["--dataset", str(corpus), "--output", str(tmp_path / "c.json")]
    score.main(["compare", *files, "lead", *data])
    out, err = capsys.readouterr()
    assert "long.jsonl: no summary of 2 of 12 documents (d10, d11)" in err
    assert out.startswith("10 test documents of corpus; 95% intervals")
    found = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))
    written, cut = (found[way] for way in (AS_WRITTEN, CUT))
    assert [row["words"] for row in written["systems"].values()] == [8, 4, 6]
    assert [row["words"] for row in cut["systems"].values()] == [4, 4, 4]
    assert [written["systems"][name]["R-1"] for name in files] == ["66.67", "100.00"]
    assert [cut["systems"][name]["R-1"] for name in files] == ["100.00", "100.00"]
    pair, *others = written["pairs"]
    assert pair["difference"]["R-1"].startswith("+33.33 [+33.33, +33.33]") and len(others) == 2
    assert cut["pairs"][0]["difference"]["R-1"].startswith("+0.00")


def test_runs_are_compared_with_baselines(corpus, tmp_path, monkeypatch, capsys):
    """A run leaves out what it has learned from; here nothing."""

    class Run:
        config: ClassVar = {"corpus": "elsewhere"}

        def summarize(self, documents):
            return [SimpleNamespace(sentences=d.summary) for d in documents]

    monkeypatch.setattr(score.lib, "load", lambda *_, **__: Run())
    score.main(["compare", str(tmp_path), "lexrank", "--dataset", str(corpus), "--documents", "3"])
    rows = capsys.readouterr().out.splitlines()
    assert any(row.startswith(f"{tmp_path}  100.00") for row in rows)
    assert any(row.startswith(f"lexrank - {tmp_path}  -") for row in rows)
    with pytest.raises(SystemExit, match="give two systems or more, each once"):
        score.main(["compare", "lead", "lead", "--dataset", str(corpus)])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "D-2\t-0.1\tSo.\nD-0\t-0.2\tNo.\n", "fairseq's output without a line D-1"),
        (
            "failed.jsonl",
            in_lines([{"custom_id": "d1", "response": {"body": {"error": "too long"}}}]),
            'line 1: summary without a text, or with several: {"body": {"error": "too long"}}. ',
        ),
        (
            "two.json",
            json.dumps([[{"summary_text": "So."}, {"summary_text": "No."}]]),
            "line 1: summary without a text, or with several",
        ),
        ("a.jsonl", '{"id": null, "summary": "So."}\n', "line 1: 'id' is no id: None"),
        ("few.txt", "One.\nTwo.\n", "2 summaries without ids, but 12 documents"),
        ("a.csv", "id,a,b\nd1,So,No\n", "no summary among id, a, b. Name its column or field"),
        ("a.jsonl", "So it is.\n", "not JSON"),
        ("a.json", "[]", "no summary. Known forms: a summary a line (.txt), JSON lines or CSV"),
    ],
)
def test_files_that_are_no_summaries(corpus, tmp_path, name, text, message):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit, match=f"error: .*{re.escape(message)}"):
        scored_file(corpus, tmp_path / name)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"id": "e1", "summary": "So."}, "corpus has no test document 'e1'"),
        ({"id": "d1"}, "wrong.jsonl, line 1: "),
        ({"id": "d1", "summary": None}, "wrong.jsonl, line 1: summary"),
    ],
)
def test_summaries_that_cannot_be_scored(corpus, tmp_path, record, message):
    write_lines(tmp_path / "wrong.jsonl", [record])
    output = tmp_path / "s.json"
    with pytest.raises(SystemExit) as stopped:
        score.main(
            [
                "summaries",
                str(tmp_path / "wrong.jsonl"),
                "--dataset",
                str(corpus),
                "--output",
                str(output),
            ]
        )
    assert message in str(stopped.value) and "\n" not in str(stopped.value)
    assert not output.exists()


def test_a_table_of_any_systems(corpus, tmp_path, capsys):
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_bytes((tmp_path / "theirs.jsonl").read_bytes())
        data = ["--dataset", str(corpus), "--output", str(tmp_path / f"{name}.json")]
        score.main(["summaries", str(tmp_path / f"{name}.jsonl"), *data])
    output = tmp_path / "table.json"
    make_tables(
        [
            "support",
            "--output",
            str(output),
            f"A={tmp_path / 'a.json'}",
            f"the other={tmp_path / 'b.json'}",
        ]
    )
    table = json.loads(output.read_text(encoding="utf-8"))
    assert [row["label"] for row in table["rows"]] == ["A", "the other", "references"]
    assert table["rows"][0]["scores"]["numbers not in the text"]["mean"] == 50
    assert [pair["second"] for pair in table["pairs"]] == ["the other", "references", "references"]
    assert table["pairs"][1]["numbers not in the text"]["mean"] == -50
    assert (
        "| A | 50.00 [" in output.with_suffix(".md").read_text(encoding="utf-8")
        and capsys.readouterr().out
    )
