"""Files of records and texts, one record at a time.

The reader of a file yields (line, record), the reader of a folder (file, line, record). An
InputError instead of a record says why it cannot be read.
"""

import codecs
import csv
import gzip
import json
import re
import shlex
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha1
from itertools import zip_longest
from pathlib import Path
from typing import Any

from lib.data.chats import conversation
from lib.data.documents import SPLITS, CorpusError, Document
from lib.data.record_keys import (
    ALL_SOURCES,
    ALL_SUMMARIES,
    IDS,
    KNOWN_KEYS,
    first_key,
    with_known_keys,
)
from lib.system.errors import InputError
from lib.system.files import of_the_system

# of texts beside a summary
ENDINGS = (
    *(".txt", ".md", ".markdown", ".pdf", ".docx", ".html", ".htm"),
    *(".odt", ".rtf", ".epub", ".pptx", ".tex", ".rst", ".org", ".ipynb"),
)

# lists in a single record
_TEXTS = tuple(key for key in ALL_SOURCES if key not in ("sections", "paragraphs"))

Lines = Iterator[tuple[int, Any]]
Records = Iterator[tuple[Path | str, int, Any]]


@contextmanager
def reading(name: Path | str) -> Iterator[None]:
    """Turn what is wrong with a file as a whole into a CorpusError that names it."""
    try:
        yield
    except CorpusError:
        raise
    except IsADirectoryError:
        raise CorpusError(f"{name}: a folder: give the texts in it, as {name}/*") from None
    except OSError as error:
        raise CorpusError(of_the_system(error, name)) from None
    except UnicodeDecodeError as error:
        is_wide = error.object.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        encoding = "UTF-16" if is_wide else "WINDOWS-1252"
        raise CorpusError(
            f"{name}: not UTF-8, but perhaps {encoding}. Convert it: iconv -f {encoding} -t UTF-8 "
            f"{shlex.quote(str(name))} > NEW; or save it in Excel as CSV UTF-8"
        ) from None
    except (
        ValueError,
        EOFError,
        zlib.error,
        csv.Error,
    ) as error:  # what it holds, not UTF-8, damaged data
        raise CorpusError(f"{name}: {' '.join(str(error).split())}") from None


# The contents of a file that was not fetched: Git LFS's pointer, or a web page.
_NOT_FETCHED = re.compile(
    rb"version https://git-lfs|\s*<(!doctype|html|head|\?xml)|404: Not Found", re.IGNORECASE
)


def check_fetched(path: Path) -> None:
    """Raise CorpusError for a file that only has the name of the wanted one."""
    with open(path, "rb") as file:
        head = file.read(200)
    if _NOT_FETCHED.match(head):
        raise CorpusError(
            f"{path}: not the file, but a web page, or Git LFS's pointer to it (git lfs pull)"
        )


# ---------------------------------------------------------------------------------
# files of records


def parse_json(line: bytes) -> Any:
    """The value of a line of JSON, or the reason why there is none, as an InputError."""
    try:
        return json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        return InputError(f"not JSON in UTF-8: {error}")


def read_json_lines(path: Path) -> Lines:
    """Read JSON lines, plain or gzip-compressed."""
    with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
        yield from json_lines(file)


def json_lines(file: Any) -> Lines:
    """Read an open file of bytes: one JSON object a line, or one value that holds all records, or
    objects over several lines."""
    filled = (line for line in file if line.strip())
    first, second = next(filled, b""), next(filled, b"")
    file.seek(0)
    if first and (not second or isinstance(parse_json(first), InputError)):
        whole = file.read()
        value = parse_json(whole)
        if not isinstance(value, InputError):
            yield from enumerate(records_of(value), 1)
            return
        if objects := list(_objects(whole)):
            yield from objects
            return
        file.seek(0)
    for number, line in enumerate(file, 1):
        if line.strip():
            yield number, parse_json(line)


def _objects(whole: bytes) -> Lines:
    """Read JSON objects that take several lines each, as jq writes them, by the lines in which they
    begin; nothing if there is no first one."""
    try:
        text = whole.decode("utf-8-sig")
    except UnicodeDecodeError:  # the lines are read one by one, so that the error names one
        return
    decoder, end, line = json.JSONDecoder(), 0, 1
    while begin := re.compile(r"\S").search(text, end):
        line += text.count("\n", end, begin.start())
        try:
            value, after = decoder.raw_decode(text, begin.start())
        except (ValueError, RecursionError) as error:
            if end:
                yield line, InputError(f"not JSON in UTF-8: {error}")
            return
        yield line, value
        line += text.count("\n", begin.start(), after)
        end = after


