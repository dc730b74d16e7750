"""Files to documents: every public layout of a summarization corpus, one record at a time.

A reader is a function of a path that yields `(line number, record)`. Errors name the file and the line.
"""

import csv
import gzip
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from lib.data.documents import CorpusError
from lib.data.pieces import Pieces
from lib.data.releases import RELEASES
from lib.data.text import TITLE_END

Records = Iterator[tuple[int, dict | ValueError]]  # a ValueError stands for a record that cannot be read
Files = list[tuple[Path, Callable[[], Iterator[tuple[int, Any]]]]]  # each with the function that reads it


def read_json_lines(path: Path) -> Records:
    """One JSON object a line, plain or gzip-compressed, or one JSON array in the whole file."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if number == 1 and line.lstrip().startswith(b"["):
                yield from enumerate(_json_array(line + file.read(), path), 1)
                return
            if line.strip():
                yield number, _parse(line)


def _parse(line: bytes) -> Any:
    """What a line holds; the reason as a ValueError where it cannot be read."""
    if b"\0" in line:
        return ValueError("the line holds a null byte")
    try:
        return json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        return ValueError(f"not UTF-8: byte {error.start + 1} of the line cannot be decoded")
    except json.JSONDecodeError as error:
        return ValueError(f"not JSON: {error.msg} at column {error.colno}")


def _json_array(data: bytes, path: Path) -> list:
    records = _parse(data.replace(b"\n", b" ").replace(b"\r", b" "))
    if isinstance(records, ValueError):
        raise CorpusError(f"{path}: {records}. It starts as one JSON array; JSON lines are read too.")
    return records


def read_parquet(path: Path) -> Records:
    import pyarrow.parquet as parquet

    number = 0
    for batch in parquet.ParquetFile(path).iter_batches(batch_size=64):
        for record in batch.to_pylist():
            number += 1
            yield number, record


def read_csv(path: Path) -> Iterator[tuple[int, dict]]:
    """Rows of a CSV file with a header; quoted fields may hold line breaks."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        rows = csv.DictReader(line.replace("\0", "\ufffd") for line in file)
        for record in rows:
            yield rows.line_num, record


def read_parallel(source: Path, target: Path) -> Iterator[tuple[int, dict]]:
    """Line-aligned source and summary files, as Multi-News and Gigaword come.

    In Multi-News a line holds several articles set apart by `|||||`, and `NEWLINE_CHAR` for line breaks: an article
    becomes a section.
    """
    with open(source, encoding="utf-8") as sources, open(target, encoding="utf-8") as targets:
        number = 0
        for number, text in enumerate(sources, 1):
            summary = targets.readline()
            if not summary:
                raise CorpusError(
                    f"{target}: ends before line {number}, which {source.name} has. Download both again."
                )
            articles = text.replace("NEWLINE_CHAR", "\n").split("|||||")
            yield number, {**articles_of(articles), "abstract_text": summary.strip()}
        if targets.readline():
            raise CorpusError(
                f"{target}: goes on after line {number}, the last of {source.name}. Download both again."
            )


def articles_of(articles: list[str]) -> dict:
    """Articles as sections; those of a cluster are named by their number."""
    kept = [a.strip() for a in articles if a.strip()]
    names = [f"article {n}" for n in range(1, len(kept) + 1)] if len(kept) > 1 else [""] * len(kept)
    return {"sections": kept, "section_names": names}


def read_duc(source: Path, references: list[Path]) -> Records:
    """Line-aligned texts and headlines by several people, as DUC 2004 (task 1) is passed on."""
    others = [path.read_text(encoding="utf-8").splitlines() for path in references[1:]]
    for number, record in read_parallel(source, references[0]):
        for path, lines in zip(references[1:], others):
            if number > len(lines):
                raise CorpusError(f"{path}: ends before line {number}, which {source.name} has. Download both again.")
        yield number, {**record, "more_summaries": [lines[number - 1] for lines in others]}


def read_wikihow(path: Path, titles: Path) -> Records:
    """The articles of `wikihowAll.csv` whose titles a split's list names, cleaned as its authors do.

    The bold line of each step, ended by `.,`, is a sentence of the summary. Articles whose headlines are at least
    0.75 times as long as their text are left out (Koupaee and Wang 2018).
    """
    wanted = {_title_key(line) for line in titles.read_text(encoding="utf-8").splitlines()}
    for number, row in read_csv(path):
        headline, text, title = (row.get(key) or "" for key in ("headline", "text", "title"))
        if _title_key(title) not in wanted or len(headline) >= 0.75 * len(text):
            continue
        steps = [line.strip().rstrip(",").strip() for line in headline.splitlines()]
        body = text.replace(";\n,", "\n").replace("\n,", "\n").replace(" .", ".")
        yield (
            number,
            {"id": title, "title": title, "document": body, "summary": "\n".join(s for s in steps if s)},
        )


def _title_key(title: str) -> str:
    return "".join(c for c in title if c.isalnum())


