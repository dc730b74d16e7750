"""Files of summaries: ours, JSON lines of {id, corpus, title, summary, readable, reference,
source}, and those of other systems."""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from lib.data.corpus import check_unpublished
from lib.data.documents import (
    Document,
    report_marks,
    split_summary,
)
from lib.data.record_keys import (
    IDS,
    PREDICTIONS,
    SUMMARIES,
    first_key,
    whole_number,
    with_known_keys,
)
from lib.data.record_readers import read_json_lines, reading, records_reader
from lib.decoding.run import Run
from lib.system.errors import InputError
from lib.system.files import write_whole
from lib.system.settings import describe, field_names

Text = str | list[str]  # a text or its sentences


@dataclass
class SummaryLine:
    """A summary in a file, for people or scores."""

    id: int | str
    summary: Text  # which scores are of
    readable: Text = ""  # the same for people
    corpus: str = ""
    title: str = ""
    reference: Text = ""
    source: Text = ""  # section by section, for a person who judges what a summary leaves out


def write_summaries(
    path: str | Path,
    documents: Sequence[Document],
    summaries: Sequence[list[str]],
    corpus: str,
    run: Run | None = None,
) -> Path:
    """Write a system's summaries for people to judge (`companion.human`).

    run: the run that wrote them, in its model's words; they are stored as people write, too.
    Raises CorpusError where texts that may not be published would be (`check_unpublished`).
    """
    check_unpublished(path, corpus)
    lines = []
    for document, summary in zip(documents, summaries, strict=True):
        row = {
            "id": document.id,
            "corpus": Path(corpus).name,
            "title": document.title,
            "summary": summary,
            "readable": run.readable(document, summary) if run else summary,
            "reference": document.summary,
            "source": [" ".join(section) for section in document.sections],
        }
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    return write_whole(path, "".join(lines))


def read_summaries(path: str | Path) -> dict[str, dict[str, str]]:
    """Read the lines of a file of summaries, by id, as texts for people. Raises InputError with
    file and line."""
    rows = {}
    for line in _read_lines(path):
        if not line.id:
            raise InputError(f"{path}: the summaries have no ids")
        row = {**asdict(line), "id": str(line.id), "summary": line.readable or line.summary}
        for field, text in row.items():
            if not isinstance(text, str):
                row[field] = ("\n" if field == "source" else " ").join(text)
        rows[str(line.id)] = row
    return rows