def records_of(value: Any) -> list:
    """The records of a JSON value: a list of them, in a field, by id, or a table by columns, as
    pandas writes them. A chat's turns are one record.

    Raises ValueError for columns of several lengths.
    """
    records = _records_in(value)
    turns = conversation(records)
    return [{"text": turns}] if turns else records


def _records_in(value: Any) -> list:
    if not isinstance(value, dict):
        return value if isinstance(value, list) else [value]
    if isinstance(value.get("columns"), list) and isinstance(value.get("data"), list):
        return [dict(zip(value["columns"], row)) for row in value["data"]]
    if _is_by_columns(value):
        columns = {key: part for key, part in value.items() if isinstance(part, list | dict)}
        from pandas import DataFrame  # half a second, which commands without tables save

        return DataFrame(columns).to_dict("records")
    if not with_known_keys(value).keys() & {*ALL_SOURCES, *ALL_SUMMARIES}:
        lists = [
            part
            for part in value.values()
            if isinstance(part, list) and part and isinstance(part[0], dict)
        ]
        if len(lists) == 1:
            return lists[0]
        if all(isinstance(part, dict) for part in value.values()):
            return [{"id": name, **record} for name, record in value.items()]
    return [value]


def _is_by_columns(value: dict) -> bool:
    """Whether texts and summaries are columns. A record may hold lists of sentences, but has no
    list of ids."""
    value = with_known_keys(value)
    keys = (first_key(value, known) for known in (_TEXTS, ALL_SUMMARIES, IDS))
    texts, summaries, ids = map(value.get, keys)
    if isinstance(texts, list) and isinstance(summaries, list):
        return isinstance(ids, list) or (ids is None and len(texts) == len(summaries) > 1)
    return isinstance(texts, dict) and isinstance(summaries, dict)


def read_parquet(path: Path) -> Lines:
    from pyarrow.parquet import ParquetFile

    rows = (row for batch in ParquetFile(path).iter_batches(64) for row in batch.to_pylist())
    yield from enumerate(rows, 1)


def read_arrow(path: Path) -> Lines:
    """Rows of a file of `datasets.Dataset.save_to_disk`."""
    import pyarrow

    with pyarrow.memory_map(str(path)) as file:
        batches = pyarrow.ipc.open_stream(file)
        rows = (row for batch in batches for row in batch.to_pylist())
        yield from enumerate(rows, 1)


_LONGEST_NAME = 100  # of a column, in characters
_EXCELS_FIRST_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)


def read_csv(path: Path) -> Lines:
    """Rows of a CSV file with a header; quoted fields may hold line breaks.

    A line is that in which a row ends; of a row that cannot be read, that in which it begins.
    """
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    with open(path, encoding="utf-8-sig", newline="") as file:
        head = file.readline()
        excels = _EXCELS_FIRST_LINE.fullmatch(head)
        delimiter = excels[1] if excels else max(",;\t", key=head.count)
        before = 1 if excels else 0  # lines
        if not excels:
            file.seek(0)
        # Many programs write tabs between fields and quote nothing.
        is_quoted = delimiter != "\t" or _is_quoted(path, delimiter)
        quoting = csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE
        rows = csv.reader(file, strict=True, delimiter=delimiter, quoting=quoting)
        names = [name.strip() for name in next(rows, [])]
        longest = max(names, key=len, default="")
        if len(longest) > _LONGEST_NAME and not KNOWN_KEYS & {*map(str.lower, names)}:
            message = (
                f"no header: the first row names the columns, but it has a text ({longest[:40]}"
                "...). Add a first line such as text,summary, with the delimiter of the file, and "
                'set texts in double quotes (")'
            )
            yield rows.line_num + before, InputError(message)
            return
        while True:
            first = rows.line_num + 1
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                yield (
                    first + before,
                    InputError(
                        f'a row that is no CSV ({error}): double the quotes in a field ("") and '
                        "set the field in quotes, as pandas.DataFrame.to_csv does"
                    ),
                )
                continue
            if row and len(row) != len(names):
                yield (
                    rows.line_num + before,
                    InputError("another number of fields than in the header"),
                )
            elif row:
                yield rows.line_num + before, dict(zip(names, row))


