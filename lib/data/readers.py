"""Files of records and texts, one record at a time.

The reader of a file yields (line, record), the reader of a folder (file, line, record). An InputError instead of a
record says why it cannot be read.
"""

import csv
import gzip
import json
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha1
from itertools import zip_longest
from pathlib import Path
from typing import Any

from lib.data.documents import SPLITS, CorpusError
from lib.data.files import ENDINGS, texts_of
from lib.data.plain_text import parse_text
from lib.system.errors import InputError
from lib.system.files import of_the_system

Lines = Iterator[tuple[int, Any]]
Records = Iterator[tuple[Path | str, int, Any]]


@contextmanager
def reading(name: Path | str) -> Iterator[None]:
    """Turn what is wrong with a file as a whole into a CorpusError that names it."""
    try:
        yield
    except CorpusError:
        raise
    except OSError as error:
        raise CorpusError(of_the_system(error, name)) from None
    except (ValueError, EOFError, zlib.error, csv.Error) as error:  # what it holds, not UTF-8, damaged data
        raise CorpusError(f"{name}: {' '.join(str(error).split())}") from None


# ----------------------------------------------------------------------------------------------- files of records


def parse_json(line: bytes) -> Any:
    """The value of a line of JSON, or the reason why there is none, as an InputError."""
    try:
        return json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        return InputError(f"not JSON in UTF-8: {error}")


def read_json_lines(path: Path) -> Lines:
    """One JSON object a line, plain or gzip-compressed; a .json file may be one JSON array or object."""
    with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
        if ".json" in path.suffixes:
            data = file.read()
            whole = parse_json(data)
            if not isinstance(whole, InputError):
                yield from enumerate(whole if isinstance(whole, list) else [whole], 1)
                return
            file.seek(0)
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, parse_json(line)


def read_parquet(path: Path) -> Lines:
    from pyarrow.parquet import ParquetFile

    rows = (row for batch in ParquetFile(path).iter_batches(64) for row in batch.to_pylist())
    yield from enumerate(rows, 1)


def read_csv(path: Path) -> Lines:
    """Rows of a CSV file with a header; quoted fields may hold line breaks."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    with open(path, encoding="utf-8-sig", newline="") as file:
        delimiter = max(",;\t", key=file.readline().count)
        file.seek(0)
        rows = csv.DictReader(file, strict=True, delimiter=delimiter)
        for row in rows:  # what has no name has the key None, what is missing the value None
            is_whole = None not in row and None not in row.values()
            yield rows.line_num, row if is_whole else InputError("another number of fields than in the header")


READERS = {
    **dict.fromkeys((".jsonl", ".jsonl.gz", ".json", ".json.gz"), read_json_lines),
    ".csv": read_csv,
    ".parquet": read_parquet,
}


def records_reader(path: Path) -> Callable[[Path], Lines] | None:
    """The reader of a file of records, by the end of its name; None for others, which are texts."""
    return next((read for ending, read in READERS.items() if path.name.endswith(ending)), None)


# ------------------------------------------------------------------------------------------------- files of texts


def read_parallel(source: Path, *summaries: Path) -> Lines:
    """A text a line, and its summaries in the same line of other files.

    In Multi-News a line holds several articles between `|||||`, and `NEWLINE_CHAR` for line breaks.
    """
    with ExitStack() as stack:
        paths = (source, *summaries)
        files = [stack.enter_context(open(path, encoding="utf-8-sig", newline="\n")) for path in paths]
        for number, lines in enumerate(zip_longest(*files), 1):
            if None in lines:
                raise ValueError(f"it has not as many lines as {' and '.join(path.name for path in summaries)}")
            text, summary, *more = (line.strip() for line in lines)
            articles = text.replace("NEWLINE_CHAR", "\n").split("|||||")
            yield number, {**articles_of(articles), "abstract_text": summary, "more_summaries": more}


def articles_of(articles: list[str]) -> dict:
    """Articles as sections; those of a cluster are named by their number."""
    texts = [a.strip() for a in articles if a.strip()]
    names = [f"article {n}" for n in range(1, len(texts) + 1)] if len(texts) > 1 else [""] * len(texts)
    return {"sections": texts, "section_names": names}


def text_pairs(folder: Path) -> list[tuple[Path, Path]]:
    """`NAME.txt`, or another file that holds a text, each with its `NAME.summary.txt` or `.md`."""
    pairs = []
    for summary in sorted([*folder.glob("[!.]*.summary.txt"), *folder.glob("[!.]*.summary.md")]):
        name = summary.name.removesuffix(f".summary{summary.suffix}")
        pairs += [(text, summary) for ending in ENDINGS if (text := folder / f"{name}{ending}").is_file()][:1]
    return pairs


def pairs_of_split(folder: Path, split_name: str) -> list[tuple[Path, Path]]:
    """Texts and summaries in folders `train`, `val` and `test`, or in one: then one in ten, and at least one, is for
    validation and as many are for the test, by the SHA-1 of their names."""
    if any(text_pairs(folder / name) for name in SPLITS):
        return text_pairs(folder / split_name)
    pairs = sorted(text_pairs(folder), key=lambda pair: sha1(pair[0].stem.encode()).hexdigest())
    tenth = max(1, len(pairs) // 10)
    return {"val": pairs[:tenth], "test": pairs[tenth : 2 * tenth], "train": pairs[2 * tenth :]}[split_name]


def read_text_pair(text: Path, summary: Path) -> dict:
    document, short = (parse_text("\n\n".join(texts_of(p.read_bytes(), str(p))), p.stem) for p in (text, summary))
    record = {"id": document.id, "title": document.title, "section_names": document.section_names}
    return {**record, "sections": document.sections, "abstract_text": short.sentences}


# --------------------------------------------------------------------------------------------------------- folders

SPLIT_NAMES = {"train": ("train",), "val": ("val", "valid", "validation", "dev"), "test": ("test",)}


def read_file(path: Path, read: Callable[..., Lines], *beside: Path) -> Records:
    """Records of a file and of those `beside` it."""
    with reading(path):
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


def read_folder(folder: Path, split_name: str) -> Records | None:
    """Records of a split in a folder of {train,val,test} files; None where there is none."""
    for name in SPLIT_NAMES[split_name]:
        for ending, read in (*READERS.items(), (".txt", read_json_lines), (".txt.gz", read_json_lines)):
            if files := sorted([*folder.glob(f"{name}{ending}"), *folder.glob(f"{name}-*{ending}")]):
                return (record for file in files for record in read_file(file, read))
        source, target = folder / f"{name}.src", folder / f"{name}.tgt"
        if source.is_file() and target.is_file():
            return read_file(source, read_parallel, target)
    if summaries := dict(pairs_of_split(folder, split_name)):
        return read_each(summaries, lambda path: [read_text_pair(path, summaries[path])])
    return None
