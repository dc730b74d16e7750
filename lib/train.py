"""Training: one plain loop, for a page and for the command line.

    python -m lib.train mem2mem --dataset aclsum --preset demo --output runs/demo
    python -m lib.train mem2mem --dataset arxiv --preset paper --variant +transfer --output runs/arxiv
    torchrun --standalone --nproc-per-node 4 -m lib.train mem2mem --dataset pubmed --preset paper --output runs/pubmed
    python -m lib.train ... --resume       # goes on where the run stopped, to the same weights

A run is a folder: `config.json` (resolved configuration, and what the run was made with), `metrics.jsonl` (losses by
name and step), `last.safetensors` (weights, optimizer, step) and `best.safetensors` (weights with the least
validation loss; `best-STEP.safetensors`, where a run keeps several of the best). Each file is replaced as a whole, so
a run that is killed leaves the last complete ones.
"""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Iterable
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from filelock import FileLock
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from tqdm import tqdm

from lib.data.batch import make_batch
from lib.data.batching import BucketSampler, in_order
from lib.data.prepared import PreparedCorpus
from lib.storage import source_digest, write_json, write_whole


@dataclass(frozen=True)
class TrainConfig:
    """The paper's training (appendix A.2), and what it leaves to the machine."""

    batch_size: int = 16  # documents
    batch_tokens: int | None = None  # at most so many source words in a batch, padding counted in
    accumulate: int = 1  # parts in which a batch is computed, to save memory
    epochs: int = 15
    steps: int | None = None  # in place of epochs
    optimizer: str = "adam"  # or "sgd", plain, or "adagrad"
    learning_rate: float = 2e-4
    warmup: int | None = None  # steps; given, the rate is learning_rate * min(step^-1/2, step * warmup^-3/2)
    halve_after: int | None = None  # epochs; given, the rate is halved after each further epoch
    beta2: float = 0.999  # Adam's
    epsilon: float = 1e-8  # Adam's
    weight_decay: float = 0.0  # the L2 term
    max_norm: float | None = 2.0  # of the gradient; None: as it is
    seed: int = 0
    validate_every: int | None = None  # steps; None: each epoch
    save_every: int = 500  # steps; also after each validation
    keep_best: int = 1  # checkpoints with the least validation loss; several can be averaged
    log_every: int = 10  # steps
    bf16: bool = False  # autocast, on a GPU

    def __post_init__(self):
        for name in (
            "batch_size",
            "batch_tokens",
            "accumulate",
            "epochs",
            "steps",
            "warmup",
            "halve_after",
            "validate_every",
            "save_every",
            "log_every",
            "keep_best",
        ):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        if self.optimizer not in ("adam", "sgd", "adagrad"):
            raise ValueError(f"optimizer must be 'adam', 'sgd' or 'adagrad', not {self.optimizer!r}")

    def rate(self, step: int, epoch: float = 0.0) -> float:
        """The learning rate of a step, counted from 1, in an epoch, counted from 0 (with a warm-up: Vaswani et al.
        2017, equation 3)."""
        rate = self.learning_rate
        if self.warmup is not None:
            rate *= min(step**-0.5, step * self.warmup**-1.5)
        if self.halve_after is not None:
            rate *= 0.5 ** max(0, int(epoch) - self.halve_after + 1)
        return rate


def _optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    common = {"lr": config.learning_rate, "weight_decay": config.weight_decay}
    if config.optimizer == "adagrad":
        return torch.optim.Adagrad(model.parameters(), **common)
    if config.optimizer == "sgd":
        return torch.optim.SGD(model.parameters(), **common, fused=True)
    betas = (0.9, config.beta2)
    return torch.optim.Adam(model.parameters(), **common, betas=betas, eps=config.epsilon, fused=True)


class RunError(RuntimeError):
    """A run that cannot be started or continued: says why and what to do."""


@dataclass
class Run:
    """A trained model and where it is kept."""

    model: nn.Module
    folder: Path
    config: dict
    step: int

    def metrics(self) -> list[dict]:
        """What was logged: training losses (`split` "train") and validation losses ("val"), by step."""
        return read_metrics(self.folder)


