"""Draw samples of what trained runs write and look at: the papers' tables of summaries and pictures of attention.

    python -m companion.draw_samples mem2mem_table6 --dataset pmc-sample --output T.json Mem2Mem=trained/mem2mem
    python -m companion.draw_samples mem2mem_figure3 --dataset aclsum --output F.png Mem2Mem=trained/mem2mem

`workflow/Snakefile` makes the runs and calls these. Of a corpus whose texts may not be published, samples
have the number of the document instead of its title, its text and its reference.
"""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import lib
from companion.pages.figures import attention_maps, draw, maximum_attention, shaded_words, use_style
from companion.results.tables import SHOWN
from lib.data.corpora import check_unpublished, load_corpus, unseen
from lib.data.documents import Document
from lib.data.registry import is_private
from lib.decoding.run import Run, Summary
from lib.decoding.search import DECODINGS
from lib.evaluation.baselines import lead
from lib.system.command_line import command_parser, plain_errors
from lib.system.errors import InputError, one_of, printable
from lib.system.files import write_json, write_whole

BEGINNING = 3  # sentences of a document that are shown before its summaries

# ------------------------------------------------------------------------------------------------------- samples


def samples(name: str, runs: dict[str, Run], documents: Sequence[Document], corpus: str) -> dict:
    """Make a table of summaries: what every row writes of each document.

    runs: by the label of their row; rows without a run are left out. A run whose own decoding blocks n-grams writes
    twice, with and without that rule.
    """
    table, by_row = SHOWN[name], {}
    for row in table.rows:
        if row.part == "lead-3":
            by_row[row.label] = [" ".join(lead(document.sentences, 3)) for document in documents]
        elif row.label in runs:
            run = runs[row.label]
            for how, size in (DECODINGS if run.decode.block_ngrams else {"": 0}).items():
                chosen = replace(run, decode=replace(run.decode, block_ngrams=size))
                label = f"{row.label}, {how}" if how else row.label
                by_row[label] = list(map(str, chosen.summarize(documents)))
    shown = []
    for number, document in enumerate(documents):
        record = {"number": number + 1, "summaries": {label: texts[number] for label, texts in by_row.items()}}
        if not is_private(corpus):
            record["id"] = document.id
            record["title"] = document.title
            record["text"] = " ".join(document.sentences[:BEGINNING])
            record["reference"] = " ".join(document.summary)
        shown.append(record)
    return {"samples": name, "title": table.title, "corpus": corpus, "documents": shown}


def samples_text(numbers: dict) -> str:
    """Write samples as Markdown."""
    parts = [f"**{numbers['title']}.** Test documents of `{numbers['corpus']}`."]
    for document in numbers["documents"]:
        if "id" in document:
            parts.append(f"**{document['title'] or document['id']}** (`{document['id']}`)")
            parts += [f"> {document['text']}", f"*reference*: {document['reference']}"]
        else:
            parts.append(f"**Document {document['number']}**")
        parts += [f"*{label}*: {text}" for label, text in document["summaries"].items()]
    return "\n\n".join(parts) + "\n"


# ----------------------------------------------------------------------------------------------------- attention


def _summaries(run: Run, documents: Sequence[Document], name: str) -> list[Summary]:
    """Summarize documents; raise InputError where the run has no such attention."""
    summaries = run.summarize(documents, attention=True)
    if any(name not in summary.attention for summary in summaries):
        raise InputError(f"{run.folder}: a {run.config['variant']} run has no {name} to draw")
    return summaries


def _memory(runs: dict[str, Run], documents: Sequence[Document], name: str, columns: str) -> tuple[Any, dict]:
    """Panels of a memory's weights [r slots, columns] for each run and document."""
    panels = []
    for label, run in runs.items():
        for number, summary in enumerate(_summaries(run, documents, name), 1):
            weights = summary.attention[name]
            weights = weights.T if name == "slots" else weights
            title = label if len(documents) == 1 else f"{label}, paper {number}"
            panels.append({"title": title, "weights": weights, "columns": columns})
    top = max(float(panel["weights"].max()) for panel in panels)
    return attention_maps, {"panels": panels, "rows": "slot", "columns": "", "top": top}


def _largest(runs: dict[str, Run], documents: Sequence[Document]) -> tuple[Any, dict]:
    """The word with the largest weight at each step, of one run and document."""
    (run,) = runs.values()
    (summary,) = run.summarize(documents[:1], attention=True)
    weights = summary.attention["words"]  # [T, N]
    config, words = run.config["model"], weights.shape[1]
    return maximum_attention, {
        "places": weights.argmax(1),
        "weights": weights.max(1),
        "windows": summary.attention.get("window", np.zeros(len(weights), dtype=int)),
        "words": words,
        "window": config["window"] or words,
        "stride": config["stride"] or 1,
    }


def _importance(runs: dict[str, Run], documents: Sequence[Document]) -> tuple[Any, dict]:
    """The words of texts, as dark as they are important to one run."""
    (run,) = runs.values()
    panels = []
    for summary in _summaries(run, documents, "importance"):
        words = [word.strip() for sentence in summary.source for word in sentence]
        panels.append({"title": str(summary), "words": words, "weights": summary.attention["importance"]})
    return shaded_words, {"panels": panels, "label": "mean α"}


MAPS = {  # by `Shown.attention`: a plot and its numbers
    "heads": partial(_memory, name="heads", columns="sentence"),  # [r, L]
    "slots": partial(_memory, name="slots", columns="word of the summary"),  # [T, r]
    "largest": _largest,
    "importance": _importance,
}

# -------------------------------------------------------------------------------------------------- command line


def main(arguments: list[str] | None = None) -> None:
    parser = command_parser("companion.draw_samples", __doc__)
    parser.add_argument("name", help="of the paper's table of samples, or figure of attention")
    parser.add_argument("runs", nargs="+", metavar="LABEL=FOLDER", help="the run of each row")
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--documents", type=int, help="the first so many of the test split")
    parser.add_argument("--output", required=True, type=Path, help="NAME.json, or NAME.png for a figure")
    with plain_errors():
        _show(parser.parse_args(arguments))


def _show(args: Namespace) -> None:
    shown = SHOWN[one_of(args.name, SHOWN, "table")]
    if shown.attention == "importance":  # its panels are the texts
        check_unpublished(args.output.with_suffix(".json"), args.dataset)
    labels, runs = [row.label for row in shown.rows if row.is_run], {}
    for pair in args.runs:
        label, _, folder = pair.partition("=")
        one_of(label, labels, f"row of {args.name}")
        runs[label] = lib.load(folder, device="cpu")
    trained_on = [run.config["corpus"] for run in runs.values()]
    count = shown.documents if args.documents is None else args.documents
    documents = unseen(load_corpus(args.dataset), "test", trained_on, count)
    if shown.attention:
        plot, numbers = MAPS[shown.attention](runs, documents)
        use_style()
        draw(plot, args.output.stem, args.output.parent, shown.title, **numbers)
        return
    numbers = samples(args.name, runs, documents, Path(args.dataset).name)
    write_json(args.output, numbers)
    write_whole(args.output.with_suffix(".md"), samples_text(numbers))
    print(printable(samples_text(numbers)))


if __name__ == "__main__":
    main()
