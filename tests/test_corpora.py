import gzip
import json
import math
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from lib.data import corpora
from lib.data.corpora import Corpus, anthology_year, load_corpus
from lib.data.documents import CorpusError, Document, to_document
from lib.papers import resolve

GOOD = {"article_id": "1", "section_names": ["Intro", "End"], "sections": [["A b.", "C d."], ["E f."]],
        "abstract_text": ["<S> A summary. </S>", "<S> Two. </S>"]}  # fmt: skip


def write(folder, split, *lines):
    folder.mkdir(exist_ok=True)
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (folder / f"{split}.jsonl").write_text(text, encoding="utf-8")
    return folder


# ------------------------------------------------------------------------------------------------- one record


def test_cohan_record():
    document = to_document(GOOD)
    assert document.sections == [["A b.", "C d."], ["E f."]]
    assert document.summary == ["A summary.", "Two."]
    assert document.section_names == ["Intro", "End"]
    assert document.id == "1"


@pytest.mark.parametrize(
    "record",
    [
        {"article": "One. Two.", "abstract": "Short."},
        {"article": "One.\nTwo.", "highlights": "Short."},
        {"document": "One. Two.", "summary": "Short."},
        {"text": "One. Two.", "summary": "Short.", "url": "u"},
        {"article_text": ["One.", "Two."], "abstract_text": ["Short."]},
    ],
)
def test_layouts_without_sections_are_one_section(record):
    document = to_document(record)
    assert document.sections == [["One.", "Two."]]
    assert document.summary == ["Short."]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"abstract_text": []}, "the summary .* is empty"),
        ({"abstract_text": ["<S>  </S>"]}, "the summary .* is empty"),
        ({"sections": [], "section_names": []}, "the source .* is empty"),
        ({"sections": [["a"]]}, "differ in length"),
        ({"sections": "text"}, "must be a list"),
        ({"sections": [[3], ["b"]]}, "must hold text, found int"),
        ({"sections": [["a\0b"], ["b"]]}, "null byte"),
        ({"abstract_text": 7}, "must hold text"),
    ],
)
def test_malformed_records(change, reason):
    with pytest.raises(ValueError, match=reason):
        to_document({**GOOD, **change})


def test_missing_keys_and_wrong_types():
    with pytest.raises(ValueError, match=r"no known pair of keys .* among \['body'\]"):
        to_document({"body": "x"})
    with pytest.raises(ValueError, match="expected an object"):
        to_document([1])


def test_documents_without_a_reference():
    whole = to_document(GOOD)
    without = {key: value for key, value in GOOD.items() if key != "abstract_text"}
    for record in (without, {**without, "abstract_text": None}, {**without, "abstract_text": []}):
        document = to_document(record, reference=False)
        assert document.sections == whole.sections and document.id == "1" and document.summary == []
    assert to_document(GOOD, reference=False) == whole
    assert to_document({"text": "One. Two."}, 7, reference=False) == Document("7", "", [""], [["One.", "Two."]], [])
    with pytest.raises(ValueError, match="no known pair of keys"):
        to_document(without)
    with pytest.raises(ValueError, match="expected an object"):
        to_document("One. Two.")
    with pytest.raises(ValueError, match=r"no known source \(one of sections, .*\) among \['body'\]"):
        to_document({"body": "x"}, reference=False)
    with pytest.raises(ValueError, match=r"the source .* is empty"):
        to_document({"article": " ", "abstract": "x"}, reference=False)


def test_a_document_with_one_sentence():
    document = to_document({"article": "Only one", "abstract": "Short"})
    assert document.sentences == ["Only one"]


def test_empty_sections_are_left_out():
    document = to_document({**GOOD, "sections": [[""], ["E f."]]})
    assert document.section_names == ["End"]


def test_ids_are_text():
    """A table with gaps has its whole numbers as floats, and NaN for none."""
    record = {"text": "A.", "summary": "B."}
    given = [
        {"id": 7.0},
        {"id": 7.5},
        {"id": math.nan, "url": "u"},
        {"id": math.nan},
        {},
        {"article_id": 3, "id": "x"},
    ]
    assert [to_document({**record, **ids}, 9).id for ids in given] == ["7", "7.5", "u", "9", "9", "3"]
    with pytest.raises(ValueError, match="'id' must hold text, found list"):
        to_document({**record, "id": []})


# ---------------------------------------------------------------------------------------------------- folders


def test_malformed_line_names_file_and_line(tmp_path):
    write(tmp_path / "c", "train", GOOD, "{broken", GOOD)
    with pytest.raises(CorpusError, match=r"train\.jsonl, line 2: not JSON: .*errors='skip'"):
        list(load_corpus(tmp_path / "c").split("train"))