def run_config(name: str, model: nn.Module, corpus: PreparedCorpus, train: TrainConfig) -> dict:
    """All that determines a run's numbers."""
    return {
        "model": name,
        "model_config": asdict(model.config),
        "train": asdict(train),
        "corpus": corpus.name,
        "options": asdict(corpus.options),
        "data": corpus.fingerprint,
    }


def train(
    name: str,
    model: nn.Module,
    corpus: PreparedCorpus,
    config: TrainConfig,
    output: str | Path,
    resume: bool = False,
    progress: bool = True,
    device: str | None = None,
    alone: bool = False,
) -> Run:
    """Train `model` on the corpus's training split, on one device or as one of torchrun's processes.

    Args:
        name: of the model, for the record.
        model: anything with `loss(batch) -> {"loss": ..., named terms}` and a `config`. It is trained in place.
        output: the run's folder. A finished run in it is loaded, an unfinished one continued, if `resume`.
        device: "cuda" where there is one, otherwise "cpu".
        alone: by this process, whatever others torchrun has started.

    Raises:
        RunError: the folder holds another run, or the batch cannot be shared out among the processes.
        FloatingPointError: the loss became NaN or infinite.
    """
    with nullcontext((0, 1)) if alone else _processes() as (rank, world):
        device = torch.device(device or (f"cuda:{rank_device()}" if torch.cuda.is_available() else "cpu"))
        loop = _Loop(name, model.to(device), corpus, config, Path(output), rank, world, device, progress)
        Path(output).mkdir(parents=True, exist_ok=True)
        # whoever comes second waits, and finds a finished run or goes on with what a killed one left
        with FileLock(Path(output) / ".lock") if rank == 0 else nullcontext():
            loop.start(resume)
            loop.run()
    return Run(model, Path(output), loop.record, loop.step)


