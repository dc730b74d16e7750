"""Files to documents: every public layout of a summarization corpus, one record at a time.

A reader is a function of a path that yields `(line number, record)`. Errors name the file and the line.
"""

import codecs
import csv
import gzip
import hashlib
import json
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from lib.data.documents import Absent, CorpusError, Omitted
from lib.data.pieces import Pieces
from lib.data.releases import RELEASES, ordered
from lib.data.text_folders import TEXTS
from lib.data.vocabulary import TITLE_END
from lib.system.errors import InputError
from lib.system.files import of_the_system

Records = Iterator[tuple[int, dict | InputError]]  # an InputError stands for a record that cannot be read


@dataclass(frozen=True)
class Source:
    """Something that holds records of a split: a file or a folder, or the name of what is no file."""

    path: Path | str
    read: Callable[[], Iterable[tuple[int, Any]]]  # line numbers and records
    beside: tuple[Path, ...] = ()  # other files that the records are made of


@contextmanager
def reading(name: Path | str) -> Iterator[None]:
    """Turn what is wrong with a file as a whole into a CorpusError that names it."""
    try:
        yield
    except CorpusError:
        raise
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CorpusError(f"{name}: damaged gzip data ({_in_a_line(error)}). Download or make it again.") from None
    except UnicodeDecodeError as error:
        raise CorpusError(f"{name}: not UTF-8 ({error.reason} at byte {error.start})") from None
    except OSError as error:
        raise CorpusError(of_the_system(error, name)) from None
    except InputError as error:
        raise CorpusError(f"{name}: {error}") from None
    except ValueError as error:
        raise CorpusError(f"{name}: cannot be read ({_in_a_line(error)})") from None


def _in_a_line(error: Exception) -> str:
    return " ".join(str(error).split())


