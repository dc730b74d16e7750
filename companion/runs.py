"""List the trained runs below a folder, the newest last, with their validation loss and scores.

    python -m companion.runs              # those in runs, where pages and commands put them
    python -m companion.runs trained

The validation loss is the lowest of the run. R-1 is that of the run's scores.json, which `lib.score run` writes.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from lib.system.command_line import command_parser, plain_errors
from lib.system.errors import CompanionError, InputError
from lib.system.files import work_folder
from lib.training.folder import read_config, read_metrics


def runs_table(folder: Path) -> pd.DataFrame:
    """Describe each run below a folder in a row. Runs of another version are left out."""
    rows = []
    for path in sorted(folder.rglob("config.json"), key=lambda path: path.stat().st_mtime):
        try:
            config, metrics = read_config(path.parent), read_metrics(path.parent)
        except CompanionError:
            continue
        losses = [m["loss"] for m in metrics if m["split"] == "val"]
        rows.append({
            "run": str(path.parent),
            "paper": config["paper"],
            "variant": config["variant"],
            "documents": config["documents"].get("train", 0),
            "steps": metrics[-1]["step"] if metrics else 0,
            "validation loss": f"{min(losses):.3f}" if losses else "",
            "R-1": _rouge_1(path.with_name("scores.json")),
        })  # fmt: skip
    return pd.DataFrame(rows)


def _rouge_1(path: Path) -> str:
    """Read the mean R-1 of a run's summaries from its file of scores."""
    if not path.exists():
        return ""
    return f"{np.mean(json.loads(path.read_text('utf-8'))['parts']['summaries']['rouge'], 0)[0]:.2f}"


def main(arguments: list[str] | None = None) -> None:
    parser = command_parser("companion.runs", __doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="by default the project's runs")
    with plain_errors():
        folder = parser.parse_args(arguments).folder or work_folder()
        table = runs_table(folder)
        if table.empty:
            raise InputError(f"{folder}: there are no runs. python -m lib.train makes one.")
        print(table.to_string(index=False))


if __name__ == "__main__":
    main()