def test_skip_counts_and_reports(tmp_path):
    write(tmp_path / "c", "train", GOOD, "{broken", "", {"a": 1}, "[1]", GOOD)
    corpus = load_corpus(tmp_path / "c", errors="skip")
    assert len(list(corpus.split("train"))) == 2
    assert [s.line for s in corpus.skipped] == [2, 4, 5]
    assert corpus.report().startswith("3 records were left out: ")
    assert len(list(corpus.split("train"))) == 2
    assert len(corpus.skipped) == 3, "a second pass does not count twice"


def test_null_bytes_and_bad_encodings(tmp_path):
    (tmp_path / "train.jsonl").write_bytes(json.dumps(GOOD).encode() + b'\n{"a": "\0"}\n{"a": "\xff"}\n')
    corpus = load_corpus(tmp_path, errors="skip")
    assert len(list(corpus.split("train"))) == 1
    assert [s.reason.split(":")[0] for s in corpus.skipped] == ["the line holds a null byte", "not UTF-8"]


def test_empty_file(tmp_path):
    write(tmp_path / "c", "train")
    with pytest.raises(CorpusError, match=r"train\.jsonl: nothing for the split 'train' in it"):
        list(load_corpus(tmp_path / "c").split("train"))


def test_nothing_usable_is_an_error_even_when_skipping(tmp_path):
    write(tmp_path / "c", "train", {"a": 1}, {"b": 1})
    with pytest.raises(CorpusError, match=r"none of 2 records can be used; the first: .*line 1"):
        list(load_corpus(tmp_path / "c", errors="skip").split("train"))


