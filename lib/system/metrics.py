"""The losses that a run logs while it is trained: metrics.jsonl in its folder."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np


def read_metrics(folder: str | Path) -> list[dict]:
    """Read metrics.jsonl of a run, line by line; a last line that was cut off is left out."""
    path = Path(folder) / "metrics.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def hours_of(metrics: list[dict]) -> float:
    """Return the hours of training, by the median time of a step: pauses do not count."""
    timed = [m for m in metrics if "seconds" in m]
    paces = []  # seconds of a step
    for a, b in pairwise(timed):
        steps = b["step"] - a["step"]
        seconds = b["seconds"] - a["seconds"]
        # Where a run was resumed, the clock begins again.
        if steps and seconds / steps > 0:
            paces.append(seconds / steps)
    if not paces:
        return 0.0
    return max(m["step"] for m in metrics) * float(np.median(paces)) / 3600