# What models for chats, and tokenizers, leave around a summary or in it.
_LEFTOVERS = re.compile(
    r"""
    \A\s*[*_#]*(?:sure|certainly|of\ course|okay)\b[^.:]{0,80}[:!.]  # how an answer begins
    | \A\s*[*_#]*(?:here(?:\ is|'s|’s)|below\ is|the\ following\ is)\b
      [^.:]{0,80}\bsummar[^.:]{0,40}:
    | \A\s*[*_#]*(?:summary|tl;?dr)[*_]*:[*_]*
    | </?think(?:ing)?>
    | <\|[\w ]{1,30}\|>  # <|im_start|>
    | </?(?:bos|eos|mask|extra_id_\d+|(?:start|end)_of_turn)>
    | \[/?INST\] | <</?SYS>>
    | \[(?:SEP|CLS|PAD|MASK)\]
    | ```
    | ^\#{1,6}\ \S+  # a heading
    | \*\*(?=\S)[^*\n]{1,80}(?<=\S)\*\*
    | \A\s*\{\s*["']\w+["']\s*:  # JSON in a text
    | [▁Ġ]\w+ | \w+@@(?=\s) | (?<=\s)\#\#[a-z]+  # pieces of words
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)


def read_summary_sentences(path: str | Path, ids: Sequence[str] = ()) -> dict[str, list[str]]:
    """Read the sentences of each summary of a file, by id; a summary that is one text is split.

    Standard error counts summaries that are empty, or that hold what a chat or a tokenizer leaves:
    they are scored with it.

    Args:
        path: a summary a line (.txt), JSON lines, one JSON list or {id: text}, CSV or Parquet.
        ids: of the documents, in their order, which summaries without ids belong to.

    Raises InputError with file and line.
    """
    lines = list(_read_lines(path))
    report_marks(str(path), (line.summary for line in lines))
    if not any(line.id for line in lines):
        if len(lines) != len(ids):
            raise InputError(
                f"{path}: {len(lines)} summaries without ids, but {len(ids)} documents: give one "
                "for each document, in their order, or ids (JSON lines of id and summary)"
            )
        lines = [replace(line, id=name) for line, name in zip(lines, ids)]
    elif ids and all(re.fullmatch(r"\d+\.0", str(line.id)) for line in lines):
        # pandas reads a column with a missing value as floats
        whole = [str(line.id).removesuffix(".0") for line in lines]
        if {*whole} & {*ids}:
            lines = [replace(line, id=name) for line, name in zip(lines, whole)]
    summaries = {str(line.id): split_summary(line.summary) for line in lines}
    if empty := [name for name, sentences in summaries.items() if not sentences]:
        _say(path, empty, len(lines), "empty, and counted as such")
    found = {str(line.id): leftovers(line.summary) for line in lines}
    if marked := [name for name, marks in found.items() if marks]:
        kinds = Counter(mark for marks in found.values() for mark in marks)
        shown = ", ".join(f"{mark!r} in {number}" for mark, number in kinds.most_common(4))
        more = ", ..." * (len(kinds) > 4)
        what = f"scored with the marks of a chat or a tokenizer: {shown}{more}; remove them"
        _say(path, marked, len(lines), what)
    return summaries


def leftovers(summary: Text) -> list[str]:
    """Find what a model for chats or a tokenizer has left in a summary: each mark once."""
    text = summary if isinstance(summary, str) else "\n".join(summary)
    marks = (found[0].strip() for found in _LEFTOVERS.finditer(text))
    return list(dict.fromkeys(mark[:40] for mark in marks))


def _say(path: str | Path, names: Sequence[str], count: int, what: str) -> None:
    shown = ", ".join(names[:3]) + ", ..." * (len(names) > 3)
    print(f"{path}: {len(names)} of {count} summaries are {what} ({shown})", file=sys.stderr)


# Columns and fields of a summary in other programs' files.
_SUMMARY_KEYS = (*PREDICTIONS, "summary", "readable", *SUMMARIES, "text", "result")
_FORMS = (
    "a summary a line (.txt), JSON lines or CSV of id and summary, or one JSON list or {id: text}"
)


def _read_lines(path: str | Path) -> Iterator[SummaryLine]:
    """Yield the summaries of a file; an id is empty where the file has none."""
    path, kind, seen = Path(path), TypeAdapter(SummaryLine), set()
    if path.is_dir():
        raise InputError(
            f"{path}: a folder: give one file of all summaries, in the order of the documents or "
            f"with their ids: {_FORMS}. A run's folder is scored by python -m lib.score run"
        )
    if not path.is_file():
        raise InputError(
            f"{path}: no such file; python -m lib.score run FOLDER --dataset NAME writes one"
        )
    for number, record in _records(path):
        try:
            if isinstance(record, InputError):
                raise InputError(f"{record}. Known forms: {_FORMS}")
            line = kind.validate_python(_with_known_keys(record))
        except ValidationError as error:
            raise InputError(f"{path}, line {number}: {describe(error)}") from None
        except InputError as error:
            raise InputError(f"{path}, line {number}: {error}") from None
        if line.id and str(line.id) in seen:
            raise InputError(
                f"{path}, line {number}: a second summary of the document {str(line.id)!r}"
            )
        seen.add(str(line.id))
        yield line
    if not seen:
        raise InputError(f"{path}: no summary. Known forms: {_FORMS}")


def _records(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the records of a file of summaries by their lines: texts, or fields by name."""
    with reading(path):
        if path.suffix == ".txt":
            text = path.read_text(encoding="utf-8-sig")
            lines = _in_order(_FAIRSEQ.findall(text)) or text.rstrip("\n").split("\n")
            yield from enumerate(lines, 1)
            return
        read = records_reader(path) or read_json_lines
        records = list(read(path))
        if len(records) == 1 and read is read_json_lines and _is_map(records[0][1]):
            pairs = records[0][1].items()
            records = list(enumerate(({"id": name, "summary": text} for name, text in pairs), 1))
        yield from records


# fairseq-generate's lines, sorted by length: H (hypothesis) or D (detokenised) and the number of
# the document, a score, and the text
_FAIRSEQ = re.compile(r"^([DH])-(\d+)\t[^\t\n]+\t(.*)$", re.MULTILINE)


def _in_order(hypotheses: list[tuple[str, str, str]]) -> list[str]:
    """Return the first hypothesis for each document of fairseq's output, detokenised if it has
    such, in the order of the documents."""
    kind = min((letter for letter, _, _ in hypotheses), default="")
    by_number: dict[int, str] = {}
    for letter, number, text in hypotheses:
        if letter == kind:
            by_number.setdefault(int(number), text)
    if missing := {*range(max(by_number, default=-1))} - by_number.keys():
        raise InputError(
            f"fairseq's output without a line {kind}-{min(missing)}: numbers are the places of the "
            "documents, so give all, or ids (JSON lines of id and summary)"
        )
    return [by_number[number] for number in sorted(by_number)]


def _is_map(record: Any) -> bool:
    """Whether a JSON object is no record, but has texts by the ids of their documents."""
    if not isinstance(record, dict):
        return False
    if with_known_keys(record).keys() & {*_SUMMARY_KEYS, *_ID_KEYS}:
        return False
    return all(isinstance(value, str | list) for value in record.values())


_ID_KEYS = ("custom_id", "id", *IDS, "name")
# Where the text is in what a model's interface (choices[0].message.content) or a pipeline returns.
_INSIDE = (
    *("response", "result", "body", "choices", "message", "output", "content", "text"),
    *("summary_text", "generated_text"),
)


def _text_in(value: Any) -> Text:
    """Return the text, or the sentences, in what holds a summary. Raises InputError for others."""
    text = _innermost(value)
    members = text if isinstance(text, list) else [text]
    if not all(isinstance(member, str) for member in members):
        shown = json.dumps(value, ensure_ascii=False, default=str)[:200]
        raise InputError(
            f"summary without a text, or with several: {shown}. Correct it, or remove this record: "
            "its document is then not scored"
        )
    return text


def _innermost(value: Any) -> Any:
    """Return the only text within objects and lists; None if there is none, or more than one."""
    if isinstance(value, dict):
        key = first_key(value, _INSIDE)
        return _innermost(value[key]) if key else None
    if isinstance(value, list) and value and not isinstance(value[0], str):
        texts = [text for text in map(_innermost, value) if text is not None]
        return texts[0] if len(texts) == 1 else None
    return value


def _with_known_keys(record: Any) -> Any:
    """Return a record with the keys of a `SummaryLine`. A table may have one column of texts, with
    any name."""
    if isinstance(record, str | list):
        return {"id": "", "summary": _text_in(record)}
    if not isinstance(record, dict):
        return record
    record = with_known_keys(record)
    id_key, key = first_key(record, _ID_KEYS), first_key(record, _SUMMARY_KEYS)
    others = [name for name in record if name != id_key]
    if key is None and len(others) == 1:
        (key,) = others
    if key is None:
        columns = ", ".join(map(str, record))
        raise InputError(f"no summary among {columns}. Name its column or field 'summary'")
    own = {name: value for name, value in record.items() if name in _FIELDS and value}
    name = whole_number(record[id_key]) if id_key else ""
    if not isinstance(name, int | str):
        raise InputError(f"{id_key!r} is no id: {name!r:.40}")
    return {**own, "id": name, "summary": _text_in(record[key])}


_FIELDS = field_names(SummaryLine)
