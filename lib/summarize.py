"""Summaries of your own texts by a trained run.

    python -m lib.summarize runs/arxiv paper.md notes.txt
    cat paper.txt | python -m lib.summarize runs/arxiv
    python -m lib.summarize runs/arxiv papers.jsonl more.csv --json > summaries.jsonl
    python -m lib.summarize runs/arxiv paper.md --html paper.html

A text is plain, Markdown, an article in JATS's XML, or with the extra `files` PDF, DOCX or HTML, whatever its name; a
heading begins a section. JSON lines (.jsonl, .json, or on standard input), .csv and .parquet hold records, with
sections or paragraphs, as corpora do; a reference is not needed. --html writes one page that shows text and summary
side by side: pointing at a word of the summary shows where the model looked.
"""

import json
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from tqdm import tqdm

import lib
from lib.data.documents import CorpusError, Document
from lib.data.files import read_text_file, texts_of
from lib.data.readers import parse_json, reading, records_reader
from lib.papers import paper
from lib.runs.run import Run, Summary
from lib.runs.summary_page import ShownDocument, write_page
from lib.system.command_line import command_parser, plain_errors
from lib.system.errors import InputError
from lib.system.files import check_writable


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser("lib.summarize", __doc__)
    parser.add_argument("run", type=Path, help="the folder of a run, which lib.train wrote")
    parser.add_argument(
        "files",
        nargs="*",
        type=Path,
        help="texts (plain, Markdown, PDF, DOCX, HTML, JATS), or records in .jsonl, .json, .csv, .parquet; none: "
        "standard input",
    )
    parser.add_argument("--json", action="store_true", help="a line of JSON for each: sentences, score, copied words")
    parser.add_argument("--html", type=Path, metavar="OUT", help="write a page that shows where the model looked")
    parser.add_argument("--weights", default="", help="best, last, best-STEP or average; by default the run's own")
    parser.add_argument("--device", help="cpu or cuda; by default the GPU where there is one")
    args = parser.parse_args(arguments)
    with plain_errors():
        _summarize(args)


AT_ONCE = 64  # documents: where a model looked takes megabytes for each


def _summarize(args: Namespace) -> None:
    if args.html:
        check_writable(args.html)
        if args.html.exists() and any(path.samefile(args.html) for path in args.files):
            raise InputError(f"--html {args.html}: one of the texts, and would be replaced. Name another file.")
    named = list(read_texts(args.files))
    if not named:
        raise CorpusError(f"{', '.join(map(str, args.files))}: there is nothing to summarize")
    run = lib.load(args.run, args.weights, args.device)
    names, texts = [name for name, _ in named], [text for _, text in named]
    documents = run.documents(texts, names)
    attention = bool(args.html or args.json)
    shown = []
    for number, (name, document, summary) in enumerate(zip(names, documents, _in_parts(run, documents, attention))):
        if args.json:
            line = json.dumps(record(name, summary), ensure_ascii=False)
        else:
            heading = f"{'' if number == 0 else chr(10)}{name}\n" if len(names) > 1 else ""
            line = heading + "\n".join(summary.sentences)
        print(line, flush=True)  # what is made is not lost
        if args.html:
            shown.append(_shown(run, document.title or name, summary))
    if args.html:
        model = f"{paper(run.config['paper']).title}, {run.config['variant']}"
        page = write_page(args.html, model, shown)
        print(f"{page}: {len(shown)} summaries, and where the model looked", file=sys.stderr)


def _in_parts(run: Run, documents: Sequence[Document], attention: bool) -> Iterator[Summary]:
    for start in range(0, len(documents), AT_ONCE):
        yield from run.summarize(documents[start : start + AT_ONCE], attention=attention, progress=_bar)


def read_texts(files: Sequence[Path]) -> Iterator[tuple[str, str | dict]]:
    """Texts of files, or of standard input, with their names. Raises CorpusError with file and line."""
    if not files:
        with reading("standard input"):
            texts = texts_of(sys.stdin.buffer.read())
        yield from _articles("standard input", texts) if len(texts) > 1 else _from_input(texts[0])
    for path in files:
        with reading(path):
            if read := records_reader(path):
                yield from _records(path, read(path))
            else:
                yield from _articles(path.name, read_text_file(path))


def _articles(name: str, texts: list[str]) -> Iterator[tuple[str, str]]:
    """Texts with their names: several articles in a file are numbered."""
    for number, text in enumerate(texts, 1):
        yield f"{name}, article {number}" if len(texts) > 1 else name, text


def _from_input(text: str) -> Iterator[tuple[str, str | dict]]:
    """A text, or records: one JSON object or array (of texts too), or JSON lines where the first is a record."""
    data = text.encode()
    whole = parse_json(data)
    if isinstance(whole, ValueError):
        records = ((number, parse_json(line)) for number, line in enumerate(data.split(b"\n"), 1) if line.strip())
    else:
        records = iter(enumerate(whole if isinstance(whole, list) else [whole], 1))
    first = next(records, (0, None))
    texts = isinstance(whole, list) and bool(whole) and all(isinstance(value, str | dict) for value in whole)
    if texts or isinstance(first[1], dict):
        yield from _records(Path("standard input"), chain([first], records))
    else:
        yield "standard input", text


def _records(path: Path, records: Iterable[tuple[int, Any]]) -> Iterator[tuple[str, Any]]:
    for number, value in records:
        if isinstance(value, ValueError):
            raise CorpusError(f"{path}, line {number}: {value}")
        yield f"{path.name}, line {number}", value


def record(name: str, summary: Summary) -> dict:
    """A summary as JSON has it; `copied` are the words that were rather copied than generated."""
    tokens = chain.from_iterable(summary.tokens)
    copied = [token.strip() for token, was in zip(tokens, summary.copied) if was]
    return {"name": name, "sentences": summary.sentences, "score": round(summary.score, 4), "copied": copied}


def _shown(run: Run, name: str, summary: Summary) -> ShownDocument:
    """A summary for the page: its tokens sentence by sentence."""
    unit = "paragraph" if run.options.of_paragraphs else getattr(run.options, "unit", "sentence")
    return ShownDocument(
        name=name,
        source=summary.source,
        unit=unit,
        summary=summary.tokens,
        attention={key: value for key, value in summary.attention.items() if key != "importance"},
        copied=summary.copied or None,
    )


def _bar(batches: list) -> tqdm:
    return tqdm(batches, desc="summaries", unit=" batches", delay=2, leave=False, disable=len(batches) < 2)


if __name__ == "__main__":
    main()
