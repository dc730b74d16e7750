"""A run's folder: everything that is needed to go on with a model, to use it, or to hand it on.

`config.json` (paper, variant, preset; the model's config, options, training, decoding and which weights count; what
the run was made with), `vocabulary.txt` or `pieces.model` (and what else turns texts into ids), `metrics.jsonl`
(losses by name and step), `last.safetensors` (weights, optimizer, step), `best.safetensors` (weights with the least
validation loss; `best-STEP.safetensors`, where a run keeps several of the best). Each file is replaced as a whole, so
a run that is killed leaves the last complete ones.
"""

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from lib.decoding.search import DecodeConfig
from lib.system.errors import InputError, RunError, did_you_mean, printable
from lib.system.files import check_file, parse_strict

Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True)
class Recipe:
    """Facts that a run saves beside what determines its numbers: whose it is, and how it is used."""

    paper: str
    variant: str = ""
    preset: str = ""
    decode: DecodeConfig = DecodeConfig()
    weights: str = "best"  # that count; or "average" of the best that were saved


def load_weights(model: nn.Module, folder: str | Path, which: str = "best") -> nn.Module:
    """Put the weights of a run into `model`.

    Args:
        which: "best", "last", "best-STEP", or "average": the mean of the best checkpoints that were saved.

    Raises RunError when there are none, or they are of another model, or `Setup.build` made the model for a corpus
    with another vocabulary than the run's: as long, it would give fluent nonsense.
    """
    _check_vocabulary(model, folder)
    if which == "average":
        return _average_weights(model, folder)
    path = _weights_file(folder, which)
    put_weights(model, load_tensors(path, "model."), path)
    return model


def check_weights(model: nn.Module, folder: str | Path, which: str = "best") -> None:
    """Raise RunError where the weights of a run are not of `model`, or this machine cannot hold them.

    model: may be on the device "meta", where it takes no memory. Of the files only the heads are read.
    """
    size = sum(value.numel() * value.element_size() for value in (*model.parameters(), *model.buffers()))
    if (most := _memory()) is not None and size > most:
        raise RunError(f"{folder}: a model of {size / 1e9:,.0f} GB, and here are {most / 1e9:,.0f} GB of memory")
    for path in [_weights_file(folder, name) for name in (_kept(folder) if which == "average" else [which])]:
        with _checkpoint(path) as file:
            heads = [(name, file.get_slice(name)) for name in file.keys() if name.startswith("model.")]  # noqa: SIM118
            described = [(name, head.get_shape(), head.get_dtype()) for name, head in heads]
        if others := [(name, kind) for name, _, kind in described if kind not in _FLOATS]:
            raise RunError(f"{path}: {others[0][0]} is of {others[0][1]}, where weights are {', '.join(_FLOATS)}")
        try:
            shapes = {name: torch.empty(shape, device="meta") for name, shape, _ in described}
        except (RuntimeError, TypeError) as error:  # of a shape with more numbers than can be counted
            raise RunError(f"{path} is damaged ({_reason(error)[:200]})") from None
        _fill(model, under("model", shapes), path)


_FLOATS = ("F16", "BF16", "F32", "F64")


