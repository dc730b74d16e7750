"""The papers: a folder each. To add one, write its folder and put it into the list below."""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from lib.data.prepared import TextEncoder
from lib.decoding.run import Run
from lib.decoding.search import DecodeConfig
from lib.papers import hierarchical_transformer, mem2mem, read_again, windowed
from lib.papers.paper import Paper, Setup
from lib.papers.tables import PageTable, RunFigure, Samples, Table
from lib.system.errors import InputError, RunError, one_of
from lib.training.devices import device_named
from lib.training.folder import check_weights, load_weights, made_from, read_config

PAPERS: dict[str, Paper] = {
    module.PAPER.name: module.PAPER for module in (mem2mem, windowed, read_again, hierarchical_transformer)
}


def paper(name: str) -> Paper:
    """A paper by name. Raises ValueError, with the nearest, for one that does not exist."""
    return PAPERS[one_of(name, PAPERS, "model")]


def resolve(name: str, preset: str, variant: str | None = None, options=None, **train) -> Setup:
    """A preset of a paper in one of its variants (`Paper.setup`)."""
    return paper(name).setup(preset, variant, options, **train)


def table_named(name: str) -> tuple[Paper, Table]:
    """A table of a paper, and the paper. Raises ValueError for one that does not exist."""
    return _named(name, {key: (owner, table) for owner in PAPERS.values() for key, table in owner.tables.items()})


def page_table_named(name: str) -> tuple[Paper, PageTable]:
    """A table that a paper's page measures, and the paper. Raises ValueError for one that does not exist."""
    tables = {key: (owner, table) for owner in PAPERS.values() for key, table in owner.page_tables.items()}
    return _named(name, tables)


def made_of_runs_named(name: str) -> tuple[Paper, Samples | RunFigure]:
    """A table of summaries or a figure of what runs look at, and its paper. Raises ValueError for one that does not
    exist."""
    shown_by_name = {
        key: (owner, shown)
        for owner in PAPERS.values()
        for key, shown in {**owner.samples, **owner.run_figures}.items()
    }
    return _named(name, shown_by_name)


def _named(name: str, tables: dict):
    return tables[one_of(name, tables, "table")]


def open_run(folder: str | Path, weights: str = "", device: str | None = None) -> Run:
    """A trained run, as `lib.load` gives it."""
    place, folder = device_named(device), Path(folder)
    config = read_config(folder)
    path = folder / "config.json"
    try:
        owner = paper(config["paper"])
        variant = one_of(config["variant"], owner.variants, f"variant of {owner.name}")
    except InputError as error:
        raise RunError(f"{path}: {error}") from None
    kind = owner.variants[variant].kind
    sizes = made_from(kind.Config, config["model"], path)
    weights = weights or config["weights"]
    try:
        with torch.device("meta"):  # whatever the sizes are, no memory is asked for before the weights are seen
            model = kind(sizes)
    except (InputError, IndexError, RuntimeError, TypeError) as error:  # PyTorch's, of sizes that no layer has
        raise RunError(f"{path}: no model of these sizes ({_in_a_line(error)})") from error
    check_weights(model, folder, weights)
    options = made_from(owner.options_class(variant), config["options"], path)
    try:
        encoder = TextEncoder.load(folder, options)
    except (OSError, ValueError, SafetensorError) as error:
        raise RunError(f"{folder}: the vocabulary of the run cannot be read ({error})") from None
    if encoder.digest() != config["encoder"]:
        raise RunError(f"{folder}: the vocabulary is not the one that the run was trained with. Put its own there.")
    _check_sizes(sizes, encoder, path)
    model = load_weights(kind(sizes), folder, weights)
    model.eval().to(place)
    decode = made_from(DecodeConfig, config["decode"], path)
    return Run(folder, config, model, encoder, decode)


def _check_sizes(sizes: Any, encoder: TextEncoder, path: Path) -> None:
    """Raise RunError where the words of a run's vocabularies have ids for which its model has no rows."""
    words, known = len(encoder.vocabulary), encoder.source_vocabulary
    if sizes.vocab_size != words:  # the ids after them are of copied words
        raise RunError(f"{path}: vocab_size is {sizes.vocab_size}, and the vocabulary beside it has {words} words")
    if known is not None and getattr(sizes, "source_vocab_size", 0) < len(known):
        raise RunError(f"{path}: source_vocab_size is less than the {len(known)} words of source_vocabulary.txt")


def _in_a_line(error: Exception) -> str:
    return " ".join(str(error).split())