def read_json_lines(path: Path) -> Records:
    """One JSON object a line, plain or gzip-compressed; or in the whole file one JSON array or one object."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        first = file.readline()
        _check_utf16(first, path)
        first = first.removeprefix(codecs.BOM_UTF8)
        if first.strip() == b"{":  # no line of JSON lines is
            yield 1, _read(_parse_file(first + file.read()), path, "object")
            return
        if first.lstrip().startswith(b"["):
            records = _json_array(first, file, path)
            if records is not None:
                yield from enumerate(records, 1)
                return
        file.seek(0)
        for number, line in enumerate(file, 1):
            line = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            if line.strip():
                yield number, parse_json(line)


def _check_utf16(first: bytes, path: Path) -> None:
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise CorpusError(f"{path}: it is in UTF-16. Save it as UTF-8.")


def _json_array(first: bytes, file, path: Path) -> list | None:
    """The records of a file that is one JSON array; None where only the first of its lines looks like one.

    first: the first line, after which `file` stands.
    """
    alone = parse_json(first)
    if isinstance(alone, list):
        return None if any(line.strip() for line in file) else alone
    rest = file.read()
    records = _parse_file(first + rest)
    if isinstance(records, InputError) and isinstance(parse_json(rest.lstrip().split(b"\n", 1)[0]), dict):
        return None
    return _read(records, path, "array")


def _parse_file(data: bytes) -> Any:
    """One value of several lines; a reason says the column alone."""
    return parse_json(data.replace(b"\n", b" ").replace(b"\r", b" "))


def _read(value: Any, path: Path, kind: str) -> Any:
    if isinstance(value, InputError):
        raise CorpusError(f"{path}: {value}. It starts as one JSON {kind}; JSON lines are read too.")
    return value


def parse_json(line: bytes) -> Any:
    """The value of a line of JSON; the reason as an InputError where it cannot be read."""
    if b"\0" in line:
        return InputError("the line holds a null byte")
    try:
        return json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        return InputError(f"not UTF-8: byte {error.start + 1} of the line cannot be decoded")
    except json.JSONDecodeError as error:
        return InputError(f"not JSON: {error.msg} at column {error.colno}")
    except (RecursionError, ValueError) as error:  # a limit of Python's: lists in lists, or digits of a number
        return InputError(f"cannot be read ({error})")


def read_parquet(path: Path) -> Records:
    import pyarrow
    import pyarrow.parquet as parquet

    try:
        number, file = 0, parquet.ParquetFile(path)
        _check_names(file.schema_arrow.names, str(path))
        for batch in file.iter_batches(batch_size=64):
            for record in _rows(batch):
                number += 1
                yield number, record
    except pyarrow.ArrowException as error:
        raise CorpusError(f"{path}: cannot be read ({error})") from None


def _rows(batch) -> list[dict | InputError]:
    """The rows of a table; an InputError for one that holds what Python cannot (a date after the year 9999)."""
    try:
        return batch.to_pylist()
    except (ValueError, OverflowError) as error:
        if batch.num_rows == 1:
            return [InputError(f"a value that cannot be read ({error})")]
        return [row for i in range(batch.num_rows) for row in _rows(batch.slice(i, 1))]


def read_csv(path: Path) -> Records:
    """Rows of a CSV file with a header, each under the number of its first line; quoted fields may hold line breaks.

    Fields are set apart by what the first line has most of: commas, semicolons or tabs. A row must have as many
    fields as the header, and a quote that begins a field must have one that ends it.
    """
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    with open(path, "rb") as file:
        first = file.readline()
    _check_utf16(first, path)
    with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        rows, header = _csv_rows(file, delimiter_of(first)), None
        for number, row in rows:
            if header is None:
                header = _header(row, path)
            else:
                yield number, _csv_record(row, header)


def delimiter_of(header: bytes) -> str:
    """What sets the fields of a CSV file apart: what its first line has most of, commas, semicolons or tabs."""
    return max(",;\t", key=lambda mark: header.count(mark.encode()))


def _csv_rows(file, delimiter: str) -> Iterator[tuple[int, list[str] | InputError]]:
    rows = csv.reader(file, strict=True, delimiter=delimiter)
    while True:
        first = rows.line_num + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            quotes = "a quote that begins a field must have one that ends it, and within they are doubled"
            row = InputError(f"the row goes to line {rows.line_num} and is no CSV ({error}): {quotes}")
        if row:
            yield first, row


def _header(row: list[str] | InputError, path: Path) -> list[str]:
    if isinstance(row, InputError):
        raise CorpusError(f"{path}, header: {row}")
    _check_names(row, f"{path}, header")
    return row


def _check_names(columns: list[str], where: str) -> None:
    if repeated := [name for name in columns if columns.count(name) > 1]:
        raise CorpusError(f"{where}: two columns are named {repeated[0]!r}")


def _csv_record(row: list[str] | InputError, header: list[str]) -> dict | InputError:
    if isinstance(row, InputError):
        return row
    if len(row) != len(header):
        quoted = "a text that holds what sets fields apart, quotes or line breaks must stand in quotes"
        return InputError(f"{len(row)} fields where the header has {len(header)}: {quoted}")
    return _not_utf8("".join(row)) or dict(zip(header, row))


def _not_utf8(text: str) -> InputError | None:
    """The fault of a text that was read with `errors="surrogateescape"`."""
    if found := re.search("[\udc80-\udcff]", text):
        return InputError(f"not UTF-8: it holds the byte {ord(found[0]) - 0xDC00:#x}")
    return None


_JSON_FILES = (".jsonl", ".jsonl.gz", ".json", ".json.gz")
READERS = {**dict.fromkeys(_JSON_FILES, read_json_lines), ".csv": read_csv, ".parquet": read_parquet}


def records_reader(path: Path) -> Callable[[Path], Records] | None:
    """The reader of a file of records, by the end of its name; None for others, which are texts."""
    return next((read for ending, read in READERS.items() if path.name.endswith(ending)), None)


def _lines(path: Path) -> Iterator[str | InputError]:
    """Lines that end in `\\n` or `\\r\\n`, and in nothing else that may be taken for the end of a line."""
    with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="\n") as file:
        for line in file:
            line = line.removesuffix("\n").removesuffix("\r")
            if "\r" in line:
                yield InputError("a carriage return within the line: lines must end in \\n or \\r\\n")
            else:
                yield _not_utf8(line) or line


def _aligned(source: Path, *others: Path) -> Iterator[tuple[int, list[str] | InputError]]:
    """Lines of several files that belong together. Raises CorpusError for files of different lengths."""
    for number, lines in enumerate(zip_longest(_lines(source), *map(_lines, others)), 1):
        for path, line in zip(others, lines[1:]):
            if lines[0] is not None and line is None:
                raise CorpusError(f"{path}: ends before line {number}, which {source.name} has. Download both again.")
            if lines[0] is None and line is not None:
                last = f"line {number - 1}, the last of {source.name}"
                raise CorpusError(f"{path}: goes on after {last}. Download both again.")
        named = zip((source, *others), lines)
        problems = [InputError(f"{path.name}: {line}") for path, line in named if isinstance(line, InputError)]
        yield number, problems[0] if problems else [str(line) for line in lines]


def read_parallel(source: Path, target: Path, *more: Path) -> Records:
    """Line-aligned source and summary files, as Multi-News and Gigaword come; `more` files hold further summaries, as
    DUC 2004 (task 1) is passed on.

    In Multi-News a line holds several articles set apart by `|||||`, and `NEWLINE_CHAR` for line breaks: an article
    becomes a section.
    """
    for number, lines in _aligned(source, target, *more):
        if isinstance(lines, InputError):
            yield number, lines
            continue
        articles = lines[0].replace("NEWLINE_CHAR", "\n").split("|||||")
        record = {**articles_of(articles), "abstract_text": lines[1].strip()}
        yield number, {**record, "more_summaries": lines[2:]}


def articles_of(articles: list[str]) -> dict:
    """Articles as sections; those of a cluster are named by their number."""
    texts = [a.strip() for a in articles if a.strip()]
    names = [f"article {n}" for n in range(1, len(texts) + 1)] if len(texts) > 1 else [""] * len(texts)
    return {"sections": texts, "section_names": names}


def read_wikihow(path: Path, titles: Path, others: tuple[Path, ...] | None = None) -> Records:
    """The articles of `wikihowAll.csv` whose titles a split's list names, cleaned as its authors do.

    The bold line of each step, ended by `.,`, is a sentence of the summary. Articles whose headlines are at least
    0.75 times as long as their text are left out (Koupaee and Wang 2018), and with `others`, the lists of the other
    splits, those that no list names.
    """
    listed = _titles(titles)
    elsewhere = set[str]().union(*map(_titles, others or ()))
    for number, row in read_csv(path):
        if isinstance(row, InputError):
            yield number, row
            continue
        headline, text, title = (row.get(key) or "" for key in ("headline", "text", "title"))
        if _title_key(title) not in listed:
            if others is not None and _title_key(title) not in elsewhere:
                yield number, Omitted("title that no list names")
            continue
        if len(headline) >= 0.75 * len(text):
            yield number, Omitted("headline at least 0.75 times as long as the text" if text.strip() else "no text")
            continue
        steps = [line.strip().rstrip(",").strip() for line in headline.splitlines()]
        body = text.replace(";\n,", "\n").replace("\n,", "\n").replace(" .", ".")
        yield (
            number,
            {"id": title, "title": title, "document": body, "summary": "\n".join(s for s in steps if s)},
        )


def _titles(path: Path) -> set[str]:
    return {_title_key(line) for line in path.read_text(encoding="utf-8-sig").splitlines()}


def _title_key(title: str) -> str:
    return "".join(c for c in title if c.isalnum())


def read_stories(folder: Path, urls: Path) -> Records:
    """CNN/DailyMail as `.story` files: a story's name is the SHA-1 of its url; `@highlight` lines are the summary."""
    stories = {path.stem: path for path in ordered(folder.glob("*_stories/*.story"))}
    for number, url in enumerate(urls.read_text(encoding="utf-8-sig").split(), 1):
        name = hashlib.sha1(url.encode()).hexdigest()
        path = stories.get(name)
        yield number, Absent(f"no file {name}.story of {url}") if path is None else _story(path)


