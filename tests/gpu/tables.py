"""Tables of the plan and of what was measured, as numbers and texts that `companion.results.text`
writes."""

import json
from collections.abc import Mapping
from math import log
from pathlib import Path

from companion.results.tables import TRAINED
from lib.papers import PAPERS
from lib.system.files import trained_folder
from lib.system.metrics import read_metrics
from lib.training.folder import read_config
from tests.gpu import checks
from tests.gpu.cases import PAPER_CASES
from tests.gpu.checks import PRECISIONS, TOLERANCE
from tests.gpu.machines import GPUS, LAUNCH
from tests.gpu.pieces import finished
from tests.gpu.plan import PLAN, WORLDS, step_seconds

SHARES = (0.1, 0.25, 0.5, 0.75, 1)  # of a training
PLAN_COMMAND = "python -m tests.gpu plan --keep"
RUN_COMMAND = "python -m tests.gpu keep runs/gpu/NAME/results.json"
Table = dict[str, object]


def table_of(
    name: str, title: str, columns: list[str], lines: Mapping[str, list[str]], command: str = ""
) -> Table:
    made = {"table": name, "title": title, "columns": columns, "lines": dict(lines)}
    return {**made, "command": command} if command else made


def label(row: dict, corpora: list[str]) -> str:
    """A row's paper, preset and corpora."""
    preset = "" if row["preset"] == "paper" else f" {row['preset'].replace('_', ' ')}"
    return (
        f"{PAPERS[row['paper']].title}{preset}, "
        f"{' and '.join(name.partition(':')[0] for name in corpora)}"
    )


def of_plan(summary: dict) -> dict[str, Table]:
    """The plan's tables by their names: a step, the hours, and curves to compare."""
    rows = {label(row, list(row["updates"])): row for row in summary["rows"].values()}
    return {
        "gpu_step_table": table_of(
            "gpu_step_table",
            "What one update asks of one GPU, counted",
            ["documents", "words of a text, of a summary", "parameters", "TFLOP", "GB moved", "launches", "waits",
             "GB at rest", "GB at most"],
            {name: _of_step(row["by_processes"]["1"]) for name, row in rows.items()}, PLAN_COMMAND,
        ),
        "gpu_hours_table": table_of(
            "gpu_hours_table",
            "Hours of the whole training, computed and not measured",
            ["updates", *(f"{n} {gpu}" for gpu in GPUS for n in WORLDS), "of it launches (1 A100, 1 H100)"],
            dict(line for row in summary["rows"].values() for line in _of_hours(row)), PLAN_COMMAND,
        ),
        "gpu_curves_table": of_curves(),
    }  # fmt: skip


def of_curves() -> Table:
    """The validation loss of the shipped runs by the share of their training, and the logarithm of
    what they choose from."""
    lines = {}
    for name, run in TRAINED.items():
        folder = trained_folder(name)
        losses = {m["step"]: m["nll"] for m in read_metrics(folder) if m["split"] == "val"}
        nearest = [
            min(losses, key=lambda step, s=share: abs(step - s * max(losses))) for share in SHARES
        ]
        size = read_config(folder)["model"]["vocab_size"]
        lines[run.title] = [
            f"{size:,}",
            f"{log(size):.1f}",
            f"{max(losses):,}",
            *(f"{losses[n]:.2f}" for n in nearest),
        ]
    columns = [
        "words or pieces",
        "logarithm",
        "updates",
        *(f"{100 * share:g}%" for share in SHARES),
    ]
    title = "Validation loss (nats a word) of the shipped runs, after a share of their updates"
    return table_of("gpu_curves_table", title, columns, lines, PLAN_COMMAND)


def _of_step(counted: dict) -> list[str]:
    state = 4 * counted["parameters"] + counted["optimizer_bytes"]
    return [
        f"{counted['documents']}", f"{counted['source']:,}, {counted['target']}",
        f"{counted['parameters'] / 1e6:.1f}M",
        f"{counted['flop'] / 1e12:.2f}", f"{counted['moved'] / 1e9:.0f}", f"{counted['launches']:,}",
        f"{counted['synchronisations']}", f"{state / 1e9:.2f}", f"{counted['peak_bytes'] / 1e9:.1f}",
    ]  # fmt: skip


