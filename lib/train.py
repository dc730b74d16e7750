"""Train a model of a paper, and store in a folder all that is needed to use it.

    python -m lib.train mem2mem --dataset aclsum --preset demo --output runs/demo
    python -m lib.train mem2mem --dataset arxiv --preset paper --variant +transfer --output runs/a
    python -m lib.train mem2mem --preset demo --model.hidden 128 --output runs/wider
    python -m lib.train ... --resume       # continue a stopped run, to the same weights
    python -m lib.train mem2mem --start trained/mem2mem --dataset my/corpus --output runs/mine

Several GPUs share the documents of each update:

    torchrun --standalone --nproc-per-node 4 -m lib.train mem2mem --preset paper --output runs/p

`python -m lib.train PAPER` lists the presets, and `python -m lib.train PAPER --preset PRESET
--help` every field of training, decoding, preprocessing and model with the preset's value. The
papers are mem2mem, windowed, read_again and hierarchical_transformer.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, make_dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from lib.system.command_line import Count, Flag, Grouped, parse_arguments, plain_errors
from lib.system.errors import InputError, one_of
from lib.system.files import errors_named
from lib.system.metrics import hours_of, read_metrics

if TYPE_CHECKING:  # a command imports PyTorch when it begins, so that --help is fast
    from lib.decoding.run import Run
    from lib.papers.paper import Paper, Setup

HELP = {"-h", "--help"}


@dataclass(frozen=True)
class Command:
    """What is trained, on which corpus, and where the run goes.

    Attributes:
        paper: the paper whose model is trained.
        preset: sizes, training and decoding; without it, the presets are listed.
        variant: a row of the paper's tables; by default the preset's.
        start: a run whose vocabulary and weights training begins with. Preset and variant are its.
        output: the run's folder.
        dataset: a corpus name, a folder of documents or a prepared corpus; by default the paper's
            own. A folder of text whose words are separated by spaces needs a file corpus.json:
            {"tokenised": true}
        errors: what happens at a malformed record.
        limit: use at most this many documents of each split.
        device: cpu or cuda; by default the GPU if there is one.
        resume: continue the run in the output folder.
    """

    paper: Positional[Annotated[str, arg(metavar="PAPER")]]
    preset: str | None = None
    variant: str | None = None
    start: Path | None = None
    output: Path = Path()
    dataset: str = ""
    errors: Literal["raise", "skip"] = "raise"
    limit: Count | None = None
    device: str | None = None
    resume: Flag = False


def parse(arguments: Sequence[str] | None = None) -> tuple[Command, Setup]:
    """Read the command in two steps: names of paper, preset and variant give the defaults of all
    other fields."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if not {*arguments} - HELP:
        parse_arguments("lib.train", __doc__, Command, ["--help"])
    named = [argument for argument in arguments if argument not in HELP]
    command, others = parse_arguments(
        "lib.train", __doc__, Command, named, return_unknown_args=True
    )
    from lib.papers import paper, resolve, starting_from

    chosen = paper(command.paper)
    if command.start:
        setup = starting_from(command.start)
        if command.preset or command.variant or setup.paper.name != command.paper:
            raise InputError(
                f"--start {command.start}: its paper, preset and variant are {setup.paper.name}, "
                f"{setup.preset!r} and {setup.variant!r}; give no others"
            )
    else:
        if command.preset is None and not HELP & {*arguments}:
            print(describe_presets(chosen, command.variant), file=sys.stderr)
            sys.exit(2)
        setup = resolve(command.paper, command.preset or "paper", command.variant)
    command = replace(command, dataset=command.dataset or chosen.dataset)
    given = {argument.partition("=")[0] for argument in others}
    # the preset's steps would override the epochs
    if "--epochs" in given and "--steps" not in given:
        setup = replace(setup, train=replace(setup.train, steps=None))
    model = setup.model_config()
    parts: list[tuple[str, Any, Any]] = [
        # with resume=True as its default, the option would be --no-resume
        ("command", Grouped[Command], replace(command, resume=False)),
        ("train", Grouped[type(setup.train)], setup.train),
        ("decode", Grouped[type(setup.decode)], setup.decode),
        ("options", type(setup.options), setup.options),
        ("model", type(model), model),
    ]
    # config: fields of presets are switched on or off, --bf16 or --no-bf16
    kind = make_dataclass("Training", parts)
    fields = parse_arguments("lib.train", __doc__, kind, arguments, config=None)
    if command.output == Path():
        raise InputError("--output is missing: the folder of the run")
    if setup.start and fields.options.vocab_size != setup.options.vocab_size:
        raise InputError("--options.vocab-size follows from --start, whose vocabulary is kept")
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
        from lib.system.devices import default_device, device_named, rank_device
        from lib.training.loop import check_output

        check_output(command.output, command.resume)
        with default_device(device_named(command.device)):
            run = _train(command, setup)
        if rank_device() == 0:
            draw_losses(run)
            print(report(run, command.dataset))


