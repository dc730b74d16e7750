"""Docstrings as headlines, Gigaword's preparation, DUC's references and measure."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from lib.data.batch import make_batch
from lib.data.corpus import Corpus, load_corpus
from lib.data.documents import Document
from lib.data.prepared import PreparedCorpus
from lib.data.vocabulary import EOS, UNK
from lib.evaluation.rouge import limited_recall
from lib.papers.read_again.headlines import HeadlineOptions, fits
from lib.system.files import project_root

OPTIONS = HeadlineOptions(vocab_size=12, source_vocab_size=40, fewest=1, filtered=False)


def test_splits_of_the_docstrings_share_no_package_and_no_text():
    corpus = load_corpus("docstrings")
    documents = {split: list(corpus.split(split)) for split in ("train", "val", "test")}
    packages = {
        split: {d.id.split(":")[0] for d in of_split} for split, of_split in documents.items()
    }
    assert all(
        not packages[a] & packages[b]
        for a, b in (("train", "val"), ("train", "test"), ("val", "test"))
    )
    headlines = [" ".join(d.summary).lower() for of_split in documents.values() for d in of_split]
    assert len(set(headlines)) == len(headlines) == 8_440


def test_the_packages_of_the_docstrings_are_attributed():
    text = (project_root() / "lib/data/docstrings_sample/ATTRIBUTION.md").read_text(
        encoding="utf-8"
    )
    corpus = load_corpus("docstrings")
    for split in ("train", "val", "test"):
        for package in {d.id.split(":")[0] for d in corpus.split(split)}:
            assert re.search(
                rf"\n- {re.escape(package)} \S+ \({split}\)\. \S.*\. Copyright", text
            ), package


def test_headline_step():
    document = Document(
        "x",
        "",
        [""],
        [["On 3 May 2021, It rained.", "It didn't stop.", "Then sun."]],
        ["Rain in 24 h."],
    )
    made = replace(OPTIONS, sentences=2, source_tokens=11).example(document)
    assert made.sentences == [
        ["on", "#", "may", "####", ",", "it", "rained", "."],
        ["it", "did", "n't"],
    ]
    assert made.summary == ["rain", "in", "##", "h", "."]
    hidden = replace(document, sections=[["in ##.# years , it rained ."]])
    assert OPTIONS.example(hidden).sentences == [["in", "##.#", "years", ",", "it", "rained", "."]]
    assert replace(OPTIONS, digits=False).example(document).sentences[0][1] == "3"


def test_the_published_filters():
    source = [
        *["the", "heavy", "rain", "fell", "on", "the", "city", "all", "day", "and", "night"],
        ".",
    ]
    title = ["heavy", "rain", "in", "city"]
    assert fits(source, title)
    assert not fits(source[:-1], title), "no full stop"
    assert not fits([*source[:9], "."], title), "ten words"
    assert not fits(source * 10, title), "110 words"
    assert not fits(source, title[:3]), "three words"
    assert not fits(source, ["much", "snow", "in", "town"]), "no word in common"
    assert not fits(source, ["urgent", "heavy", "rain", "in", "city"])
    assert not fits(source, ["heavy", "rain", "by", "night"])
    assert fits(source, ["by", "heavy", "rain", "in", "city"]), "the mark stands inside"


@pytest.mark.parametrize("tokenised", [False, True])
def test_the_unknown_word_of_a_corpus_is_unknown(tokenised):
    """Neither vocabulary has it, it is not copied, and it is no part of a text's own words."""
    pair = {
        "document": "<unk> said <unk> cats ran .",
        "summary": "<unk> cats ran",
        "tokenised": tokenised,
    }
    prepared = OPTIONS.prepare(
        Corpus.from_records(train=[pair] * 3, val=[pair], test=[pair]), progress=False
    )
    document = prepared["train"][0]
    assert (
        document.source.tolist()[0]
        == document.target.tolist()[0]
        == document.source_ids.tolist()[2]
        == UNK
    )
    assert not document.unknown or "unk" not in " ".join(document.unknown).lower()
    assert not any(
        "unk" in word
        for v in (prepared.vocabulary, prepared.encoder.source_vocabulary)
        for word in v.words
    )
    (again,) = prepared.encoder.encode(load_pairs(pair))
    assert (
        again.source.tolist() == document.source.tolist()
        and again.target.tolist() == document.target.tolist()
    )


