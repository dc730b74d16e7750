"""Preprocessing, prepared corpora, batches."""

import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from lib.data.batch import BucketSampler, make_batch
from lib.data.corpus import load_corpus
from lib.data.documents import CorpusError, Document
from lib.data.options import summary_pieces
from lib.data.pieces import Pieces
from lib.data.prepared import PreparedCorpus, TextEncoder
from lib.data.sections import choose_sections
from lib.data.split import Split
from lib.data.vocabulary import EOS, SENTENCE_END, Vocabulary
from lib.papers import resolve
from lib.papers.mem2mem.extracts import ExtractOptions
from lib.papers.mem2mem.sections import CohanOptions
from lib.papers.windowed.windows import ArticleOptions
from lib.system.files import project_root
from lib.system.fingerprints import code_digest
from lib.system.processes import in_processes
from tests.conftest import RAGGED, same_document

EXTRACTS = ExtractOptions(vocab_size=60)
OPTIONS = CohanOptions(sections=3, section_tokens=4, summary_tokens=5, vocab_size=50)


@pytest.mark.parametrize(
    ("names", "count", "kept"),
    [
        (["Introduction", "A", "B", "C", "Conclusions"], 4, [0, 1, 2, 4]),
        (["Abstract", "1 Introduction", "A", "B", "C", "Conclusion", "Appendix"], 4, [1, 2, 3, 5]),
        (["A", "B"], 4, [0, 1]),
        (["A", "B", "C"], 1, [0]),
        (["Conclusion", "Introduction"], 4, [0, 1]),
    ],
)
def test_sections(names, count, kept):
    assert choose_sections(names, count) == kept


def test_cohan_cuts_and_lowers():
    d = Document(
        "d",
        "",
        ["Intro", "M", "N", "Conclusion"],
        [["A B c.", "D e."], ["F."], ["G."], ["H i."]],
        ["One two three.", "Four five six."],
    )
    example = OPTIONS.example(d)
    assert example.sentences == [["a", "b", "c", "."], ["f", "."], ["h", "i", "."]]
    assert example.summary == ["one", "two", "three", ".", "four"]
    assert example.reference == d.summary


def test_a_cut_summary_has_no_end():
    d = Document("d", "", [""], [["a b"]], ["a b a b a b"])
    encoder = TextEncoder(OPTIONS, Vocabulary(["a", "b"]))
    assert encoder.encode_example(OPTIONS.example(d)).target.tolist() == [4, 5, 4, 5, 4]
    short = Document("d", "", [""], [["a b"]], ["b"])
    assert encoder.encode_example(OPTIONS.example(short)).target.tolist() == [5, EOS]


@pytest.mark.parametrize(
    ("tokens", "words"),
    [(5, "a b"), (6, "a b b b a"), (8, "a b b b a"), (9, "a b b b a a a b")],
)
def test_a_summary_cut_at_the_end_of_a_sentence_ends_there(tokens, words):
    """[EOS] counts; a first sentence that is too long is cut, and has no end."""
    options = replace(OPTIONS, whole_sentences=True, summary_tokens=tokens)
    encoder = TextEncoder(options, Vocabulary(["a", "b"]))
    d = Document("d", "", [""], [["a b"]], ["a b", "b b a", "a a b", "b"])
    assert words_of_target(encoder, options.example(d)) == f"{words} [EOS]"
    long = Document("d", "", [""], [["a b"]], ["a b a b a b a b a", "b"])
    assert words_of_target(encoder, options.example(long)) == "a b a b a b a b a"[: 2 * tokens - 1]


def test_what_stands_behind_the_last_sentence_is_no_part_of_a_summary():
    """Keywords, a copyright line: left out with whole sentences, and only there."""
    d = Document("d", "", [""], [["a b"]], ["a b .", "a a .", "keywords", "b a b"])
    whole = replace(OPTIONS, whole_sentences=True, summary_tokens=40)
    encoder = TextEncoder(whole, Vocabulary(["a", "b", "."]))
    assert words_of_target(encoder, whole.example(d)) == "a b . a a . [EOS]"
    kept = replace(OPTIONS, summary_tokens=40)
    encoder = TextEncoder(kept, encoder.vocabulary)
    assert words_of_target(encoder, kept.example(d)) == "a b . a a . [UNK] b a b [EOS]"
    assert whole.example(d).reference == d.summary, "scores are of the whole reference"
    pieces = Pieces.train(["a b . keywords"] * 20, 20)
    shorter = replace(EXTRACTS, whole_sentences=True, summary_tokens=40)
    assert summary_pieces(d.summary, pieces, shorter) == summary_pieces(
        d.summary[:2], pieces, replace(EXTRACTS, summary_tokens=40)
    )


