"""Summarize your own texts with a trained run, or by choosing sentences.

    python -m lib.summarize runs/arxiv paper.md notes.txt
    cat paper.txt | python -m lib.summarize runs/arxiv
    python -m lib.summarize lexrank paper.md --words 100
    python -m lib.summarize runs/arxiv papers.jsonl more.csv --json > summaries.jsonl
    python -m lib.summarize runs/arxiv paper.md --html paper.html

A text is plain, Markdown (.md), an article in JATS's XML, or with the extra `files` PDF, and by
pandoc DOCX, HTML, ODT, RTF, EPUB, LaTeX and more. A heading begins a section. JSON lines (.jsonl,
.json, or on standard input), .csv and .parquet hold records, with sections or paragraphs, as
corpora do; a reference is not needed. --html writes one page that shows text and summary side by
side. Pointing at a word of the summary shows what the model attended to, and which sentences of the
text its sentence is taken from. Numbers, names and words that are not in the text are marked
(`lib.evaluation.support`).

Summaries are made readable: words get the form that they have in the text, <dig> becomes [number],
and an unfinished last sentence is left out. --json has these sentences ("readable") beside the
model's own words ("sentences"), which are scored. Standard error has a line on the model's training
and its errors, and one for each text: how much was read, and whether it is too short for the model,
or of another field than its corpus.

`lexrank` chooses the most central sentences of a text and `lead` the first ones, until there are
--words (100). They have learned nothing, and LexRank is the strongest system on most texts. A page
of a model shows LexRank's summary beside the model's.

--words and --min-words bound the length of a summary, in words and marks or in pieces of words, as
the model counts. Without --min-words, a summary may end in the last fifth of --words.
The summary of a text that is shorter than the shortest summary is at most as long as the text.

Several GPUs share the texts, with the same result:

    torchrun --standalone --nproc-per-node 4 -m lib.summarize runs/arxiv papers.jsonl --json
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

import lib
from lib.data.documents import CorpusError, Document
from lib.data.files import texts_of
from lib.data.record_keys import ALL_SOURCES, KNOWN_KEYS
from lib.data.record_readers import json_lines, reading, records_reader
from lib.data.texts import Text
from lib.system.command_line import Files, Grouped, RunFolder, run_command
from lib.system.errors import InputError, printable
from lib.system.files import check_writable

if TYPE_CHECKING:  # a command imports PyTorch when it begins, so that --help is fast
    from lib.decoding.run import Run, Summary
    from lib.evaluation.baseline_run import Baseline
    from lib.evaluation.support import Names
    from lib.page.summary_page import ShownDocument

BASELINES = ("lexrank", "lead")  # which need no training; a folder of that name is ./lexrank
AT_ONCE = 64  # documents: where a model looked takes megabytes for each


@dataclass(frozen=True)
class SummaryOptions:
    """How summaries are written, and in which form.

    Attributes:
        json: write a line of JSON for each text.
        html: write a page that shows what the model attended to.
        words: the largest number of words (or pieces) of a summary.
        min_words: the smallest number; by default the run's.
        weights: best, last, best-STEP or average; by default the run's own.
        device: cpu or cuda; by default the GPU if there is one.
    """

    json: bool = False
    html: Path | None = None
    words: int | None = None
    min_words: int | None = None
    weights: str = ""
    device: str | None = None


def summarize(run: RunFolder, files: Files = (), /, *, writing: Grouped[SummaryOptions]) -> None:
    """Write the summaries of texts.

    Args:
        run: the folder of a run, which lib.train wrote; or lexrank or lead, which need none.
        files: texts (plain, Markdown, PDF, DOCX, HTML, JATS), or records in .jsonl, .json, .csv,
            .parquet; by default standard input.
    """
    from lib.evaluation.support import names_of
    from lib.page.summary_page import write_page
    from lib.system.devices import processes

    if run.is_file():
        raise InputError(
            f"{run} is a file, not a run: python -m lib.summarize trained/mem2mem {run}"
        )
    if writing.html:
        check_page("--html", writing.html, files)
    with processes() as process:
        texts, problems = read_files(files)
        opened = open_system(run, writing)
        named, documents = usable(opened, texts, problems)
        names = [name for name, _ in named]
        progress = partial(
            tqdm, desc="summaries", unit=" batches", delay=2, leave=False, disable=process.rank > 0
        )
        attention = bool(writing.html or writing.json)
        how: dict[str, Any] = {"attention": attention, "progress": progress, "process": process}
        parts = (documents[start : start + AT_ONCE] for start in range(0, len(documents), AT_ONCE))
        summaries = chain.from_iterable(opened.summarize(part, **how) for part in parts)
        if process.rank:  # the first process writes what all have made
            deque(summaries, 0)
            return
        print(printable(opened.caution), file=sys.stderr)
        known_names = names_of(documents)
        shown = []
        for number, ((name, text), document, summary) in enumerate(
            zip(named, documents, summaries)
        ):
            left_out = text.left_out if isinstance(text, Text) else Counter()
            notes = remarks(opened, summary, left_out)
            notes += text.notes if isinstance(text, Text) else []
            for note in notes:
                print(printable(f"{name}: {note}"), file=sys.stderr)
            if writing.json:
                line = record(name, summary, notes, left_out)
                if document.id != name:  # a record's own
                    line = {"id": document.id, **line}
                line = json.dumps(line, ensure_ascii=False)
            else:
                heading = f"{name}\n" if len(names) > 1 else ""
                line = "\n" * (number > 0) + heading + "\n".join(summary.readable.sentences)
            print(printable(line), flush=True)  # what is made is not lost
            if writing.html:
                shown.append(_shown(opened, document, name, summary, notes, known_names))
        if writing.html:
            page = write_page(writing.html, model_name(opened), shown, opened.caution)
            print(f"{page}: {len(shown)} summaries, and where the model looked", file=sys.stderr)
        if problems:
            raise CorpusError(f"not summarized: {'; '.join(problems)}")


def open_system(name: Path, writing: SummaryOptions) -> Run | Baseline:
    """Open a run, or a system that needs no training, with the length that is asked for."""
    if str(name) not in BASELINES:
        run = lib.load(name, writing.weights, writing.device)
        return with_length(run, writing.words, writing.min_words)
    from lib.evaluation.baseline_run import WORDS, Baseline

    if writing.min_words is not None:
        raise InputError(f"{name} chooses whole sentences: no --min-words")
    words = WORDS if writing.words is None else writing.words
    if words < 1:
        raise InputError(f"--words must be at least 1, not {words}")
    return Baseline(str(name), words)


def check_page(option: str, page: Path, texts: Sequence[Path]) -> None:
    """Raise InputError for a page that cannot be written, or that would replace one of the
    texts."""
    check_writable(page)
    if page.exists() and any(path.samefile(page) for path in texts):
        raise InputError(
            f"{option} {page}: one of the texts, and would be replaced. Name another file."
        )


def model_name(run: Run | Baseline) -> str:
    """Return the name of a model, or of a system without one, for a page."""
    from lib.evaluation.baseline_run import Baseline

    if isinstance(run, Baseline):
        return run.title
    from lib.papers import title_of

    return title_of(run)


# ---------------------------------------------------------------------------------
# texts


def read_files(files: Sequence[Path]) -> tuple[list[tuple[str, Text | dict]], list[str]]:
    """Return the texts of files, or of standard input, with their names; and what is wrong with the
    files that cannot be read. Raises CorpusError for a file that is not there."""
    named, problems = [], []
    for path in files or [Path("-")]:
        try:
            named += list(read_texts([path]))
        except InputError as error:
            if str(path) != "-" and not path.exists():  # mistyped
                raise
            problems.append(str(error))
    if not named and not problems:
        problems.append(f"{', '.join(map(str, files))}: there is nothing to summarize")
    return named, problems


def usable(
    opened: Run | Baseline, texts: Sequence[tuple[str, Text | dict]], problems: list[str]
) -> tuple[list[tuple[str, Text | dict]], list[Document]]:
    """Return the texts that can be summarized, with their names, and their documents; add what is
    wrong with the others to `problems`. Raises CorpusError where there is none."""
    named, documents = [], []
    for name, text in texts:
        try:
            documents += opened.documents([text], [name])
            named.append((name, text))
        except InputError as error:
            problems.append(str(error))
    if not named:
        raise CorpusError("; ".join(problems))
    return named, documents


def read_texts(files: Sequence[Path]) -> Iterator[tuple[str, Text | dict]]:
    """Yield texts of files, or of standard input, with their names. Raises CorpusError with file
    and line.

    Standard input, also named -, that begins with a brace holds JSON lines.
    """
    for path in files or [Path("-")]:
        if str(path) == "-":
            yield from _standard_input()
            continue
        with reading(path):
            read = records_reader(path)
            yield from _named(
                path.name, read(path) if read else texts_of(path.read_bytes(), str(path))
            )


def _standard_input() -> Iterator[tuple[str, Text | dict]]:
    name = "standard input"
    with reading(name):
        data = sys.stdin.buffer.read()
        if re.match(rb'(?:\xef\xbb\xbf)?\s*(?:\[\s*)?\{\s*"', data):
            yield from _named(name, json_lines(io.BytesIO(data)))
            return
        columns = re.split(rb'["\',;\t]+', data.partition(b"\n")[0].strip().lower())
        names = {column.strip().decode("utf-8-sig", "replace") for column in columns}
        if names & {*ALL_SOURCES} and len(names & KNOWN_KEYS) > 1:
            raise CorpusError(
                f"{name}: a table, it seems, whose columns are {', '.join(sorted(names))}. Write "
                "it to a file NAME.csv, and give that file"
            )
        yield from _named(name, texts_of(data))


def _named(name: str, texts: Iterable[tuple[int, Any]] | list[Text]) -> Iterator[tuple[str, Any]]:
    """Yield records by their lines, or texts, of which several are numbered, with their names."""
    if isinstance(texts, list):
        yield from (
            (f"{name}, article {n}" if len(texts) > 1 else name, text)
            for n, text in enumerate(texts, 1)
        )
        return
    for number, value in texts:
        if isinstance(value, ValueError):
            raise CorpusError(f"{name}, line {number}: {value}")
        yield f"{name}, line {number}", value


# ---------------------------------------------------------------------------------
# summaries


def with_length(run: Run, max_words: int | None, min_words: int | None) -> Run:
    """Return the run with other bounds of its summaries' length, if they are given.

    Raises InputError for a run that chooses sentences, and for bounds that no summary can have.
    """
    if max_words is None and min_words is None:
        return run
    if run.is_extractor:
        raise InputError(
            f"{run.folder}: this model chooses whole sentences: no --words and --min-words"
        )
    longest = run.decode.max_length if max_words is None else max_words
    # Room to end by itself: at one allowed length only, the search would stop in mid-sentence.
    shortest = min(run.decode.min_length, longest * 4 // 5) if min_words is None else min_words
    return replace(run, decode=replace(run.decode, min_length=shortest, max_length=longest))


def remarks(run: Run | Baseline, summary: Summary, left_out: Mapping[str, int]) -> list[str]:
    """Return a line on what was read of a text, and others if it is too short or too strange for
    the model.

    left_out: numbers of the words of the file that are no sentences, by kind.
    """
    from lib.decoding.field import STRANGE, TOO_SHORT, UNKNOWN
    from lib.evaluation.baseline_run import Baseline

    lines = [str(summary.reading)]
    if left_out:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in left_out.items())
        lines[0] += f"; not read, in words: {kinds}"
    if isinstance(run, Baseline):
        return lines
    length = sum(map(len, summary.source))
    if not run.is_extractor and length < (shortest := run.decode.min_length):
        unit = "pieces" if run.in_pieces else "words and marks"
        lines.append(TOO_SHORT.format(length=length, unit=unit, shortest=shortest))
    if run.field and run.field.is_unlike(summary.source):
        lines.append(run.field.warning)
    elif summary.reading.unknown > STRANGE:
        share = f"{summary.reading.unknown:.0%}"
        lines.append(UNKNOWN.format(share=share, corpus=run.config["corpus"]))
    return lines


def record(
    name: str, summary: Summary, notes: Sequence[str] = (), left_out: Mapping[str, int] = {}
) -> dict:
    """Return a summary as JSON has it; `copied` are the words that were rather copied than
    generated."""
    reading, tokens = summary.reading, chain.from_iterable(summary.tokens)
    return {
        "name": name,
        "readable": summary.readable.sentences,
        "sentences": summary.sentences,
        "score": round(summary.score, 4),
        "copied": [
            token.strip() for token, was_copied in zip(tokens, summary.copied) if was_copied
        ],
        "words": {
            "read": reading.words,
            "all": reading.all_words,
            "left_out": sum(left_out.values()),
            "by_kind": dict(left_out),
        },
        "sections_read": reading.sections,
        "unknown": round(reading.unknown, 4),
        "notes": list(notes),
    }


def _shown(
    run: Run | Baseline,
    document: Document,
    name: str,
    summary: Summary,
    notes: list[str],
    names: Names,
) -> ShownDocument:
    """Return a summary for the page."""
    from lib.evaluation.baselines import lexrank
    from lib.page.summary_page import ShownDocument, ShownText

    words = sum(len(sentence.split()) for sentence in summary.readable.sentences)
    text = ShownText(summary.reading, run.unit, document.title)
    lacks, carriers = text.support(summary.readable.tokens, names)
    return ShownDocument(
        document.title or name,
        summary.reading.rows,
        run.unit,
        summary.readable.tokens,
        {key: value for key, value in summary.attention.items() if key != "importance"},
        summary.copied or None,
        unfinished=len(summary.readable.tokens) > len(summary.readable.sentences),
        notes=notes,
        sections=summary.reading.row_sections,
        unread=summary.reading.unread,
        spans=text.spans,
        lacks=lacks,
        carriers=carriers,
        lexrank=[] if run.is_extractor else lexrank(document.sentences, max(1, words)),
    )


main = partial(run_command, "lib.summarize", __doc__, summarize)

if __name__ == "__main__":
    main()