def _is_quoted(path: Path, delimiter: str) -> bool:
    """Whether the quotes of a file are those of CSV."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        try:
            for _ in csv.reader(file, strict=True, delimiter=delimiter):
                pass
        except csv.Error:
            return False
    return True


_XSUM_PART = re.compile(r"\[SN\](\S+?)\[SN\]\s*(.*?)\s*(?=\[SN\]|\Z)", re.DOTALL)


def read_xsum(path: Path) -> Lines:
    """An article as XSum's owners release it: each part below its name, as [SN]RESTBODY[SN]."""
    parts = dict(_XSUM_PART.findall(path.read_text(encoding="utf-8-sig")))
    if not parts:
        raise ValueError("no file of XSum: it has no part [SN]RESTBODY[SN]")
    named = {"title": "TITLE", "document": "RESTBODY", "summary": "FIRST-SENTENCE"}
    yield 1, {"id": path.stem} | {key: parts.get(part, "") for key, part in named.items()}


def read_story(path: Path) -> Lines:
    """A story as the owners of CNN/DailyMail release it: a text, and highlights below
    @highlight."""
    text, *highlights = path.read_text(encoding="utf-8-sig").split("@highlight")
    yield 1, {"id": path.stem, "document": text, "summary": "\n\n".join(highlights)}


READERS = {
    **dict.fromkeys((".jsonl", ".jsonl.gz", ".json", ".json.gz"), read_json_lines),
    **dict.fromkeys((".csv", ".tsv"), read_csv),
    ".parquet": read_parquet,
}
SPLIT_READERS = READERS | dict.fromkeys((".txt", ".txt.gz"), read_json_lines)
# of records in folders `train`, `val` and `test`: `save_to_disk` has JSON files of its own there
FOLDER_READERS = {
    ".parquet": read_parquet,
    ".arrow": read_arrow,
    **{ending: READERS[ending] for ending in (".jsonl", ".jsonl.gz", ".csv")},
    ".summary": read_xsum,
    ".story": read_story,
}
PAIRS = [(".src", ".tgt"), (".source", ".target"), (".txt.src", ".txt.tgt")]
PAIRS += [
    (".src.txt", ".tgt.txt"),
    (".article.txt", ".title.txt"),
    (".article.filter.txt", ".title.filter.txt"),
]


SPREADSHEETS = (".xlsx", ".xls", ".ods")
SAVE_AS_CSV = "a spreadsheet: save its table as CSV UTF-8 (.csv)"


def records_reader(path: Path) -> Callable[[Path], Lines] | None:
    """The reader of a file of records, by the end of its name; None for others, which are texts.

    Raises InputError for a spreadsheet.
    """
    if path.suffix.lower() in SPREADSHEETS:
        raise InputError(SAVE_AS_CSV)
    return next((read for ending, read in READERS.items() if path.name.endswith(ending)), None)


# ---------------------------------------------------------------------------------
# files of texts


def read_parallel(source: Path, *summaries: Path) -> Lines:
    """A text a line, and its summaries in the same line of other files."""
    with ExitStack() as stack:
        paths = (source, *summaries)
        files = [
            stack.enter_context(open(path, encoding="utf-8-sig", newline="\n")) for path in paths
        ]
        for number, lines in enumerate(zip_longest(*files), 1):
            if None in lines:
                raise ValueError(
                    f"it has not as many lines as {' and '.join(path.name for path in summaries)}"
                )
            text, summary, *more = (line.strip() for line in lines)
            yield number, {"document": text, "summary": summary, "more_summaries": more}


def text_pairs(folder: Path) -> list[tuple[Path, Path]]:
    """`NAME.txt`, or another file that holds a text, each with its `NAME.summary.txt` or `.md`."""
    pairs = []
    for summary in sorted([*folder.glob("[!.]*.summary.txt"), *folder.glob("[!.]*.summary.md")]):
        name = summary.name.removesuffix(f".summary{summary.suffix}")
        pairs += [
            (text, summary) for ending in ENDINGS if (text := folder / f"{name}{ending}").is_file()
        ][:1]
    return pairs


