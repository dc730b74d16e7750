"""What people bring: texts, corpora, other systems' summaries, parameters and ratings, from tables
of cases."""

import base64
import json
import tomllib

import pandas as pd
import pytest

from companion.human.__main__ import main as human
from companion.human.ratings import report
from companion.human.sheets import read_key
from companion.pages.parameters import check_parameters
from lib.corpora import main as corpora_command
from lib.data.corpus import load_corpus
from lib.data.documents import SPLITS, Document, to_document
from lib.data.files import texts_of
from lib.data.plain_text import parse_text
from lib.evaluation.summaries import read_summary_sentences, write_summaries
from lib.score import main as score
from lib.system.errors import CompanionError
from lib.system.files import project_root

CASES = project_root() / "tests" / "what_people_bring"


def cases(surface):
    """The cases of a surface, named; those with a `wrong` are known to be wrong, for that
    reason."""
    table = tomllib.loads((CASES / f"{surface}.toml").read_text(encoding="utf-8"))["case"]
    wrong = [
        [pytest.mark.xfail(reason=case["wrong"], strict=True)] if "wrong" in case else []
        for case in table
    ]
    return [
        pytest.param(c, id=f"{c['kind']}: {c['name']}", marks=marks)
        for c, marks in zip(table, wrong)
    ]


def check_words(case, message):
    """Check that a message has the words that a case asks for."""
    assert "\n" not in message.strip(), message
    missing = [word for word in case["error"] if word.lower() not in message.lower()]
    assert not missing, f"{missing} are not in: {message}"


# ---------------------------------------------------------------------------------
# own texts


def one_line(text):
    return " ".join(text.split())


@pytest.mark.parametrize("case", cases("own_texts"))
def test_own_texts(case):
    data = base64.b64decode(case["base64"]) if "base64" in case else case["text"].encode()
    if "error" in case:
        with pytest.raises(CompanionError) as refused:
            [parse_text(text) for text in texts_of(data, case["file"])]
        check_words(case, f"{case['file']}: {refused.value}")
        return
    (text,) = texts_of(data, case["file"])
    document = parse_text(text)
    shown = one_line(" ".join([document.title, *document.section_names, *document.sentences]))
    assert document.title == case.get("title", document.title)
    assert not [words for words in case.get("has", []) if one_line(words) not in shown], shown
    assert not [words for words in case.get("lacks", []) if words in shown], shown
    sentences = list(map(one_line, document.sentences))
    assert len(sentences) == case.get("sentences", len(sentences)), sentences
    assert sentences == case.get("ends", sentences)


@pytest.mark.parametrize("case", cases("same_text"))
def test_a_text_is_the_same_as_a_file_and_as_a_record(case):
    (text,) = texts_of(case["text"].encode(), "x.txt")
    assert (
        parse_text(text).sentences
        == to_document({"id": "x", "text": case["text"]}, reference=False).sentences
    )


# ---------------------------------------------------------------------------------
# corpora and summaries


@pytest.mark.parametrize("case", cases("corpora"))
def test_corpora(case, tmp_path, capsys):
    folder = tmp_path / "corpus"
    for name, text in case["files"].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    place = folder / case.get("path", "")
    status, said = 0, ""
    try:
        status = corpora_command([str(place)])
    except SystemExit as stopped:
        status, said = 1, str(stopped.code)
    printed = capsys.readouterr()
    said += printed.out + printed.err
    assert not [words for words in case.get("once", []) if said.count(words) != 1], said
    refused = [word for word in case.get("error", []) if word.lower() in said.lower()] == case.get(
        "error", []
    )
    if "error" in case and (status or not case.get("either")):
        assert status and refused, said
        return
    corpus = load_corpus(place, errors="skip")
    splits = {name: list(corpus.split(name)) for name in case.get("documents", {})}
    assert {name: len(documents) for name, documents in splits.items()} == case.get("documents", {})
    if first := case.get("first"):
        document = splits[first["split"]][0]
        shown = one_line(" ".join([document.title, *document.sentences, *document.summary]))
        assert not [words for words in first["has"] if one_line(words) not in shown], shown
        assert not [words for words in first["lacks"] if words in shown], shown
        sentences = sum(map(len, document.sections))
        assert sentences == first.get("sentences", sentences), document.sections
        assert len(document.sections) == first.get("sections", len(document.sections))
        assert len(document.summary) == first.get("summary", len(document.summary))
        assert len(document.references) == first.get("references", len(document.references))
    assert not [words for words in case.get("warns", []) if words.lower() not in said.lower()], said
    assert not [words for words in case.get("lacks", []) if words.lower() in said.lower()], said
    assert status == case.get("status", 0), said