def _memory() -> int | None:
    """Bytes of this machine's memory, where the system says it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return None


def _weights_file(folder: str | Path, which: str) -> Path:
    """The file of some weights of a run. Raises RunError where there are none of this name."""
    path, names = Path(folder) / f"{which}.safetensors", checkpoints(folder)
    if which == "best" and path.name not in names:
        path = path.with_name("last.safetensors")  # a run without validation documents
        _check_trained(path)
    if path.name in names:
        return path
    if names:
        raise RunError(f"{folder} holds no weights {which!r}; there are: {', '.join(names)}")
    raise RunError(f"{folder} holds no weights; make them with python -m lib.train ... --output {folder}")


def _check_trained(last: Path) -> None:
    """Raise RunError for a run that has validation documents, and was stopped before it came to them."""
    if last.is_file() and read_config(last.parent)["documents"].get("val"):
        raise RunError(
            f"{last.parent} holds no best weights: it was stopped after {_noted(last, 'step')} steps, before a "
            "first validation. Train it on with --resume, or ask for the weights 'last'"
        )


def _check_vocabulary(model: nn.Module, folder: str | Path) -> None:
    of_model = getattr(model, "encoder_digest", None)  # what `Setup.build` says of the corpus
    if of_model is None or not (Path(folder) / "config.json").exists():
        return
    if of_model != (of_run := read_config(folder)["encoder"]):
        raise RunError(
            f"{folder} was trained with the vocabulary {of_run}, and the model was built for a corpus with "
            f"{of_model}: its words would be others. Open the run with its own: lib.load({str(folder)!r})"
        )


def checkpoints(folder: str | Path) -> list[str]:
    """Names of the files of weights in a folder."""
    return sorted(path.name for which in ("last", "best*") for path in Path(folder).glob(f"{which}.safetensors"))


def kept_checkpoints(folder: str | Path) -> list[str]:
    """Names ("best-STEP") of the best checkpoints of a run with `keep_best` above 1, the best first."""
    losses = {path.stem: _noted(path, "loss") for path in Path(folder).glob("best-*.safetensors")}
    return sorted(losses, key=losses.__getitem__)


def _noted(path: Path, name: str) -> float:
    """A number that a checkpoint notes. Raises RunError where it does not."""
    value = read_meta(path).get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RunError(f"{path} is damaged: it does not say the {name} of its weights")
    return value


def _kept(folder: str | Path) -> list[str]:
    if names := kept_checkpoints(folder):
        return names
    raise RunError(f"{folder} holds no best-STEP weights to average: train with keep_best above 1")


def _average_weights(model: nn.Module, folder: str | Path) -> nn.Module:
    sums: dict[str, Tensor] = {}
    names = _kept(folder)
    for which in names:
        for name, value in load_weights(model, folder, which).state_dict().items():
            sums[name] = sums.get(name, 0) + value.double()
    model.load_state_dict({name: total / len(names) for name, total in sums.items()})
    return model


def tied(model: nn.Module) -> dict[str, str]:
    """Second and later names of parameters that a model uses in several places, and their first; stored once."""
    first: dict[int, str] = {}
    named = model.named_parameters(remove_duplicate=False)
    return {name: first_name for name, p in named if (first_name := first.setdefault(id(p), name)) != name}


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """A model's tensors as a checkpoint names them."""
    twice = tied(model)
    return {f"model.{name}": value for name, value in model.state_dict().items() if name not in twice}


