"""Files of summaries: JSON lines of {id, corpus, title, summary, reference, source}."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lib.data.characters import clean
from lib.data.corpora import check_unpublished
from lib.data.documents import CorpusError, Document
from lib.data.readers import read_json_lines, reading
from lib.data.sentences import split_sentences
from lib.system.errors import InputError
from lib.system.files import write_whole


def write_summaries(
    path: str | Path, documents: Sequence[Document], summaries: Sequence[list[str]], corpus: str
) -> Path:
    """Summaries of one system as JSON lines of {id, corpus, title, summary, reference, source}: what `sheet` takes.
    `source` is the document, section by section, for those who judge what a summary leaves out.

    Raises CorpusError where texts that may not be published would be (`check_unpublished`).
    """
    check_unpublished(path, corpus)
    lines = []
    for document, summary in zip(documents, summaries, strict=True):
        row = {"id": document.id, "corpus": Path(corpus).name, "title": document.title}
        row |= {"summary": summary, "reference": document.summary}
        row["source"] = [" ".join(section) for section in document.sections]
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    return write_whole(path, "".join(lines))


def read_summaries(path: str | Path) -> dict[str, dict[str, str]]:
    """Lines of a file of summaries, by id; of title, reference and source what there is. Raises InputError with file
    and line."""
    return _by_id(path, _record)


def read_summary_sentences(path: str | Path) -> dict[str, list[str]]:
    """Sentences of each summary of a file, by id; a summary that is one text is split. No reference is needed, and
    lines that `lib.summarize --json` wrote are read too. Raises InputError with file and line."""
    return _by_id(path, _sentences)


def _by_id(path: str | Path, read: Callable[[Any, str], tuple[str, Any]]) -> dict[str, Any]:
    """What `read` makes of each line of a file and where it stands, by the id that it finds."""
    path, summaries = Path(path), {}
    if not path.is_file():
        raise InputError(f"{path}: no such file; python -m lib.score run FOLDER --dataset NAME writes one")
    try:
        with reading(path):
            records = list(read_json_lines(path))
    except CorpusError as error:
        raise InputError(str(error)) from None
    for number, record in records:
        name, summary = read(record, f"{path}, line {number}")
        if name in summaries:
            raise InputError(f"{path}, line {number}: a second summary of the document {name!r}")
        summaries[name] = summary
    return summaries


def _record(record: Any, where: str) -> tuple[str, dict[str, str]]:
    """The id of a line of a file of summaries, and its texts as strings. Raises InputError."""
    name = _id(record, ("id", "summary"), where)
    checked = {"id": name, "source": _text(record, "source", where, "\n")}
    return name, checked | {key: _text(record, key, where) for key in ("corpus", "title", "summary", "reference")}


def _sentences(record: Any, where: str) -> tuple[str, list[str]]:
    """The id of a line of a file of summaries, and the summary's sentences. Raises InputError."""
    if isinstance(record, dict) and "id" not in record and {"name", "readable"} <= set(record):
        record = {"id": record["name"], "summary": record["readable"]}
    name, text = _id(record, ("id", "summary"), where), _text(record, "summary", where, "\n")
    sentences = text.split("\n") if isinstance(record["summary"], list) else split_sentences(text)
    return name, [sentence for sentence in map(clean, sentences) if sentence.strip()]


def _id(record: Any, needed: tuple[str, ...], where: str) -> str:
    """The id of a record that has all that is needed. Raises InputError."""
    if isinstance(record, ValueError):
        raise InputError(f"{where}: {record}")
    if not isinstance(record, dict) or not set(needed) <= set(record):
        raise InputError(f"{where}: {', '.join(needed[:-1])} and {needed[-1]} are needed")
    name = record["id"]
    if isinstance(name, bool) or not isinstance(name, str | int) or not str(name).strip():
        raise InputError(f"{where}: id must be a text or a whole number, not {json.dumps(name)[:40]}")
    if null := [key for key in needed if record[key] is None]:
        raise InputError(f"{where}: {null[0]} is null: a system has to say something of every document")
    return str(name)


def _text(record: dict, key: str, where: str, between: str = " ") -> str:
    value = record.get(key)
    parts = [] if value is None else value if isinstance(value, list) else [value]
    if not all(isinstance(part, str) for part in parts):
        raise InputError(f"{where}: {key} must be a text or a list of sentences")
    try:
        return between.join(parts).encode().decode()
    except UnicodeEncodeError:
        raise InputError(f"{where}: {key} holds half a character (a lone surrogate)") from None
