"""Preprocessing, prepared corpora, batches."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import torch

from lib.data.batch import make_batch
from lib.data.batching import BucketSampler, in_order
from lib.data.corpora import load_corpus
from lib.data.documents import CorpusError, Document
from lib.data.pieces import Pieces
from lib.data.prepared import PreparedCorpus, TextEncoder, cached_corpus, encode, noted, watched
from lib.data.sections import choose_sections
from lib.data.split import Split
from lib.data.vocabulary import BOS, EOS, PAD, Vocabulary
from lib.papers.mem2mem.sections import CohanOptions
from lib.papers.windowed.windows import ArticleOptions
from lib.system.files import project_root
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


def test_prepared_corpus_comes_back_from_disk(folder):
    corpus = load_corpus(folder)
    first = OPTIONS.prepare(corpus, progress=False)
    again = OPTIONS.prepare(corpus, progress=False)  # from the cache
    assert again.fingerprint == first.fingerprint
    assert [len(again[s]) for s in ("train", "val", "test")] == [3, 3, 3]
    assert again["test"][0].unknown == ["okapi", "!"]
    assert again["test"][0].reference == ["the okapi"]
    assert again["val"][1].source.tolist() == first["val"][1].source.tolist()
    assert set(again.vocabulary.words[4:]) == {"the", "cat", "sat", "on", "mat", "."}


@pytest.mark.parametrize("workers", [1, 2])
def test_preparing_is_encoding_each_document(workers, tmp_path, monkeypatch):
    """One pass in numbers, in one process or several, gives what `encode` gives for each document alone."""
    monkeypatch.setattr("lib.data.prepared.CHUNK", 7)
    corpus, options = load_corpus("aclsum"), CohanOptions(section_tokens=60, vocab_size=400)
    prepared = options.prepare(corpus, limit=20, folder=tmp_path / "p", progress=False, workers=workers)
    examples = {s: [options.example(d) for d in corpus.split(s, 20)] for s in ("train", "val", "test")}
    counts = Counter(w for e in examples["train"] for words in (*e.sentences, e.summary) for w in words)
    vocabulary = Vocabulary.from_counts(counts, 400)
    assert prepared.vocabulary.words == vocabulary.words
    for split, expected in examples.items():
        assert len(prepared[split]) == len(expected)
        for ours, example in zip(prepared[split], expected):
            same_document(ours, encode(example, vocabulary, 200))


@pytest.mark.parametrize("options", [CohanOptions(section_tokens=60, vocab_size=400), ArticleOptions(vocab_size=400)])
def test_texts_are_encoded_as_in_their_corpus(options, tmp_path):
    corpus = load_corpus("aclsum")
    prepared = options.prepare(corpus, limit=5, progress=False)
    for name in ("train", "test"):
        documents = list(corpus.split(name, 5))
        for ours, theirs in zip(prepared.encoder.encode(documents), prepared[name], strict=True):
            same_document(ours, theirs)
    (alone,) = prepared.encoder.encode([replace(documents[0], summary=[])])
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
        encoder.save(tmp_path / str(number))
        again = TextEncoder.load(tmp_path / str(number), CohanOptions(**asdict(OPTIONS)))
        assert again.options == OPTIONS and again.digest() == encoder.digest()
        assert type(again.vocabulary) is type(encoder.vocabulary)
        assert again.vocabulary.words == encoder.vocabulary.words
        assert (again.source_vocabulary is None) == (encoder.source_vocabulary is None)
        assert (again.chooser or {}).keys() == (encoder.chooser or {}).keys()
    assert sorted(p.name for p in tmp_path.rglob("*.*")) == [
        "pieces.model", "ranker.safetensors", "source_vocabulary.txt", *["vocabulary.txt"] * 3
    ]  # fmt: skip
    assert again.chooser["score"].tolist() == [0, 1, 2]


def test_the_digest_of_an_encoder_is_of_all_its_parts():
    one, two, other, ranked = encoders()
    more = replace(ranked, chooser={**ranked.chooser, "score": np.arange(1.0, 4.0)})
    order = replace(one, vocabulary=Vocabulary(["b", "a"]))
    assert len({e.digest() for e in (one, two, other, ranked, more, order)}) == 6
    corpora = [PreparedCorpus("x", e, {"train": Split.of(RAGGED)}) for e in (one, two, ranked, more, order)]
    assert len({corpus.fingerprint for corpus in corpora}) == 5


def test_the_cache_is_made_anew_for_other_options_and_files(folder):
    OPTIONS.prepare(load_corpus(folder), progress=False)
    smaller = CohanOptions(vocab_size=6).prepare(load_corpus(folder), progress=False)
    assert len(smaller.vocabulary) == 6
    (folder / "test.jsonl").write_text(json.dumps({"article": "new text", "abstract": "new"}), encoding="utf-8")
    assert len(OPTIONS.prepare(load_corpus(folder), progress=False)["test"]) == 1


def test_a_corpus_wanted_twice_at_once_is_made_once(folder, tmp_path):
    made, corpus = [], OPTIONS.prepare(load_corpus(folder))

    def make(_):
        made.append(corpus)
        time.sleep(0.2)  # long enough for the second to come
        return corpus

    with ThreadPoolExecutor(2) as pool:
        wanted = [pool.submit(cached_corpus, "c", [], CohanOptions, make, tmp_path / "new" / "c") for _ in range(2)]
    assert len(made) == 1 and {w.result().fingerprint for w in wanted} == {corpus.fingerprint}


def test_a_damaged_prepared_corpus_is_named(folder, tmp_path):
    prepared = OPTIONS.prepare(load_corpus(folder), progress=False)
    prepared.save(tmp_path / "p")
    (tmp_path / "p" / "train.safetensors").write_bytes(b"x")
    with pytest.raises(CorpusError, match="not a prepared corpus"):
        PreparedCorpus.load(tmp_path / "p", CohanOptions)


def test_a_corpus_of_other_options_is_refused(folder, tmp_path):
    OPTIONS.prepare(load_corpus(folder), folder=tmp_path / "p", progress=False)
    with pytest.raises(CorpusError, match="was prepared there with CohanOptions, and ArticleOptions is needed"):
        ArticleOptions().prepare(load_corpus(folder), folder=tmp_path / "p", progress=False)


def test_a_named_folder_gives_no_other_corpus(folder, tmp_path):
    """Other files, options and limits of the same class are refused, and what is there stays."""
    place, corpus = tmp_path / "p", load_corpus(folder)
    made = OPTIONS.prepare(corpus, folder=place, progress=False)
    others = [
        lambda: replace(OPTIONS, section_tokens=3).prepare(corpus, folder=place, progress=False),
        lambda: OPTIONS.prepare(corpus, limit=1, folder=place, progress=False),
        lambda: OPTIONS.prepare(load_corpus("aclsum"), folder=place, progress=False),
    ]
    for other in others:
        with pytest.raises(CorpusError, match="from other files, with other options or by other code"):
            other()
    assert OPTIONS.prepare(corpus, folder=place, progress=False).fingerprint == made.fingerprint


def test_nothing_else_is_deleted(folder, tmp_path):
    """A folder named by mistake keeps what it holds, and nothing is prepared for it."""
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work", encoding="utf-8")
    for place in ("thesis", "thesis/chapter.txt"):
        with pytest.raises(CorpusError, match="is no prepared corpus: it would be deleted"):
            cached_corpus("c", [], CohanOptions, lambda _: pytest.fail("prepared in vain"), tmp_path / place)
        with pytest.raises(CorpusError, match="is no prepared corpus"):
            OPTIONS.prepare(load_corpus(folder), progress=False).save(tmp_path / place)
    assert (tmp_path / "thesis" / "chapter.txt").read_text(encoding="utf-8") == "years of work"
    mine = OPTIONS.prepare(load_corpus(folder), folder=tmp_path / "mine", progress=False)
    (tmp_path / "mine" / "notes.md").write_text("years of work", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"with 'notes\.md' in it"):
        mine.save(tmp_path / "mine")
    (tmp_path / ".new.parts").mkdir()
    (tmp_path / ".new.parts" / "song.wav").touch()
    with pytest.raises(CorpusError, match="holds no parts of a corpus"):
        OPTIONS.prepare(load_corpus(folder), folder=tmp_path / "new", progress=False)
    assert (tmp_path / "mine" / "notes.md").exists() and (tmp_path / ".new.parts" / "song.wav").exists()
    (tmp_path / "empty").mkdir()
    first = OPTIONS.prepare(load_corpus(folder), folder=tmp_path / "empty", progress=False)
    assert first.save(tmp_path / "empty") == tmp_path / "empty", "one prepared corpus in place of another"


def test_what_is_shown_while_it_lasts(monkeypatch, capsys):
    """A bar, a line: where that is asked for, and gone afterwards."""
    monkeypatch.setattr("lib.data.prepared.LONG", 0)
    for progress in (False, True):
        assert list(watched(range(3), "texts", progress)) == [0, 1, 2]
        bar = capsys.readouterr().out
        with noted("waits", progress):
            assert ("waits" in capsys.readouterr().out) == progress
        assert ("texts" in bar) == progress and "\n" not in bar + capsys.readouterr().out


def test_what_a_killed_preparation_left_is_not_taken_for_another(folder, tmp_path, monkeypatch):
    """The same folder, other options: nothing of the chunks that are there."""
    wanted = CohanOptions(section_tokens=1, vocab_size=20)
    expected = wanted.prepare(load_corpus(folder), folder=tmp_path / "alone", progress=False)

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("lib.data.prepared.Vocabulary.from_counts", killed)
        OPTIONS.prepare(load_corpus(folder), folder=tmp_path / "p", progress=False)
    assert list((tmp_path / ".p.parts").glob("train-*"))
    found = wanted.prepare(load_corpus(folder), folder=tmp_path / "p", progress=False)
    assert found.fingerprint == expected.fingerprint


def test_ids_are_compact_and_mapped(folder, tmp_path):
    prepared = OPTIONS.prepare(load_corpus(folder), folder=tmp_path / "p", progress=False)
    words = sum(len(d.source) for d in prepared["train"])
    assert (tmp_path / "p" / "train.source.bin").stat().st_size == 2 * words
    assert isinstance(prepared["train"]._arrays["source"], np.memmap)


def test_a_text_of_more_unknown_words_than_two_bytes_count(folder, tmp_path):
    words = " ".join(f"w{number}" for number in range(2**16))
    (folder / "test.jsonl").write_text(json.dumps({"article": words, "abstract": "w1"}), encoding="utf-8")
    options = replace(OPTIONS, section_tokens=2**16)
    (text,) = options.prepare(load_corpus(folder), folder=tmp_path / "p", progress=False)["test"]
    assert (np.diff(text.source) == 1).all() and len(text.unknown) == len(text.source) == 2**16


@pytest.mark.parametrize("most", [100, 2**16])
def test_a_split_comes_back_from_disk(tmp_path, most):
    """Written in one piece or document by document: the same documents and the same fingerprint."""
    documents = [*RAGGED, replace(RAGGED[0], id="more", source_ids=RAGGED[0].source)]
    for name, items in (("plain", RAGGED), ("ids", [documents[-1]]), ("none", [])):
        Split.of(items).save(tmp_path, name)
        written = Split.write(tmp_path, f"{name}-streamed", iter(items), most)
        for split in (Split.load(tmp_path, name), written):
            assert len(split) == len(items)
            for ours, expected in zip(split, items, strict=True):
                same_document(ours, expected)
        assert Split.load(tmp_path, name).fingerprint() == Split.of(items).fingerprint()
        assert (written.fingerprint() == Split.of(items).fingerprint()) == (most < 2**16 or not items)


def test_documents_of_a_split_are_found_as_in_a_list():
    split = Split.of(RAGGED)
    for index in (0, -1, -3, np.int64(1)):
        same_document(split[index], RAGGED[index])
    for part in (slice(1), slice(-2, None), slice(None, None, -1), slice(9, None)):
        found = split[part]
        assert len(found) == len(RAGGED[part])
        for ours, expected in zip(found, RAGGED[part]):
            same_document(ours, expected)
    for index in (3, -4):
        with pytest.raises(IndexError):
            split[index]


def test_a_corpus_outlives_its_files(folder, tmp_path):
    """A cache that is cleared does not stop what has opened it."""
    prepared = OPTIONS.prepare(load_corpus(folder), folder=tmp_path / "p", progress=False)
    before, first = prepared.fingerprint, prepared["train"][0]
    shutil.rmtree(tmp_path / "p")
    assert prepared.fingerprint == before
    same_document(prepared["train"][0], first)
    assert PreparedCorpus.load(prepared.save(tmp_path / "again"), CohanOptions).fingerprint == before


def test_options_that_someone_changed(folder, tmp_path):
    """What a corpus says of itself is checked, too: with other options new texts would be read otherwise."""
    OPTIONS.prepare(load_corpus(folder), folder=tmp_path / "p", progress=False)
    path = tmp_path / "p" / "prepared.json"
    description = json.loads(path.read_text(encoding="utf-8"))
    description["options"]["summary_tokens"] += 1
    path.write_text(json.dumps(description), encoding="utf-8")
    with pytest.raises(CorpusError, match=r"damaged \(prepared.json is not what was written\). Remove the folder"):
        PreparedCorpus.load(tmp_path / "p", CohanOptions)


@pytest.mark.parametrize("name", ["vocabulary.txt", "train.texts.bin", "val.source.bin"])
def test_a_corpus_is_checked_when_it_is_opened(folder, tmp_path, name):
    """An empty vocabulary, or a byte that is another: of files of the right size, too."""
    OPTIONS.prepare(load_corpus(folder), folder=tmp_path / "p", progress=False)
    path = tmp_path / "p" / name
    data = path.read_bytes()
    path.write_bytes(b"" if name == "vocabulary.txt" else data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(
        CorpusError, match=r"or damaged \(its files are not those that were written\). Remove the folder"
    ):
        OPTIONS.prepare(load_corpus(folder), folder=tmp_path / "p", progress=False)


@pytest.mark.parametrize(
    "change",
    [
        {"documents": 3}, {"documents": [3]}, {"documents": None}, {"options": None}, {"options": {"a": 1}},
        {"options": {"sections": "x"}}, {"options_class": 3}, {"fingerprint": None}, {"corpus": ...}, "[]", "3", "",
        "{", "[" * 100_000, '"\\udfff"', '{"corpus": ' + "9" * 5_000 + "}",
    ],
)  # fmt: skip
def test_a_malformed_description_is_one_line(folder, tmp_path, change):
    OPTIONS.prepare(load_corpus(folder), folder=tmp_path / "p", progress=False)
    path = tmp_path / "p" / "prepared.json"
    written = {**json.loads(path.read_text(encoding="utf-8")), **change} if isinstance(change, dict) else {}
    path.write_text(
        json.dumps({k: v for k, v in written.items() if v is not ...}) if written else change, encoding="utf-8"
    )
    with pytest.raises(CorpusError) as error:
        OPTIONS.prepare(load_corpus(folder), folder=tmp_path / "p", progress=False)
    assert str(tmp_path / "p") in str(error.value) and "\n" not in str(error.value)


def test_records_that_were_skipped_make_another_corpus(folder, tmp_path):
    """What was prepared without them is not taken by who wants none left out; how many there were is kept."""
    with open(folder / "train.jsonl", "a", encoding="utf-8") as file:
        file.write("\n{broken\n[1]\n")
    skipped = [OPTIONS.prepare(load_corpus(folder, errors="skip"), progress=False) for _ in range(2)]
    assert all(corpus.remarks.startswith("2 records were left out: ") for corpus in skipped)
    assert "train.jsonl, line 4: not JSON" in skipped[1].remarks and skipped[1].remarks in skipped[1].report
    with pytest.raises(CorpusError, match="line 4: not JSON"):
        OPTIONS.prepare(load_corpus(folder), progress=False)


def test_a_split_that_is_not_there_is_found_first(folder, monkeypatch):
    monkeypatch.setattr(CohanOptions, "example", lambda *_: pytest.fail("a document was preprocessed"))
    for damage in (
        lambda path: path.write_text("{broken", encoding="utf-8"),
        lambda path: path.write_text("", encoding="utf-8"),
        lambda path: path.unlink(),
    ):
        damage(folder / "test.jsonl")
        with pytest.raises(CorpusError, match="test"):
            OPTIONS.prepare(load_corpus(folder), progress=False)


def test_a_cache_that_cannot_be_written_is_one_line(folder, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with pytest.raises(CorpusError, match=r"file.*cannot be prepared \(.*\). COMPANION_CACHE names another place"):
        OPTIONS.prepare(load_corpus(folder), folder=tmp_path / "file" / "p", progress=False)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(CorpusError, match="No space left on device"):
            OPTIONS.prepare(load_corpus(folder), progress=False)
    assert len(OPTIONS.prepare(load_corpus(folder), progress=False)["train"]) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there are no workers unless asked for")
def test_workers_end_with_their_parent(tmp_path):
    """A process that is killed while it shares out chunks leaves no other behind."""
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


def test_a_file_that_was_cut_is_noticed(folder, tmp_path):
    OPTIONS.prepare(load_corpus(folder), folder=tmp_path / "p", progress=False)
    path = tmp_path / "p" / "train.texts.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorpusError, match=r"train.texts.bin has \d+ bytes and should have \d+"):
        PreparedCorpus.load(tmp_path / "p", CohanOptions)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_preparation_goes_on(workers, tmp_path, monkeypatch):
    """Chunks that are there are not preprocessed again; the corpus is that of an undisturbed preparation."""
    monkeypatch.setattr("lib.data.prepared.CHUNK", 3)
    corpus, options = load_corpus("aclsum"), CohanOptions(section_tokens=60, vocab_size=400)
    whole = options.prepare(corpus, limit=10, folder=tmp_path / "whole", progress=False, workers=1)
    examples, example = [], CohanOptions.example

    def fails(self, document):
        examples.append(document.id)
        if len(examples) == 8:
            raise KeyboardInterrupt
        return example(self, document)

    monkeypatch.setattr(CohanOptions, "example", fails)
    with pytest.raises(KeyboardInterrupt):
        options.prepare(corpus, limit=10, folder=tmp_path / "p", progress=False, workers=1)
    assert len(list((tmp_path / ".p.parts").glob("train-*.safetensors"))) == 2 and not (tmp_path / "p").exists()
    examples.clear()
    monkeypatch.setattr(CohanOptions, "example", lambda self, d: examples.append(d.id) or example(self, d))
    again = options.prepare(corpus, limit=10, folder=tmp_path / "p", progress=False, workers=workers)
    assert again.fingerprint == whole.fingerprint
    if workers == 1:
        assert len(examples) == 3 * 10 - 6
    assert not (tmp_path / ".p.parts").exists()


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


@pytest.mark.parametrize(
    ("sentences", "target", "message"),
    [
        ([[4], []], [3], "'x' has an empty sentence"),
        ([], [3], "'x' has no source words: nothing is left"),
        ([[4]], [], "'x' has no target"),
    ],
)
def test_a_document_that_cannot_be_read_is_refused(sentences, target, message):
    with pytest.raises(ValueError, match=message):
        make_batch([document([[4]], [3]), document(sentences, target, "x")], VOCAB)


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


def test_in_order_is_every_document_in_order():
    assert [b.ids for b in in_order(RAGGED, 2, VOCAB)] == [["a", "b"], ["c"]]


def test_a_fault_of_the_program_is_no_damage(folder, monkeypatch):
    """While a prepared corpus is opened: nobody is told to remove what took hours."""
    OPTIONS.prepare(load_corpus(folder), progress=False)
    (place,) = Path(os.environ["COMPANION_CACHE"]).glob("*/prepared.json")
    with monkeypatch.context() as patch:
        patch.setattr("lib.data.split._mapped", lambda path, kind: None)  # called with three
        with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
            PreparedCorpus.load(place.parent, CohanOptions)
        with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
            OPTIONS.prepare(load_corpus(folder), progress=False)
    assert len(PreparedCorpus.load(place.parent, CohanOptions)["train"]) == 3, "it is still there"


@pytest.mark.parametrize("name", ["prepared.json", "vocabulary.txt", "train.safetensors", "train.texts.bin"])
@pytest.mark.parametrize("damage", ["cut", "gone", "other"])
def test_what_is_damaged_in_the_cache_is_made_again(folder, capsys, name, damage):
    made = OPTIONS.prepare(load_corpus(folder), progress=False)
    (place,) = (path.parent for path in Path(os.environ["COMPANION_CACHE"]).glob("*/prepared.json"))
    data = (place / name).read_bytes()
    if damage == "gone":
        (place / name).unlink()
    else:
        (place / name).write_bytes(data[: len(data) // 2] if damage == "cut" else safetensors.numpy.save({}))
    assert capsys.readouterr().err == ""
    assert OPTIONS.prepare(load_corpus(folder), progress=False).fingerprint == made.fingerprint
    assert capsys.readouterr().err == f"{place}: a prepared corpus that is damaged. It is made again\n"
    assert (place / name).read_bytes() == data
    OPTIONS.prepare(load_corpus(folder), progress=False)
    assert capsys.readouterr().err == ""
