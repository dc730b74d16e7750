"""Show what trained runs write and look at: the papers' tables of samples, and their pictures of attention.

    python -m companion.show_runs samples mem2mem_table6 --dataset pmc-sample --output T.json Mem2Mem=trained/mem2mem
    python -m companion.show_runs attention mem2mem_figure3 --dataset pmc-sample --output F.png Mem2Mem=trained/mem2mem

`companion/workflow/Snakefile` makes the runs and calls these. Of a corpus whose texts may not be published, samples have the
number of the document in place of its title, its text and its reference.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import lib
from companion.pages.figures import attention_maps, draw, maximum_attention, shaded_words, use_style
from lib.data.registry import is_private
from lib.data.corpora import check_unpublished, load_corpus, unseen
from lib.data.documents import Document
from lib.decoding.run import Run, Summary
from lib.evaluation.baselines import lead
from lib.papers import made_of_runs_named
from lib.papers.tables import DECODINGS, RunFigure, Samples
from lib.system.command_line import command_parser, plain_errors
from lib.system.errors import InputError, did_you_mean, printable
from lib.system.files import check_replaces, write_json, write_whole

BEGINNING = 3  # sentences of a text that stand above what is written of it
EXTRACTS = {"lead-3": lambda document: lead(document.sentences, 3)}  # rows that are no runs

# ------------------------------------------------------------------------------------------------------- samples


def samples(name: str, runs: dict[str, Run], documents: Sequence[Document], corpus: str) -> dict:
    """A table of summaries in plain values: of each document what every row writes.

    runs: by the label of their row; rows without a run are left out. Where no n-gram is forbidden to come twice by a
    run's own decoding, it writes once, otherwise twice: with and without that rule.
    """
    table = made_of_runs_named(name)[1]
    by_row = {}
    for row in table.rows:
        if row.part in EXTRACTS:
            by_row[row.label] = [" ".join(EXTRACTS[row.part](document)) for document in documents]
        elif row.label in runs:
            by_row |= _written(row.label, runs[row.label], documents)
    hidden, shown = is_private(corpus), []
    for number, document in enumerate(documents):
        record = {"number": number + 1, "summaries": {label: texts[number] for label, texts in by_row.items()}}
        if not hidden:
            beginning, reference = document.sentences[:BEGINNING], document.summary
            record |= {"id": document.id, "title": document.title}
            record |= {"text": " ".join(beginning), "reference": " ".join(reference)}
        shown.append(record)
    return {"samples": name, "title": table.title, "corpus": corpus, "documents": shown}


def _written(label: str, run: Run, documents: Sequence[Document]) -> dict[str, list[str]]:
    rules = DECODINGS if run.decode.block_ngrams else {"": 0}
    summaries = {}
    for how, size in rules.items():
        chosen = replace(run, decode=replace(run.decode, block_ngrams=size))
        summaries[f"{label}, {how}" if how else label] = list(map(str, chosen.summarize(documents)))
    return summaries


def samples_text(numbers: dict) -> str:
    """Samples as they are read: Markdown."""
    parts = [f"**{numbers['title']}.** Test documents of `{numbers['corpus']}`."]
    for document in numbers["documents"]:
        head = [f"**Document {document['number']}**"]
        if "id" in document:
            head = [f"**{document['title'] or document['id']}** (`{document['id']}`)", f"> {document['text']}"]
            head.append(f"*reference*: {document['reference']}")
        parts += [*head, *(f"*{label}*: {text}" for label, text in document["summaries"].items())]
    return "\n\n".join(parts) + "\n"


# ----------------------------------------------------------------------------------------------------- attention


def _heads(summary: Summary, title: str) -> dict:
    return {"title": title, "weights": summary.attention["heads"], "columns": "sentence"}  # [r, L]


def _slots(summary: Summary, title: str) -> dict:
    return {"title": title, "weights": summary.attention["slots"].T, "columns": "word of the summary"}  # [r, T]


def _seen(run: Run, documents: Sequence[Document], name: str) -> list[Summary]:
    """Summaries with what the run looked at, `name` among it."""
    summaries = run.summarize(documents, attention=True)
    if any(name not in summary.attention for summary in summaries):
        raise InputError(f"{run.folder}: a {run.config['variant']} run has no {name} to draw")
    return summaries


def _maps(panel: Callable[[Summary, str], dict], name: str) -> Callable[..., None]:
    def drawn(figure: RunFigure, runs: dict[str, Run], documents: Sequence[Document], output: Path) -> None:
        panels = []
        for label, run in runs.items():
            for number, summary in enumerate(_seen(run, documents, name), 1):
                panels.append(panel(summary, label if len(documents) == 1 else f"{label}, paper {number}"))
        top = max(float(p["weights"].max()) for p in panels)
        draw(
            attention_maps, output.stem, output.parent, figure.title,
            panels=panels, rows="slot", columns="", top=top,
        )  # fmt: skip

    return drawn


def _largest(figure: RunFigure, runs: dict[str, Run], documents: Sequence[Document], output: Path) -> None:
    (run,) = runs.values()
    (summary,) = run.summarize(documents[:1], attention=True)
    weights = summary.attention["words"]  # [T, N]
    config, words = run.config["model"], weights.shape[1]
    windows = summary.attention.get("window", np.zeros(len(weights), dtype=int))
    draw(
        maximum_attention, output.stem, output.parent, figure.title,
        places=weights.argmax(1), weights=weights.max(1), windows=windows, words=words,
        window=config["window"] or words, stride=config["stride"] or 1,
    )  # fmt: skip


def _importance(figure: RunFigure, runs: dict[str, Run], documents: Sequence[Document], output: Path) -> None:
    (run,) = runs.values()
    panels = []
    for summary in _seen(run, documents, "importance"):
        words = [word.strip() for sentence in summary.source for word in sentence]
        panels.append({"title": str(summary), "words": words, "weights": summary.attention["importance"]})
    draw(shaded_words, output.stem, output.parent, figure.title, panels=panels, label="mean α")


# by the name of what is shown: heads [r, L] and slots [T, r] of a memory, the largest of the weights of words [T, N],
# the importance [N] of the words of a text
MAPS = {
    "heads": _maps(_heads, "heads"), "slots": _maps(_slots, "slots"), "largest": _largest, "importance": _importance,
}  # fmt: skip

# -------------------------------------------------------------------------------------------------- command line


KINDS = {Samples: "samples", RunFigure: "attention"}
_WHAT = {Samples: "a table of samples", RunFigure: "a figure of attention"}


def main(arguments: list[str] | None = None) -> None:
    parser = command_parser("companion.show_runs", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for kind, command in KINDS.items():
        one = commands.add_parser(command, help=_WHAT[kind])
        one.add_argument("name", help="of the paper's table or figure")
        one.add_argument("runs", nargs="+", metavar="LABEL=FOLDER", help="the run of each row")
        one.add_argument("--dataset", required=True)
        one.add_argument("--documents", type=int, help="the first so many of the test split")
        one.add_argument("--output", required=True, type=Path, help="NAME.json, or NAME.png for a figure")
    args = parser.parse_args(arguments)
    with plain_errors():
        shown = made_of_runs_named(args.name)[1]
        if args.command != KINDS[type(shown)]:
            raise InputError(
                f"{args.name} is {_WHAT[type(shown)]}: python -m companion.show_runs {KINDS[type(shown)]}"
            )
        _check_output(args.output, shown)
        if isinstance(shown, RunFigure) and shown.attention == "importance":  # its panels are the texts
            check_unpublished(args.output.with_suffix(".json"), args.dataset)
        folders = _folders(args.runs, [row.label for row in shown.rows if row.run], args.name)
        count = shown.documents if args.documents is None else args.documents
        runs = {label: lib.load(folder, device="cpu") for label, folder in folders.items()}
        trained_on = [run.config["corpus"] for run in runs.values()]
        documents = unseen(load_corpus(args.dataset), "test", trained_on, count)
        if isinstance(shown, RunFigure):
            use_style()
            MAPS[shown.attention](shown, runs, documents, args.output)
            return
        numbers = samples(args.name, runs, documents, Path(args.dataset).name)
        write_json(args.output, numbers)
        write_whole(args.output.with_suffix(".md"), samples_text(numbers))
        print(printable(samples_text(numbers)))


def _check_output(path: Path, shown: Samples | RunFigure) -> None:
    """Raise ValueError or OSError where numbers, and the Markdown or the picture beside them, cannot be written."""
    if isinstance(shown, Samples):
        check_replaces(path, "table of samples", ("samples", "documents"), path.with_suffix(".md"))
    else:
        check_replaces(path.with_suffix(".json"), "figure", ("plot",), path.with_suffix(".png"))


def _folders(pairs: Sequence[str], labels: list[str], name: str) -> dict[str, Path]:
    folders = {}
    for pair in pairs:
        label, _, folder = pair.partition("=")
        if label not in labels or not folder:
            raise InputError(f"{pair!r}: a run is LABEL=FOLDER, and a row of {name}{did_you_mean(label, labels)}")
        folders[label] = Path(folder)
    return folders


if __name__ == "__main__":
    main()
