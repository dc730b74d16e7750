"""A run's folder: all that is needed to continue training a model, to use it, or to hand it on.

`config.json` (paper, variant, preset; the model's config, options, training, decoding and which
weights count; what the run was made with), `vocabulary.txt` or `pieces.model` (and what else turns
texts into ids), `metrics.jsonl` (losses by name and step), `last.safetensors` (weights, optimizer,
step), `best.safetensors` (weights with the least validation loss; `best-STEP.safetensors`, where a
run keeps several of the best). Each file is replaced as a whole, so a run that is killed leaves the
last complete ones.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from lib.decoding.config import DecodeConfig
from lib.system.errors import InputError, RunError
from lib.system.files import read_numbers

Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True)
class Recipe:
    """Facts that a run saves beside what determines its numbers: whose model it is, and how it is
    used."""

    paper: str
    variant: str = ""
    preset: str = ""
    decode: DecodeConfig = DecodeConfig()
    weights: str = "best"  # that count; or "average" of the best that were saved
    # of the run whose weights it began with: `run`, its name; `weights`, a digest; `updates` and
    # `hours` of training
    start: Mapping[str, Any] = field(default_factory=dict)


# ---------------------------------------------------------------------------------
# config.json


# a run's numbers follow from these
DETERMINING = ("paper", "variant", "model", "train", "corpus", "options", "data")
NEEDED = (*DETERMINING, "weights", "decode", "documents", "encoder")


def run_config(recipe: Recipe, model: nn.Module, corpus, train) -> dict:
    """Describe a run of `model` on a prepared corpus, with a training configuration, as config.json
    does."""
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
        **({"start": dict(recipe.start)} if recipe.start else {}),
    }


def determining(config: Mapping) -> dict:
    """Reduce a config to the values that two runs with the same numbers share, named like
    "train.seed"."""
    values = {}
    for key in (*DETERMINING, *({"start"} & {*config})):
        part = config[key]
        values |= (
            {f"{key}.{name}": value for name, value in part.items()}
            if isinstance(part, dict)
            else {key: part}
        )
    return json.loads(json.dumps(values))


def read_config(folder: str | Path) -> dict:
    """Read config.json. Raises RunError when the folder holds no run, or one of another version."""
    path = Path(folder) / "config.json"
    if not path.exists():
        raise RunError(
            f"{folder} holds no run: there is no config.json. "
            "trained/mem2mem is a run, and python -m lib.train makes others."
        )
    try:
        return read_numbers(path, "run of this version", NEEDED)
    except InputError as error:
        raise RunError(f"{error}. Train it anew.") from None


# ---------------------------------------------------------------------------------
# weights


def load_weights(model: nn.Module, folder: str | Path, which: str = "best") -> nn.Module:
    """Put the weights of a run into `model`.

    Args:
        which: "best" (without validation documents: the last), "last", "best-STEP", or
            "average": the mean of the best checkpoints that were saved.

    Raises RunError when there are none, or they are of another model, or `Setup.build` made the
    model for a corpus with another vocabulary than the run's: its words would be others.
    """
    folder = Path(folder)
    digest = getattr(model, "encoder_digest", None)  # `Setup.build` notes the corpus's vocabulary
    if digest and (folder / "config.json").exists() and digest != read_config(folder)["encoder"]:
        raise RunError(
            f"{folder} was trained with another vocabulary than the corpus's for which the model "
            "was built. "
            f"Open the run with its own: lib.load({str(folder)!r})"
        )
    there = checkpoints(folder)
    if which == "best" and there == ["last"] and not read_config(folder)["documents"].get("val"):
        which = "last"
    names = kept_checkpoints(folder) if which == "average" else [which]
    if not {*names} & {*there}:
        raise RunError(
            f"{folder} holds no weights {which!r}; there are: {', '.join(there) or 'none'}"
        )
    every = [load_tensors(folder / f"{name}.safetensors", "model.") for name in names]
    mean: dict[str, Any] = {
        key: sum(tensors[key].double() for tensors in every) / len(every) for key in every[0]
    }
    put_weights(model, mean, folder)
    return model


def checkpoints(folder: str | Path) -> list[str]:
    """List the names of the checkpoints in a folder: "last", "best", "best-STEP"."""
    return sorted(
        path.stem
        for which in ("last", "best*")
        for path in Path(folder).glob(f"{which}.safetensors")
    )


def kept_checkpoints(folder: str | Path) -> list[str]:
    """List the names ("best-STEP") of the best checkpoints of a run with `keep_best` above 1, the
    best first."""
    losses = {
        path.stem: read_meta(path)["loss"] for path in Path(folder).glob("best-*.safetensors")
    }
    return sorted(losses, key=losses.__getitem__)


def weights_digest(model: nn.Module) -> str:
    """Name the weights of a model."""
    hashed = hashlib.sha256()
    for name, tensor in weights_of(model).items():
        hashed.update(name.encode())
        hashed.update(tensor.float().cpu().numpy().tobytes())
    return hashed.hexdigest()[:12]


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Name a model's parameters as a checkpoint does. One that is used in several places is named
    once."""
    return {f"model.{name}": parameter.detach() for name, parameter in model.named_parameters()}


@torch.no_grad()
def put_weights(model: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Put into `model` the tensors of the checkpoint `path`. Raises RunError when they are of
    another model."""
    weights, own = under("model", tensors), dict(model.named_parameters())
    theirs, ours = (
        {name: tensor.shape for name, tensor in named.items()} for named in (weights, own)
    )
    if names := [name for name in sorted({**theirs, **ours}) if theirs.get(name) != ours.get(name)]:
        raise RunError(
            f"{path} holds the weights of another model, which differ in {', '.join(names[:20])}"
        )
    for name, parameter in own.items():
        parameter.copy_(weights[name])


def chooser_model(make: Callable[[], Model], encoder: Any) -> Model:
    """Make a model with the weights of a `TextEncoder`'s chooser. `make` gives it untrained."""
    model = make()
    weights = {
        f"model.{name}": torch.from_numpy(value).float()
        for name, value in (encoder.chooser or {}).items()
    }
    put_weights(model, weights, Path("ranker.safetensors"))
    return model.eval()


def chooser_weights(model: nn.Module) -> dict[str, Any]:
    """Return the weights of a trained model as a `TextEncoder` keeps those of its chooser."""
    return {name: value.cpu().numpy() for name, value in model.state_dict().items()}


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Select the tensors whose names begin with the prefix and a dot, and remove both from the
    names."""
    return {
        k.removeprefix(f"{prefix}."): v for k, v in tensors.items() if k.startswith(f"{prefix}.")
    }


def load_tensors(path: Path, beginning: str = "") -> dict[str, Tensor]:
    """Read the tensors of a checkpoint whose names begin so."""
    with _checkpoint(path) as file:
        names = [name for name in file.keys() if name.startswith(beginning)]  # noqa: SIM118
        return {name: file.get_tensor(name) for name in names}


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