def _of_hours(row: dict) -> list[tuple[str, list[str]]]:
    """A line for each corpus."""
    found, launched = [], row["by_processes"]["1"]["launches"]
    for corpus, updates in row["updates"].items():
        hours = {
            gpu: [updates * step_seconds(row["by_processes"][str(n)], gpu) / 3600 for n in WORLDS]
            for gpu in GPUS
        }
        shares = [
            f"{100 * updates * launched * LAUNCH / 3600 / hours[gpu][0]:.0f}%" for gpu in GPUS
        ]
        cells = [f"{h:.0f}" if h >= 10 else f"{h:.1f}" for gpu in GPUS for h in hours[gpu]]
        found.append((label(row, [corpus]), [f"{updates:,}", *cells, ", ".join(shares)]))
    return found


# ---------------------------------------------------------------------------------
# what was measured


def report(folder: Path, names: list[str], left: list[str], device: str) -> tuple[dict, str]:
    """The results of the pieces in a folder, beside the plan, and the same to be read."""
    found = {name: made for name in names if (made := finished(folder, name))}
    results = checks.results(found, json.loads(PLAN.read_text(encoding="utf-8")), device)
    return {**results, "not done": left, "pieces": found}, of_results(results, left)


def of_results(results: dict, left: list[str]) -> str:
    """The report of `run`: a list for each kind of piece, one item for each piece."""
    parts = [f"# {results['device']}, PyTorch {results['torch']}"]
    for kind, made in results["kinds"].items():
        items = [
            f"* {name}: {'; '.join(f'{key} {_rounded(value)}' for key, value in row.items())}"
            for name, row in made.items()
        ]
        parts.append("\n".join([f"## {kind}", "", *items]))
    if left:
        parts.append(f"Not done: {', '.join(left)}. The same command goes on with them.")
    parts.append(
        f"Failed: {', '.join(results['failed'])}." if results["failed"] else "Nothing failed."
    )
    return "\n\n".join(parts) + "\n"


def _rounded(value: object) -> object:
    return f"{value:.4g}" if isinstance(value, float) else value


def of_measured(results: dict) -> dict[str, Table]:
    """The tables of what a GPU has shown that stand in a text, by their names."""
    kinds, on = (
        results["kinds"],
        f"on an {results['device'].removeprefix('NVIDIA ')}{results.get('note', '')}",
    )
    columns = ["float32", "TF32", "bfloat16", "planned", "measured / planned", "measured / floor", "the GPU computes",
               "memory", "planned memory", "whole training"]  # fmt: skip
    papers = dict.fromkeys(name.partition("/")[0] for name in kinds["step"])
    lines = {PAPERS[paper].title: _of_paper(paper, kinds) for paper in papers}
    made = {
        "gpu_equality_table": (f"{EQUALITY}, {on}", *_equality(kinds["equality"])),
        "gpu_measured_table": (f"An update {on}", columns, lines),
    }
    return {name: table_of(name, *table, RUN_COMMAND) for name, table in made.items()}


def _of_paper(paper: str, kinds: dict[str, dict]) -> list[str]:
    """Seconds of an update by precision, and of float32: beside the plan, the kernels' share of
    them, memory, and hours of the updates of its first corpus."""
    found = {
        name.partition("/")[2]: row
        for name, row in kinds["step"].items()
        if name.startswith(f"{paper}/")
    }
    times = [
        f"{found[p]['seconds']:.3f} s" if "seconds" in found.get(p, {}) else "" for p in PRECISIONS
    ]
    row, kernels = found["float32"], kinds["kernels"].get(paper)
    measured, planned = row["seconds"], row["planned_seconds"]
    busy = f"{100 * kernels['seconds'] / measured:.0f}%" if kernels else ""
    memory = [f"{row[key]:.1f} GB" for key in ("memory_gb", "planned_gb")]
    case = PAPER_CASES[paper]
    hours = f"{case.updates(case.corpora[0]) * measured / 3600:.0f} hours"
    ratios = [f"{measured / planned:.1f}", f"{measured / row['floor_seconds']:.0f}"]
    return [*times, f"{planned:.3f} s", *ratios, busy, *memory, hours]


EQUALITY = "Losses and gradients beside the CPU's, the largest difference"


def _equality(made: dict[str, dict]) -> tuple[list[str], dict[str, list[str]]]:
    """Of each paper the variants, and the largest difference of any: columns and lines."""
    lines = {}
    for paper in dict.fromkeys(name.partition("/")[0] for name in made):
        rows = [row for name, row in made.items() if name.startswith(f"{paper}/")]
        found = {
            p: [row["difference"][p] for row in rows if p in row["difference"]] for p in TOLERANCE
        }
        largest = [f"{max(values):.1e}" if values else "" for values in found.values()]
        lines[PAPERS[paper].title] = [
            str(len(rows)),
            *largest,
            str(sum(not row["ok"] for row in rows)),
        ]
    return ["variants", "float64", "float32", "bfloat16, the loss", "too far"], lines
