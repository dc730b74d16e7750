"""A run's folder: all that is needed to continue training a model, to use it, or to hand it on.

`config.json` (paper, variant, preset; the model's config, options, training, decoding and which weights count; what
the run was made with), `vocabulary.txt` or `pieces.model` (and what else turns texts into ids), `metrics.jsonl`
(losses by name and step), `last.safetensors` (weights, optimizer, step), `best.safetensors` (weights with the least
validation loss; `best-STEP.safetensors`, where a run keeps several of the best). Each file is replaced as a whole, so
a run that is killed leaves the last complete ones.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from pydantic import ConfigDict, TypeAdapter, ValidationError
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from typing_extensions import TypedDict  # pydantic needs it before Python 3.12

from lib.decoding.search import DecodeConfig
from lib.system.errors import RunError
from lib.system.fields import describe

Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True)
class Recipe:
    """Facts that a run saves beside what determines its numbers: whose model it is, and how it is used."""

    paper: str
    variant: str = ""
    preset: str = ""
    decode: DecodeConfig = DecodeConfig()
    weights: str = "best"  # that count; or "average" of the best that were saved


# ------------------------------------------------------------------------------------------------ config.json


class RunConfig(TypedDict):
    """config.json: a run's numbers follow from `DETERMINING`; the rest says how it is used and was made."""

    __pydantic_config__ = ConfigDict(strict=True, extra="allow")  # type: ignore[misc]
    paper: str
    variant: str
    preset: str
    weights: str
    model: dict[str, Any]
    options: dict[str, Any]
    decode: dict[str, Any]
    train: dict[str, Any]
    corpus: str
    documents: dict[str, int]  # by split
    data: str  # fingerprint of the prepared documents
    encoder: str  # fingerprint of the vocabulary


DETERMINING = ("paper", "variant", "model", "train", "corpus", "options", "data")


def run_config(recipe: Recipe, model: nn.Module, corpus, train) -> dict:
    """Describe a run of `model` on a prepared corpus, with a training configuration, as config.json does."""
    return {
        **{name: getattr(recipe, name) for name in ("paper", "variant", "preset", "weights")},
        "model": asdict(model.config),  # type: ignore[arg-type]
        "options": asdict(corpus.options),
        "decode": asdict(recipe.decode),
        "train": asdict(train),
        "corpus": corpus.name,
        "documents": {name: len(split) for name, split in corpus.splits.items()},
        "data": corpus.fingerprint,
        "encoder": corpus.encoder.digest(),
    }


def determining(config: Mapping) -> dict:
    """Reduce a config to what two runs with the same numbers have in common, as JSON has it."""
    return json.loads(json.dumps({key: config.get(key) for key in DETERMINING}))


def read_config(folder: str | Path) -> dict:
    """Read config.json. Raises RunError when the folder holds no run, or one of another version."""
    path = Path(folder) / "config.json"
    if not path.exists():
        raise RunError(f"{folder} holds no run: there is no config.json. python -m lib.train makes one.")
    try:
        return TypeAdapter(RunConfig).validate_json(path.read_bytes())  # type: ignore[return-value]
    except ValidationError as error:
        raise RunError(f"{path}: {describe(error)}. It is no run of this version: train it anew.") from None


def read_metrics(folder: str | Path) -> list[dict]:
    """Read metrics.jsonl, line by line; a last line that was cut off is left out."""
    path = Path(folder) / "metrics.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    try:
        return [json.loads(line) for line in lines if line.endswith("}")]
    except ValueError as error:
        raise RunError(f"{path}: {error}") from None


# ---------------------------------------------------------------------------------------------------- weights