def words_of_target(encoder, example):
    words = encoder.vocabulary.words
    return " ".join(words[i] for i in encoder.encode_example(example).target)


def test_pieces_of_whole_sentences():
    pieces = Pieces.train(["one two three four five six seven"] * 20, 40)
    d = ["one two.", "three four five.", "six."]
    whole = summary_pieces(d, pieces, replace(EXTRACTS, summary_tokens=200))
    second_end = [i for i, piece in enumerate(whole) if piece == SENTENCE_END][1]
    for tokens, expected in (
        (len(whole), whole),
        (len(whole) - 1, [*whole[:second_end], EOS]),
        (second_end + 1, [*whole[:second_end], EOS]),
    ):
        options = replace(EXTRACTS, whole_sentences=True, summary_tokens=tokens)
        assert summary_pieces(d, pieces, options) == expected
    cut = replace(EXTRACTS, summary_tokens=len(whole) - 1)
    assert summary_pieces(d, pieces, cut) == whole[:-1]


@pytest.fixture
def folder(tmp_path):
    for split, words in (
        ("train", "the cat sat on the mat"),
        ("val", "the dog sat"),
        ("test", "the okapi"),
    ):
        line = {"article": f"{words}. {words.upper()}!", "abstract": words}
        (tmp_path / f"{split}.jsonl").write_text(
            "\n".join([json.dumps(line)] * 3), encoding="utf-8"
        )
    return tmp_path


# ---------------------------------------------------------------------------------
# prepared corpora


def test_a_prepared_corpus_comes_back_from_the_cache(folder, monkeypatch):
    first = OPTIONS.prepare(load_corpus(folder), progress=False)
    monkeypatch.setattr(CohanOptions, "example", lambda *_: pytest.fail("it is made again"))
    again = OPTIONS.prepare(load_corpus(folder), progress=False)
    assert again.fingerprint == first.fingerprint
    assert [len(again[s]) for s in ("train", "val", "test")] == [3, 3, 3]
    assert again["test"][0].unknown == ["okapi", "!"] and again["test"][0].reference == [
        "the okapi"
    ]
    assert set(again.vocabulary.words[4:]) == {"the", "cat", "sat", "on", "mat", "."}


def test_the_fingerprint_is_that_of_stored_runs():
    """Runs store it: with other bytes none of them could be resumed."""
    corpus = PreparedCorpus(
        "x", TextEncoder(OPTIONS, Vocabulary(["a", "b"])), {"train": Split.of(RAGGED)}
    )
    assert (corpus.fingerprint, corpus.encoder.digest()) == ("f8e6604ee7d2", "e75e65efe0db")


@pytest.mark.parametrize("workers", [1, 2])
def test_preparing_is_encoding_each_document(workers, tmp_path, monkeypatch):
    monkeypatch.setattr("lib.data.split.CHUNK", 7)
    monkeypatch.setattr("lib.data.options.in_processes", partial(in_processes, size=7))
    monkeypatch.setattr("lib.data.options.default_workers", lambda: workers)
    corpus, options = load_corpus("aclsum"), CohanOptions(section_tokens=60, vocab_size=400)
    prepared = options.prepare(corpus, limit=20, progress=False)
    documents = {s: list(corpus.split(s, 20)) for s in ("train", "val", "test")}
    examples = [options.example(d) for d in documents["train"]]
    counts = Counter(w for e in examples for words in (*e.sentences, e.summary) for w in words)
    assert prepared.vocabulary.words == Vocabulary.from_counts(counts, 400).words
    for split, texts in documents.items():
        for ours, theirs in zip(prepared[split], prepared.encoder.encode(texts), strict=True):
            same_document(ours, theirs)


