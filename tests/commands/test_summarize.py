"""`python -m lib.summarize`: texts, corpora and standard input, and the page of a model's own
attention."""

import io
import json
from itertools import chain
from pathlib import Path

import pandas as pd
import pytest

import lib
from lib.data.corpus import Corpus
from lib.decoding.field import Field
from lib.decoding.run import to_documents
from lib.papers import resolve
from lib.score import main as score
from lib.summarize import main, with_length
from lib.system.errors import InputError
from lib.training.loop import train
from tests.tools.browser import data_of

TEXT = (Path(__file__).parents[1] / "cases" / "long_papers.md").read_text(encoding="utf-8")
CAUTION = (
    "The model was trained on 8 documents of records. It is not to be trusted: what it states is "
    "often wrong."
)
RECORDS = [
    {
        "id": f"d{i}",
        "section_names": ["Introduction", "Conclusion"],
        "sections": [[f"We read text {i}.", "It is long."], ["It helps to read."]],
        "abstract_text": [f"We read text {i}."],
    }
    for i in range(8)
]


def stdin(given):
    """Standard input that holds a text."""
    return io.TextIOWrapper(io.BytesIO(given.encode()), encoding="utf-8")


def train_four_steps(folder):
    """The run of a small model, in a folder of its own with its cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPANION_CACHE", str(folder / "cache"))
        setup = resolve("mem2mem", "demo", steps=4, batch_size=2)
        corpus = setup.prepare(
            Corpus.from_records(train=RECORDS, val=RECORDS[:2], test=RECORDS[:2]), progress=False
        )
        train(
            setup.recipe, setup.build(corpus), corpus, setup.train, folder / "run", progress=False
        )
    return folder / "run"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train_four_steps(tmp_path_factory.mktemp("runs"))


def test_a_text(run, tmp_path, capsys):
    (tmp_path / "paper.md").write_text(TEXT, encoding="utf-8")
    main([str(run), str(tmp_path / "paper.md")])
    expected = lib.load(run).summarize([TEXT])[0].readable.sentences
    assert capsys.readouterr().out.splitlines() == expected and expected


def test_several_texts_and_a_corpus(run, tmp_path, capsys):
    """Each under its name, in their order."""
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    (tmp_path / "b.jsonl").write_text(
        "".join(json.dumps(r) + "\n" for r in RECORDS[:2]), encoding="utf-8"
    )
    main([str(run), str(tmp_path / "a.txt"), str(tmp_path / "b.jsonl")])
    lines = capsys.readouterr().out.splitlines()
    headings = [lines.index(name) for name in ("a.txt", "b.jsonl, line 1", "b.jsonl, line 2")]
    assert headings == sorted(headings) and headings[0] == 0
    assert lines[1 : headings[1] - 1] == lib.load(run).summarize([TEXT])[0].readable.sentences


def test_records_in_every_kind_of_file(run, tmp_path, capsys, monkeypatch):
    """What is no text is not read as one: the same records in four files, and on standard input in
    two forms."""
    lines = "".join(
        json.dumps({"text": f"We read text {i}. It is long.", "id": i}) + "\n" for i in range(2)
    )
    table = pd.read_json(io.StringIO(lines), lines=True)
    (tmp_path / "a.json").write_text(json.dumps(table.to_dict("records")), encoding="utf-8")
    (tmp_path / "a.jsonl").write_text(lines, encoding="utf-8")
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_parquet(tmp_path / "a.parquet")
    found = []
    for name in ("a.jsonl", "a.json", "a.csv", "a.parquet"):
        main([str(run), str(tmp_path / name), "--json"])
        found.append([json.loads(line) for line in capsys.readouterr().out.splitlines()])
    for given in ("\ufeff" + lines, json.dumps({"papers": table.to_dict("records")}, indent=1)):
        monkeypatch.setattr("sys.stdin", stdin(given))
        main([str(run), "--json"])
        found.append([json.loads(line) for line in capsys.readouterr().out.splitlines()])
    assert [f[1]["name"] for f in found[::4]] == ["a.jsonl, line 2", "standard input, line 2"]
    assert all(
        [r["sentences"] for r in f] == [r["sentences"] for r in found[0]] != [[], []] for f in found
    )
    monkeypatch.setattr("sys.stdin", stdin(lines + '{"text"'))
    with pytest.raises(SystemExit, match="error: standard input, line 3: not JSON"):
        main([str(run), "--json"])


def test_the_other_texts_are_summarized_where_one_cannot_be(tmp_path, capsys):
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "café.csv").write_bytes("id,text\n1,Café.\n".encode("cp1252"))
    (tmp_path / "bees.txt").write_text(TEXT)
    with pytest.raises(SystemExit) as stopped:
        main(["lead", *(str(tmp_path / f) for f in ("empty.txt", "bees.txt", "café.csv"))])
    assert str(stopped.value.code).startswith("error: not summarized: ")
    for words in ("café.csv: not UTF-8", "iconv -f WINDOWS-1252", "empty.txt: the text has no"):
        assert words in str(stopped.value.code)
    assert capsys.readouterr().out.strip(), "the summary of bees.txt"


def test_tables_on_standard_input_and_of_pandas(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", stdin("ID;Text;Summary\n1;Bees fly.;Bees.\n"))
    with pytest.raises(SystemExit, match="a table, it seems, whose columns are id, summary, text"):
        main(["lead", "-"])
    monkeypatch.setattr("sys.stdin", stdin("The article, a text\nThey met. They ate."))
    main(["lead", "-"])
    assert "They met." in capsys.readouterr().out
    table = pd.DataFrame({"text": ["Bees fly."], "summary": ["Bees."]})
    with pytest.raises(InputError, match=r"a DataFrame is no list of texts.*table.to_dict"):
        to_documents(table)
    with pytest.raises(InputError, match=r"a DataFrame is no list of texts"):
        Corpus.from_records(train=table)


def test_standard_input_as_json(run, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", stdin(TEXT))
    main([str(run), "--json"])
    found = json.loads(capsys.readouterr().out)
    expected = lib.load(run).summarize([TEXT], attention=True)[0]
    assert found["name"] == "standard input" and found["sentences"] == expected.sentences
    assert found["score"] == pytest.approx(expected.score, abs=1e-4)
    tokens = [token for sentence in expected.tokens for token in sentence]
    assert found["copied"] == [t.strip() for t, was in zip(tokens, expected.copied) if was] != []
    assert found["copied"] == [
        t.strip() for t, p in zip(tokens, expected.attention["generate"]) if p < 0.5
    ]


def test_the_page_shows_what_the_model_saw(run, tmp_path, capsys):
    (tmp_path / "paper.md").write_text(TEXT, encoding="utf-8")
    main([str(run), str(tmp_path / "paper.md"), "--html", str(tmp_path / "page.html")])
    data = data_of(tmp_path / "page.html")
    (shown,) = data["documents"]
    expected = lib.load(run).summarize([TEXT], attention=True)[0]
    assert data["model"] == "Mem2Mem, +read" and shown["name"] == "Reading long papers"
    assert shown["summary"] == expected.readable.tokens and shown["source"] == expected.reading.rows
    line = "read all of 17 words (Introduction, Conclusion); not read, in words: headings 5"
    assert shown["notes"][0] == line and shown["unread"] == []
    assert "".join(shown["source"][0]).strip() == "We study how to read long texts."
    for row, weights in zip(shown["attention"]["words"], expected.attention["words"]):
        place, weight = row[0]
        assert place == weights.argmax() and weight == pytest.approx(weights.max(), abs=2e-3)
    assert "1 summaries" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("empty.txt", "  \n\n", [], "error: empty.txt: the text has no sentence"),
        ("bad.jsonl", '{"sections": [["A."]]}\n{"sections"\n', [], "bad.jsonl, line 2: not JSON"),
        ("keys.jsonl", '{"title": "A."}\n', [], "keys.jsonl, line 1: no "),
        (
            "number.jsonl",
            "5\n",
            [],
            "number.jsonl, line 1: a text is a string, a record or a document, not int",
        ),
        ("nothing.jsonl", "", [], "nothing.jsonl: there is nothing to summarize"),
        ("a.txt", TEXT, ["--html", "a.txt"], "a.txt: one of the texts, and would be replaced"),
        ("a.txt", TEXT, ["--html", "a.txt/page.html"], "a.txt"),
        (
            "a.txt",
            TEXT,
            ["--words", "0"],
            "max_length: Input should be greater than or equal to 1, not 0",
        ),
        ("a.txt", TEXT, ["--min-words", "90"], "min_length 90 must be at most max_length, 80"),
        ("a.txt", TEXT, ["--weights", "foo"], "foo"),
        ("a.txt", TEXT, ["b.txt"], "b.txt"),
    ],
)
def test_what_cannot_be_summarized_is_refused(
    run, tmp_path, capsys, monkeypatch, name, content, options, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(SystemExit) as stopped:
        main([str(run), name, *options])
    assert str(stopped.value).startswith("error: ") and message in str(stopped.value)
    assert (
        capsys.readouterr().out == "" and (tmp_path / name).read_text(encoding="utf-8") == content
    )


def said(run, capsys, tmp_path, text, *options):
    """What standard error says of a text, its record, and what is printed."""
    (tmp_path / "a.md").write_text(text, encoding="utf-8")
    main([str(run), str(tmp_path / "a.md"), "--json", *options])
    out, err = capsys.readouterr()
    caution, *lines = err.splitlines()
    assert caution == CAUTION
    return lines, json.loads(out)


def test_what_was_read_is_said(run, tmp_path, capsys):
    """On standard error and in the record; the demo reads 80 words and marks of a section."""
    long = "A memory helps. " + "We read text 1. " * 30
    text = TEXT.replace("A memory helps.", long) + "\n## Notes\n\nIt is long.\n"
    lines, found = said(run, capsys, tmp_path, text)
    read = "a.md: read 78 of 140 words (Introduction, Conclusion)"
    assert lines[0] == f"{read}; not read, in words: headings 6"
    assert found["words"] == {"read": 78, "all": 140, "left_out": 6, "by_kind": {"headings": 6}}
    assert found["sections_read"] == ["Introduction", "Conclusion"]
    assert [f"a.md: {note}" for note in found["notes"]] == lines


def test_the_length_of_a_summary(run, tmp_path, capsys):
    """--words is a bound for every summary; the least length gives way to it, and --min-words
    replaces it."""
    for options, shortest, longest in (
        ("", 20, 80),
        ("--words 7", 0, 7),
        ("--words 40 --min-words 33", 33, 40),
    ):
        _, found = said(run, capsys, tmp_path, TEXT * 4, *options.split())
        assert shortest <= len(" ".join(found["sentences"]).split()) <= longest
    shorter = with_length(lib.load(run), 10, None).decode
    assert (shorter.min_length, shorter.max_length) == (8, 10), "room to end by itself"


def test_the_page_says_what_is_in_the_text(run, tmp_path):
    """What the text does not have, and which sentences carry each of the summary."""
    (tmp_path / "a.md").write_text(TEXT, encoding="utf-8")
    main([str(run), str(tmp_path / "a.md"), "--html", str(tmp_path / "a.html")])
    (shown,) = data_of(tmp_path / "a.html")["documents"]
    text = " ".join(token.strip() for row in shown["source"] for token in row).lower()
    own = [token.strip().lower() for token in chain.from_iterable(shown["summary"])]
    words = [
        (token, lacks) for token, lacks in zip(own, shown["lacks"], strict=True) if token.isalpha()
    ]
    known = {*text.split(), "reading", "papers"}  # by its title
    assert words and all((lacks == "word") == (token not in known) for token, lacks in words)
    assert len(shown["carriers"]) == len(shown["summary"]) and shown["spans"][0] == [
        0,
        len(shown["source"][0]),
    ]


# ---------------------------------------------------------------------------------
# systems that need no training


def test_lexrank_and_lead_are_used_like_a_model(tmp_path, capsys):
    """They choose whole sentences until there are --words; a page and JSON have the same."""
    text = "Cats sleep at noon. Mice hide. Birds sing. Cats eat mice and birds."
    (tmp_path / "a.md").write_text(text, encoding="utf-8")
    (document,) = to_documents([text], ["a.md"])
    expected = {"lexrank": document.sentences[3:], "lead": document.sentences[:1]}
    for name, sentences in expected.items():
        given = [name, str(tmp_path / "a.md"), "--words", "4"]
        main(given)
        out, err = capsys.readouterr()
        assert out.splitlines() == sentences and "it has learned nothing" in err
        assert "a.md: read all of 13 words" in err
        main([*given, "--json", "--html", str(tmp_path / "a.html")])
        found = json.loads(capsys.readouterr().out)
        assert found["readable"] == found["sentences"] == sentences
        (shown,) = data_of(tmp_path / "a.html")["documents"]
        assert ["".join(row).strip() for row in shown["summary"]] == sentences
        assert shown["lexrank"] == [] and set(shown["lacks"]) == {""}
    with pytest.raises(SystemExit, match="error: lead chooses whole sentences: no --min-words"):
        main(["lead", str(tmp_path / "a.md"), "--min-words", "3"])
    with pytest.raises(SystemExit, match="error: --words must be at least 1, not 0"):
        main(["lead", str(tmp_path / "a.md"), "--words", "0"])


def test_a_page_of_a_model_has_lexrank_beside_it(run, tmp_path):
    """About as long as the model's summary."""
    (tmp_path / "a.md").write_text(TEXT * 3, encoding="utf-8")
    main([str(run), str(tmp_path / "a.md"), "--html", str(tmp_path / "a.html")])
    (shown,) = data_of(tmp_path / "a.html")["documents"]
    words = len("".join(chain.from_iterable(shown["summary"])).split())
    (document,) = to_documents([TEXT * 3], ["a.md"])
    assert shown["lexrank"] and set(shown["lexrank"]) <= set(document.sentences)
    assert sum(len(s.split()) for s in shown["lexrank"][:-1]) < words


