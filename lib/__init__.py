"""Neural summarization of long texts: four papers on one small library.

    import lib
    run = lib.load("runs/arxiv")                       # what `python -m lib.train` wrote
    run.summarize(["A text without a reference ..."])

Data flows through the package in this order: `data` (corpora, text, batches), `layers`, `models`,
`decoding`, `training`, `evaluation`, `papers` (a folder each), `page` (what a browser shows) and
the commands, which `python -m lib` lists. A file imports from its own folder and from those before
it; `system` is below all of them.
"""

import os
import sys
from pathlib import Path

# `python -m lib.train` would take a torch.py or a datasets.py in the current folder for the package
# of that name
if sys.argv[:1] == ["-m"] and sys.path[:1] == [os.getcwd()] != [
    str(Path(__file__).resolve().parents[1])
]:
    del sys.path[0]


def load(folder: str | Path, weights: str = "", device: str | None = None):
    """Open a trained run: a `lib.decoding.run.Run` with `model`, `vocabulary`, `options`, `decode`
    and `summarize`.

    The folder is all that is needed.

    Args:
        weights: "best", "last", "best-STEP" or "average"; by default those that the run names.
        device: "cuda" where there is one, otherwise "cpu".

    Raises lib.system.errors.RunError when the folder holds no run, or not all of one.
    """
    from lib.papers import open_run  # papers import most of the library

    return open_run(folder, weights, device)
