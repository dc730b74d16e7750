"""List the trained runs below a folder, the newest last, with their validation loss and scores.

    python -m companion.runs              # those in runs, where pages and commands put them
    python -m companion.runs trained

The validation loss is the lowest of the run. R-1 is that of the run's scores.json, which `lib.score run` writes.
"""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from companion.command import run_command
from lib.system.errors import CompanionError, InputError
from lib.system.files import work_folder
from lib.training.folder import read_config, read_metrics


def describe_run(folder: Path) -> dict:
    """Describe a run in a row. Raises CompanionError for a run of another version."""
    config, metrics = read_config(folder), read_metrics(folder)
    losses = [m["loss"] for m in metrics if m["split"] == "val"]
    scores = folder / "scores.json"
    summaries = json.loads(scores.read_text("utf-8"))["parts"]["summaries"] if scores.exists() else None
    return {
        "run": str(folder),
        "paper": config["paper"],
        "variant": config["variant"],
        "documents": config["documents"].get("train", 0),
        "steps": metrics[-1]["step"] if metrics else 0,
        "validation loss": f"{min(losses):.3f}" if losses else "",
        "R-1": f"{np.mean(summaries['rouge'], 0)[0]:.2f}" if summaries else "",
    }


def list_runs(folder: Path | None = None, /) -> None:
    """Print a table of runs; those of another version are left out.

    Args:
        folder: by default the project's runs.
    """
    rows, folder = [], folder or work_folder()
    for path in sorted(folder.rglob("config.json"), key=lambda path: path.stat().st_mtime):
        try:
            rows.append(describe_run(path.parent))
        except CompanionError:
            continue
    if not rows:
        raise InputError(f"{folder}: there are no runs. python -m lib.train makes one.")
    print(pd.DataFrame(rows).to_string(index=False))


main = partial(run_command, "companion.runs", __doc__, list_runs)

if __name__ == "__main__":
    main()