def read_stories(folder: Path, urls: Path) -> Records:
    """CNN/DailyMail as `.story` files: a story's name is the SHA-1 of its url; `@highlight` lines are the summary."""
    stories = {path.stem: path for path in folder.glob("*_stories/*.story")}
    for number, url in enumerate(urls.read_text(encoding="utf-8").split(), 1):
        name = hashlib.sha1(url.encode()).hexdigest()
        if name in stories:
            body, *highlights = stories[name].read_text(encoding="utf-8").split("@highlight")
            lines = [" ".join(h.split()).rstrip(".") + " ." for h in highlights if h.strip()]
            yield number, {"id": name, "article": body, "highlights": "\n".join(lines)}


def read_shard(path: Path, pieces: Pieces) -> Records:
    """A shard of WikiSum as Liu and Lapata passed it on, ranked and in pieces: a list of {src, tgt, tgt_str}.

    `src` holds the paragraphs, the best first; what stands before `<T>` in one is the title. Only plain data is
    loaded from the file, never code.
    """
    import torch

    try:
        records = torch.load(path, weights_only=True)
    except Exception as error:  # whatever unpickling of the day raises
        raise CorpusError(f"{path}: not a shard of plain lists and numbers ({str(error).splitlines()[0]})") from None
    for number, record in enumerate(records, 1):
        try:
            paragraphs = [pieces.ours(ids).tolist() for ids in record["src"]]
            summary = re.sub(r"</?t>", " ", record["tgt_str"])
        except (KeyError, TypeError, IndexError, ValueError) as error:
            yield number, ValueError(f"not a record of src, tgt and tgt_str ({error!r})")
            continue
        titles = [ids[: ids.index(TITLE_END)] for ids in paragraphs if TITLE_END in ids]
        texts = [pieces.text(ids[ids.index(TITLE_END) + 1 if TITLE_END in ids else 0 :]) for ids in paragraphs]
        title = pieces.text(titles[0]) if titles else ""
        yield number, {"title": title, "paragraphs": texts, "summary": re.split(r"<[Qq]>", summary)}


def shard_pieces(folder: Path) -> Pieces:
    """The SentencePiece model beside WikiSum's shards. Raises CorpusError unless there is one."""
    models = sorted(folder.glob("*.model"))
    if len(models) != 1:
        raise CorpusError(
            f"{folder}: {len(models)} SentencePiece models (*.model) beside the shards, where there must be one: put "
            "the model that was passed on with them there"
        )
    return Pieces.load(models[0])


# ------------------------------------------------------------------------------------------------ a folder's splits

SPLIT_NAMES = {"train": ("train",), "val": ("val", "valid", "validation", "dev"), "test": ("test",)}
_JSON = (".jsonl", ".jsonl.gz", ".json", ".json.gz", ".txt", ".txt.gz")


def find_split(folder: Path, split_name: str) -> Files:
    """Files of one split in `folder`, each with the function that reads it; an empty list when there are none."""
    for name in SPLIT_NAMES[split_name]:
        for find in (_tables, _pairs, _wikihow, _stories, _shards):
            if found := find(folder, name):
                return found
    released = next((r for r in RELEASES.values() if r.probe(folder)), None)
    return [(folder, partial(released.read, folder, split_name))] if released else []


def _tables(folder: Path, name: str) -> Files:
    for ending in _JSON:
        path = folder / f"{name}{ending}"
        if path.is_file():
            return [(path, lambda p=path: read_json_lines(p))]
    shards = sorted([*folder.glob(f"{name}.parquet"), *folder.glob(f"{name}-*.parquet")])
    if shards:
        return [(path, lambda p=path: read_parquet(p)) for path in shards]
    path = folder / f"{name}.csv"
    return [(path, lambda: read_csv(path))] if path.is_file() else []


def _pairs(folder: Path, name: str) -> Files:
    layouts = [
        (f"{name}.src", f"{name}.tgt"),  # Multi-News
        (f"{name}.src.txt", f"{name}.tgt.txt"),  # Gigaword, org_data
        (f"{name}.article.txt", f"{name}.title.txt"),  # Gigaword, sumdata
        (f"{name}.article.filter.txt", f"{name}.title.filter.txt"),
    ]
    if name == "test":
        layouts.append(("input.txt", "task1_ref0.txt"))
        references = sorted(folder.glob("task1_ref[0-9].txt"))
        if len(references) > 1 and (folder / "input.txt").is_file():
            return [(folder / "input.txt", lambda: read_duc(folder / "input.txt", references))]
    for base in (folder, folder / "train", folder / "Giga"):
        for source, target in layouts:
            if (base / source).is_file() and (base / target).is_file():
                paths = base / source, base / target
                return [(paths[0], lambda p=paths: read_parallel(*p))]
    return []


def _wikihow(folder: Path, name: str) -> Files:
    path, titles = folder / "wikihowAll.csv", folder / f"all_{name}.txt"
    return [(path, lambda: read_wikihow(path, titles))] if path.is_file() and titles.is_file() else []


def _stories(folder: Path, name: str) -> Files:
    urls = folder / "url_lists" / f"all_{name}.txt"
    return [(urls, lambda: read_stories(folder, urls))] if urls.is_file() else []


def _shards(folder: Path, name: str) -> Files:
    paths = sorted(folder.glob(f"*.{name}.*.pt"), key=lambda p: (len(p.name), p.name))
    if not paths:
        return []
    pieces = shard_pieces(folder)
    return [(path, lambda p=path: read_shard(p, pieces)) for path in paths]