def _story(path: Path) -> dict | InputError:
    try:
        body, *highlights = path.read_text(encoding="utf-8-sig").split("@highlight")
    except (OSError, UnicodeDecodeError) as error:
        return InputError(f"{path.name}: {error}")
    lines = [" ".join(h.split()).rstrip(".") + " ." for h in highlights if h.strip()]
    return {"id": path.stem, "article": body, "highlights": "\n".join(lines)}


def read_shard(path: Path, pieces: Pieces) -> Records:
    """A shard of WikiSum as Liu and Lapata passed it on, ranked and in pieces: a list of {src, tgt, tgt_str}.

    `src` holds the paragraphs, the best first; what stands before `<T>` in one is the title. Only plain data is
    loaded from the file, never code.
    """
    import torch

    try:
        records = torch.load(path, weights_only=True)
    except OSError:
        raise
    except Exception:  # whatever unpickling of the day raises, with advice to load code from the file
        raise CorpusError(f"{path}: not a shard of plain lists and numbers, or damaged. Download it again.") from None
    if not isinstance(records, list):
        raise CorpusError(f"{path}: a {type(records).__name__}, where a shard is a list of {{src, tgt, tgt_str}}")
    for number, record in enumerate(records, 1):
        try:
            yield number, _cluster(record, pieces)
        except (KeyError, TypeError, IndexError, ValueError, OverflowError) as error:
            yield number, InputError(f"not a record of src, tgt and tgt_str ({error!r})")