def pairs_of_split(folder: Path, split_name: str) -> list[tuple[Path, Path]]:
    """Texts and summaries in folders `train`, `val` and `test`, or in one: then one in ten, and at
    least one, is for validation and as many are for the test, by the SHA-1 of their names."""
    if any(text_pairs(folder / name) for name in SPLITS):
        return text_pairs(folder / split_name)
    pairs = sorted(text_pairs(folder), key=lambda pair: sha1(pair[0].stem.encode()).hexdigest())
    tenth = max(1, len(pairs) // 10)
    return {"val": pairs[:tenth], "test": pairs[tenth : 2 * tenth], "train": pairs[2 * tenth :]}[
        split_name
    ]


def read_text_pair(text: Path, summary: Path) -> Lines:
    try:
        document, short = _read_text(text), _read_text(summary)
    except (ValueError, OSError) as error:
        yield 1, InputError(str(error))
        return
    record = {"id": document.id, "title": document.title, "section_names": document.section_names}
    yield 1, {**record, "sections": document.sections, "abstract_text": short.sentences}


def _read_text(path: Path) -> Document:
    """Read a file that holds one text."""
    from lib.data.files import texts_of  # and all formats, which corpora of records do without
    from lib.data.plain_text import parse_text

    (text,) = texts_of(path.read_bytes(), str(path))
    return parse_text(text, path.stem)


# ---------------------------------------------------------------------------------
# folders

SPLIT_NAMES = {"train": ("train",), "val": ("val", "valid", "validation", "dev"), "test": ("test",)}


def read_file(read: Callable[..., Lines], path: Path, *beside: Path) -> Records:
    """Records of a file and of those `beside` it."""
    with reading(path):
        for file in () if read is read_text_pair else (path, *beside):  # a text may be a web page
            check_fetched(file)
        for line, record in read(path, *beside):
            yield path, line, record


def read_each(paths: Iterable[Path], read: Callable[[Path], Iterable]) -> Records:
    """Yield the records of each file, or why it cannot be read."""
    for path in paths:
        try:
            for record in read(path):
                yield path, 1, record
        except (ValueError, OSError) as error:
            yield path, 1, InputError(str(error))


def layout(folder: Path, split_name: str) -> list[tuple]:
    """The calls of `read_file` that read a split of a folder of {train,val,test} files: a reader
    and its files."""
    for name in SPLIT_NAMES[split_name]:
        for ending, read in SPLIT_READERS.items():
            if files := sorted(
                [*folder.glob(f"{name}{ending}"), *folder.glob(f"{name}-*{ending}")]
            ):
                return [(read, file) for file in files]
        for endings in PAIRS:
            pair = [folder / f"{name}{ending}" for ending in endings]
            if all(file.is_file() for file in pair):
                return [(read_parallel, *pair)]
        for ending, read in FOLDER_READERS.items():
            if files := sorted((folder / name).glob(f"[!.]*{ending}")):
                return [(read, file) for file in files]
    references = sorted(folder.glob("task1_ref[0-9].txt")) if split_name == "test" else []
    if references:
        return [(read_parallel, folder / "input.txt", *references)]
    return [(read_text_pair, *pair) for pair in pairs_of_split(folder, split_name)]


def read_folder(folder: Path, split_name: str) -> Records | None:
    """Records of a split in a folder of {train,val,test} files; None where there is none."""
    calls = layout(folder, split_name)
    return (record for call in calls for record in read_file(*call)) if calls else None


def holds_records(folder: Path, split_name: str) -> bool:
    """Whether the files of a split hold records, whose form is not known, and no texts."""
    return all(
        read not in (read_text_pair, read_parallel) for read, *_ in layout(folder, split_name)
    )


# The Hub's older files end in a hash, another one in each part.
_PART = re.compile(
    r"(?P<start>.*-)(?P<number>\d+)-of-(?P<total>\d+)(?:-[0-9a-f]{8,})?(?P<end>\..*)"
)


def missing_files(folder: Path) -> list[str]:
    """Name the parts of splits ("train-00001-of-00004.parquet") that are not there."""
    missing = []
    for split_name in SPLITS:
        files = [file for _, *own in layout(folder, split_name) for file in own]
        parts = [part for file in files if (part := _PART.fullmatch(file.name))]
        if parts:
            part, there = parts[0], {int(part["number"]) for part in parts}
            absent = sorted({*range(int(part["total"]))} - there)
            width = len(part["number"])
            names = [f"{part['start']}{n:0{width}}-of-{part['total']}{part['end']}" for n in absent]
            if names:
                more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
                missing.append(
                    f"{names[0]}{more} ({len(there):,} of the {int(part['total']):,} parts of "
                    f"{split_name} are read)"
                )
    return missing


# {"train": [{...}]}; with ids of documents instead of records, it is a list of XSum's.
_BY_SPLIT = re.compile(rb'"(?:train|val|valid|validation|dev|test)"\s*:\s*[\[{][^\[\]{}]*\{')


def advice_on(folder: Path) -> str:
    """Say what to do with a folder without splits, as a sentence, if it is known."""
    if (folder / "state.json").is_file():
        return (
            "It is one `datasets.Dataset` without splits: split it by `train_test_split`, and save "
            "the `DatasetDict` with the splits train, validation and test. "
        )
    for path in sorted(folder.glob("[!.]*.json")):
        with open(path, "rb") as file:
            if _BY_SPLIT.search(file.read(1000)):
                return (
                    f"{path.name} holds the splits by their names: write each to a file of its "
                    f"own, as jq .train {shlex.quote(path.name)} > train.json. "
                )
    for ending, kind in ((".summary", "XSum's articles"), (".story", "CNN/DailyMail's stories")):
        if next(folder.glob(f"*{ending}"), None):
            return (
                f"{kind} without splits, it seems: move the {ending} files into folders train, "
                "validation and test, as its list of splits names them. "
            )
    for path in sorted(folder.glob("[!.]*")):
        if path.name.endswith((".csv", ".tsv", ".jsonl")) and _has_split_column(path):
            return (
                f"{path.name} has a column 'split': write the rows of each split to a file of its "
                "own, such as train.csv, val.csv and test.csv. "
            )
    inside = [path for path in sorted(folder.glob("[!.]*")) if path.is_dir()]
    if found := [path for path in inside if any(layout(path, name) for name in SPLITS)]:
        return f"There are some one folder down: give {found[0]}. "
    words = (_SPLIT_WORD.search(path.name) for path in folder.glob("[!.]*") if path.is_file())
    named = {_split_of(word) for word in words if word}
    if named and (absent := [name for name in SPLITS if name not in named]):
        return f"No file is for {' or '.join(absent)}: move records of another split into one. "
    return ""


def _has_split_column(path: Path) -> bool:
    with open(path, "rb") as file:
        head = file.readline(1000).decode(errors="replace").strip("{\ufeff\r\n")
    names = re.split(r"[,;\t:]", head)
    return "split" in [name.strip(" \"'").lower() for name in names]


_SPLIT_WORD = re.compile(
    r"(?<![a-z])(train|val|dev|test)(?:ing|id|idat(?:ion|ing))?(?![a-z])", re.IGNORECASE
)


def unread_files(folder: Path) -> list[str]:
    """Name the files that look like those of a split and are not read, each with the reason or what
    to do."""
    read = {name: [file for _, *files in layout(folder, name) for file in files] for name in SPLITS}
    known, unread = {file for files in read.values() for file in files}, {}
    for file in sorted(folder.glob("[!.]*")):
        if (word := _SPLIT_WORD.search(file.name)) and file.is_file():
            name = _split_of(word)
            unread[file] = (
                f"{read[name][0].name} is"
                if read[name]
                else _better_name(name, file.name[word.end() :])
            )
    for advice, count in Counter(unread.values()).items():
        if count > 1 and advice.startswith("name it"):  # two files with one name
            for file in [file for file, why in unread.items() if why == advice]:
                unread[file] = f"{advice}, if you want this one of {count}"
    for place in {file.parent for file in known if ".summary." in file.name}:
        for file in sorted(place.glob("[!.]*")):
            if file.suffix in ENDINGS and not file.stem.upper().startswith(("README", "LICENSE")):
                unread[file] = "without a text" if ".summary." in file.name else "without a summary"
    return [
        f"{file.relative_to(folder)} ({why})" for file, why in unread.items() if file not in known
    ]


def _split_of(word: re.Match[str]) -> str:
    return word[1].lower().replace("dev", "val")


def _better_name(split_name: str, ending: str) -> str:
    """Advise a name for a file of a split, whose name ends so."""
    if ending.endswith(".bert.pt"):
        return (
            "PreSumm's, numbers of BERT's word pieces, not texts: give the texts that they were "
            "made from"
        )
    if ending.lower().endswith(SPREADSHEETS):
        return f"{SAVE_AS_CSV}, as {split_name}.csv"
    for known in READERS:
        if ending.endswith(known):
            return f"name it {split_name}{known}"
    for known in (end for pair in PAIRS for end in pair):
        if ending.endswith(known):
            return f"name it {split_name}{known}, or its pair is missing"
    return "no layout that is known"