def describe_presets(paper: Paper, variant: str | None) -> str:
    """List the presets of a paper's variant, with the documents and the length of training."""
    from lib.training.console import duration
    from lib.training.folder import read_config

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
    began_with = read_config(paper.shipped).get("start", {})
    seconds = 3600 * (hours_of(read_metrics(paper.shipped)) + began_with.get("hours", 0.0))
    shipped = (
        f"The shipped run, a medium one, took {duration(seconds)}. docs/gpu.md has those of the "
        "paper's sizes."
    )
    return "\n".join([*lines, shipped])


def report(run: Run, dataset: str) -> str:
    """Say what a run has learned, where it is and which commands use it."""
    from lib.training.console import duration, outcome

    folder, losses = quote(str(run.folder)), [m["loss"] for m in run.metrics if m["split"] == "val"]
    learned = (
        f"; validation loss {losses[0]:.3f} at first, {losses[-1]:.3f} at the end" if losses else ""
    )
    # 0 hours: the log has fewer than two lines to take the time between
    pace = (
        f" in {duration(3600 * run.hours)}, {3600 * run.hours / run.step:.3g} seconds each (median)"
        if run.hours
        else ""
    )
    documents = run.config.get("documents", {}).get("train", 0)
    weights = outcome(run.metrics, run.config.get("weights", "best"), documents)
    return (
        f"{run.folder}: {run.step:,} steps{pace}{learned}.\n{weights[0].upper()}{weights[1:]}. "
        f"Next:\n  python -m lib.score run {folder} --dataset {quote(dataset)}\n"
        f"  python -m lib.summarize {folder} FILE"
    )


def draw_losses(run: Run) -> None:
    """Draw the losses into curve.png beside metrics.jsonl, where matplotlib is installed."""
    from lib.training.console import best_step

    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    for split in ("train", "val"):
        logged = [m for m in run.metrics if m["split"] == split]
        axes.plot([m["step"] for m in logged], [m["loss"] for m in logged], ".-", label=split)
    if step := best_step(run.metrics):
        label = f"least validation loss: step {step:,}"
        axes.axvline(step, color="0.5", linestyle=":", label=label)
    axes.set(xlabel="step", ylabel="loss")
    axes.legend()
    picture = run.folder / "curve.png"
    with errors_named(picture):
        figure.savefig(picture)


def _train(command: Command, setup: Setup) -> Run:
    from lib.system.devices import rank_device
    from lib.training.console import plan
    from lib.training.loop import train

    # before processes meet, so that no timeout runs: one process prepares, the others wait for its
    # lock
    corpus = setup.open_corpus(command.dataset, errors=command.errors, limit=command.limit)
    if rank_device() == 0 and command.limit is None and len(corpus["train"]) == setup.documents:
        limit = f"preset {command.preset!r} takes at most {setup.documents} documents of each split"
        print(f"{limit}; --limit takes another number", file=sys.stderr)
    if rank_device() == 0:
        print("\n".join(plan(setup.train, corpus)), file=sys.stderr)
    return train(
        setup.recipe, setup.build(corpus), corpus, setup.train, command.output, command.resume
    )


if __name__ == "__main__":
    main()
