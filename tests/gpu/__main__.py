"""What a person with a GPU needs: a plan without one, and checks with one.

    python -m tests.gpu plan --keep            # hours and memory of the papers' presets, counted
    python -m tests.gpu run                    # on a GPU: results as on the CPU, speed, memory
    python -m tests.gpu run --device pretend   # the same pieces, tried without a GPU
    python -m tests.gpu run 'step/*' --list    # what there is
    python -m tests.gpu keep FOLDER/results.json       # put what it has shown into the texts

All work in pieces, in the folder `runs/gpu`: a run that was stopped goes on where it was.
`plan --keep` writes `tests/gpu/plan.json`, `keep` writes `measured.json`, and both the tables of
the texts.
"""

import sys
from functools import partial
from pathlib import Path
from typing import Literal

import torch

from companion.results import places
from companion.results.tables import slug
from companion.results.text import markdown
from lib.system.command_line import run_command
from lib.system.errors import RunError
from lib.system.files import project_root, read_numbers, write_json, write_whole
from tests.gpu import checks, plan, tables
from tests.gpu.checks import MEASURED
from tests.gpu.pieces import chosen, do, do_here, finished
from tests.gpu.places import called
from tests.gpu.plan import PLAN

FOLDER = project_root() / "runs" / "gpu"
README = Path(__file__).with_name("README.md")
Device = Literal["cuda", "cpu", "pretend"]
Pieces = tuple[str, ...]  # names, or patterns such as 'step/*'


def do_pieces(pieces: Pieces = (), /, *, device: Device = "cpu", folder: Path = FOLDER) -> None:
    """Do pieces in this process."""
    do_here(list(pieces), {**plan.pieces(), **checks.pieces()}, device, folder)


def make_plan(
    pieces: Pieces = (),
    /,
    *,
    device: Device = "cpu",
    folder: Path = FOLDER,
    list: bool = False,
    keep: bool = False,
) -> None:
    """Count the plan.

    Args:
        folder: where pieces are written.
        list: name the pieces, and do nothing.
        keep: put what was counted into the texts.
    """
    names = chosen(plan.pieces(), pieces)
    if list:
        print(*names, sep="\n")
        return
    if left := do(names, device, folder / "plan"):
        sys.exit(f"not done: {', '.join(left)}")
    if pieces:
        return
    summary = plan.summary({name: finished(folder / "plan", name) or {} for name in names})
    print(*(markdown(table) for table in tables.of_plan(summary).values()), sep="\n\n")
    if keep:
        write_json(PLAN, summary)
        keep_tables(tables.of_plan(summary))


def keep_tables(found: dict[str, tables.Table]) -> None:
    """Put tables into the README beside this file, or among those that the project keeps, and in
    its texts."""
    text = README.read_text(encoding="utf-8")
    contents = {name: markdown(table) for name, table in found.items()}
    write_whole(README, places._rendered(text, contents))
    for name, table in found.items():
        if f"<!-- table {name} -->" not in text:
            write_json(project_root() / "figures" / f"{name}.json", table)
    places.render()


def keep_results(results: Path, /) -> None:
    """Put what a GPU has shown, its results.json, into the texts."""
    keys = ("device", "torch", "failed", "kinds")
    measured = read_numbers(results, "results", keys)
    write_json(MEASURED, {key: measured[key] for key in keys})
    keep_tables(tables.of_measured(measured))


def run_checks(
    pieces: Pieces = (), /, *, device: Device = "cuda", folder: Path = FOLDER, list: bool = False
) -> None:
    """Check and measure on a GPU.

    Args:
        folder: where pieces are written.
        list: name the pieces, and do nothing.
    """
    names = chosen(checks.pieces(), pieces)
    if list:
        print(*names, sep="\n")
    elif device == "cuda" and not torch.cuda.is_available():
        without = "python -m tests.gpu run --device pretend tries the same without a GPU."
        raise RunError(f"{no_gpu()} Nothing was run. {without}")
    else:
        place = folder / slug(called(device))
        left = do(names, device, place)
        results, text = tables.report(place, names, left, called(device))
        write_json(place / "results.json", results)
        write_whole(place / "results.md", text)
        print(text)
        sys.exit(1 if left or results["failed"] else 0)


def no_gpu() -> str:
    """Say why PyTorch finds no GPU, as far as it can be known, and what to do."""
    if torch.version.cuda or torch.version.hip:
        return (
            f"PyTorch {torch.__version__} finds no GPU here. If nvidia-smi lists one, "
            "its driver may be too old for this build, or CUDA_VISIBLE_DEVICES hides it."
        )
    return (
        f"PyTorch {torch.__version__} is a CPU build, which uses no GPU. "
        "For the CUDA build: rm -rf .venv, then make CUDA=1 gpu."
    )


COMMANDS = {"plan": make_plan, "run": run_checks, "piece": do_pieces, "keep": keep_results}
main = partial(run_command, "tests.gpu", __doc__, COMMANDS)

if __name__ == "__main__":
    main()