def test_summaries_of_records_can_be_scored(tmp_path, capsys):
    """`--json` keeps the ids of records, by which `lib.score summaries` finds the references."""
    lines = "".join(json.dumps(record) + "\n" for record in RECORDS)
    for split in ("train", "val", "test"):
        (tmp_path / f"{split}.jsonl").write_text(lines, encoding="utf-8")
    main(["lead", str(tmp_path / "test.jsonl"), "--words", "4", "--json"])
    ours, scores = tmp_path / "ours.jsonl", tmp_path / "scores.json"
    ours.write_text(capsys.readouterr().out, encoding="utf-8")
    score(["summaries", str(ours), "--dataset", str(tmp_path), "--output", str(scores)])
    found = json.loads(scores.read_text(encoding="utf-8"))
    assert found["ids"] == [record["id"] for record in RECORDS]
    assert found["parts"]["summaries"]["rouge"] == [[100.0] * 3] * 8


@pytest.mark.parametrize("text", ["paper.md", "my/notes.txt", Path("paper.md")])
def test_the_name_of_a_file_is_no_text(run, text):
    with pytest.raises(InputError, match=r"text 2: .* is the name of a file: give its text"):
        lib.load(run).summarize([TEXT, text])


def test_a_warning_of_the_field_names_what_to_use_instead():
    warning = Field("biomedical papers", {}, 0.0, 0.02, 0.05).warning
    assert "python -m lib.summarize lexrank FILE" in warning
    assert "(2% of such papers get this warning, 5% of other texts do not.)" in warning
