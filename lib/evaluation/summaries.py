"""Files of summaries: JSON lines of {id, corpus, title, summary, readable, reference, source}."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from pydantic import AliasChoices, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from lib.data.corpus import check_unpublished
from lib.data.documents import Document, report_marks, split_summary
from lib.decoding.run import Run
from lib.system.errors import InputError
from lib.system.fields import describe
from lib.system.files import write_whole

Text = str | list[str]  # a text or its sentences


@dataclass
class SummaryLine:
    """A line of a file of summaries, or one that `lib.summarize --json` wrote (with name and
    readable)."""

    id: Annotated[int | str, Field(validation_alias=AliasChoices("id", "name"))]
    # which scores are of
    summary: Annotated[Text, Field(validation_alias=AliasChoices("summary", "readable"))]
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
    for name, line in _read_lines(path):
        row = {**asdict(line), "id": name, "summary": line.readable or line.summary}
        for field, text in row.items():
            if not isinstance(text, str):
                row[field] = ("\n" if field == "source" else " ").join(text)
        rows[name] = row
    return rows


def read_summary_sentences(path: str | Path) -> dict[str, list[str]]:
    """Read the sentences of each summary of a file, by id; a summary that is one text is split."""
    summaries = {name: line.summary for name, line in _read_lines(path)}
    report_marks(str(path), summaries.values())
    return {name: split_summary(summary) for name, summary in summaries.items()}


def _read_lines(path: str | Path) -> Iterator[tuple[str, SummaryLine]]:
    path, kind, seen = Path(path), TypeAdapter(SummaryLine), set()
    if not path.is_file():
        raise InputError(
            f"{path}: no such file; python -m lib.score run FOLDER --dataset NAME writes one"
        )
    for number, text in enumerate(path.read_bytes().splitlines(), 1):
        if not text.strip():
            continue
        try:
            line = kind.validate_json(text)
        except ValidationError as error:
            raise InputError(f"{path}, line {number}: {describe(error)}") from None
        name = str(line.id)
        if name in seen:
            raise InputError(f"{path}, line {number}: a second summary of the document {name!r}")
        seen.add(name)
        yield name, line