@pytest.mark.parametrize(
    "options", [CohanOptions(section_tokens=60, vocab_size=400), ArticleOptions(vocab_size=400)]
)
def test_a_text_without_a_summary_ends_at_once(options):
    prepared = options.prepare(load_corpus("aclsum"), limit=5, progress=False)
    (document,) = load_corpus("aclsum").split("test", 1)
    (alone,) = prepared.encoder.encode([replace(document, summary=[])])
    same_document(alone, replace(prepared["test"][0], target=np.array([EOS]), reference=[]))
    assert make_batch([alone], len(prepared.vocabulary)).target.tolist() == [[EOS]]
    with pytest.raises(ValueError, match="document 'empty' has no words"):
        prepared.encoder.encode([Document("empty", "", [""], [[" "]], [])])


def encoders():
    words, read = Vocabulary(["a", "b"]), Vocabulary(["a", "b", "c"])
    weights = {"score": np.arange(3.0), "title": np.eye(2, dtype=np.float32)}
    pieces = Pieces.train(["one two three four five six"] * 9, 30)
    return [TextEncoder(OPTIONS, words), TextEncoder(OPTIONS, words, read), TextEncoder(OPTIONS, pieces),
            TextEncoder(OPTIONS, words, chooser=weights)]  # fmt: skip


def test_an_encoder_comes_back_from_disk(tmp_path):
    made = encoders()
    for number, encoder in enumerate(made):
        (tmp_path / str(number)).mkdir()
        encoder.save(tmp_path / str(number))
        again = TextEncoder.load(tmp_path / str(number), OPTIONS)
        assert (
            again.digest() == encoder.digest()
            and again.vocabulary.words == encoder.vocabulary.words
        )
    assert len({encoder.digest() for encoder in made}) == 4
    assert len({PreparedCorpus("x", e, {"train": Split.of(RAGGED)}).fingerprint for e in made}) == 4


def test_the_cache_is_made_anew_for_other_options_and_files(folder):
    OPTIONS.prepare(load_corpus(folder), progress=False)
    smaller = CohanOptions(vocab_size=6).prepare(load_corpus(folder), progress=False)
    assert len(smaller.vocabulary) == 6
    (folder / "test.jsonl").write_text(
        json.dumps({"article": "new text", "abstract": "new"}), encoding="utf-8"
    )
    assert len(OPTIONS.prepare(load_corpus(folder), progress=False)["test"]) == 1


@pytest.mark.parametrize("module", ["lib.data.corpus", "lib.papers.mem2mem.sections"])
def test_the_cache_is_made_anew_for_other_code(folder, monkeypatch, module):
    """That of the options, and that of the readers."""
    OPTIONS.prepare(load_corpus(folder), progress=False)
    monkeypatch.setattr(
        "lib.data.prepared.code_digest",
        lambda *names: module if module in names else code_digest(*names),
    )
    monkeypatch.setattr(CohanOptions, "example", lambda *_: pytest.fail("it is made again"))
    with pytest.raises(pytest.fail.Exception, match="made again"):
        OPTIONS.prepare(load_corpus(folder), progress=False)


def test_damage_and_a_full_disk_are_one_line(folder, tmp_path, monkeypatch):
    place = OPTIONS.prepare(load_corpus(folder), progress=False).save(tmp_path / "p")
    with pytest.raises(CorpusError, match="damaged, or not for this model"):
        PreparedCorpus.load(place, ArticleOptions)
    (place / "train.arrow").write_bytes(b"x")
    with pytest.raises(CorpusError, match="damaged, or not for this model"):
        PreparedCorpus.load(place, CohanOptions)
    (tmp_path / "file").touch()
    monkeypatch.setenv("COMPANION_CACHE", str(tmp_path / "file"))
    with pytest.raises(
        CorpusError, match=r"cannot be prepared \(.*\). COMPANION_CACHE names another place"
    ):
        OPTIONS.prepare(load_corpus(folder), progress=False)


def test_ids_are_compact_and_hugging_face_opens_them(folder, tmp_path):
    datasets = pytest.importorskip("datasets")
    prepared = OPTIONS.prepare(load_corpus(folder), progress=False)
    prepared.save(tmp_path / "p")
    opened = datasets.Dataset.from_file(str(tmp_path / "p" / "train.arrow"))
    assert opened["source"][0] == prepared["train"][0].source.tolist()
    assert opened.features["source"].feature.dtype == "uint16"


