"""Preprocessing, prepared corpora, batches."""

import json
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from lib.data.batch import make_batch
from lib.data.batching import BucketSampler, in_order
from lib.data.corpora import load_corpus
from lib.data.documents import CorpusError, Document
from lib.data.pieces import Pieces
from lib.data.prepared import PreparedCorpus, TextEncoder, encode, prepare
from lib.data.sections import choose_sections
from lib.data.split import Split
from lib.data.vocabulary import BOS, EOS, PAD, Vocabulary
from lib.papers.mem2mem.sections import CohanOptions
from lib.papers.windowed.windows import ArticleOptions
from lib.system.files import project_root
from lib.system.fingerprints import code_digest
from tests.conftest import RAGGED, VOCAB, batch_of, document, same_document

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
    d = Document("d", "", ["Intro", "M", "N", "Conclusion"], [["A B c.", "D e."], ["F."], ["G."], ["H i."]],
                 ["One two three.", "Four five six."])  # fmt: skip
    example = OPTIONS.example(d)
    assert example.sentences == [["a", "b", "c", "."], ["f", "."], ["h", "i", "."]]
    assert example.summary == ["one", "two", "three", ".", "four"]
    assert example.reference == d.summary


def test_a_text_without_sections_keeps_the_whole_budget():
    d = Document("d", "", [""], [["a b c d e f g h i j k l m n"]], ["x"])
    assert len(OPTIONS.example(d).sentences[0]) == 12


def test_whole_sentences_alone_where_that_is_asked_for():
    options = replace(OPTIONS, section_tokens=5, whole_sentences=True)
    sections = [["a b c", "", "d e", "f"], ["a b c", "d e f"], ["a b c d e f g", "h"]]
    d = Document("d", "", ["one", "two", "three"], sections, ["x"])
    assert [" ".join(s) for s in options.example(d).sentences] == ["a b c", "d e", "a b c", "a b c d e"]


@pytest.mark.parametrize("bad", [{"sections": 0}, {"section_tokens": 0}, {"summary_tokens": 0}, {"vocab_size": 4}])
def test_sizes_are_checked(bad):
    with pytest.raises(ValueError):
        CohanOptions(**bad)


def test_a_cut_summary_has_no_end():
    d = Document("d", "", [""], [["a b"]], ["a b a b a b"])
    vocabulary = Vocabulary(["a", "b"])
    assert encode(OPTIONS.example(d), vocabulary, 5).target.tolist() == [4, 5, 4, 5, 4]
    short = Document("d", "", [""], [["a b"]], ["b"])
    assert encode(OPTIONS.example(short), vocabulary, 5).target.tolist() == [5, EOS]


@pytest.fixture
def folder(tmp_path):
    for split, words in (("train", "the cat sat on the mat"), ("val", "the dog sat"), ("test", "the okapi")):
        line = {"article": f"{words}. {words.upper()}!", "abstract": words}
        (tmp_path / f"{split}.jsonl").write_text("\n".join([json.dumps(line)] * 3), encoding="utf-8")
    return tmp_path


# ---------------------------------------------------------------------------------------------- prepared corpora


def test_a_prepared_corpus_comes_back_from_the_cache(folder, monkeypatch):
    first = OPTIONS.prepare(load_corpus(folder), progress=False)
    monkeypatch.setattr(CohanOptions, "example", lambda *_: pytest.fail("it is made again"))
    again = OPTIONS.prepare(load_corpus(folder), progress=False)
    assert again.fingerprint == first.fingerprint
    assert [len(again[s]) for s in ("train", "val", "test")] == [3, 3, 3]
    assert again["test"][0].unknown == ["okapi", "!"] and again["test"][0].reference == ["the okapi"]
    assert set(again.vocabulary.words[4:]) == {"the", "cat", "sat", "on", "mat", "."}


def test_the_fingerprint_is_that_of_stored_runs():
    """Runs store it: with other bytes none of them could be resumed."""
    corpus = PreparedCorpus("x", TextEncoder(OPTIONS, Vocabulary(["a", "b"])), {"train": Split.of(RAGGED)})
    assert (corpus.fingerprint, corpus.encoder.digest()) == ("f8e6604ee7d2", "e75e65efe0db")


