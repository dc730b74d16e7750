"""The papers: a folder each. To add one, write its folder and put it into the list below."""

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lib.data.prepared import TextEncoder
from lib.papers.paper import Paper, Setup
from lib.system.devices import device_named
from lib.system.errors import RunError, one_of
from lib.system.settings import from_json
from lib.system.threads import flush_denormals
from lib.training.config import TrainConfig
from lib.training.folder import load_weights, read_config

if TYPE_CHECKING:
    from lib.decoding.run import Run

NAMES = ("mem2mem", "windowed", "read_again", "hierarchical_transformer")


class _Papers(MutableMapping[str, Paper]):
    """The papers by name. A paper, with its models and its preprocessing, is imported when it is
    asked for.

    A program may add papers of its own: `PAPERS["mine"] = paper`.
    """

    def __init__(self) -> None:
        self._loaded: dict[str, Paper | None] = dict.fromkeys(NAMES)  # None: not imported yet

    def __getitem__(self, name: str) -> Paper:
        paper = self._loaded[name]
        if paper is None:
            paper = self._loaded[name] = import_module(f"lib.papers.{name}").PAPER
        return paper

    def __setitem__(self, name: str, paper: Paper) -> None:
        self._loaded[name] = paper

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded)

    def __len__(self) -> int:
        return len(self._loaded)

    def __contains__(self, name: object) -> bool:
        return name in self._loaded


PAPERS = _Papers()


def paper(name: str) -> Paper:
    """Find a paper by name. Raises InputError for one that does not exist."""
    return PAPERS[one_of(name, PAPERS, "model")]


def title_of(run: "Run") -> str:
    """Name a run's model for people: its paper's title and its variant."""
    return f"{paper(run.config['paper']).title}, {run.config['variant']}"


def resolve(
    name: str,
    preset: str,
    variant: str | None = None,
    options: Mapping[str, Any] | None = None,
    **train: Any,
) -> Setup:
    """Find a preset of a paper in one of its variants (`Paper.setup`)."""
    return paper(name).setup(preset, variant, options, **train)


def starting_from(folder: str | Path) -> Setup:
    """Return the setup of a run, for another training that begins with its weights and
    vocabularies. Raises RunError for a run that cannot be opened, or that chooses what its model
    reads with a model of its own."""
    run = open_run(folder)
    if run.encoder.chooser is not None:
        raise RunError(
            f"{folder}: this run has a ranker, which belongs to its corpus: no training can start "
            "from it"
        )
    owner, config = paper(run.config["paper"]), run.config
    return Setup(
        paper=owner,
        preset=config["preset"],
        variant=config["variant"],
        options=run.options,
        config=config["model"],
        train=from_json(TrainConfig, config["train"], f"{folder}: train"),
        decode=run.decode,
        start=run,
    )


def open_run(folder: str | Path, weights: str = "", device: str | None = None) -> "Run":
    """Open a trained run, as `lib.load` does."""
    from lib.decoding.run import Run  # not needed for training

    flush_denormals()
    place = device_named(device)
    folder = Path(folder)
    config = read_config(folder)
    try:
        owner = paper(config["paper"])
        name = one_of(config["variant"], owner.variants, f"variant of {owner.name}")
        variant = owner.variants[name]
        sizes = from_json(variant.kind.Config, config["model"], "config.json: model")
        preset = next(iter(variant.presets_of(owner).values()))
        options = from_json(type(preset.options), config["options"], "config.json: options")
        decode = from_json(type(preset.decode), config["decode"], "config.json: decode")
        encoder = TextEncoder.load(folder, options)
    except (OSError, ValueError) as error:
        raise RunError(
            f"{folder}: its configuration or vocabulary cannot be read ({error})"
        ) from None
    if encoder.digest() != config["encoder"]:
        reason = "the vocabulary is not the one that the run was trained with"
        raise RunError(f"{folder}: {reason}. Put its own there.")
    model = load_weights(variant.kind(sizes), folder, weights or config["weights"])
    return Run(folder, config, model.eval().to(place), encoder, decode)