def test_a_text_of_more_unknown_words_than_two_bytes_count(folder, tmp_path):
    words = " ".join(f"w{number}" for number in range(2**16))
    (folder / "test.jsonl").write_text(
        json.dumps({"article": words, "abstract": "w1"}), encoding="utf-8"
    )
    options = replace(OPTIONS, section_tokens=2**16)
    (text,) = options.prepare(load_corpus(folder), progress=False)["test"]
    assert (np.diff(text.source) == 1).all() and len(text.unknown) == len(text.source) == 2**16


def test_a_split_that_is_missing_is_found_first(folder, monkeypatch):
    monkeypatch.setattr(
        CohanOptions, "example", lambda *_: pytest.fail("a document was preprocessed")
    )
    for damage in (
        lambda path: path.write_text("{broken", encoding="utf-8"),
        lambda path: path.unlink(),
    ):
        damage(folder / "test.jsonl")
        with pytest.raises(CorpusError, match="test"):
            OPTIONS.prepare(load_corpus(folder), progress=False)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there are no workers")
def test_workers_end_with_their_parent(tmp_path):
    code = (
        "import os, sys, time\nfrom pathlib import Path\nfrom lib.system.processes import "
        "in_processes\n"
        "def work(n):\n    Path(sys.argv[1], str(os.getpid())).touch()\n    time.sleep(0.1)\n"
        "for _ in in_processes(work, iter(range(10_000)), 2): pass\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=project_root())
    try:
        _wait_until(lambda: len(list(tmp_path.iterdir())) >= 2)
    finally:
        parent.kill()
        parent.wait()
    workers = [int(path.name) for path in tmp_path.iterdir()]
    _wait_until(lambda: not any(_lives(process) for process in workers))


def _wait_until(done, seconds: float = 30.0):
    ends = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < ends
        time.sleep(0.05)


def _lives(process: int) -> bool:
    """Whether it runs: a process that has ended, and that nobody has asked about, does not."""
    status = Path("/proc", str(process), "stat")
    return (
        status.exists() and status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    )


# ---------------------------------------------------------------------------------
# batches


def test_buckets():
    """Batches of like length, the same for a seed, others in each epoch."""
    lengths = np.random.default_rng(0).integers(1, 1000, 103)
    sampler = BucketSampler(lengths, batch_size=4, seed=3, pool=5)
    epoch = sampler.epoch(0)
    assert len(epoch) == sampler.batches_in(1) == 25 and sampler.batches_in(3) == 75
    assert all((a == b).all() for a, b in zip(epoch, BucketSampler(lengths, 4, 3, 5).epoch(0)))
    assert any((a != b).any() for a, b in zip(epoch, sampler.epoch(1)))
    shuffled = BucketSampler(lengths, 4, 3, resolve("read_again", "paper").train.pool).epoch(0)
    assert len(set(np.concatenate(shuffled).tolist())) == 100
    spread, random = (
        np.mean([np.ptp(lengths[batch]) for batch in batches]) for batches in (epoch, shuffled)
    )
    by_chance = np.mean([np.ptp(lengths[i : i + 4]) for i in range(0, 100, 4)])
    assert spread < 0.5 * by_chance and random == pytest.approx(by_chance, rel=0.15)


def test_no_document_is_left_out_for_its_length():
    """Of 632 in batches of 16 eight are left out of an epoch, and not the longest of each."""
    sampler = BucketSampler(np.arange(632), 16, 0)
    assert len(sampler.epoch(0)) == 39
    assert (
        len(set(np.concatenate([np.concatenate(sampler.epoch(e)) for e in range(40)]).tolist()))
        == 632
    )


def test_processes_share_the_batches_of_one():
    """But those that have no document for each of them."""
    lengths = np.random.default_rng(0).integers(1, 1000, 103)
    alone, shared = (BucketSampler(lengths, 20, 3, tokens=6000, least=n).epoch(0) for n in (1, 5))
    assert [b.tolist() for b in shared] == [b.tolist() for b in alone if len(b) >= 5]
    assert any(len(b) % 5 for b in shared)


def test_no_document_to_train_on():
    with pytest.raises(ValueError, match="no document to train on"):
        BucketSampler(np.array([]), 16, 0)