@pytest.mark.parametrize("workers", [1, 2])
def test_preparing_is_encoding_each_document(workers, tmp_path, monkeypatch):
    monkeypatch.setattr("lib.data.split.CHUNK", 7)
    monkeypatch.setattr("lib.data.options.default_workers", lambda: workers)
    corpus, options = load_corpus("aclsum"), CohanOptions(section_tokens=60, vocab_size=400)
    prepared = options.prepare(corpus, limit=20, folder=tmp_path / "p", progress=False)
    documents = {s: list(corpus.split(s, 20)) for s in ("train", "val", "test")}
    examples = [options.example(d) for d in documents["train"]]
    counts = Counter(w for e in examples for words in (*e.sentences, e.summary) for w in words)
    assert prepared.vocabulary.words == Vocabulary.from_counts(counts, 400).words
    for split, texts in documents.items():
        for ours, theirs in zip(prepared[split], prepared.encoder.encode(texts), strict=True):
            same_document(ours, theirs)


@pytest.mark.parametrize("options", [CohanOptions(section_tokens=60, vocab_size=400), ArticleOptions(vocab_size=400)])
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
        assert again.digest() == encoder.digest() and again.vocabulary.words == encoder.vocabulary.words
    assert len({encoder.digest() for encoder in made}) == 4
    assert len({PreparedCorpus("x", e, {"train": Split.of(RAGGED)}).fingerprint for e in made}) == 4


def test_the_cache_is_made_anew_for_other_options_and_files(folder):
    OPTIONS.prepare(load_corpus(folder), progress=False)
    smaller = CohanOptions(vocab_size=6).prepare(load_corpus(folder), progress=False)
    assert len(smaller.vocabulary) == 6
    (folder / "test.jsonl").write_text(json.dumps({"article": "new text", "abstract": "new"}), encoding="utf-8")
    assert len(OPTIONS.prepare(load_corpus(folder), progress=False)["test"]) == 1


@pytest.mark.parametrize("module", ["lib.data.corpora", "lib.papers.mem2mem.sections"])
def test_the_cache_is_made_anew_for_other_code(folder, monkeypatch, module):
    """That of the options, and that of the readers."""
    OPTIONS.prepare(load_corpus(folder), progress=False)
    monkeypatch.setattr(
        "lib.data.prepared.code_digest", lambda *names: module if module in names else code_digest(*names)
    )
    monkeypatch.setattr(CohanOptions, "example", lambda *_: pytest.fail("it is made again"))
    with pytest.raises(pytest.fail.Exception, match="made again"):
        OPTIONS.prepare(load_corpus(folder), progress=False)


def test_a_corpus_that_two_want_is_made_once(folder, tmp_path):
    made, corpus = [], OPTIONS.prepare(load_corpus(folder))

    def make(_):
        made.append(corpus)
        time.sleep(0.2)  # long enough for the second to come
        return corpus

    with ThreadPoolExecutor(2) as pool:
        wanted = [pool.submit(prepare, "c", OPTIONS, [], make, tmp_path / "new" / "c") for _ in range(2)]
    assert len(made) == 1 and {w.result().fingerprint for w in wanted} == {corpus.fingerprint}


def test_a_named_folder_keeps_what_it_holds(folder, tmp_path):
    """Other files, options, limits and classes are refused; so is a folder with something else in it."""
    place, corpus = tmp_path / "p", load_corpus(folder)
    made = OPTIONS.prepare(corpus, folder=place, progress=False)
    for other in (replace(OPTIONS, section_tokens=3), ArticleOptions()):
        with pytest.raises(CorpusError, match="holds another corpus"):
            other.prepare(corpus, folder=place, progress=False)
    for other, limit in ((corpus, 1), (load_corpus("aclsum"), None)):
        with pytest.raises(CorpusError, match="holds another corpus"):
            OPTIONS.prepare(other, limit, place, progress=False)
    assert OPTIONS.prepare(corpus, folder=place, progress=False).fingerprint == made.fingerprint
    with pytest.raises(CorpusError, match="was prepared with CohanOptions"):
        PreparedCorpus.load(place, ArticleOptions)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work", encoding="utf-8")
    for name in ("thesis", "thesis/chapter.txt"):
        with pytest.raises(CorpusError, match="is no prepared corpus"):
            OPTIONS.prepare(corpus, folder=tmp_path / name, progress=False)
    assert (tmp_path / "thesis" / "chapter.txt").read_text(encoding="utf-8") == "years of work"


