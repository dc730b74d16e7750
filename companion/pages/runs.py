"""Train, open, describe and measure the runs of a page."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
from torch import nn

from companion.pages.figures import lines
from companion.pages.shown import PageFigures, ShownFigure
from lib.data.corpus import Corpus, unseen
from lib.data.documents import Document
from lib.data.named_corpora import IN_BOTH
from lib.data.prepared import PreparedCorpus, code_of
from lib.decoding.run import Run
from lib.papers.paper import Setup
from lib.system.files import project_root, work_folder
from lib.system.fingerprints import digest
from lib.training.folder import determining, run_config
from lib.training.loop import evaluate_loss, train


def unseen_papers(corpus: Corpus, limit: int | None = None) -> list[Document]:
    """Return the first test documents of a corpus, without those that shipped runs have learned
    from."""
    return unseen(corpus, "test", [other for _, other in IN_BOTH], limit, tell=False)


def train_or_load(
    setup: Setup, model: nn.Module, corpus: PreparedCorpus, output: str = "", progress: bool = False
) -> Run:
    """Train as `python -m lib.train` does, or load the result if it is there: the same
    configuration, data and code.

    The run is saved in `output`, or in a folder of the `work_folder` named after all that
    determines it.
    """
    code = code_of(train, type(model))
    made_of = digest([determining(run_config(setup.recipe, model, corpus, setup.train)), code])
    folder = output or work_folder() / f"{setup.paper.name}-{made_of}"
    return train(setup.recipe, model, corpus, setup.train, folder, resume=True, progress=progress)


def loss_figure(figures: PageFigures, name: str, run: Run, is_shipped: bool) -> ShownFigure:
    """Draw the loss terms of a run over its steps, or over its hours if it is shipped. A term that
    falls to less than a hundredth has a logarithmic axis."""
    caption = (
        f"Losses of {run.config['variant']} on {run.config['documents']['train']:,} training "
        "documents: of single "
        "batches (line) and on all validation documents (points)."
    )
    halved = _halvings(run)
    caption += " At a dotted line the learning rate is halved." if halved else ""
    label, pace = "step", 1.0
    if is_shipped:
        unit, time = ("hours", run.hours) if run.hours >= 1 else ("minutes", 60 * run.hours)
        label, pace = f"{unit} ({run.step:,} steps)", time / run.step
    panels = []
    for term in [key for key in run.metrics[0] if key not in ("step", "split", "seconds", "loss")]:
        logged = {
            split: [m for m in run.metrics if m["split"] == split and term in m]
            for split in ("train", "val")
        }
        series = {
            s: [[pace * m["step"] for m in ms], [m[term] for m in ms]]
            for s, ms in logged.items()
            if ms
        }
        lowest, highest = (
            f(value for _, values in series.values() for value in values) for f in (min, max)
        )
        falls = 0 < 100 * lowest < highest
        panels.append(
            {
                "title": term,
                "series": series,
                "styles": {"train": "-", "val": "o--"},
                "marks": [pace * step for step in halved],
                "xlabel": label,
                "ylabel": "loss",
                "yscale": "log" if falls else "linear",
                "zero": lowest < 0.2 * highest and not falls,
            }
        )
    return figures.show(lines, caption, name, panels=panels, width=max(3.4, 4.4 / len(panels)))


def _halvings(run: Run) -> list[float]:
    """List the steps after which the learning rate is halved, of a run that has done all its
    epochs."""
    after, epochs = (run.config["train"][name] for name in ("halve_after", "epochs"))
    if after is None or run.config["train"]["steps"] is not None:
        return []
    return [run.step * epoch / epochs for epoch in range(after, epochs)]


def nll_by_text(run: Run, documents: Sequence[Document]) -> pd.Series:
    """Compute the mean -log P of a word (piece) of the references, given their own texts, and given
    the text of the next document. The cost of the exchange is the information that a model takes
    from the text."""
    following = [*documents[1:], *documents[:1]]
    others = [
        replace(
            document, title=other.title, sections=other.sections, section_names=other.section_names
        )
        for document, other in zip(documents, following)
    ]
    encoded = {"its own": run.encode(documents), "the next one's": run.encode(others)}
    nll = {
        name: evaluate_loss(run.model, split, 8, len(run.vocabulary))["nll"]
        for name, split in encoded.items()
    }
    return pd.Series(nll, name="nll")


def run_module(module: str, *arguments: str, threads: int | None = None) -> None:
    """Run `python -m MODULE ARGUMENTS` in a process of its own, which may use as many `threads`.
    Raises RuntimeError with what it wrote when it fails."""
    environment = {**os.environ, **({"OMP_NUM_THREADS": str(threads)} if threads else {})}
    command = [sys.executable, "-m", module, *arguments]
    run = subprocess.run(
        command, cwd=project_root(), env=environment, capture_output=True, encoding="utf-8"
    )
    if run.returncode:
        raise RuntimeError(f"python -m {module} failed:\n{run.stdout[-1000:]}{run.stderr[-2000:]}")