@pytest.mark.parametrize("case", cases("scoring"))
def test_summaries_of_other_systems(case, tmp_path, capsys):
    path = tmp_path / "theirs.jsonl"
    path.write_text(json.dumps({"id": "x", "summary": case["summary"]}) + "\n", encoding="utf-8")
    assert read_summary_sentences(path)["x"] == case["sentences"]
    said = capsys.readouterr().err
    assert not [words for words in case.get("says", []) if words not in said], said
    assert not [words for words in case.get("lacks", []) if words in said], said


def test_summaries_of_documents_that_share_an_id_are_scored_again(tmp_path):
    texts = "Cats sleep.", "Dogs bark loudly.", "Rain falls."
    lines = "".join(json.dumps({"id": "x", "text": text, "summary": text}) + "\n" for text in texts)
    corpus, path, scores = tmp_path / "corpus", tmp_path / "ours.jsonl", tmp_path / "scores.json"
    corpus.mkdir()
    for split in SPLITS:
        (corpus / f"{split}.jsonl").write_text(lines, encoding="utf-8")
    documents = list(load_corpus(corpus).split("test"))
    write_summaries(path, documents, [d.summary for d in documents], str(corpus))
    score(["summaries", str(path), "--dataset", str(corpus), "--output", str(scores)])
    found = json.loads(scores.read_text(encoding="utf-8"))
    assert found["ids"] == [d.id for d in documents] and len(set(found["ids"])) == 3
    assert found["parts"]["summaries"]["rouge"] == [[100.0] * 3] * 3, "each with its own reference"
    path.write_text(path.read_text(encoding="utf-8") * 2, encoding="utf-8")
    with pytest.raises(CompanionError, match="line 4: a second summary of the document 'x'"):
        read_summary_sentences(path)


# ---------------------------------------------------------------------------------
# parameters and ratings

TEXTS = ("dataset", "run", "preset", "variant", "output")
DECLARED = "\n".join([*(f'{name}: str = ""' for name in TEXTS), "steps: int = 0", "seed: int = 0"])


@pytest.mark.parametrize("case", cases("parameters"))
def test_parameters(case):
    injected = f"# Parameters\n{case['parameter']} = value"
    namespace = {"In": ["", DECLARED, injected], "value": case["value"]}
    exec(DECLARED, namespace)
    exec(injected, namespace)
    if "error" in case:
        with pytest.raises(CompanionError) as refused:
            check_parameters(namespace)
        check_words(case, str(refused.value))
        return
    check_parameters(namespace)
    assert namespace[case["parameter"]] == case["expect"]


@pytest.mark.parametrize("case", cases("ratings"))
def test_ratings(case, tmp_path):
    """Line @N of a case rates item N by the four criteria."""
    for system in "AB":
        documents = [
            Document(f"d{i}", "T", [""], [["Text."]], [f"Reference {i}."]) for i in range(6)
        ]
        summaries = [[f"Summary {i} of {system}."] for i in range(6)]
        write_summaries(tmp_path / f"{system}.jsonl", documents, summaries, "x")
    folder = tmp_path / "r"
    human(["sheet", str(folder), *(f"{s}={tmp_path / s}.jsonl" for s in "AB"), "--documents", "5"])
    key = read_key(folder)
    for name, text in case["files"].items():
        rows = []
        for item, line in zip(key["ratings"], text.strip().splitlines()[1:]):
            rows += [("ratings", item, *pair) for pair in zip(key["criteria"], line.split(",")[1:])]
        table = pd.DataFrame(rows, columns=["sheet", "item", "field", "value"])
        table = table[::-1] if case.get("reverse") == name else table
        table.to_csv(folder / name, index=False, sep=case.get("delimiter", ","))
    if "error" in case:
        with pytest.raises(CompanionError) as refused:
            report(folder)
        check_words(case, str(refused.value))
        return
    said = report(folder)
    assert not [word for word in case.get("lacks", []) if word in said]
    assert not [words for words in case.get("says", []) if words not in said], said