def test_damage_and_a_full_disk_are_one_line(folder, tmp_path, monkeypatch):
    prepared = OPTIONS.prepare(load_corpus(folder), folder=tmp_path / "p", progress=False)
    (tmp_path / "p" / "train.arrow").write_bytes(b"x")
    with pytest.raises(CorpusError, match="no prepared corpus, or damaged"):
        PreparedCorpus.load(tmp_path / "p", CohanOptions)
    (tmp_path / "file").touch()
    with pytest.raises(CorpusError, match=r"cannot be prepared \(.*\). COMPANION_CACHE names another place"):
        OPTIONS.prepare(load_corpus(folder), folder=tmp_path / "file" / "p", progress=False)
    assert prepared["val"][0].id == "1", "it was mapped"


def test_ids_are_compact_and_hugging_face_opens_them(folder, tmp_path):
    datasets = pytest.importorskip("datasets")
    prepared = OPTIONS.prepare(load_corpus(folder), folder=tmp_path / "p", progress=False)
    opened = datasets.Dataset.from_file(str(tmp_path / "p" / "train.arrow"))
    assert opened["source"][0] == prepared["train"][0].source.tolist()
    assert opened.features["source"].feature.dtype == "uint16"


def test_a_text_of_more_unknown_words_than_two_bytes_count(folder, tmp_path):
    words = " ".join(f"w{number}" for number in range(2**16))
    (folder / "test.jsonl").write_text(json.dumps({"article": words, "abstract": "w1"}), encoding="utf-8")
    options = replace(OPTIONS, section_tokens=2**16)
    (text,) = options.prepare(load_corpus(folder), folder=tmp_path / "p", progress=False)["test"]
    assert (np.diff(text.source) == 1).all() and len(text.unknown) == len(text.source) == 2**16


def test_documents_of_a_split_are_found_as_in_a_list():
    split = Split.of(RAGGED)
    for index in (0, -1, -3, np.int64(1)):
        same_document(split[index], RAGGED[index])
    for part in (slice(1), slice(-2, None), slice(None, None, -1), slice(9, None)):
        for ours, expected in zip(split[part], RAGGED[part], strict=True):
            same_document(ours, expected)
    for index in (3, -4):
        with pytest.raises(IndexError):
            split[index]


def test_records_that_were_skipped_make_another_corpus(folder):
    with open(folder / "train.jsonl", "a", encoding="utf-8") as file:
        file.write("\n{broken\n[1]\n")
    skipped = OPTIONS.prepare(load_corpus(folder, errors="skip"), progress=False)
    assert skipped.remarks.startswith("2 records were left out: ") and skipped.remarks in skipped.report
    with pytest.raises(CorpusError, match="line 4: not JSON"):
        OPTIONS.prepare(load_corpus(folder), progress=False)


def test_a_split_that_is_missing_is_found_first(folder, monkeypatch):
    monkeypatch.setattr(CohanOptions, "example", lambda *_: pytest.fail("a document was preprocessed"))
    for damage in (lambda path: path.write_text("{broken", encoding="utf-8"), lambda path: path.unlink()):
        damage(folder / "test.jsonl")
        with pytest.raises(CorpusError, match="test"):
            OPTIONS.prepare(load_corpus(folder), progress=False)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there are no workers")