def load_weights(model: nn.Module, folder: str | Path, which: str = "best") -> nn.Module:
    """Put the weights of a run into `model`.

    Args:
        which: "best", "last", "best-STEP", or "average": the mean of the best checkpoints that were saved.

    Raises RunError when there are none, or they are of another model, or `Setup.build` made the model for a corpus
    with another vocabulary than the run's: its words would be others.
    """
    folder = Path(folder)
    digest = getattr(model, "encoder_digest", None)  # `Setup.build` notes the corpus's vocabulary
    if digest and (folder / "config.json").exists() and digest != read_config(folder)["encoder"]:
        raise RunError(
            f"{folder} was trained with another vocabulary than the corpus's for which the model was built. "
            f"Open the run with its own: lib.load({str(folder)!r})"
        )
    if which == "average":
        names = kept_checkpoints(folder)
        if not names:
            raise RunError(f"{folder} holds no best-STEP weights to average: train with keep_best above 1")
        sums: dict[str, Tensor] = {}
        for name in names:
            for key, value in load_weights(model, folder, name).state_dict().items():
                sums[key] = sums.get(key, 0) + value.double()
        model.load_state_dict({key: total / len(names) for key, total in sums.items()})
        return model
    names = checkpoints(folder)
    if which == "best" and names == ["last.safetensors"]:
        which = "last"  # a run without validation documents
        if (folder / "config.json").exists() and read_config(folder)["documents"].get("val"):
            raise RunError(
                f"{folder} holds no best weights: it was stopped before its first validation. Train it on with "
                "--resume, or ask for the weights 'last'"
            )
    path = folder / f"{which}.safetensors"
    if path.name not in names:
        raise RunError(f"{folder} holds no weights {which!r}; there are: {', '.join(names) or 'none'}")
    put_weights(model, load_tensors(path, "model."), path)
    return model


def checkpoints(folder: str | Path) -> list[str]:
    """List the names of the files of weights in a folder."""
    return sorted(path.name for which in ("last", "best*") for path in Path(folder).glob(f"{which}.safetensors"))


def kept_checkpoints(folder: str | Path) -> list[str]:
    """List the names ("best-STEP") of the best checkpoints of a run with `keep_best` above 1, the best first."""
    losses = {path.stem: read_meta(path)["loss"] for path in Path(folder).glob("best-*.safetensors")}
    return sorted(losses, key=losses.__getitem__)


def tied(model: nn.Module) -> dict[str, str]:
    """Map further names of a parameter that a model uses in several places to its first: it is stored once."""
    first: dict[int, str] = {}
    named = model.named_parameters(remove_duplicate=False)
    return {name: first_name for name, p in named if (first_name := first.setdefault(id(p), name)) != name}


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Name a model's tensors as a checkpoint does."""
    twice = tied(model)
    return {f"model.{name}": value for name, value in model.state_dict().items() if name not in twice}


def put_weights(model: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Put into `model` the tensors of the checkpoint `path`. Raises RunError when they are of another model."""
    weights = under("model", tensors)
    weights |= {name: weights[first] for name, first in tied(model).items() if first in weights}
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise RunError(f"{path} holds the weights of another model: {' '.join(str(error).split())[:1_000]}") from None


def chooser_model(make: Callable[[], Model], encoder: Any) -> Model:
    """Make a model with the weights of a `TextEncoder`'s chooser. `make` gives it untrained."""
    model = make()
    weights = {f"model.{name}": torch.from_numpy(value).float() for name, value in (encoder.chooser or {}).items()}
    put_weights(model, weights, Path("ranker.safetensors"))
    return model.eval()


def chooser_weights(model: nn.Module) -> dict[str, Any]:
    """Return the weights of a trained model as a `TextEncoder` keeps those of its chooser."""
    return {name: value.cpu().numpy() for name, value in model.state_dict().items()}


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Select the tensors whose names begin with the prefix and a dot, and remove both from the names."""
    return {k.removeprefix(f"{prefix}."): v for k, v in tensors.items() if k.startswith(f"{prefix}.")}


def load_tensors(path: Path, beginning: str = "") -> dict[str, Tensor]:
    """Read the tensors of a checkpoint whose names begin so."""
    with _checkpoint(path) as file:
        return {key: file.get_tensor(key) for key in file.keys() if key.startswith(beginning)}  # noqa: SIM118


def read_meta(path: Path) -> dict:
    """Read what a checkpoint says of its weights: step, loss and least loss so far."""
    with _checkpoint(path) as file:
        return json.loads(file.metadata()["meta"])


@contextmanager
def _checkpoint(path: Path) -> Iterator[Any]:
    """Open a checkpoint. Raises RunError where the file is damaged, or no checkpoint."""
    try:
        with safe_open(path, "pt") as file:
            yield file
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"{path} is damaged ({error}). Remove it to begin again.") from None
