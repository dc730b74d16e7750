"""Files and records that are damaged or odd: each is refused by file and line, or left out alone."""

import datetime
import gzip
import hashlib
import json
import re
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import torch

from lib.data.corpora import Corpus, load_corpus
from lib.data.documents import CorpusError, to_document
from lib.data.pieces import Pieces, _sample
from lib.data.readers import read_csv, read_json_lines, read_parquet

GOOD = {"text": "One two. Three.", "summary": "Short."}


def outcome(folder, split_name: str = "train") -> tuple[str, int, list[tuple[int, str]]]:
    """What `errors="raise"` says, how many documents `errors="skip"` leaves, and what it leaves out: line, reason."""
    with pytest.raises(CorpusError) as error:
        list(load_corpus(folder).split(split_name))
    corpus = load_corpus(folder, errors="skip")
    count = len(list(corpus.split(split_name)))
    return str(error.value), count, [(s.line, s.reason) for s in corpus.skipped]


# --------------------------------------------------------------------------------------------------- JSON records


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[" * 100_000, "maximum recursion depth"),
        ('{"a":' * 100_000, "maximum recursion depth"),
        ('{"text": ' + "[" * 50_000 + "]" * 50_000 + ', "summary": "x"}', "maximum recursion depth"),
        ('{"text": "a b", "summary": "x", "n": ' + "9" * 5_000 + "}", "the limit (4300 digits)"),
        (r'{"text": "a \udfff b", "summary": "x"}', r"'text' holds '\udfff', half of a character"),
        (r'{"id": "\ud800", "text": "a b", "summary": "x"}', r"'id' holds '\ud800', half of a character"),
        ('{"text": 5, "summary": "x"}', "'text' must hold text, found int"),
        ('{"text": "a b", "summary": 3.5}', "'summary' must hold text, found float"),
        ('{"sections": [5], "abstract_text": "x"}', "'sections' must hold text, found int"),
        ('{"sections": 7, "abstract_text": "x"}', "must be a list of lists of sentences, found int"),
        ('{"text": "a b", "summary": "x", "more_summaries": 3}', "must be a list of summaries, found int"),
        ('{"text": "a b", "summary": "x", "more_summaries": "abc"}', "must be a list of summaries, found str"),
        ("[1, 2]", "expected an object with a source and a summary, found list"),
    ],
)
def test_a_damaged_line(tmp_path, line, reason):
    """Wherever it stands: the file and the line are named, or that record alone is left out."""
    good = json.dumps(GOOD)
    for number, lines in ((1, [line, good, good]), (2, [good, line, good]), (3, [good, good, line])):
        (tmp_path / "train.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        error, count, left_out = outcome(tmp_path)
        assert f"train.jsonl, line {number}: " in error and reason in error
        assert count == 2 and [(n, reason in why) for n, why in left_out] == [(number, True)]


def test_half_a_character_is_no_text_but_the_whole_is(tmp_path):
    (tmp_path / "train.jsonl").write_text(r'{"text": "a \ud83d\ude00 b", "summary": "x"}', encoding="utf-8")
    assert next(load_corpus(tmp_path).split("train")).sections == [["a \U0001f600 b"]]


def test_further_summaries_may_be_null():
    assert to_document({**GOOD, "more_summaries": None}).more_summaries == []
    assert to_document({**GOOD, "more_summaries": ["a b.", ["c", "d"]]}).more_summaries == [["a b."], ["c", "d"]]


def test_arrays_and_lines_that_look_like_one(tmp_path):
    path, good = tmp_path / "a.json", json.dumps(GOOD)
    for text in (f"[{good},{good}]", f"[{good},{good}]\n\n", f"[\n{good},\n{good}\n]\n", f"\ufeff[{good},\n{good}]"):
        path.write_text(text, encoding="utf-8")
        assert list(read_json_lines(path)) == [(1, GOOD), (2, GOOD)]
    path.write_text(f"[{good}]\n{good}\n", encoding="utf-8")
    assert list(read_json_lines(path)) == [(1, [GOOD]), (2, GOOD)]
    path.write_text(f"[{good},\n{good},\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"a\.json: not JSON: .* It starts as one JSON array"):
        list(read_json_lines(path))
    path.write_text(f"[{good},\n" + "[" * 100_000, encoding="utf-8")
    with pytest.raises(CorpusError, match=r"a\.json: .*maximum recursion depth"):
        list(read_json_lines(path))


@pytest.mark.parametrize("name", ["a.json", "a.jsonl.gz"])
def test_one_object_over_several_lines(tmp_path, name):
    path = tmp_path / name
    save = gzip.compress if name.endswith("gz") else bytes
    path.write_bytes(save(f"\ufeff{json.dumps(GOOD, indent=2)}\n".encode()))
    assert list(read_json_lines(path)) == [(1, GOOD)]
    path.write_bytes(save(json.dumps(GOOD, indent=2).encode() * 2))
    with pytest.raises(CorpusError, match=r"a\.json.*: not JSON: .* It starts as one JSON object"):
        list(read_json_lines(path))


def test_records_in_memory_that_json_cannot_hold():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    circle: dict = {"summary": "x"}
    circle["text"] = circle
    number = {**GOOD, "id": 10**5_000}
    corpus = Corpus.from_records(train=[GOOD, {**GOOD, "text": deep}, circle, number], errors="skip")
    assert len(list(corpus.split("train"))) == 1
    assert [s.line for s in corpus.skipped] == [2, 3, 4] and "4300 digits" in corpus.skipped[2].reason


# ---------------------------------------------------------------------------------------------------------- files


def test_a_mark_of_byte_order_is_no_text(tmp_path):
    mark = "\ufeff"
    (tmp_path / "train.jsonl").write_text(mark + json.dumps(GOOD), encoding="utf-8")
    (tmp_path / "val.csv").write_text(f"{mark}text,summary\na b,c\n", encoding="utf-8")
    (tmp_path / "test.src").write_text(f"{mark}a b\n", encoding="utf-8")
    (tmp_path / "test.tgt").write_text(f"{mark}c\n", encoding="utf-8")
    corpus = load_corpus(tmp_path)
    found = {name: next(corpus.split(name)) for name in ("train", "val", "test")}
    assert found["train"].sections == [["One two.", "Three."]]
    assert found["val"].sections == found["test"].sections == [["a b"]] and found["test"].summary == ["c"]
    (tmp_path / "train.jsonl").write_bytes(json.dumps(GOOD).encode("utf-16"))
    with pytest.raises(CorpusError, match=r"train\.jsonl: it is in UTF-16"):
        list(load_corpus(tmp_path).split("train"))


def test_the_splits_that_ids_repeat_in_are_counted(tmp_path):
    records = [{**GOOD, "id": name} for name in ("a", "b", "a", "a")]
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    (tmp_path / "val.jsonl").write_text(json.dumps(records[0]), encoding="utf-8")
    corpus = load_corpus(tmp_path)
    assert [len(list(corpus.split(name))) for name in ("train", "val")] == [4, 1]
    assert corpus.repeated == ["a", "a"]
    assert "2 documents have the id of an earlier one in their split, such as 'a'" in corpus.report()
    parts = [pa.Table.from_pylist([GOOD] * 2)] * 2
    for number, part in enumerate(parts):
        parquet.write_table(part, tmp_path / f"test-{number}.parquet")
    corpus = load_corpus(tmp_path)
    assert [d.id for d in corpus.split("test")] == ["1", "2", "3", "4"] and not corpus.repeated


@pytest.mark.parametrize(
    ("row", "reason", "lost"),
    [
        (b'"text 3,s3', r"the row goes to line 6 and is no CSV .*a quote that begins a field must", 2),
        (b'"te"xt 3,s3', r"the row goes to line 5 and is no CSV", 1),
        (b"text, 3,s3", "3 fields where the header has 2: a text that holds what sets fields apart", 1),
        (b"text 3", "1 fields where the header has 2", 1),
        ("caf\u00e9 3,s3".encode("latin-1"), "not UTF-8: it holds the byte 0xe9", 1),
        (b"text\0 3,s3", "'document' holds a null byte", 1),
    ],
)
def test_a_damaged_row(tmp_path, row, reason, lost):
    """The row is named by its first line, and no other is lost but those that stand within its quotes."""
    rows = [f'"text {i}",s{i}'.encode() for i in range(20)]
    rows[3] = row
    (tmp_path / "train.csv").write_bytes(b"document,summary\n" + b"\n".join(rows) + b"\n")
    error, count, left_out = outcome(tmp_path)
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(error)
    assert "train.csv, line 5: " in error and count == 20 - lost and [line for line, _ in left_out] == [5]


def test_a_quote_that_never_ends(tmp_path):
    (tmp_path / "train.csv").write_text('document,summary\na b,c\n"d e,f\n' + "g h,i\n" * 50, encoding="utf-8")
    error, count, _ = outcome(tmp_path)
    assert "line 3: the row goes to line 53 and is no CSV (unexpected end of data)" in error and count == 1


def test_rows_of_csv(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('a,b\r\n"x, ""y""\r\nz",1\r\n\r\n5" pipe,2\r\n', newline="", encoding="utf-8")
    assert list(read_csv(path)) == [(2, {"a": 'x, "y"\r\nz', "b": "1"}), (5, {"a": '5" pipe', "b": "2"})]
    path.write_text("a,b\rx,1\ry,2\r", newline="", encoding="utf-8")
    assert [record for _, record in read_csv(path)] == [{"a": "x", "b": "1"}, {"a": "y", "b": "2"}]
    path.write_text('a;b;"c,d"\n"x; y";1;2,3\n', encoding="utf-8")
    assert list(read_csv(path)) == [(2, {"a": "x; y", "b": "1", "c,d": "2,3"})]
    path.write_text("a\tb\nx; y, z\t1\n", encoding="utf-8")
    assert list(read_csv(path)) == [(2, {"a": "x; y, z", "b": "1"})]
    path.write_text("a,b\nx,1\n", encoding="utf-16")
    with pytest.raises(CorpusError, match=r"x\.csv: it is in UTF-16\. Save it as UTF-8"):
        list(read_csv(path))
    path.write_text("a,a\nx,1\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"x\.csv, header: two columns are named 'a'"):
        list(read_csv(path))
    path.write_text('"a,b\nx,1\n', encoding="utf-8")
    with pytest.raises(CorpusError, match=r"x\.csv, header: the row goes to line 2"):
        list(read_csv(path))


def test_aligned_files_have_one_kind_of_line_end(tmp_path):
    """What a terminal, a printer or Unicode takes for the end of a line is none."""
    (tmp_path / "input.txt").write_text("a b.\nc d.\u2028e\n", encoding="utf-8")
    (tmp_path / "task1_ref0.txt").write_text("h0\nh1\x85h2\n", encoding="utf-8")
    (tmp_path / "task1_ref1.txt").write_text("g0\x0cx\ng1\r\n", newline="", encoding="utf-8")
    found = list(load_corpus(tmp_path).split("test"))
    assert [d.more_summaries[0][0] for d in found] == ["g0", "g1"] and len(found) == 2
    (tmp_path / "task1_ref1.txt").write_text("g0\ng1\ng2\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"task1_ref1\.txt: goes on after line 2, the last of input\.txt"):
        list(load_corpus(tmp_path).split("test"))
    (tmp_path / "task1_ref1.txt").write_text("g0\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"task1_ref1\.txt: ends before line 2, which input\.txt has"):
        list(load_corpus(tmp_path).split("test"))


@pytest.mark.parametrize("which", ["src", "tgt"])
@pytest.mark.parametrize(("text", "reason"), [(b"a\rb", "a carriage return"), (b"a\xffb", "it holds the byte 0xff")])
def test_a_damaged_line_of_aligned_files(tmp_path, which, text, reason):
    for ending in ("src", "tgt"):
        lines = [b"one", text if ending == which else b"two", b"three"]
        (tmp_path / f"train.{ending}").write_bytes(b"\n".join(lines) + b"\n")
    error, count, left_out = outcome(tmp_path)
    assert "train.src, line 2: " in error and f"train.{which}: " in error and reason in error
    assert count == 2 and [line for line, _ in left_out] == [2]


def test_values_that_python_cannot_hold(tmp_path):
    """A date after the year 9999 in a column that nobody asks for: that row alone."""
    days = pa.array([0, 10**9, 1, None], pa.int32()).cast(pa.date32())
    texts = pa.array([GOOD["text"]] * 4)
    parquet.write_table(pa.table({"text": texts, "summary": texts, "day": days}), tmp_path / "train.parquet")
    error, count, left_out = outcome(tmp_path)
    assert "train.parquet, line 2: a value that cannot be read" in error
    assert count == 3 and [line for line, _ in left_out] == [2]
    rows = [row for _, row in read_parquet(tmp_path / "train.parquet")]
    assert rows[2]["day"] == datetime.date(1970, 1, 2)


def test_two_columns_of_one_name(tmp_path):
    one = pa.array([GOOD["text"]])
    parquet.write_table(pa.table([one, one, one], names=["text", "text", "summary"]), tmp_path / "train.parquet")
    for errors in ("raise", "skip"):
        with pytest.raises(CorpusError, match=r"train\.parquet: two columns are named 'text'"):
            list(load_corpus(tmp_path, errors).split("train"))


def test_stories_that_are_not_there(tmp_path):
    """CNN's without the Daily Mail's: what the lists name and no folder holds is counted."""
    urls = ["http://a.example/1", "http://a.example/2"]
    for folder in ("url_lists", "cnn_stories"):
        (tmp_path / folder).mkdir()
    (tmp_path / "url_lists" / "all_train.txt").write_text("\n".join(urls), encoding="utf-8")
    there, missing = (hashlib.sha1(url.encode()).hexdigest() for url in urls)
    (tmp_path / "cnn_stories" / f"{there}.story").write_text(
        "A text of two.\n\n@highlight\n\nTwo words", encoding="utf-8"
    )
    for errors in ("raise", "skip"):
        corpus = load_corpus(tmp_path, errors)
        assert len(list(corpus.split("train"))) == 1 and "1 record was left out: " in corpus.remarks()
        assert f"all_train.txt, line 2: no file {missing}.story of {urls[1]}" in corpus.remarks()


def test_a_folder_in_place_of_a_file(tmp_path):
    (tmp_path / "train.jsonl").mkdir()
    (tmp_path / "val.jsonl").write_text(json.dumps(GOOD), encoding="utf-8")
    with pytest.raises(CorpusError, match=r"train\.jsonl: a folder, where a file must be"):
        load_corpus(tmp_path)


def test_paths_that_cannot_be(tmp_path):
    with pytest.raises(CorpusError, match="can be no folder"):
        load_corpus("x" * 5_000)
    with pytest.raises(CorpusError, match="can be no folder"):
        load_corpus("~nobody-of-this-name/corpus")
    with pytest.raises(CorpusError, match="no corpus or folder"):
        load_corpus("a\0b")


def test_a_corpus_whose_files_go_while_it_is_opened(tmp_path, monkeypatch):
    (tmp_path / "train.jsonl").write_text(json.dumps(GOOD), encoding="utf-8")

    def gone(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("lib.data.corpora.contents_digest", gone)
    with pytest.raises(CorpusError, match=f"^{re.escape(str(tmp_path))}: Permission denied$"):
        load_corpus(tmp_path)


def test_a_limit_is_at_least_one(tmp_path):
    (tmp_path / "train.jsonl").write_text(json.dumps(GOOD), encoding="utf-8")
    for limit in (0, -1):
        with pytest.raises(CorpusError, match=f"limit must be at least 1, not {limit}"):
            load_corpus(tmp_path).split("train", limit)


# ------------------------------------------------------------------------------------------ shards, and their pieces


@pytest.fixture
def shards(tmp_path):
    """A folder with a SentencePiece model, and what writes a shard beside it."""
    Pieces.train(["one two three four five six"] * 9, 30).save(tmp_path / "x.model")

    def write(records):
        torch.save(records, tmp_path / "WIKI.train.0.pt")
        return tmp_path

    return write


GOOD_CLUSTER = {"src": [[10, 11], [12]], "tgt_str": "a <q> b"}


@pytest.mark.parametrize(
    "record",
    [
        None, [], {"src": []}, {**GOOD_CLUSTER, "tgt_str": None}, {**GOOD_CLUSTER, "src": None},
        {**GOOD_CLUSTER, "src": [[10**9]]}, {**GOOD_CLUSTER, "src": [[10**30]]}, {**GOOD_CLUSTER, "src": [[-1]]},
        {**GOOD_CLUSTER, "src": [["a"]]}, {**GOOD_CLUSTER, "src": [[[10]]]}, {**GOOD_CLUSTER, "src": [3]},
        {**GOOD_CLUSTER, "src": [[1.5]]}, {**GOOD_CLUSTER, "tgt_str": ""}, {**GOOD_CLUSTER, "src": []},
    ],
)  # fmt: skip
def test_a_damaged_cluster(shards, record):
    folder = shards([GOOD_CLUSTER, record, GOOD_CLUSTER])
    error, count, left_out = outcome(folder)
    assert "WIKI.train.0.pt, line 2: " in error and count == 2 and [line for line, _ in left_out] == [2]


def test_a_damaged_shard(shards):
    for odd in ({}, {"a": 1}, 3, None, torch.zeros(3)):
        with pytest.raises(CorpusError, match=r"WIKI\.train\.0\.pt: a \w+, where a shard is a list of"):
            list(load_corpus(shards(odd)).split("train"))
    with pytest.raises(CorpusError, match=r"WIKI\.train\.0\.pt: nothing for the split 'train'"):
        list(load_corpus(shards([])).split("train"))
    folder = shards([GOOD_CLUSTER])
    whole = (folder / "WIKI.train.0.pt").read_bytes()
    for data in (b"", b"hello", whole[:100], b"\x80\x02cos\nsystem\n."):
        (folder / "WIKI.train.0.pt").write_bytes(data)
        with pytest.raises(CorpusError, match=r"not a shard of plain lists and numbers, or damaged") as error:
            list(load_corpus(folder).split("train"))
        assert "weights_only" not in str(error.value) and "trust" not in str(error.value)
    (folder / "x.model").write_bytes(b"")
    with pytest.raises(CorpusError, match=r"x\.model: not a SentencePiece model, or damaged"):
        load_corpus(folder)


@pytest.mark.parametrize(
    "texts", [[], [""], [" \t\u00a0\x0c"], ["\x01"], ["a" * 100_000], ["漢字かな交じり文です"], ["\udfff"]]
)
def test_texts_without_pieces(texts):
    with pytest.raises(
        CorpusError, match=r"8 pieces cannot be learned .* Take more documents, or a larger vocab_size"
    ):
        Pieces.train(texts, 8)


def test_an_error_in_the_texts_of_pieces_is_not_lost(tmp_path):
    """A file that turns out to be damaged while pieces are learned from it."""

    def texts():
        yield from ["one two three four"] * 20
        raise CorpusError("line 21")

    with pytest.raises(CorpusError, match="line 21"):
        Pieces.train(texts(), 30)


def test_pieces_are_the_same_on_every_machine(monkeypatch):
    texts = [f"{a}{b} {b}{a}tion of {a}" for a in "abcdefgh" for b in ("st", "ing", "old", "er")] * 3
    found = []
    for count in (1, 2, 7):
        monkeypatch.setattr("os.cpu_count", lambda count=count: count)
        found.append(Pieces.train(texts, 60).model)
    assert found[0] == found[1] == found[2]


def test_pieces_of_a_sample_are_the_same_in_every_process():
    """SentencePiece itself would choose other texts in each."""
    code = (
        "from lib.data.pieces import Pieces; texts = [f'{n:05d}' for n in range(9000)]; "
        "print(Pieces.train(texts, 60, most=40).words)"
    )
    found = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for _ in "ab"
    }
    assert len(found) == 1 and "0" in found.pop()


def test_every_text_has_the_same_chance():
    texts = [str(n) for n in range(1000)]
    assert _sample(texts, 1000) == texts and _sample([], 5) == []
    kept = _sample(texts, 500)
    assert len(set(kept)) == 500 and 200 < sum(int(t) < 500 for t in kept) < 300
