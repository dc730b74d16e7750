"""Corpora: records, folders of files, names, the Hub."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import datasets
import pandas as pd
import pytest

from lib.corpora import main, table
from lib.data.corpus import Corpus, load_corpus
from lib.data.documents import SPLITS, CorpusError, Document, to_document
from lib.data.named_corpora import CORPORA, find_spec
from lib.data.releases import anthology_year
from lib.papers.mem2mem.sections import CohanOptions
from lib.papers.windowed.windows import ArticleOptions
from lib.system.files import project_root

GOOD = {"article_id": "1", "section_names": ["Intro", "End"], "sections": [["A b.", "C d."], ["E f."]],
        "abstract_text": ["<S> A summary. </S>", "<S> Two. </S>"]}  # fmt: skip


def write(folder, split, *lines):
    folder.mkdir(exist_ok=True, parents=True)
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (folder / f"{split}.jsonl").write_text(text, encoding="utf-8")
    return folder


# ---------------------------------------------------------------------------------
# one record


def test_a_record_of_cohan():
    document = to_document({**GOOD, "more_summaries": ["a b.", ["c", "d"]]})
    assert document.sections == [["A b.", "C d."], ["E f."]] and document.section_names == [
        "Intro",
        "End",
    ]
    assert document.summary == ["A summary.", "Two."] and document.more_summaries == [
        ["a b."],
        ["c", "d"],
    ]
    assert to_document({**GOOD, "sections": [[""], ["E f."]]}).section_names == ["End"]
    clusters = {
        "paragraphs": ["One. Two.", {"text": "Three.", "source": "web"}, " "],
        "summary": "S.",
    }
    assert to_document(clusters).sections == [["One.", "Two."], ["Three."]]
    assert to_document(clusters).section_names == ["", "web"]


def test_documents_without_a_reference():
    without = {key: value for key, value in GOOD.items() if key != "abstract_text"}
    for record in (
        without,
        *({**without, "abstract_text": nothing} for nothing in (None, float("nan"), [])),
    ):
        assert to_document(record, reference=False) == replace(to_document(GOOD), summary=[])
    assert to_document(GOOD, reference=False) == to_document(GOOD)
    with pytest.raises(ValueError, match=r"no source and summary"):
        to_document({"lines": "x"}, reference=False)


# ---------------------------------------------------------------------------------
# folders


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{broken", "not JSON"),
        ("[" * 100_000, "recursion"),
        (b'{"a": "\xff"}', "not JSON in UTF-8"),
        ({"body": "x"}, "no source and summary"),
        ([1], "expected an object"),
        ({**GOOD, "abstract_text": ["<S> </S>"]}, "the summary .* is empty"),
        ({**GOOD, "sections": [], "section_names": []}, "the source .* is empty"),
        ({**GOOD, "sections": [["a"]]}, "differ in length"),
        ({**GOOD, "sections": 7}, "must be a list"),
        ({**GOOD, "sections": [[3], ["b"]]}, "must hold text, found int"),
        ({**GOOD, "abstract_text": 7}, "must hold text"),
        ({**GOOD, "more_summaries": 3}, "must be a list"),
        ({**GOOD, "title": "T \ud83d"}, r"'title' holds half a character \(\\ud83d\)"),
    ],
)
def test_a_bad_line_is_named_or_left_out(tmp_path, line, reason):
    encoded = (
        line
        if isinstance(line, bytes)
        else (line if isinstance(line, str) else json.dumps(line)).encode()
    )
    good = json.dumps(GOOD).encode()
    (tmp_path / "train.jsonl").write_bytes(b"\n".join([good, b"", encoded, good]))
    with pytest.raises(CorpusError, match=rf"train\.jsonl, line 3: .*{reason}.*--errors skip"):
        list(load_corpus(tmp_path).split("train"))
    corpus = load_corpus(tmp_path, errors="skip")
    for _ in range(2):  # a second pass does not count twice
        assert len(list(corpus.split("train"))) == 2
        assert (
            corpus.report().startswith("left out because they cannot be used: 1 (")
            and "line 3" in corpus.report()
        )


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"train.jsonl": b""}, "no record of 'train' can be used"),
        ({"train.jsonl": b'{"a": 1}\n{"b": 1}'}, "no record of 'train' can be used: .*line 1"),
        ({"train.jsonl.gz": gzip.compress(b"{}" * 1000)[:20]}, r"train\.jsonl\.gz: "),
        ({"train.csv": b'document,summary\n"a\nb,c\n'}, r"train\.csv, line 2: .*quotes"),
    ],
)
def test_a_bad_file_is_named(tmp_path, files, reason):
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(CorpusError, match=reason):
        list(load_corpus(tmp_path, errors="skip").split("train"))


def test_formats(tmp_path):
    hub = {"article": "One. Two.", "abstract": "Short."}
    (tmp_path / "train.json").write_text(
        f"\ufeff{json.dumps([hub, hub], indent=1)}", encoding="utf-8"
    )
    for part, count in ((0, 1), (1, 2)):
        pd.DataFrame([hub] * count).to_parquet(tmp_path / f"validation-0000{part}-of-00002.parquet")
    (tmp_path / "test.csv").write_text(
        '\ufeffdocument;summary\n"One.\nTwo.";Short.\nx;y;z\n', encoding="utf-8"
    )
    corpus = load_corpus(tmp_path, errors="skip")
    assert [len(list(corpus.split(s))) for s in SPLITS] == [2, 3, 1]
    (row,) = corpus.split("test")
    assert row.sections == [["One.", "Two."]]
    assert "test.csv, line 4: another number of fields" in corpus.report()


def dataset(texts):
    return datasets.Dataset.from_list([{"article": text, "abstract": "S."} for text in texts])


def test_folders_of_hugging_face(tmp_path, capsys):
    splits = {"train": ["One. Two.", "Three."], "validation": ["Four."], "test": ["Five."]}
    saved = datasets.DatasetDict({name: dataset(texts) for name, texts in splits.items()})
    saved.save_to_disk(str(tmp_path / "saved"), num_shards={"train": 2, "validation": 1, "test": 1})
    for name, own in saved.items():  # as the Hub has them
        path = tmp_path / "hub" / name / "0000.parquet"
        path.parent.mkdir(parents=True)
        own.to_parquet(path)
    for folder in ("saved", "hub"):
        corpus = load_corpus(tmp_path / folder)
        found = {name: [d.sentences for d in corpus.split(name)] for name in SPLITS}
        assert found == {
            "train": [["One.", "Two."], ["Three."]],
            "val": [["Four."]],
            "test": [["Five."]],
        }
        assert corpus.report() == "no record was left out."
    before = load_corpus(tmp_path / "hub").identity
    dataset(["Other."]).to_parquet(tmp_path / "hub" / "validation" / "0000.parquet")
    assert load_corpus(tmp_path / "hub").identity != before
    dataset(["One."]).save_to_disk(str(tmp_path / "one"))
    capsys.readouterr()
    with pytest.raises(CorpusError, match=r"without splits: split it by `train_test_split`"):
        load_corpus(tmp_path / "one")
    with pytest.raises(CorpusError, match=rf"one folder down: give {tmp_path}/hub\."):
        load_corpus(tmp_path)


def test_a_part_of_the_shards_is_told(tmp_path):
    for part in (0, 2):
        dataset([f"Text {part}."]).to_parquet(tmp_path / f"train-0000{part}-of-00004.parquet")
    dataset(["Text."]).to_parquet(tmp_path / "test-00000-of-00001.parquet")
    corpus = load_corpus(tmp_path)
    assert len(list(corpus.split("train"))) == 2
    assert corpus.remarks() == (
        "not there: train-00001-of-00004.parquet and 1 more (2 of the 4 parts of train are read)"
    )


def test_each_split_in_another_encoding_is_named(tmp_path):
    for name in ("train", "val"):
        (tmp_path / f"{name}.csv").write_text("text,summary\nCafé is open. Go.,Café.\n", "latin-1")
    (tmp_path / "test.csv").write_text("text,summary\nCafé is open. Go.,Café.\n", "utf-8")
    corpus = load_corpus(tmp_path)
    for name in ("train", "val"):
        with pytest.raises(CorpusError, match=rf"^\S+{name}\.csv: not UTF-8.*{name}\.csv > NEW"):
            list(corpus.split(name))
    assert len(list(corpus.split("test"))) == 1


def test_the_first_records_decide_for_all_of_a_corpus(tmp_path):
    """Two short lists of words are words, because those of the other records are."""
    words = ["The", "committee", "met", "on", "Monday", "and", "agreed", "."]
    records = [{"document": words, "summary": "It met."}] * 9
    short = {"document": ["It", "met"], "summary": "It met."}
    write(tmp_path, "train", *records)
    write(tmp_path, "test", short, {"document": "Not <b> a list.", "summary": "It met."})
    (first, second) = load_corpus(tmp_path).split("test")
    assert first.sentences == ["It met"] and second.sentences == ["Not <b> a list."]
    assert to_document(short).sentences == ["It", "met"]
    corpus = Corpus.from_records(train=records, test=[short])
    assert next(corpus.split("test")).sentences == ["It met"]
    other = Corpus.from_records(train=[GOOD], test=[{**short, "document": ["It met.", "It left."]}])
    assert next(corpus.tested_on(other).split("test")).sentences == ["It met.", "It left."]
    assert next(other.tested_on(corpus).split("test")).sentences == ["It met"]


def test_a_text_a_line(tmp_path):
    """Articles of a cluster are sections; what only Unicode takes for the end of a line is none."""
    text = "One. Two. NEWLINE_CHAR Three. ||||| Other.\nc d.\u2028e\n"
    (tmp_path / "train.src").write_text(text, encoding="utf-8")
    (tmp_path / "train.tgt").write_text("A.\nB.\r\n", encoding="utf-8", newline="")
    first, second = load_corpus(tmp_path).split("train")
    assert first.sections == [["One.", "Two.", "Three."], ["Other."]] and second.summary == ["B."]


def test_texts_with_summaries(tmp_path):
    """Plain text and Markdown, distributed by their names or in folders of their own."""
    for n in range(20):
        text = f"# Note {n}\n\n## Start\n\nThe text of note {n} is short. It ends.\n"
        (tmp_path / f"note{n}.md").write_text(text, encoding="utf-8")
        (tmp_path / f"note{n}.summary.txt").write_text(
            f"Note {n} in one sentence.\n", encoding="utf-8"
        )
    corpus = load_corpus(tmp_path)
    found = {s: [d.id for d in corpus.split(s)] for s in SPLITS}
    assert [len(found[s]) for s in SPLITS] == [16, 2, 2]
    assert sorted(i for names in found.values() for i in names) == sorted(
        f"note{n}" for n in range(20)
    )
    document = next(corpus.split("val"))
    assert document.section_names == ["Start"] and document.summary[0].endswith("in one sentence.")
    for split_name in SPLITS:
        folder = tmp_path / "apart" / split_name
        folder.mkdir(parents=True)
        (folder / "a.txt").write_text(f"A text for {split_name}.", encoding="utf-8")
        (folder / "a.summary.md").write_text("Short.", encoding="utf-8")
    apart = load_corpus(tmp_path / "apart")
    assert [next(apart.split(s)).sentences for s in SPLITS] == [
        [f"A text for {s}."] for s in SPLITS
    ]


def test_the_identity_of_a_folder(tmp_path):
    """That of its files; hidden ones and the place of the folder do not count."""
    write(tmp_path / "a", "train", GOOD)
    before = load_corpus(tmp_path / "a").identity
    (tmp_path / "a" / ".git").mkdir()
    (tmp_path / "a" / ".git" / "index").touch()
    moved = (tmp_path / "a").rename(tmp_path / "b")
    assert load_corpus(moved).identity == before != load_corpus(moved, errors="skip").identity
    write(moved, "train", GOOD, GOOD)
    assert load_corpus(moved).identity != before


def test_records_in_memory():
    document = Document("d", "T", [""], [["One."]], ["S."])
    corpus = Corpus.from_records(train=[GOOD, document], test=iter([GOOD]))
    assert (
        list(corpus.split("train"))
        == list(corpus.split("train"))
        == [to_document(GOOD, 1), document]
    )
    other = {**GOOD, "abstract_text": ["Another."]}
    given = (("train", GOOD), ("train", GOOD), ("val", GOOD), ("train", other))
    identities = [Corpus.from_records(**{name: [record]}).identity for name, record in given]
    assert identities[0] == identities[1] and len(set(identities)) == 3
    with pytest.raises(CorpusError, match="mine, train, line 2: no source and summary"):
        list(Corpus.from_records("mine", train=[GOOD, {"a": {1}}]).split("train"))


def test_a_corpus_can_be_tested_on_another(tmp_path):
    """DUC 2004 only has test documents: a model that is trained elsewhere is scored there."""
    for name, splits in (("a", SPLITS), ("b", ("test",))):
        for split in splits:
            write(tmp_path / name, split, {**GOOD, "article_id": f"{name}-{split}"})
    (tmp_path / "a" / "corpus.json").write_text('{"tokenised": true}', encoding="utf-8")
    first, other = (load_corpus(tmp_path / name) for name in "ab")
    both = first.tested_on(other)
    assert [d.id for s in SPLITS for d in both.split(s)] == ["a-train", "a-val", "b-test"]
    assert [next(both.split(s)).tokenised for s in SPLITS] == [True, True, False]
    assert both.identity not in (first.identity, other.identity) and both.test_name == other.name
    assert [d.id for d in first.split("test")] == ["a-test"], "the first is as it was"
    with pytest.raises(CorpusError, match="no split 'test'; there are train"):
        first.tested_on(load_corpus(write(tmp_path / "c", "train", GOOD)))


# ---------------------------------------------------------------------------------
# names


def test_aclsum():
    corpus = load_corpus("aclsum")
    documents = {split: list(corpus.split(split)) for split in SPLITS}
    assert [len(d) for d in documents.values()] == [100, 50, 100]
    assert all(len(d.sections) == len(d.section_names) > 3 for d in documents["train"])
    for d in documents["test"]:
        abstract = " ".join(d.summary)
        assert not [s for s in d.sentences if len(s) > 60 and s in abstract], (
            "the body holds its abstract"
        )
    assert [anthology_year(i) for i in ("P19-1234", "W97-0101", "2021.eacl-main.84")] == [
        2019,
        1997,
        2021,
    ]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("aclsun", "did you mean 'aclsum'"),
        ("nowhere/folder", "no corpus or folder"),
        (
            "sumpubmed",
            "must be fetched by hand: clone github.com/vgupta123/sumpubmed, .*Licence: MIT",
        ),
        ("reuters:nowhere", "must be fetched by hand"),
        (".", "no train, val or test files .*such as reuters:"),
    ],
)
def test_what_cannot_be_found(name, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lib.data.named_corpora.project_root", lambda: tmp_path)
    with pytest.raises(CorpusError, match=reason):
        load_corpus(name)


@pytest.mark.parametrize("name", ["arxiv", "pubmed", "cnn_dailymail", "multi_news"])
def test_the_hub_out_of_reach_says_what_to_do(name, monkeypatch, tmp_path):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr("lib.data.corpus._hub_answers", lambda: False)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    datasets.disable_progress_bars()
    with pytest.raises(CorpusError, match=r"cannot be loaded .*aclsum.* folder .*HF_HOME") as error:
        load_corpus(name)
    assert datasets.config.HF_HUB_OFFLINE, "so that its client does not try again and again"
    assert CORPORA[name].hub["repository"] in str(error.value)


def test_hub_rows_are_read(monkeypatch):
    datasets = pytest.importorskip("datasets")
    rows = {"arxiv": {"article": ["-"], "document": ["One. Two."], "abstract": ["Short."]},
            "cnn_dailymail": {"article": ["One. Two."], "highlights": ["Short."], "id": ["x"]},
            "multi_news": {"document": ["One. ||||| Two."], "summary": ["Short."]}}  # fmt: skip
    monkeypatch.setattr("lib.data.corpus._hub_answers", lambda: True)
    for name, columns in rows.items():
        data = datasets.DatasetDict(
            {s: datasets.Dataset.from_dict(columns) for s in ("train", "validation", "test")}
        )
        monkeypatch.setattr(datasets, "load_dataset", lambda *a, d=data, **k: d)
        corpus = load_corpus(name)
        for split in SPLITS:
            document = next(corpus.split(split))
            assert document.summary == ["Short."] and document.tokenised == (name == "arxiv")
            assert document.sentences == ["One.", "Two."]


def test_a_name_comes_before_a_folder_that_is_called_so(tmp_path, monkeypatch):
    """The folder is a path: with a dot, or as a `Path`."""
    monkeypatch.chdir(tmp_path)
    for split in SPLITS:
        write(tmp_path / "aclsum", split, {**GOOD, "article_id": "own"})
    for own in ("./aclsum", Path("aclsum"), tmp_path / "aclsum"):
        assert [d.id for d in load_corpus(own).split("test")] == ["own"]
    assert next(load_corpus("aclsum").split("test")).id != "own"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("ccdv/arxiv-summarization", "arxiv"),
        ("https://huggingface.co/datasets/abisee/cnn_dailymail", "cnn_dailymail"),
        ("WING-NUS/scisumm-corpus", "scisummnet"),
        ("my/folder", None),
    ],
)
def test_a_corpus_by_its_repository(given, name):
    spec, _ = find_spec(given)
    assert (spec and spec.name) == name


def test_ids_that_occur_twice_are_told_apart():
    same = Corpus.from_records(train=[GOOD, GOOD])
    assert [d.id for d in same.split("train")] == [
        "1",
        "1#2",
    ] and "ids that occur twice (1)" in same.remarks()


def test_the_command(tmp_path, capsys):
    assert main([]) == 0 and table() in capsys.readouterr().out
    write(tmp_path, "train", {"text": "One two. Three.", "summary": "One."}, "no")
    assert main([str(tmp_path)]) == 1, "there is no test split"
    shown = capsys.readouterr().out
    assert "train: 1 documents, in the mean 3 words in 2 sentences, 1 of summary" in shown
    assert "train.jsonl, line 2: not JSON" in shown
    with pytest.raises(SystemExit, match=r"^error: .*no corpus or folder"):
        main([str(tmp_path / "nowhere")])


def test_a_text_lists_every_corpus():
    assert table() in (project_root() / "docs" / "run.md").read_text(encoding="utf-8")


# ---------------------------------------------------------------------------------
# tokenised corpora

TEXT = (
    "the drought-hit u.s. state lost 12% of its maize , officials of the ministry said late on "
    "friday ."
)
TITLE = "drought-hit state lost its maize"
APART = {
    "article_text": [TEXT],
    "abstract_text": [f"<S> {TITLE} . </S>", "<S> rain is far-off . </S>"],
}


@pytest.fixture
def apart(tmp_path):
    """A folder whose texts have words and marks separated by spaces."""
    for split in SPLITS:
        write(tmp_path, split, *[{"article_id": f"{split}-{n}", **APART} for n in range(3)])
    return tmp_path


def test_a_folder_or_a_record_says_that_it_is_tokenised(apart):
    raw = load_corpus(apart)
    assert not next(raw.split("test")).tokenised
    (apart / "corpus.json").write_text('{"tokenised": true}', encoding="utf-8")
    corpus = load_corpus(apart)
    assert all(d.tokenised for d in corpus.split("test")) and corpus.identity != raw.identity
    mixed = Corpus.from_records(
        train=[{**APART, "tokenised": True}], test=[{**APART, "tokenised": "false"}]
    )
    assert [next(mixed.split(name)).tokenised for name in ("train", "test")] == [True, False]


def test_a_named_corpus_says_it_and_its_folder_comes_first(tmp_path, monkeypatch):
    assert {name for name, spec in CORPORA.items() if spec.tokenised} == {
        "arxiv",
        "pubmed",
        "gigaword",
    }
    data = tmp_path / "data" / "gigaword"
    data.mkdir(parents=True)
    (data / "train.article.txt").write_text(f"{TEXT}\n", encoding="utf-8")
    (data / "train.title.txt").write_text(f"{TITLE}\n", encoding="utf-8")
    monkeypatch.setattr("lib.data.named_corpora.project_root", lambda: tmp_path)
    for name in ("gigaword", f"gigaword:{data}"):
        assert next(load_corpus(name).split("train")).tokenised
    (data / "corpus.json").write_text('{"tokenised": false}', encoding="utf-8")
    assert not next(load_corpus("gigaword").split("train")).tokenised


@pytest.mark.parametrize("options", [CohanOptions(), ArticleOptions()])
def test_words_are_those_between_spaces(options):
    example = options.example(to_document({**APART, "tokenised": True}))
    assert example.words == TEXT.split() and example.summary == [
        *TITLE.split(),
        *[".", "rain", "is", "far-off", "."],
    ]
