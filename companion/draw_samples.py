"""Make the papers' tables of summaries and pictures of attention from trained runs.

    python -m companion.draw_samples mem2mem_table6 --dataset pmc-sample --output T.json \\
        Mem2Mem=trained/mem2mem
    python -m companion.draw_samples mem2mem_figure3 --dataset aclsum --output F.png \\
        Mem2Mem=trained/mem2mem

`workflow/Snakefile` makes the runs and calls these. Of a corpus whose texts may not be published,
samples have the number of the document instead of its title, its text and its reference.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import lib
from companion.command import split_labels
from companion.pages.figures import Plot, attention_maps, draw, maximum_attention, shaded_words
from companion.results.tables import SHOWN
from lib.data.corpora import check_unpublished, load_corpus, unseen
from lib.data.documents import Document
from lib.data.registry import is_private
from lib.decoding.config import DECODINGS
from lib.decoding.run import Run, Summary
from lib.evaluation.baselines import lead
from lib.system.command_line import run_command
from lib.system.errors import InputError, one_of, printable
from lib.system.files import write_json, write_whole

BEGINNING = 3  # sentences of a document that are shown before its summaries

# ---------------------------------------------------------------------------------
# samples


def samples(name: str, runs: dict[str, Run], documents: Sequence[Document], corpus: str) -> dict:
    """Make a table of summaries: what every row writes of each document.

    runs: by the label of their row; rows without a run are left out. A run whose own decoding
    blocks n-grams writes twice, with and without that rule.
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
        record = {
            "number": number + 1,
            "summaries": {label: texts[number] for label, texts in by_row.items()},
        }
        if not is_private(corpus):
            record |= {"id": document.id, "title": document.title}
            record["text"], record["reference"] = (
                " ".join(document.sentences[:BEGINNING]),
                " ".join(document.summary),
            )
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


# ---------------------------------------------------------------------------------
# attention

Runs = Mapping[str, Run]
Drawing = tuple[Plot, dict[str, Any]]


def _summaries(run: Run, documents: Sequence[Document], name: str) -> list[Summary]:
    """Summarize documents; raise InputError where the run has no such attention."""
    summaries = run.summarize(documents, attention=True)
    if any(name not in summary.attention for summary in summaries):
        raise InputError(f"{run.folder}: a {run.config['variant']} run has no {name} to draw")
    return summaries


def draw_memory(runs: Runs, documents: Sequence[Document], name: str, columns: str) -> Drawing:
    """Make panels of a memory's weights [r slots, columns] for each run and document."""
    panels = []
    for label, run in runs.items():
        for number, summary in enumerate(_summaries(run, documents, name), 1):
            weights = summary.attention[name]
            title = label if len(documents) == 1 else f"{label}, paper {number}"
            panels.append(
                {
                    "title": title,
                    "weights": weights.T if name == "slots" else weights,
                    "columns": columns,
                }
            )
    top = max(float(panel["weights"].max()) for panel in panels)
    return attention_maps, {"panels": panels, "rows": "slot", "columns": "", "top": top}


def draw_largest(runs: Runs, documents: Sequence[Document]) -> Drawing:
    """Find the word with the largest weight at each step, of one run and document."""
    (run,) = runs.values()
    (summary,) = _summaries(run, documents[:1], "words")
    weights = summary.attention["words"]  # [T, N]
    config, (steps, words) = run.config["model"], weights.shape
    windows = summary.attention.get("window", np.zeros(steps, dtype=int))
    data = {
        "places": weights.argmax(1),
        "weights": weights.max(1),
        "windows": windows,
        "words": words,
    }
    return maximum_attention, {
        **data,
        "window": config["window"] or words,
        "stride": config["stride"] or 1,
    }


def draw_importance(runs: Runs, documents: Sequence[Document]) -> Drawing:
    """Shade the words of texts by their importance in one run."""
    (run,) = runs.values()
    panels = []
    for summary in _summaries(run, documents, "importance"):
        words = [word.strip() for sentence in summary.source for word in sentence]
        panels.append(
            {"title": str(summary), "words": words, "weights": summary.attention["importance"]}
        )
    return shaded_words, {"panels": panels, "label": "mean α"}


MAPS = {  # by `Shown.attention`: a plot and its numbers
    "heads": partial(draw_memory, name="heads", columns="sentence"),  # [r, L]
    "slots": partial(draw_memory, name="slots", columns="word of the summary"),  # [T, r]
    "largest": draw_largest,
    "importance": draw_importance,
}

# ---------------------------------------------------------------------------------
# command line


def draw_samples(
    name: str, runs: tuple[str, ...], /, *, dataset: str, output: Path, documents: int | None = None
) -> None:
    """Write samples, or draw a figure.

    Args:
        name: of the paper's table of samples, or figure of attention.
        runs: LABEL=FOLDER, the run of each row.
        documents: the first so many of the test split.
        output: NAME.json, or NAME.png for a figure.
    """
    shown = SHOWN[one_of(name, SHOWN, "table")]
    if shown.attention == "importance":  # its panels are the texts
        check_unpublished(output.with_suffix(".json"), dataset)
    labels = [row.label for row in shown.rows if row.is_run]
    folders = {
        one_of(label, labels, f"row of {name}"): folder for label, folder in split_labels(runs)
    }
    opened = {label: lib.load(folder, device="cpu") for label, folder in folders.items()}
    trained_on = [run.config["corpus"] for run in opened.values()]
    count = shown.documents if documents is None else documents
    texts = unseen(load_corpus(dataset), "test", trained_on, count)
    if shown.attention:
        plot, numbers = MAPS[shown.attention](opened, texts)
        draw(plot, output.stem, output.parent, shown.title, **numbers)
        return
    numbers = samples(name, opened, texts, Path(dataset).name)
    write_json(output, numbers)
    write_whole(output.with_suffix(".md"), samples_text(numbers))
    print(printable(samples_text(numbers)))


main = partial(run_command, "companion.draw_samples", __doc__, draw_samples)

if __name__ == "__main__":
    main()