class _Loop:
    def __init__(self, name, model, corpus, config, folder, rank, world, device, progress):
        self.model, self.corpus, self.config, self.folder = model, corpus, config, folder
        self.rank, self.world, self.device, self.progress = rank, world, device, progress and rank == 0
        self.record = run_config(name, model, corpus, config)
        self.vocab_size = len(corpus.vocabulary)
        self.sampler = BucketSampler(
            corpus["train"].source_lengths, config.batch_size, config.seed, tokens=config.batch_tokens, multiple=world
        )
        self.total = config.steps or self.sampler.steps(config.epochs)
        self.steps_an_epoch = self.sampler.steps(1)
        self.validate_every = config.validate_every or self.steps_an_epoch
        if self.sampler.batch_size % world:
            raise RunError(
                f"a batch of {self.sampler.batch_size} documents cannot be shared by {world} processes: choose "
                "a batch size that is a multiple of them, and no larger than the training set"
            )
        self.optimizer = _optimizer(model, config)
        self.step, self.best = 0, float("inf")

    # ------------------------------------------------------------------------------------- start and resume

    def start(self, resume: bool) -> None:
        torch.manual_seed(self.config.seed)
        stored = self.folder / "config.json"
        if stored.exists():
            self._check_same(json.loads(stored.read_text(encoding="utf-8"))["config"], resume)
            if (self.folder / "last.safetensors").exists():
                self._load()
        _wait(self.world)
        if self.rank == 0:
            write_json(stored, {"config": self.record, "made_with": _made_with()})
            keep = [m for m in read_metrics(self.folder) if m["step"] <= self.step]
            write_whole(self.folder / "metrics.jsonl", "".join(json.dumps(m) + "\n" for m in keep))
        if not self.step:
            self._save("last")
        _wait(self.world)

    def _check_same(self, stored: dict, resume: bool) -> None:
        """A stored run may be continued to more steps; all else must be equal."""
        if not resume:
            raise RunError(f"{self.folder} holds a run already: resume it, or choose another output folder")
        there, now = _flat(stored), _flat(self.record)
        length = {"train.steps", "train.epochs"}
        differing = [
            f"{key} is {there.get(key)!r} there and {now.get(key)!r} now"
            for key in sorted((there.keys() | now.keys()) - length)
            if there.get(key) != now.get(key)
        ]
        if differing:
            raise RunError(f"{self.folder} holds another run: {'; '.join(differing)}. Choose another output folder.")

    def _load(self) -> None:
        state = load_tensors(self.folder / "last.safetensors")
        meta = read_meta(self.folder / "last.safetensors")
        _load_weights(self.model, state)
        moments = {i: _under(f"optimizer.{i}", state) for i, _ in enumerate(self.model.parameters())}
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": {i: m for i, m in moments.items() if m}, "param_groups": groups})
        torch.set_rng_state(state["random"])
        self.step, self.best = meta["step"], meta["best"]
        if self.step > self.total:
            raise RunError(f"{self.folder} holds {self.step} steps, more than the {self.total} asked for")

    # --------------------------------------------------------------------------------------------- the loop

    def run(self) -> None:
        model = self.model
        if self.world > 1:
            ids = [self.device.index] if self.device.type == "cuda" else None
            model = DistributedDataParallel(model, device_ids=ids)
        bar = tqdm(
            total=self.total, initial=self.step, desc="training", mininterval=5, delay=5, ncols=80, file=sys.stdout,
            disable=not self.progress,
        )  # fmt: skip
        started = time.perf_counter()
        while self.step < self.total:
            losses = self._step(model)
            bar.update()
            if self.step % self.config.log_every == 0 or self.step == self.total:
                values = self._mean(losses)
                bar.set_postfix_str(f"loss {values['loss']:.3f}", refresh=False)
                seconds = round(time.perf_counter() - started, 3)
                self._log({"step": self.step, "split": "train", **values, "seconds": seconds})
            if self.step % self.validate_every == 0 or self.step == self.total:
                self._validate()
                self._save("last")
            elif self.step % self.config.save_every == 0:
                self._save("last")
        bar.close()

    def _step(self, model: nn.Module) -> dict[str, torch.Tensor]:
        model.train()
        self.optimizer.zero_grad(set_to_none=True)
        mine = self.sampler.batch(self.step)[self.rank :: self.world]
        parts = np.array_split(mine, min(self.config.accumulate, len(mine)))
        losses = {}
        for part in parts:
            alone = part is not parts[-1] and self.world > 1
            with model.no_sync() if alone else nullcontext():  # processes exchange gradients once
                terms = self._backward(model, part, len(part) / len(mine))
            losses = {name: losses.get(name, 0) + value for name, value in terms.items()}
        if self.config.max_norm is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.config.max_norm)
        self.step += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.rate(self.step, (self.step - 1) / self.steps_an_epoch)
        self.optimizer.step()
        return losses

    def _backward(self, model: nn.Module, documents: np.ndarray, share: float) -> dict[str, torch.Tensor]:
        """Gradients of some of a batch's documents; their loss terms, weighted by their share of it."""
        batch = make_batch([self.corpus["train"][i] for i in documents], self.vocab_size).to(self.device)
        with self._autocast():
            losses = model(batch)
        if not torch.isfinite(losses["loss"]):
            raise FloatingPointError(
                f"the loss is {losses['loss'].item()} at step {self.step + 1}, documents {', '.join(batch.ids)}; "
                f"the last checkpoint in {self.folder} is from before. Try a lower learning rate."
            )
        (losses["loss"] * share).backward()
        return {name: value.detach() * share for name, value in losses.items()}

    def _autocast(self):
        return torch.autocast(self.device.type, torch.bfloat16) if self.config.bf16 else nullcontext()

    def _mean(self, losses: dict[str, torch.Tensor]) -> dict[str, float]:
        """Losses as numbers, averaged over the processes."""
        values = torch.stack([v.double() for v in losses.values()])
        if self.world > 1:
            dist.all_reduce(values)
            values /= self.world
        return dict(zip(losses, values.tolist()))

    def _validate(self) -> None:
        if not len(self.corpus["val"]):
            return
        if self.rank == 0:
            losses = evaluate_loss(
                self.model, self.corpus["val"], self.config.batch_size, self.vocab_size, self._autocast
            )
            self._log({"step": self.step, "split": "val", **losses})
            self._keep(losses["loss"])
        _wait(self.world)

    def _keep(self, loss: float) -> None:
        """The best weights so far; where several are asked for, each under its step."""
        if loss < self.best:
            self.best = loss
            self._save("best")
        if self.config.keep_best > 1:
            self._save(f"best-{self.step}", loss)
            for name in kept_checkpoints(self.folder)[self.config.keep_best :]:
                (self.folder / f"{name}.safetensors").unlink()

    def _log(self, values: dict) -> None:
        if self.rank == 0:
            with open(self.folder / "metrics.jsonl", "a", encoding="utf-8") as file:
                file.write(json.dumps(values) + "\n")

    def _save(self, which: str, loss: float | None = None) -> None:
        """Write `last` (all that resuming needs), or weights alone."""
        if self.rank != 0:
            return
        tied = _tied(self.model)
        tensors = {f"model.{k}": v for k, v in self.model.state_dict().items() if k not in tied}
        if which == "last":
            for index, parameter in enumerate(self.model.parameters()):
                for key, value in self.optimizer.state.get(parameter, {}).items():
                    tensors[f"optimizer.{index}.{key}"] = value
            tensors["random"] = torch.get_rng_state()
        tensors = {k: v.detach().cpu().contiguous() for k, v in tensors.items()}
        meta = {"step": self.step, "best": self.best, "loss": loss}
        write_whole(self.folder / f"{which}.safetensors", save(tensors, {"meta": json.dumps(meta)}))


