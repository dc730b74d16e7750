"""Train a model of a paper, and keep all that is needed to use it in a folder.

    python -m lib.train mem2mem --dataset aclsum --preset demo --output runs/demo
    python -m lib.train mem2mem --dataset arxiv --variant +transfer --learning-rate 1e-3 --output runs/arxiv
    python -m lib.train mem2mem --preset demo --model.hidden 128 --options.section-tokens 150 --output runs/wider
    torchrun --standalone --nproc-per-node 4 -m lib.train mem2mem --dataset pubmed --output runs/pubmed
    python -m lib.train ... --resume       # goes on where the run stopped, to the same weights

`python -m lib.train PAPER --preset PRESET --help` shows every field of training, decoding, preprocessing and model
with the preset's value.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, make_dataclass, replace
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import OmitArgPrefixes, Positional

from lib.data.prepared import is_prepared
from lib.data.registry import is_name
from lib.decoding.run import Run
from lib.decoding.search import DecodeConfig
from lib.papers import PAPERS, resolve
from lib.papers.paper import Setup
from lib.system.command_line import plain_errors
from lib.system.errors import InputError
from lib.system.fields import Checked, Count
from lib.training.config import TrainConfig
from lib.training.devices import default_device, device_named, rank_device
from lib.training.loop import check_output, progress_of, train

_WHERE = (
    "a corpus name, a folder of documents or a prepared corpus; by default the paper's own. A folder of text whose "
    'words are set apart by spaces says so in corpus.json: {"tokenised": true}'
)
Dataset = Annotated[str, tyro.conf.arg(help=_WHERE)]
PaperName = Annotated[str, tyro.conf.arg(help=f"whose model is trained: {', '.join(PAPERS)}", metavar="PAPER")]


@dataclass(frozen=True)
class Command(Checked):
    paper: Positional[PaperName]
    output: str  # the run's folder
    dataset: Dataset = ""
    preset: str = "paper"  # sizes, training and decoding, of which other arguments change single fields
    variant: str | None = None  # a row of the paper's tables; by default the preset's
    errors: Literal["raise", "skip"] = "raise"  # at malformed records
    limit: Count | None = None  # at most so many documents of each split
    device: str | None = None  # cpu or cuda; by default the GPU where there is one
    resume: bool = False  # continue the run in the output folder
    train: OmitArgPrefixes[TrainConfig] = field(default_factory=TrainConfig)
    decode: OmitArgPrefixes[DecodeConfig] = field(default_factory=DecodeConfig)


def parse(arguments: Sequence[str] | None = None) -> tuple[Any, Setup]:
    """The command, and what it trains. Raises ValueError for a paper, preset or variant that does not exist."""
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in ("output", "dataset", "preset", "variant", "errors", "limit", "device", "epochs", "steps"):
        first.add_argument(f"--{name}", default="paper" if name == "preset" else None)
    names, others = first.parse_known_args(arguments)
    paper = next((word for word in others if word in PAPERS), others[0] if others else "-")
    setup, kind = None, Command
    if not paper.startswith("-"):  # the preset's values are the defaults of what follows
        setup = resolve(paper, names.preset, names.variant)
        if names.epochs and not names.steps:  # a preset's steps are not meant
            setup = replace(setup, train=replace(setup.train, steps=None))
        defaults = {
            "train": setup.train,
            "decode": setup.decode,
            "options": setup.options,
            "model": setup.model_config(),
        }
        nested = {"train": OmitArgPrefixes[TrainConfig], "decode": OmitArgPrefixes[DecodeConfig]}
        added: list = [("dataset", Dataset, field(default=setup.paper.dataset))]
        added += [(name, nested.get(name, type(value)), field(default=value)) for name, value in defaults.items()]
        kind = make_dataclass("Command", added, bases=(Command,), frozen=True)
    command = tyro.cli(kind, args=arguments, prog="python -m lib.train", description=__doc__)
    setup = setup or resolve(command.paper, command.preset, command.variant)  # which there is not: says so
    return command, changed(setup, command)


def changed(setup: Setup, command: Any) -> Setup:
    """A preset with the fields that were given. Raises ValueError for those that are not the command's to say."""
    sizes, preset = asdict(command.model), asdict(setup.model_config())
    for name in ("vocab_size", *setup.shared):
        if sizes.pop(name) != preset[name]:
            option = name.replace("_", "-")
            raise InputError(f"--model.{option} is the corpus's to say: give --options.{option}")
    return replace(setup, train=command.train, decode=command.decode, options=command.options, config=sizes)


def main(arguments: Sequence[str] | None = None) -> None:
    begun = []  # the output folder, when the command has been understood
    with plain_errors(lambda: progress_of(begun[0]) if begun else ""):
        command, setup = parse(arguments)
        check_output(command.output, command.resume)
        device = device_named(command.device)
        begun.append(command.output)
        with default_device(device):
            run = _train(command, setup)
        if rank_device() == 0:
            print(f"{run.folder}: {run.step} steps; {run.metrics[-1]}")


def _train(command: Any, setup: Setup) -> Run:
    # before processes meet, so that none waits for another by the clock: one prepares, the others wait for its lock
    corpus = setup.open_corpus(command.dataset, errors=command.errors, limit=command.limit)
    texts = is_name(command.dataset) or not is_prepared(command.dataset)
    if rank_device() == 0 and command.limit is None and texts and len(corpus["train"]) == setup.documents:
        taken = f"preset {command.preset!r} takes at most {setup.documents} documents of each split"
        print(f"{taken}; --limit takes another number", file=sys.stderr)
    model = setup.build(corpus)
    return train(setup.recipe, model, corpus, setup.train, command.output, command.resume)


if __name__ == "__main__":
    main()
