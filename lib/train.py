"""Train a model of a paper, and store in a folder all that is needed to use it.

    python -m lib.train mem2mem --dataset aclsum --preset demo --output runs/demo
    python -m lib.train mem2mem --dataset arxiv --preset paper --variant +transfer --output runs/arxiv
    python -m lib.train mem2mem --preset demo --model.hidden 128 --options.section-tokens 150 --output runs/wider
    torchrun --standalone --nproc-per-node 4 -m lib.train mem2mem --dataset pubmed --preset paper --output runs/pubmed
    python -m lib.train ... --resume       # continue a stopped run, to the same weights

`python -m lib.train PAPER` lists the presets, and `python -m lib.train PAPER --preset PRESET
--help` every field of training, decoding, preprocessing and model with the preset's value.
"""  # noqa: E501

import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, make_dataclass, replace
from shlex import quote
from typing import TYPE_CHECKING

import tyro
from tyro.conf import OmitArgPrefixes

from lib.papers import PAPERS, resolve
from lib.papers.paper import Paper, Setup
from lib.system.command_line import command_parser, count, plain_errors
from lib.system.devices import default_device, device_named, rank_device
from lib.system.errors import InputError, one_of
from lib.system.files import errors_named, trained_folder
from lib.system.metrics import hours_of, read_metrics
from lib.training.config import TrainConfig
from lib.training.loop import check_output, train

if TYPE_CHECKING:
    from lib.decoding.run import Run

DATASET = (
    "a corpus name, a folder of documents or a prepared corpus; by default the paper's own. A "
    "folder of text whose "
    ""
    'words are separated by spaces needs a file corpus.json: {"tokenised": true}'
)


def parse(arguments: Sequence[str] | None = None) -> tuple[Namespace, Setup]:
    """Read the command in two steps: names of paper, preset and variant give the defaults of all
    other fields."""
    first = command_parser("lib.train", __doc__, add_help=False)
    first.add_argument("paper", choices=PAPERS, help="the paper whose model is trained")
    first.add_argument(
        "--preset", help="sizes, training and decoding; without it, the presets are listed"
    )
    first.add_argument("--variant", help="a row of the paper's tables; by default the preset's")
    first.add_argument("--output", help="the run's folder")
    first.add_argument("--dataset", help=DATASET)
    first.add_argument(
        "--errors", choices=("raise", "skip"), default="raise", help="at a malformed record"
    )
    first.add_argument("--limit", type=count, help="use at most this many documents of each split")
    first.add_argument("--device", help="cpu or cuda; by default the GPU if there is one")
    first.add_argument(
        "--resume", action="store_true", help="continue the run in the output folder"
    )
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if not set(arguments) - {"-h", "--help"}:
        first.print_help()
        sys.exit()
    command, others = first.parse_known_args(arguments)
    if command.preset is None and not {"-h", "--help"} & {*others}:
        first.exit(2, describe_presets(PAPERS[command.paper], command.variant))
    setup = resolve(command.paper, command.preset or "paper", command.variant)
    command.dataset = command.dataset or setup.paper.dataset
    given = {argument.partition("=")[0] for argument in others}
    if wrong := next(
        (name for name in sorted(given) if name.startswith(("--train.", "--decode."))), None
    ):
        raise InputError(f"unknown option {wrong}, did you mean --{wrong.partition('.')[2]}?")
    # the preset's steps would override the epochs
    if "--epochs" in given and "--steps" not in given:
        setup = replace(setup, train=replace(setup.train, steps=None))
    model = setup.model_config()
    parts = [
        ("train", OmitArgPrefixes[TrainConfig], setup.train),
        ("decode", OmitArgPrefixes[type(setup.decode)], setup.decode),
        ("options", type(setup.options), setup.options),
        ("model", type(model), model),
    ]
    fields = tyro.cli(
        make_dataclass("Fields", parts),
        args=others,
        prog="python -m lib.train",
        description=first.format_help(),
    )
    if command.output is None:
        first.error("the following arguments are required: --output")
    for name in ("vocab_size", *setup.shared):
        if getattr(fields.model, name) != getattr(model, name):
            option = name.replace("_", "-")
            raise InputError(f"--model.{option} follows from the corpus: give --options.{option}")
    config = asdict(fields.model)
    return command, replace(
        setup, train=fields.train, decode=fields.decode, options=fields.options, config=config
    )


def main(arguments: Sequence[str] | None = None) -> None:
    with plain_errors("With --resume the same command goes on from its last checkpoint."):
        command, setup = parse(arguments)
        check_output(command.output, command.resume)
        with default_device(device_named(command.device)):
            run = _train(command, setup)
        if rank_device() == 0:
            draw_losses(run)
            print(report(run, command.dataset))


def describe_presets(paper: Paper, variant: str | None) -> str:
    """List the presets of a paper's variant, with the documents and the length of training."""
    chosen = paper.variants[one_of(variant or paper.usual, paper.variants, "variant")]
    lines = [f"--preset chooses the sizes and the training of {paper.title}:"]
    for name, preset in chosen.presets_of(paper).items():
        documents = f"at most {preset.documents:,}" if preset.documents else "all"
        steps = (
            f"{preset.train.steps:,} steps"
            if preset.train.steps
            else f"{preset.train.epochs} epoch(s)"
        )
        lines.append(f"  {name:<14} {documents} documents, {steps}")
    hours = hours_of(read_metrics(trained_folder(paper.name)))
    shipped = (
        f"The shipped run, a medium one, took {hours:.1f} hours. docs/gpu.md has those of the "
        "paper's sizes.\n"
    )
    return "\n".join([*lines, shipped])


def report(run: "Run", dataset: str) -> str:
    """Say what a run has learned, where it is and which commands use it."""
    folder, losses = quote(str(run.folder)), [m["loss"] for m in run.metrics if m["split"] == "val"]
    learned = (
        f"; validation loss {losses[0]:.3f} at first, {losses[-1]:.3f} at the end" if losses else ""
    )
    # 0 hours: the log has fewer than two lines to take the time between
    pace = f", {3600 * run.hours / run.step:.3g} seconds each (median)" if run.hours else ""
    return (
        f"{run.folder}: {run.step:,} steps in {60 * run.hours:.1f} minutes{pace}{learned}. Next:\n"
        f"  python -m lib.score run {folder} --dataset {quote(dataset)}\n  python -m lib.summarize "
        f"{folder} FILE"
    )


def draw_losses(run: "Run") -> None:
    """Draw the losses into curve.png beside metrics.jsonl, where matplotlib is installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    for split in ("train", "val"):
        logged = [m for m in run.metrics if m["split"] == split]
        axes.plot([m["step"] for m in logged], [m["loss"] for m in logged], ".-", label=split)
    axes.set(xlabel="step", ylabel="loss")
    axes.legend()
    picture = run.folder / "curve.png"
    with errors_named(picture):
        figure.savefig(picture)


def _train(command: Namespace, setup: Setup) -> "Run":
    # before processes meet, so that no timeout runs: one process prepares, the others wait for its
    # lock
    corpus = setup.open_corpus(command.dataset, errors=command.errors, limit=command.limit)
    if rank_device() == 0 and command.limit is None and len(corpus["train"]) == setup.documents:
        limit = f"preset {command.preset!r} takes at most {setup.documents} documents of each split"
        print(f"{limit}; --limit takes another number", file=sys.stderr)
    return train(
        setup.recipe, setup.build(corpus), corpus, setup.train, command.output, command.resume
    )


if __name__ == "__main__":
    main()