def test_damaged_gzip(tmp_path):
    whole = gzip.compress(json.dumps(GOOD).encode() * 100)
    (tmp_path / "train.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CorpusError, match=r"train\.jsonl\.gz: damaged gzip data"):
        list(load_corpus(tmp_path).split("train"))


def test_formats(tmp_path):
    hub = {"article": "One. Two.", "abstract": "Short."}
    (tmp_path / "train.json").write_text(json.dumps([hub, hub]), encoding="utf-8")
    parquet.write_table(pa.Table.from_pylist([hub]), tmp_path / "validation-00000-of-00002.parquet")
    parquet.write_table(pa.Table.from_pylist([hub, hub]), tmp_path / "validation-00001-of-00002.parquet")
    (tmp_path / "test.csv").write_text('document,summary\n"One.\nTwo.",Short.\n', encoding="utf-8")
    corpus = load_corpus(tmp_path)
    assert [len(list(corpus.split(s))) for s in ("train", "val", "test")] == [2, 3, 1]
    assert next(corpus.split("test")).sections == [["One.", "Two."]]


def test_parallel_files_must_be_as_long(tmp_path):
    (tmp_path / "train.src").write_text("One.\nTwo.\n", encoding="utf-8")
    (tmp_path / "train.tgt").write_text("A.\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"train\.tgt: ends before line 2"):
        list(load_corpus(tmp_path).split("train"))


def test_multi_news_articles_are_sections(tmp_path):
    (tmp_path / "train.src").write_text("One. Two. NEWLINE_CHAR Three. ||||| Other.\n", encoding="utf-8")
    (tmp_path / "train.tgt").write_text("A.\n", encoding="utf-8")
    assert next(load_corpus(tmp_path).split("train")).sections == [["One.", "Two.", "Three."], ["Other."]]


def test_limit_and_missing_split(tmp_path):
    write(tmp_path / "c", "train", GOOD, GOOD)
    corpus = load_corpus(tmp_path / "c")
    assert len(list(corpus.split("train", limit=1))) == 1
    with pytest.raises(CorpusError, match="no split 'val'; there are train"):
        corpus.split("val")


def test_records_in_memory():
    document = Document("d", "T", [""], [["One."]], ["S."])
    corpus = Corpus.from_records(train=[GOOD, document], test=iter([GOOD]))
    assert list(corpus.split("train")) == list(corpus.split("train")) == [to_document(GOOD, 1), document]
    assert len(list(corpus.split("test"))) == 1
    with pytest.raises(CorpusError, match="no split 'val'; there are train, test"):
        corpus.split("val")
    other = {**GOOD, "abstract_text": ["Another."]}
    given = (("train", GOOD), ("train", GOOD), ("val", GOOD), ("train", other))
    identities = [Corpus.from_records(**{name: [record]}).identity for name, record in given]
    assert identities[0] == identities[1] and len(set(identities)) == 3
    bad = Corpus.from_records("mine", train=[GOOD, {"a": {1}}])
    with pytest.raises(CorpusError, match="mine, train, line 2: no known pair"):
        list(bad.split("train"))
    assert len(list(Corpus.from_records(train=[GOOD, {"a": {1}}], errors="skip").split("train"))) == 1
    with pytest.raises(CorpusError, match="no record in train, val or test"):
        Corpus.from_records()
    with pytest.raises(CorpusError, match="errors must be"):
        Corpus.from_records(train=[GOOD], errors="ignore")


# ------------------------------------------------------------------------------------------------------ names


def test_aclsum():
    corpus = load_corpus("aclsum")
    documents = {split: list(corpus.split(split)) for split in ("train", "val", "test")}
    assert [len(d) for d in documents.values()] == [100, 50, 100]
    assert all(len(d.sections) == len(d.section_names) > 3 for d in documents["train"])
    for d in documents["test"]:
        abstract = " ".join(d.summary)
        assert not [s for s in d.sentences if len(s) > 60 and s in abstract], "the body holds its abstract"


def test_anthology_year():
    assert [anthology_year(i) for i in ("P19-1234", "W97-0101", "2021.eacl-main.84")] == [2019, 1997, 2021]


def test_unknown_names():
    with pytest.raises(CorpusError, match="did you mean 'aclsum'"):
        load_corpus("aclsun")
    with pytest.raises(CorpusError, match="errors must be 'raise' or 'skip'"):
        load_corpus("aclsum", errors="ignore")


@pytest.mark.parametrize("name", ["newsroom", "wikihow", "gigaword", "duc2004"])
def test_manual_corpora_say_who_must_download_what(name):
    with pytest.raises(CorpusError, match="must be fetched by hand"):
        load_corpus(name)


@pytest.mark.parametrize("name", ["arxiv", "pubmed", "cnn_dailymail", "multi_news"])
def test_the_hub_out_of_reach_is_not_asked_again_and_says_what_to_do(name, monkeypatch, tmp_path):
    monkeypatch.setattr(corpora, "_hub_answers", lambda: False)
    import datasets

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    datasets.disable_progress_bars()
    with pytest.raises(CorpusError) as error:
        load_corpus(name)
    assert datasets.config.HF_HUB_OFFLINE, "so that its client does not try again and again"
    message = str(error.value)
    for part in (corpora.HUB[name].repository, "cannot be reached", "aclsum", "folder", "HF_HOME"):
        assert part in message


def test_a_corpus_of_the_hub_with_a_script_says_what_to_do(monkeypatch):
    import datasets

    def load(*_, **__):
        raise RuntimeError(said)

    monkeypatch.setattr(corpora, "_hub_answers", lambda: True)
    monkeypatch.setattr(datasets, "load_dataset", load)
    said = "Dataset scripts are no longer supported, but found arxiv-summarization.py"
    with pytest.raises(
        CorpusError, match=r"^arxiv: ccdv/arxiv-summarization comes with a script .* Parquet"
    ) as error:
        load_corpus("arxiv")
    assert "\n" not in str(error.value)
    said = "a fault of the program"
    with pytest.raises(RuntimeError, match=said):
        load_corpus("arxiv")


def test_a_clone_of_the_hub_hints_at_its_data(tmp_path):
    """And at every other folder in it that holds a corpus, such as one for each configuration."""
    (tmp_path / "README.md").write_text("A card.", encoding="utf-8")
    table = pd.DataFrame({"document": ["One. Two."], "summary": ["Short."]})
    for folder in ("data", "more", ".git"):
        (tmp_path / folder).mkdir()
        for split in ("train", "validation", "test"):
            table.to_parquet(tmp_path / folder / f"{split}-00000-of-00001.parquet")
    with pytest.raises(CorpusError, match=rf"Did you mean {tmp_path}/data or {tmp_path}/more\?$"):
        load_corpus(tmp_path)
    assert next(load_corpus(tmp_path / "data").split("val")).summary == ["Short."]


def test_hub_rows_are_read(monkeypatch):
    """A corpus of the Hub's layout, built in memory: columns, splits, report."""
    import datasets

    rows = {"arxiv": {"article": ["One. Two."], "abstract": ["Short."]},
            "cnn_dailymail": {"article": ["One. Two."], "highlights": ["Short."], "id": ["x"]},
            "multi_news": {"document": ["One. ||||| Two."], "summary": ["Short."]}}  # fmt: skip
    monkeypatch.setattr(corpora, "_hub_answers", lambda: True)
    for name, columns in rows.items():
        data = datasets.DatasetDict({s: datasets.Dataset.from_dict(columns) for s in ("train", "validation", "test")})
        monkeypatch.setattr(datasets, "load_dataset", lambda *a, d=data, **k: d)
        corpus = load_corpus(name)
        for split in ("train", "val", "test"):
            document = next(corpus.split(split))
            assert document.sentences == ["One.", "Two."]
            assert document.summary == ["Short."]
    assert "no section names" in corpora.HUB["arxiv"].note


# ------------------------------------------------------------------------------------------------ real samples


@pytest.mark.parametrize(
    ("folder", "counts"),
    [
        ("cohan_arxiv", {"train": 2, "val": 2, "test": 2}),
        ("cohan_pubmed", {"train": 2, "val": 2, "test": 2}),
        ("newsroom", {"train": 3, "val": 2, "test": 1}),
        ("wikihow", {"train": 1, "val": 1, "test": 1}),
        ("gigaword/sumdata", {"train": 20, "val": 20}),
        ("multi_news", {"train": 1, "val": 1, "test": 1}),
        ("cnn_dailymail", {"train": 2, "val": 2}),
    ],
)
def test_real_samples(shared, folder, counts):
    corpus = load_corpus(shared / "samples" / folder)
    for split, count in counts.items():
        documents = list(corpus.split(split))
        assert len(documents) == count
        assert all(d.sentences and d.summary for d in documents)


def test_wikihow_steps_are_the_summary(shared):
    document = next(load_corpus(shared / "samples" / "wikihow").split("train"))
    assert document.summary[0] == "Keep related supplies in the same area."
    assert len(document.summary) == 8


@pytest.mark.parametrize("name", ["scisummnet", "pmc", "specs", "sumpubmed", "scitldr"])
def test_real_corpora(shared, name):
    for split in ("train", "val", "test"):
        assert len(list(load_corpus(shared / name).split(split, limit=50))) == 50


def test_a_corpus_can_be_tested_on_another(tmp_path):
    """DUC 2004 has test documents alone: what is trained elsewhere is scored there."""
    for name, splits in (("a", ("train", "val", "test")), ("b", ("test",))):
        (tmp_path / name).mkdir()
        for split in splits:
            line = json.dumps({"id": f"{name}-{split}", "document": "A text.", "summary": "A summary."})
            (tmp_path / name / f"{split}.jsonl").write_text(line + "\n", encoding="utf-8")
    first, other = (load_corpus(tmp_path / name) for name in "ab")
    both = first.tested_on(other)
    assert [d.id for s in ("train", "val", "test") for d in both.split(s)] == ["a-train", "a-val", "b-test"]
    assert both.identity not in (first.identity, other.identity)
    assert [d.id for d in first.split("test")] == ["a-test"], "the first is as it was"
    (tmp_path / "b" / "test.jsonl").rename(tmp_path / "b" / "train.jsonl")
    with pytest.raises(CorpusError, match="no split 'test'; there are train"):
        first.tested_on(load_corpus(tmp_path / "b"))


def test_a_name_comes_before_a_folder_that_is_called_so(tmp_path, monkeypatch, capsys):
    """The folder is a path: with a dot, or as a `Path`."""
    monkeypatch.chdir(tmp_path)
    for name in ("aclsum", "pubmed", "docstrings"):
        (tmp_path / name).mkdir()
        for split in ("train", "val", "test"):
            line = json.dumps({"id": "own", "document": "A text.", "summary": "A summary."})
            (tmp_path / name / f"{split}.jsonl").write_text(line + "\n", encoding="utf-8")
    for own in ("./aclsum", Path("aclsum"), tmp_path / "aclsum", "./docstrings"):
        assert [d.id for d in load_corpus(own).split("test")] == ["own"]
    assert capsys.readouterr().err == ""
    assert next(load_corpus("aclsum").split("test")).id != "own"
    assert capsys.readouterr().err == "aclsum is the corpus of this name; the folder here is ./aclsum\n"
    assert load_corpus("docstrings").name == "docstrings"
    assert "./docstrings" in capsys.readouterr().err
    monkeypatch.setattr("lib.data.corpora._hub", lambda name, *_: name)
    assert load_corpus("pubmed") == "pubmed"


def test_what_is_prepared_in_a_folder_that_is_called_like_a_corpus(tmp_path, monkeypatch):
    """Likewise: the folder is a path."""
    monkeypatch.chdir(tmp_path)
    setup = resolve("mem2mem", "demo")
    setup.prepare(load_corpus("pmc-sample"), 4, folder=tmp_path / "aclsum", progress=False)
    assert setup.open_corpus("./aclsum").name == "pmc-sample"
    assert setup.open_corpus("aclsum", limit=4, progress=False).name == "aclsum"
