"""Neural summarization of long texts: four papers on one small library.

    import lib
    run = lib.load("runs/arxiv")                       # what `python -m lib.train` wrote
    run.summarize(["A text without a reference ..."])

Data flows through the package in this order: `data` (corpora, text, batches), `layers`, `models`, `runs`, `papers` (a
folder each), `results` (tables) and the commands, which `python -m lib` lists; `pages` serves the notebooks.
"""

from pathlib import Path


def load(folder: str | Path, weights: str = "", device: str | None = None):
    """A trained run, to be used: `lib.decoding.run.Run`, with `model`, `vocabulary`, `options`, `decode`, `metrics` and
    `summarize`. Nothing but the folder is needed.

    Args:
        weights: "best", "last", "best-STEP" or "average"; by default those that the run says.
        device: "cuda" where there is one, otherwise "cpu".

    Raises lib.system.errors.RunError when the folder holds no run, or not all of one.
    """
    from lib.papers import open_run  # papers import most of the library

    return open_run(folder, weights, device)