def test_workers_end_with_their_parent(tmp_path):
    code = (
        "import os, sys, time\nfrom pathlib import Path\nfrom lib.system.processes import in_processes\n"
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
    return status.exists() and status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"


# ---------------------------------------------------------------------------------------------------- batches


def test_batch():
    batch = batch_of()
    assert batch.source.shape == (3, 11)
    assert batch.target_input[0].tolist() == [BOS, 12, 4, 13, 5]
    assert batch.target[1].tolist() == [12, EOS, PAD, PAD, PAD]
    assert batch.source_extended[0].tolist() == RAGGED[0].source.tolist()
    assert batch.source[0].max() < VOCAB
    assert batch.sentence_of[0].tolist() == [0] * 4 + [1] * 2 + [2] * 5
    assert batch.sentence_mask.sum(1).tolist() == [3, 1, 2]


def test_packing_is_torch_packing():
    """The packed sentences are those that torch packs from a padded [sentences, words] tensor."""
    batch = batch_of()
    sentences = [s for d in RAGGED for s in torch.from_numpy(d.source).split(d.sentence_lengths.tolist())]
    expected = torch.nn.utils.rnn.pack_sequence(sorted(sentences, key=len, reverse=True))
    assert batch.packed.sizes.tolist() == expected.batch_sizes.tolist()
    assert batch.source_extended.flatten()[batch.packed.words].tolist() == expected.data.tolist()
    assert batch.packed.rows.tolist() == [6, 2, 0, 1, 3, 7]


def test_buckets():
    lengths = np.random.default_rng(0).integers(1, 1000, 103)
    sampler = BucketSampler(lengths, batch_size=4, seed=3, pool=5)
    epoch = sampler.epoch(0)
    assert len(epoch) == sampler.batches_in(1) == 25
    assert sampler.batches_in(3) == 75
    used = np.concatenate(epoch)
    assert len(set(used.tolist())) == 100, "no document twice, the incomplete batch left out"
    assert all((a == b).all() for a, b in zip(epoch, BucketSampler(lengths, 4, 3, 5).epoch(0)))
    assert any((a != b).any() for a, b in zip(epoch, sampler.epoch(1)))
    spread = np.mean([np.ptp(lengths[batch]) for batch in epoch])
    assert spread < 0.5 * np.mean([np.ptp(lengths[i : i + 4]) for i in range(0, 100, 4)])
    assert (sampler.batch(25) == sampler.epoch(1)[0]).all()


def test_no_document_is_left_out_for_its_length():
    """Of 632 in batches of 16 eight are left out of an epoch, and not the longest of each."""
    sampler = BucketSampler(np.arange(632), 16, 0)
    assert len(sampler.epoch(0)) == 39
    assert len(set(np.concatenate([np.concatenate(sampler.epoch(e)) for e in range(40)]).tolist())) == 632


def test_buckets_by_token_budget():
    lengths = np.random.default_rng(0).integers(1, 1000, 103)
    sampler = BucketSampler(lengths, batch_size=20, seed=3, tokens=4000, least=2)
    for epoch in range(3):
        for batch in sampler.epoch(epoch):
            assert 2 <= len(batch) <= 20
            assert len(batch) * lengths[batch].max() <= 4000
    assert len(set(np.concatenate(sampler.epoch(0)).tolist())) >= 103 - len(sampler.epoch(0))
    every = [*sampler.epoch(0), *sampler.epoch(1), *sampler.epoch(2)]
    assert sampler.batches_in(3) == len(every)
    for step in [*range(len(every)), 0, len(every) - 1, 5]:
        assert (sampler.batch(step) == every[step]).all()
    with pytest.raises(ValueError, match="do not hold 2 x the longest"):
        BucketSampler(lengths, 20, 3, tokens=999, least=2)


def test_processes_share_the_batches_of_one():
    """But those that have no document for each of them."""
    lengths = np.random.default_rng(0).integers(1, 1000, 103)
    alone, shared = (BucketSampler(lengths, 20, 3, tokens=6000, least=n).epoch(0) for n in (1, 5))
    assert [b.tolist() for b in shared] == [b.tolist() for b in alone if len(b) >= 5]
    assert any(len(b) % 5 for b in shared)


def test_batches_in_order_keep_to_a_budget():
    documents = [document([[4] * n], [4, 3], str(n)) for n in (2, 3, 9, 1, 1, 1, 1)]
    ids = [batch.ids for batch in in_order(documents, 3, VOCAB, tokens=6)]
    assert ids == [["2", "3"], ["9"], ["1", "1", "1"], ["1"]]
    assert [len(batch) for batch in in_order(documents, 3, VOCAB)] == [3, 3, 1]


def test_a_corpus_smaller_than_a_batch_is_one_batch():
    assert [len(b) for b in BucketSampler(np.array([5, 6]), 16, 0).epoch(0)] == [2]
    with pytest.raises(ValueError, match="no document to train on"):
        BucketSampler(np.array([]), 16, 0)