@torch.no_grad()
def evaluate_loss(
    model: nn.Module, split, batch_size: int, vocab_size: int, autocast=nullcontext
) -> dict[str, float]:
    """Mean of every loss term over the documents of a split."""
    model.eval()
    device = next(model.parameters()).device
    sums, count = {}, 0
    for batch in in_order(split, batch_size, vocab_size):
        with autocast():
            losses = model.loss(batch.to(device))
        for key, value in losses.items():
            sums[key] = sums.get(key, 0.0) + value.item() * len(batch)
        count += len(batch)
    return {key: value / count for key, value in sums.items()}


# ------------------------------------------------------------------------------------------------- stored runs


def load_weights(model: nn.Module, folder: str | Path, which: str = "best") -> nn.Module:
    """Put the weights of a run into `model`.

    Args:
        which: "best", "last", "best-STEP", or "average": the mean of the best checkpoints that were kept.

    Raises RunError when there are none, or they are of another model.
    """
    if which == "average":
        return _average_weights(model, folder)
    path = Path(folder) / f"{which}.safetensors"
    if which == "best" and not path.exists():
        path = path.with_name("last.safetensors")  # a run without validation documents
    if not path.exists():
        raise RunError(f"{folder} holds no weights; make them with python -m lib.train ... --output {folder}")
    tensors = load_tensors(path)
    try:
        _load_weights(model, tensors)
    except RuntimeError as error:
        raise RunError(f"{path} holds the weights of another model: {error}") from None
    return model


def kept_checkpoints(folder: str | Path) -> list[str]:
    """Names ("best-STEP") of the best checkpoints of a run with `keep_best` above 1, the best first."""
    losses = {path.stem: read_meta(path)["loss"] for path in Path(folder).glob("best-*.safetensors")}
    return sorted(losses, key=losses.get)


def _average_weights(model: nn.Module, folder: str | Path) -> nn.Module:
    kept = kept_checkpoints(folder)
    if not kept:
        raise RunError(f"{folder} holds no best-STEP weights to average: train with keep_best above 1")
    sums: dict[str, torch.Tensor] = {}
    for which in kept:
        for name, value in load_weights(model, folder, which).state_dict().items():
            sums[name] = sums.get(name, 0) + value.double()
    model.load_state_dict({name: total / len(kept) for name, total in sums.items()})
    return model


def _tied(model: nn.Module) -> dict[str, str]:
    """Second and later names of parameters that a model uses in several places, and their first; stored once."""
    first: dict[int, str] = {}
    named = model.named_parameters(remove_duplicate=False)
    return {name: kept for name, p in named if (kept := first.setdefault(id(p), name)) != name}


def _load_weights(model: nn.Module, tensors: dict[str, torch.Tensor]) -> None:
    weights = _under("model", tensors)
    weights |= {name: weights[kept] for name, kept in _tied(model).items() if kept in weights}
    model.load_state_dict(weights)


