"""What a person with a GPU needs: a plan without one, and checks with one.

    python -m tests.gpu plan --keep            # what the papers' presets take, counted: hours and memory on two GPUs
    python -m tests.gpu run                    # on a GPU: are the models the CPU's, how fast, how much memory
    python -m tests.gpu run --device pretend   # the same pieces, tried without a GPU
    python -m tests.gpu run 'step/*' --list    # what there is
    python -m tests.gpu prepare --corpus FOLDER        # without a GPU: write what the next command needs
    python -m tests.gpu card --minutes 9 --out FOLDER  # on a GPU for some minutes, without a network
    python -m tests.gpu keep FOLDER/results.json       # put what it has shown into the texts

All work in pieces, in the folder `runs/gpu`: a run that was stopped goes on where it was. `plan --keep` writes
`tests/gpu/plan.json`, `keep` writes `measured.json`, and both the tables of the texts.
"""

import sys
from pathlib import Path

import torch

from companion.results import kept
from companion.results.tables import slug
from companion.results.text import markdown
from lib.system.command_line import command_parser, plain_errors
from lib.system.files import project_root, read_numbers, write_json, write_whole
from tests.gpu import card, checks, plan, tables
from tests.gpu.checks import MEASURED
from tests.gpu.pieces import chosen, do, do_here, finished
from tests.gpu.places import DEVICES, called
from tests.gpu.plan import PLAN

FOLDER = project_root() / "runs" / "gpu"
README = Path(__file__).with_name("README.md")


def main(arguments: list[str] | None = None) -> int | None:
    parser = command_parser("tests.gpu", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("plan", "run", "piece"):
        command = commands.add_parser(name)
        command.add_argument("pieces", nargs="*", metavar="PIECE", help="names, or patterns such as 'step/*'")
        command.add_argument("--device", choices=DEVICES, default="cuda" if name == "run" else "cpu")
        command.add_argument("--folder", type=Path, default=FOLDER, help="where pieces are written")
        command.add_argument("--list", action="store_true", help="name the pieces, and do nothing")
        if name == "plan":
            command.add_argument("--keep", action="store_true", help="put what was counted into the texts")
    command = commands.add_parser("prepare")
    command.add_argument("--corpus", required=True, help="a corpus to train on, by name or folder")
    command.add_argument("--documents", type=int, default=15_000, help="to train on, at most")
    command = commands.add_parser("keep")
    command.add_argument("results", type=Path, help="results.json of a GPU")
    command = commands.add_parser("card")
    command.add_argument("--stages", nargs="+", choices=card.STAGES, default=list(card.STAGES))
    command.add_argument("--minutes", type=float, default=9)
    command.add_argument("--out", type=Path, required=True, help="where the files are written that are to come back")
    command.add_argument("--device", choices=DEVICES, default="cuda")
    for name in ("prepare", "card"):
        commands.choices[name].add_argument("--folder", type=Path, default=card.FOLDER, help="what travels")
        commands.choices[name].add_argument("--preset", default="paper", help="of the models that are trained")
    args = parser.parse_args(arguments)
    with plain_errors():
        return COMMANDS[args.command](args)


def _piece(args) -> int:
    do_here(args.pieces, {**plan.pieces(), **checks.pieces()}, args.device, args.folder)
    return 0


def _plan(args) -> int:
    names = chosen(plan.pieces(), args.pieces)
    if args.list:
        print(*names, sep="\n")
        return 0
    folder = args.folder / "plan"
    if left := do(names, args.device, folder):
        print(f"not done: {', '.join(left)}")
        return 1
    if args.pieces:
        return 0
    summary = plan.summary({name: finished(folder, name) or {} for name in names})
    print(*(markdown(table) for table in tables.of_plan(summary).values()), sep="\n\n")
    if args.keep:
        write_json(PLAN, summary)
        _keep(tables.of_plan(summary))
    return 0


def _keep(found: dict[str, tables.Table]) -> None:
    """Put tables into the README beside this file, or among those that the project keeps, and in its texts."""
    text = README.read_text(encoding="utf-8")
    write_whole(README, kept._rendered(text, found))
    for name, table in found.items():
        if f"<!-- table {name} -->" not in text:
            write_json(project_root() / "figures" / f"{name}.json", table)
    kept.render()


def _keep_results(args) -> None:
    keys = ("device", "torch", "failed", "kinds")
    results = read_numbers(args.results, "results", keys)
    write_json(MEASURED, {key: results[key] for key in keys})
    _keep(tables.of_measured(results))


def _run(args) -> int:
    names = chosen(checks.pieces(), args.pieces)
    if args.list:
        print(*names, sep="\n")
        return 0
    if args.device == "cuda" and not torch.cuda.is_available():
        print(
            f"PyTorch {torch.__version__} sees no GPU here, so nothing was run; "
            "python -m tests.gpu run --device pretend tries the same without one",
            file=sys.stderr,
        )
        return 0
    folder = args.folder / slug(called(args.device))
    left = do(names, args.device, folder)
    results, text = tables.report(folder, names, left, called(args.device))
    write_json(folder / "results.json", results)
    write_whole(folder / "results.md", text)
    print(text)
    return 1 if left or results["failed"] else 0


COMMANDS = {
    "plan": _plan, "run": _run, "piece": _piece, "keep": _keep_results,
    "prepare": lambda a: card.prepare(a.folder, a.corpus, a.documents, a.preset),
    "card": lambda a: bool(card.card(a.folder, a.out, a.minutes, a.stages, a.preset, a.device)),
}  # fmt: skip

if __name__ == "__main__":
    sys.exit(main())