def _cluster(record: dict, pieces: Pieces) -> dict:
    paragraphs = [pieces.ours(ids).tolist() for ids in record["src"]]
    summary = re.sub(r"</?t>", " ", record["tgt_str"])
    titles = [ids[: ids.index(TITLE_END)] for ids in paragraphs if TITLE_END in ids]
    texts = [pieces.text(ids[ids.index(TITLE_END) + 1 if TITLE_END in ids else 0 :]) for ids in paragraphs]
    title = pieces.text(titles[0]) if titles else ""
    return {"title": title, "paragraphs": texts, "summary": re.split(r"<[Qq]>", summary)}


def shard_pieces(folder: Path) -> Pieces:
    """The SentencePiece model beside WikiSum's shards. Raises CorpusError unless there is one."""
    models = ordered(folder.glob("*.model"))
    if len(models) != 1:
        raise CorpusError(
            f"{folder}: {len(models)} SentencePiece models (*.model) beside the shards, where there must be one: put "
            "the model that was passed on with them there"
        )
    return Pieces.load(models[0])


# ------------------------------------------------------------------------------------------------ a folder's splits

SPLIT_NAMES = {"train": ("train",), "val": ("val", "valid", "validation", "dev"), "test": ("test",)}
_JSON = (*_JSON_FILES, ".txt", ".txt.gz")


def find_split(folder: Path, split_name: str) -> list[Source]:
    """Sources of one split in `folder`; an empty list when there are none.

    Raises CorpusError for a folder where a file of the split should be.
    """
    for name in SPLIT_NAMES[split_name]:
        for find in (_tables, _pairs, _wikihow, _stories, _shards):
            if sources := find(folder, name):
                return sources
    released = next((r for r in (*RELEASES.values(), TEXTS) if r.probe(folder)), None)
    return [Source(folder, partial(released.read, folder, split_name))] if released else []


def _tables(folder: Path, name: str) -> list[Source]:
    for ending in (*_JSON, ".csv", ".parquet"):
        if (path := folder / f"{name}{ending}").is_dir():
            raise CorpusError(f"{path}: a folder, where a file must be: take out what is in it")
    for ending in _JSON:
        path = folder / f"{name}{ending}"
        if path.is_file():
            return [Source(path, partial(read_json_lines, path))]
    shards = ordered([*folder.glob(f"{name}.parquet"), *folder.glob(f"{name}-*.parquet")])
    if shards:
        return [Source(path, partial(read_parquet, path)) for path in shards]
    path = folder / f"{name}.csv"
    return [Source(path, partial(read_csv, path))] if path.is_file() else []


def _pairs(folder: Path, name: str) -> list[Source]:
    layouts = [
        (f"{name}.src", f"{name}.tgt"),  # Multi-News
        (f"{name}.src.txt", f"{name}.tgt.txt"),  # Gigaword, org_data
        (f"{name}.article.txt", f"{name}.title.txt"),  # Gigaword, sumdata
        (f"{name}.article.filter.txt", f"{name}.title.filter.txt"),
    ]
    if name == "test":
        layouts.append(("input.txt", "task1_ref0.txt"))
        references = ordered(folder.glob("task1_ref[0-9].txt"))
        if len(references) > 1 and (folder / "input.txt").is_file():
            return [_aligned_source(folder / "input.txt", *references)]
    for base in (folder, folder / "train", folder / "Giga"):
        for source, target in layouts:
            if (base / source).is_file() and (base / target).is_file():
                return [_aligned_source(base / source, base / target)]
    return []


def _aligned_source(source: Path, *others: Path) -> Source:
    return Source(source, partial(read_parallel, source, *others), others)


def _wikihow(folder: Path, name: str) -> list[Source]:
    path, titles = folder / "wikihowAll.csv", folder / f"all_{name}.txt"
    if not (path.is_file() and titles.is_file()):
        return []
    others = [folder / f"all_{other}.txt" for other in ("val", "test")]
    others = tuple(filter(Path.is_file, others)) if name == "train" else None  # what no list names is counted once
    return [Source(path, partial(read_wikihow, path, titles, others), (titles,))]


def _stories(folder: Path, name: str) -> list[Source]:
    urls = folder / "url_lists" / f"all_{name}.txt"
    if not urls.is_file():
        return []
    return [Source(urls, partial(read_stories, folder, urls), tuple(ordered(folder.glob("*_stories/*.story"))))]


def _shards(folder: Path, name: str) -> list[Source]:
    paths = sorted(ordered(folder.glob(f"*.{name}.*.pt")), key=lambda p: (len(p.name), p.name))
    if not paths:
        return []
    pieces = shard_pieces(folder)
    return [Source(path, partial(read_shard, path, pieces)) for path in paths]