def put_weights(model: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Put into `model` the tensors of the checkpoint `path`. Raises RunError when they are of another model, or no
    numbers."""
    weights = under("model", tensors)
    if broken := [name for name, value in weights.items() if not value.isfinite().all()]:
        raise RunError(f"{path} is damaged: {broken[0]} holds values that are no finite numbers")
    _fill(model, weights, path)


def _fill(model: nn.Module, weights: dict[str, Tensor], path: Path) -> None:
    weights |= {name: weights[first] for name, first in tied(model).items() if first in weights}
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise RunError(f"{path} holds the weights of another model: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    """What PyTorch says of weights that do not fit, in a line."""
    return " ".join(str(error).split())[:1_000]


def chooser_model(make: Callable[[], Model], encoder: Any) -> Model:
    """The model that `make` gives, with the weights of a `TextEncoder`'s chooser. A run's options say its sizes, so
    no memory is asked for before it is seen that the weights have them. Raises RunError where they have not."""
    try:
        with torch.device("meta"):
            model = make()
        weights = {name: torch.from_numpy(value).float() for name, value in (encoder.chooser or {}).items()}
        model.load_state_dict(weights, assign=True)
    except (RuntimeError, TypeError) as error:
        raise RunError(f"ranker.safetensors holds weights of another model: {_reason(error)}") from None
    return model.eval()


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors whose names begin with the prefix and a dot, without both."""
    return {k.removeprefix(f"{prefix}."): v for k, v in tensors.items() if k.startswith(f"{prefix}.")}


def load_tensors(path: Path, beginning: str = "") -> dict[str, Tensor]:
    """The tensors of a checkpoint whose names begin so."""
    with _checkpoint(path) as file:
        return {key: file.get_tensor(key) for key in file.keys() if key.startswith(beginning)}  # noqa: SIM118


def read_meta(path: Path) -> dict:
    """What a checkpoint says of its weights."""
    with _checkpoint(path) as file:
        meta = json.loads(file.metadata()["meta"])
        if not isinstance(meta, dict):
            raise TypeError("its meta data are no JSON object")
        return meta


@contextmanager
def _checkpoint(path: Path) -> Iterator[Any]:
    """Open a checkpoint. Raises RunError where the file is damaged, or no checkpoint."""
    _check_in(path)
    try:
        with safe_open(path, "pt") as file:
            yield file
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise RunError(f"{path} is damaged ({error}). Remove it to begin again.") from None
    except MemoryError:
        raise RunError(f"{path}: {path.stat().st_size:,} bytes are more than there is memory for") from None


def _check_in(path: Path, most: int | None = None) -> None:
    """Raise RunError for what is no file of a run's folder (`check_file`)."""
    try:
        check_file(path, most, path.parent)
    except InputError as error:
        raise RunError(str(error)) from None


MOST_METRICS, MOST_CONFIG = 2**26, 2**20  # bytes


def read_metrics(folder: str | Path) -> list[dict]:
    """Read metrics.jsonl, line by line. Raises RunError for a line that no run writes."""
    path = Path(folder) / "metrics.jsonl"
    if path.exists():
        _check_in(path, MOST_METRICS)
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [_metrics(line, f"{path}, line {number}") for number, line in enumerate(lines, 1) if line.endswith(b"}")]


def _metrics(line: bytes, where: str) -> dict:
    try:
        values = json.loads(line)
        numbers = [value for name, value in values.items() if name != "split"]
        if _fits(values["step"], int) and all(isinstance(number, int | float) for number in numbers):
            return values
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise RunError(f"{where}: no losses of a step. Remove the line.")


# what a run's numbers follow from; the rest of config.json says how it is used and what it was made with
DETERMINING = ("paper", "variant", "model", "train", "corpus", "options", "data")
# what every config.json says
PARTS = {
    **dict.fromkeys(DETERMINING, str),
    **dict.fromkeys(("weights", "encoder"), str),
    **dict.fromkeys(("model", "train", "options", "decode", "documents"), dict),
}


def run_config(recipe: Recipe, model: nn.Module, corpus, train) -> dict:
    """config.json of a run of `model` on a prepared corpus, with a training configuration."""
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
    """The part of a config that two runs of the same numbers have in common, as JSON has it."""
    return json.loads(json.dumps({key: config.get(key) for key in DETERMINING}))


def read_config(folder: str | Path) -> dict:
    """Read config.json. Raises RunError when the folder holds no run, or one that cannot be opened."""
    path = Path(folder) / "config.json"
    if not path.exists():
        raise RunError(f"{folder} holds no run: there is no config.json. python -m lib.train makes one.")
    _check_in(path, MOST_CONFIG)
    try:
        config = parse_strict(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} cannot be read ({error})") from None
    if not isinstance(config, dict):
        raise RunError(f"{path} cannot be read: it holds no JSON object")
    if missing := [key for key in PARTS if key not in config]:
        raise RunError(f"{path} does not say {', '.join(missing)}: it is no run of this version. Train it anew.")
    for key, kind in PARTS.items():
        if not isinstance(config[key], kind):
            expected = "a string" if kind is str else "a JSON object"
            raise RunError(f"{path}: {key} must be {expected}, not {json.dumps(config[key])[:40]}")
        if kind is str and printable(config[key]) != config[key]:
            raise RunError(f"{path}: {key} holds a control character: {json.dumps(config[key])[:40]}")
    for name, count in config["documents"].items():
        if not _fits(count, int) or count < 0:
            raise RunError(f"{path}: documents of {name} are a number of at least 0, not {json.dumps(count)[:40]}")
    return config


def made_from(kind, values: Mapping, path: Path) -> Any:
    """A dataclass from what config.json holds. Raises RunError for a field that it does not have, or a bad value."""
    known = get_type_hints(kind)
    for name, value in values.items():
        if name not in known:
            raise RunError(f"{path}: {kind.__name__} has no field {name!r}{did_you_mean(name, known)}")
        if not _fits(value, known[name]):
            kind_of = known[name]
            expected = kind_of.__name__ if isinstance(kind_of, type) else str(kind_of)
            if isinstance(value, int | float) and not isinstance(value, bool):
                expected += ", finite and below 2^31"
            raise RunError(f"{path}: {name} must be {expected}, not {json.dumps(value)[:40]}")
    try:
        return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()})
    except (TypeError, ValueError) as error:
        raise RunError(f"{path}: {error}") from None


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value of JSON is of the type of a field: a number, a string, a tuple of them, perhaps None. Numbers
    are finite, and whole ones fit 32 bits, as sizes do."""
    if get_origin(kind) in (Union, UnionType):
        return any(_fits(value, each) for each in get_args(kind))
    if get_origin(kind) is tuple:
        return isinstance(value, list) and all(_fits(each, get_args(kind)[0]) for each in value)
    if get_origin(kind) is Literal:  # which word it may be, the field itself says
        kind = str
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    if isinstance(value, int):
        return kind in (int, float) and abs(value) < 2**31
    return isinstance(value, kind) and (kind is not float or math.isfinite(value))