def load_pairs(*pairs):
    return list(Corpus.from_records(train=pairs).split("train"))


@pytest.fixture
def folder(tmp_path):
    words = ["ant", "bee", "cat", "dog", "emu", "fox", "gnu", "hen"]
    random = np.random.default_rng(0)
    for split, count in (("train", 40), ("val", 5), ("test", 5)):
        lines = []
        for i in range(count):
            chosen, rare = (
                random.choice(words, 4).tolist(),
                f"rare{chr(97 + i // 7)}{chr(97 + i % 7)}",
            )
            text = " ".join([*chosen, rare, "ran", "over", "the", "old", "hill", "."])
            lines.append(json.dumps({"document": text, "summary": " ".join([*chosen[:3], rare])}))
        (tmp_path / f"{split}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path


def test_two_vocabularies(folder, tmp_path):
    """The decoder has the headlines' most frequent words; the encoder all that are frequent
    enough."""
    corpus = replace(OPTIONS, fewest=2).prepare(load_corpus(folder), progress=False)
    assert set(corpus.vocabulary.words[4:]) == {
        "ant",
        "bee",
        "cat",
        "dog",
        "emu",
        "fox",
        "gnu",
        "hen",
    }
    document = corpus["train"][0]
    place = len(document.source) - 7
    assert document.unknown[0] == "rareaa"
    assert document.source[place] == 12, "to be copied"
    assert document.target.tolist()[-2:] == [12, EOS]
    batch = make_batch([document], 12)
    assert batch.source[0].tolist() == document.source_ids.tolist()
    assert batch.source_extended[0].tolist() == document.source.tolist()
    assert batch.source.max() >= 12, "words that the decoder does not know, and the encoder does"
    again = PreparedCorpus.load(corpus.save(tmp_path / "kept"), HeadlineOptions)
    assert again.fingerprint == corpus.fingerprint
    assert again["test"][0].source_ids.tolist() == corpus["test"][0].source_ids.tolist()
    with_rare = replace(OPTIONS, fewest=100).prepare(load_corpus(folder), progress=False)
    assert (with_rare["train"][0].source_ids == UNK).sum() > 3


def test_filters_spare_the_test_set(folder):
    options = replace(OPTIONS, filtered=True)
    short = {"document": "ant ran .", "summary": "ant"}
    for split in ("train", "val", "test"):
        path = folder / f"{split}.jsonl"
        path.write_text(
            path.read_text(encoding="utf-8") + "\n" + json.dumps(short), encoding="utf-8"
        )
    corpus = options.prepare(load_corpus(folder), progress=False)
    assert {name: len(corpus[name]) for name in corpus.splits} == {"train": 40, "val": 5, "test": 6}
    assert "{'train': 1, 'val': 1}" in corpus.report


def test_recall_of_75_bytes():
    (one,) = limited_recall([["the cat sat on the mat"]], [[["the cat lay on a mat"]]])
    assert one == pytest.approx([100 * 4 / 6, 100 * 1 / 5, 100 * 4 / 6])
    long = "x" * 70 + " cat dog"
    (cut,) = limited_recall([[long]], [[["cat dog"]]])
    assert cut[0] == pytest.approx(50), "75 bytes end behind cat"
    references = [["a b"], ["c d"], ["a c"]]
    (several,) = limited_recall([["a"]], [references])
    assert several[0] == pytest.approx(100 * (0.5 + 0.5 + 0.5) / 3)
    (two,) = limited_recall([["a"]], [[["a b"], ["c d"]]])
    assert two[0] == pytest.approx(25), "left alone, the second has nothing"