def load_tensors(path: Path) -> dict[str, torch.Tensor]:
    try:
        with safe_open(path, "pt") as file:
            return {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise RunError(f"{path} is damaged ({error}). Remove it to begin again.") from None


def read_meta(path: Path) -> dict:
    with safe_open(path, "pt") as file:
        return json.loads(file.metadata()["meta"])


def read_metrics(folder: str | Path) -> list[dict]:
    path = Path(folder) / "metrics.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]  # the last may be cut short


def _under(prefix: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {k.removeprefix(f"{prefix}."): v for k, v in tensors.items() if k.startswith(f"{prefix}.")}


def _flat(record: dict, prefix: str = "") -> dict:
    """{"train": {"seed": 0}} -> {"train.seed": 0}"""
    flat = {}
    for key, value in record.items():
        flat.update(_flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value})
    return flat


def _made_with() -> dict:
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "code": source_digest("data", "layers", "models", "train.py"),
    }


# --------------------------------------------------------------------------------------------------- processes


def rank_device() -> int:
    return int(os.environ.get("LOCAL_RANK", 0))


@contextmanager
def _processes() -> Iterable[tuple[int, int]]:
    """Rank and number of processes: torchrun's, from the environment, or one."""
    world = int(os.environ.get("WORLD_SIZE", 1))
    if world == 1:
        yield 0, 1
        return
    started = not dist.is_initialized()
    if started:
        backend = "nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(backend, timeout=timedelta(hours=2))  # a large corpus takes its time to prepare
        if torch.cuda.is_available():
            torch.cuda.set_device(rank_device())
    try:
        yield dist.get_rank(), world
    finally:
        if started:
            dist.destroy_process_group()


def _wait(world: int) -> None:
    if world > 1:
        dist.barrier()


# ------------------------------------------------------------------------------------------------ command line


def main(arguments: list[str] | None = None) -> None:
    from lib.presets import MODELS, build, open_corpus, preset

    parser = argparse.ArgumentParser(prog="python -m lib.train", description=__doc__.split("\n")[0])
    parser.add_argument("model", choices=MODELS)
    parser.add_argument(
        "--dataset", default="aclsum", help="a corpus name, a folder of documents or a prepared corpus"
    )
    parser.add_argument("--preset", default="paper", help="demo or paper")
    parser.add_argument("--variant", help="a row of the paper's ablation")
    parser.add_argument("--vocab-size", type=int, help="in place of the preset's")
    parser.add_argument("--output", required=True, help="the run's folder")
    parser.add_argument("--steps", type=int, help="in place of the preset's epochs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--errors", choices=("raise", "skip"), default="raise", help="at malformed records")
    parser.add_argument("--limit", type=int, help="at most so many documents of each split")
    parser.add_argument("--batch-tokens", type=int, help="at most so many source words in a batch")
    parser.add_argument("--accumulate", type=int, help="parts in which a batch is computed, to save memory")
    parser.add_argument("--bf16", action="store_true", help="autocast on a GPU")
    parser.add_argument("--device", help="cpu or cuda; by default the GPU where there is one")
    parser.add_argument("--resume", action="store_true", help="continue the run in the output folder")
    args = parser.parse_args(arguments)
    try:
        given = {k: getattr(args, k) for k in ("vocab_size", "steps", "seed", "batch_tokens", "accumulate", "bf16")}
        chosen = preset(args.model, args.preset, args.variant, **given)
        with _processes() as (rank, world):
            if rank == 0:  # the others load what it prepares
                corpus = open_corpus(args.dataset, chosen, errors=args.errors, limit=args.limit)
            _wait(world)
            if rank > 0:
                corpus = open_corpus(args.dataset, chosen, errors=args.errors, limit=args.limit, progress=False)
            model = build(args.model, chosen, corpus)
            run = train(args.model, model, corpus, chosen.train, args.output, args.resume, device=args.device)
    except (ValueError, RunError) as error:  # CorpusError is a ValueError
        sys.exit(f"error: {error}")
    if rank_device() == 0:
        print(f"{run.folder}: {run.step} steps; {run.metrics()[-1]}")


if __name__ == "__main__":
    main()
