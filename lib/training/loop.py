"""Training: one plain loop, for a page and for the command line (`lib.train`)."""

import json
import math
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import MISSING, dataclass, fields, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from filelock import FileLock, Timeout
from safetensors.torch import save
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from tqdm import tqdm

from lib.data.batch import Batch, make_batch
from lib.data.batching import BucketSampler, in_order
from lib.data.prepared import PreparedCorpus, code_of
from lib.decoding.run import Run
from lib.layers.dropout import random_numbers, seed_of
from lib.system.errors import CompanionError, RunError
from lib.system.files import LOCK_MODE, cached, of_the_system, remove_leftovers, unwritable, write_json, write_whole
from lib.system.fingerprints import digest
from lib.system.threads import batches_ahead, in_threads, made_ahead, threads_on, torch_threads
from lib.training.config import TrainConfig
from lib.training.devices import (
    ALONE,
    Process,
    attention_of_many_lengths,
    device_named,
    float32_products,
    has_bf16_products,
    processes,
    wait_for_all,
)
from lib.training.folder import (
    Recipe,
    checkpoints,
    determining,
    kept_checkpoints,
    load_tensors,
    load_weights,
    put_weights,
    read_config,
    read_meta,
    read_metrics,
    run_config,
    under,
    weights_of,
)

# Parameters times source words of a batch from which threads pay: less is mostly Python, which one at a time can run.
WORTH_SHARING = 2e9
# Source words of a part of an update, padding counted in, where a run leaves the parts to a CPU: as many as the
# hierarchical transformer's authors compute at once.
PART_WORDS = 10_500
# The share of a GPU's memory that a part may fill: the rest is for fragments, and for a later epoch's longer updates.
FILLED = 0.8


def _optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    common: dict[str, Any] = {"lr": config.learning_rate, "weight_decay": config.weight_decay}
    if config.optimizer == "adagrad":
        return torch.optim.Adagrad(model.parameters(), **common)
    if config.optimizer == "sgd":
        return torch.optim.SGD(model.parameters(), **common, fused=True)
    betas = (0.9, config.beta2)
    return torch.optim.Adam(model.parameters(), **common, betas=betas, eps=config.epsilon, fused=True)


def train(
    recipe: Recipe,
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
        recipe: whose model it is, and how it is used: for whoever opens the run.
        model: anything with `loss(batch) -> {"loss": ..., named terms}` and a `config`. It is trained in place.
        output: the run's folder. A finished run in it is loaded, an unfinished one continued, if `resume`.
        device: "cuda" where there is one, otherwise "cpu".
        alone: by this process, whatever others torchrun has started.

    Raises:
        RunError: the folder holds another run, or cannot be written; there is no such device; the batch cannot be
            shared out among the processes.
        NonFiniteLossError: the loss became NaN or infinite.
    """
    with nullcontext(ALONE) if alone else processes() as (rank, world):
        place = device_named(device)
        if config.bf16 and place.type == "cpu" and not has_bf16_products():
            warnings.warn("bf16 is not worth it here: this processor has no products in bfloat16", stacklevel=2)
        loop = _Loop(recipe, model.to(place), corpus, config, Path(output), rank, world, place, progress)
        try:
            Path(output).mkdir(parents=True, exist_ok=True)
            precision = float32_products(config.matmul_precision)
            with _held(Path(output), rank, world), precision, attention_of_many_lengths():
                loop.start(resume)
                loop.run()
        except OSError as error:
            raise RunError(f"{of_the_system(error, output)}. {progress_of(output)}".rstrip()) from error
    return Run(Path(output), loop.record, model, corpus.encoder, recipe.decode)


def train_in_cache(
    kind: str, make: Callable[[], nn.Module], corpus: PreparedCorpus, config: TrainConfig, progress: bool = True
) -> tuple[Any, Run]:
    """A model that helps to prepare a corpus, with its best weights: trained once, and saved in the cache under a
    name of all that determines it. make: gives it untrained; the code around it counts too.

    A finished one is only read: another user may have trained it. Raises RunError where none can be saved.
    """
    torch.manual_seed(0)
    model, recipe = make().to(device_named()), Recipe(kind)
    name = digest([determining(run_config(recipe, model, corpus, config)), code_of(make)])
    folder = cached(f"{kind}-{name}", FINISHED)
    if not (folder / FINISHED).exists():
        if reason := unwritable(folder):
            raise RunError(f"{of_the_system(reason)}. COMPANION_CACHE names another place for what is prepared.")
        train(recipe, model, corpus, config, folder, resume=True, progress=progress, alone=True)
        write_whole(folder / FINISHED, "")
    load_weights(model, folder, "best")
    run = Run(folder, read_config(folder), model.eval(), corpus.encoder, recipe.decode)
    return run.model, run


FINISHED = ".finished"  # a file in the folder of a run in the cache: nothing is to be written there any more


@contextmanager
def _held(folder: Path, rank: int, world: int) -> Iterator[None]:
    """A run's folder for this run alone. Whoever comes second waits, with all its processes, and finds a finished run
    or goes on with what a killed one left."""
    lock, said = FileLock(folder / ".lock", mode=LOCK_MODE), False
    while not _agreed(rank == 0 and _acquired(lock, 60 if said else 1), world):
        if rank == 0 and not said:
            print(f"{folder}: another process trains this run; waiting until it ends", file=sys.stderr)
        said = True
    try:
        yield
    finally:
        lock.release()


def check_output(folder: str | Path, resume: bool) -> None:
    """Check a run's folder before the corpus is there. Raises RunError where a run cannot be written or
    would be overwritten, OSError for a name that cannot be."""
    if not str(folder).strip():
        raise RunError("the output folder has no name: give one, such as runs/mine")
    folder = Path(folder)
    if reason := unwritable(folder):
        if isinstance(reason, NotADirectoryError):
            raise RunError(f"{reason.filename} is a file: a run is a folder. Choose another output folder.")
        raise RunError(f"{reason.filename} cannot be written: no permission. Choose another output folder.")
    if (folder / "config.json").exists():
        if not resume:
            raise RunError(f"{folder} holds a run already: resume it, or choose another output folder")
    elif left := checkpoints(folder):
        raise RunError(
            f"{folder} holds {left[0]} and no config.json, so that nobody can tell of which run, and it would be "
            "overwritten. Put its config.json back, or choose another output folder."
        )


def _acquired(lock: FileLock, seconds: float) -> bool:
    try:
        lock.acquire(timeout=seconds)
    except Timeout:
        return False
    return True


def _agreed(value: bool, world: int) -> bool:
    """Give all processes what the first one says."""
    said = [value]
    if world > 1:
        dist.broadcast_object_list(said, src=0)
    return said[0]


def progress_of(folder: str | Path) -> str:
    """A sentence on what a run that ended early has saved; empty where that is nothing."""
    try:
        path = Path(folder) / "last.safetensors"
        step = read_meta(path)["step"] if path.exists() else 0
    except (OSError, RunError):
        step = 0
    return f"{folder} holds step {step}: the same command with --resume goes on from there." if step else ""


class NonFiniteLossError(CompanionError, FloatingPointError):
    """A loss that became NaN or infinite: says at which step and on which documents."""


@dataclass(frozen=True)
class _Part:
    """Documents of an update that one process computes at once."""

    documents: np.ndarray  # their numbers
    share: float  # of the update's loss; processes are averaged
    batch: Batch | None  # where it is made ahead


class _Loop:
    def __init__(self, recipe, model, corpus, config, folder, rank, world, device, progress):
        self.model, self.corpus, self.config, self.folder = model, corpus, config, folder
        self.rank, self.world, self.device, self.progress = rank, world, device, progress and rank == 0
        self.record = run_config(recipe, model, corpus, config)
        self.vocab_size = len(corpus.vocabulary)
        self.sampler = BucketSampler(
            corpus["train"].source_lengths, config.batch_size, config.seed, tokens=config.batch_tokens, least=world
        )
        self.total = config.steps or self.sampler.batches_in(config.epochs)
        self.steps_an_epoch = self.sampler.batches_in(1)
        self.validate_every = config.validate_every or self.steps_an_epoch
        self.by_words = config.loss_mean == "words"
        if self.by_words and not getattr(model, "by_words", False):
            raise RunError(f"the loss of {type(model).__name__} has no mean over words: loss_mean must be documents")
        if self.sampler.batch_size < world:
            raise RunError(
                f"a batch of {self.sampler.batch_size} documents cannot be shared by {world} processes: choose "
                "a batch size of at least as many, or start fewer"
            )
        self.optimizer = _optimizer(model, config)
        self.threads = threads_on(device) if world == 1 else 1
        self.parameters = sum(p.numel() for p in model.parameters())
        self.step, self.best, self.rises = 0, float("inf"), 0
        # on a GPU, of the updates since the last check: step, documents, loss
        self.unchecked: list[tuple[int, str, torch.Tensor]] = []
        longest = int(corpus["train"].source_lengths.max())
        words = min(config.batch_tokens or sys.maxsize, self.sampler.batch_size * longest)  # of an update, at most
        self.parts = config.accumulate or -(-words // PART_WORDS)

    # ------------------------------------------------------------------------------------- start and resume

    def start(self, resume: bool) -> None:
        torch.manual_seed(self.config.seed)
        check_output(self.folder, resume)
        stored = self.folder / "config.json"
        before = read_config(self.folder) if stored.exists() else {}
        if before:
            self._check_same(before)
            if (self.folder / "last.safetensors").exists():
                self._load()
        wait_for_all(self.world)
        self.record["made_with"] = _made_with(self.model, self.corpus)
        if self.config.accumulate is None:
            self._choose_parts(before.get("made_with", {}))
            self.record["made_with"]["parts"] = self.parts
        if self.rank == 0:
            remove_leftovers(self.folder)
            self.corpus.encoder.save(self.folder)
            write_json(stored, self.record)
            keep = [m for m in read_metrics(self.folder) if m["step"] <= self.step]
            write_whole(self.folder / "metrics.jsonl", "".join(json.dumps(m) + "\n" for m in keep))
        if not self.step:
            self._save("last")
        wait_for_all(self.world)
        self.rises = self._rises()

    def _choose_parts(self, before: dict) -> None:
        """Let the device's memory decide in how many parts an update is computed. before: what the run was made with
        so far."""
        if self.step == self.total:  # finished: nothing is computed any more
            self.parts = before.get("parts", self.parts)
            return
        if self.device.type == "cuda":
            self.parts = self._parts_by_memory()
        if self.progress:
            print(f"an update is computed in {self.parts} parts; --accumulate takes another number", file=sys.stderr)

    def _parts_by_memory(self) -> int:
        """The fewest parts of an update that fit into the GPU's memory, the same number in all processes."""
        memory = torch.cuda.get_device_properties(self.device).total_memory
        parts = -(-self.parts // self.world) * self.world  # as `_parts` shares them out
        own = parts_that_fit(*self._measured(parts), parts, memory)
        return max(Process(self.rank, self.world).gather([own]))

    def _measured(self, parts: int) -> tuple[int, int]:
        """Bytes of a GPU at the height of the largest of an update's `parts`, and those of them that are there
        without the part: weights, their gradients and what the optimizer keeps.

        The part is computed, and nothing remains of it. It is of the first epoch's update with the most padded words.
        """
        lengths = self.corpus["train"].source_lengths

        def padded(documents: np.ndarray) -> int:
            return len(documents) * int(lengths[documents].max())

        update = max(self.sampler.epoch(0), key=padded)
        largest = max(_parts(update, parts, self.rank, self.world), key=padded)
        torch.cuda.reset_peak_memory_stats(self.device)
        rest = torch.cuda.memory_allocated(self.device)
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            self._backward(self.model.train(), _Part(largest, 1.0, None))
        peak = torch.cuda.max_memory_allocated(self.device)
        self.model.zero_grad(set_to_none=True)
        self.unchecked.clear()
        torch.cuda.empty_cache()
        # not there yet: gradients, and two moments of an optimizer that has not made a step
        weights = sum(p.numel() * p.element_size() for p in self.model.parameters())
        later = weights if self.optimizer.state else 3 * weights
        return peak + later, rest + later

    def _check_same(self, stored: dict) -> None:
        """A stored run may be continued to more steps, with its corpus in another place; all else must be equal."""
        before, now = (_flat(determining(config)) for config in (stored, self.record))
        before = {**self._defaults(), **before}
        free = {"train.steps", "train.epochs", "train.save_every", "corpus"}  # "data" says what the corpus holds
        differing = [
            f"{key} is {before.get(key)!r} there and {now.get(key)!r} now"
            for key in sorted((before.keys() | now.keys()) - free)
            if before.get(key) != now.get(key)
        ]
        if differing:
            raise RunError(f"{self.folder} holds another run: {'; '.join(differing)}. Choose another output folder.")

    def _defaults(self) -> dict:
        """Defaults of fields that are younger than a run: its config.json does not say them; they mean what it
        did."""
        parts = {"model": self.model.config, "options": self.corpus.options, "train": self.config}
        known = {
            part: {f.name: f.default for f in fields(config) if f.default is not MISSING}
            for part, config in parts.items()
        }
        return _flat(json.loads(json.dumps(known)))

    def _load(self) -> None:
        path = self.folder / "last.safetensors"
        state, meta = load_tensors(path), read_meta(path)
        put_weights(self.model, state, path)
        moments = {i: under(f"optimizer.{i}", state) for i, _ in enumerate(self.model.parameters())}
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
        first = " (the first step may compile)" if self.device.type == "cpu" else ""
        bar = tqdm(
            total=self.total, initial=self.step, desc=f"training{first}", mininterval=5, delay=5, ncols=80,
            file=sys.stdout, disable=not self.progress,
        )  # fmt: skip
        started = time.perf_counter()
        ahead = batches_ahead(self.device)
        update = partial(self._update, made=ahead > 0)
        with closing(made_ahead(update, range(self.step, self.total), ahead)) as updates:
            for parts in updates:
                losses = self._step(model, parts)
                bar.set_description("training", refresh=False)
                bar.update()
                ends = self.step == self.total
                logs, validates, saves = (
                    ends or self.step % every == 0
                    for every in (self.config.log_every, self.validate_every, self.config.save_every)
                )
                if logs or validates or saves:
                    self._check_unchecked()
                if logs:
                    values = self._mean(losses)
                    bar.set_postfix_str(f"loss {values['loss']:.3f}", refresh=False)
                    seconds = round(time.perf_counter() - started, 3)
                    self._log({"step": self.step, "split": "train", **values, "seconds": seconds})
                if validates:
                    self._validate()
                if validates or saves:
                    self._save("last")
        bar.close()

    def _update(self, step: int, made: bool = False) -> list[_Part]:
        """What this process computes of an update, with its batches where they are to be `made`."""
        documents = self.sampler.batch(step)
        parts, whole = _parts(documents, self.parts, self.rank, self.world), self._size(documents)
        shares = [self.world * self._size(part) / whole for part in parts]
        return [_Part(*pair, self._batch(pair[0]) if made else None) for pair in zip(parts, shares)]

    def _batch(self, documents: np.ndarray) -> Batch:
        batch = make_batch([self.corpus["train"][i] for i in documents], self.vocab_size)
        batch = replace(batch, by_words=self.by_words)
        if self.device.type != "cuda":
            return batch
        with torch.cuda.device(self.device):
            return batch.pinned()

    def _step(self, model: Any, parts: list[_Part]) -> dict[str, torch.Tensor]:
        model.train()
        self.optimizer.zero_grad(set_to_none=True)
        if self.world > 1 or self.device.type != "cpu":  # each process its own places, and a resumed run those it had
            torch.manual_seed(seed_of(self.config.seed, self.step, self.rank))
        losses: dict[str, Any] = {}
        for part in parts:
            alone = part is not parts[-1] and self.world > 1
            with model.no_sync() if alone else nullcontext():  # processes exchange gradients once
                terms = self._backward(model, part)
            losses = {name: losses.get(name, 0) + value for name, value in terms.items()}
        self.step += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.rate(self.step, (self.step - 1) / self.steps_an_epoch, self.rises)
        with torch_threads(1):  # many small operations
            if self.config.max_norm is not None:
                nn.utils.clip_grad_norm_(self.model.parameters(), self.config.max_norm)
            self.optimizer.step()
        return losses

    def _backward(self, model: nn.Module, part: _Part) -> dict[str, torch.Tensor]:
        """Gradients of some of an update's documents; their loss terms, weighted by their share of it."""
        documents, share = part.documents, part.share
        words = int(self.corpus["train"].source_lengths[documents].sum())
        if min(self.threads, len(documents)) > 1 and self.parameters * words > WORTH_SHARING:
            shares = [documents[i :: self.threads] for i in range(min(self.threads, len(documents)))]
            weights = [share * self._size(part) / self._size(documents) for part in shares]
            losses_of, seeds = partial(self._losses, self.model), (self.config.seed, self.step)
            return backward_in_threads(self.model, losses_of, shares, weights, seeds)
        with torch_threads(self.threads if len(documents) == 1 else 1):
            losses = self._losses(model, documents, part.batch)
            (losses["loss"] * share).backward()
        return {name: value.detach() * share for name, value in losses.items()}

    def _size(self, documents: np.ndarray) -> int:
        """What some documents weigh in the loss of an update: as many as they are, or as their target words."""
        return int(self.corpus["train"].target_lengths[documents].sum()) if self.by_words else len(documents)

    def _losses(self, model: nn.Module, documents: np.ndarray, batch: Batch | None = None) -> dict[str, torch.Tensor]:
        batch = (self._batch(documents) if batch is None else batch).to(self.device)
        with self._autocast():
            losses = model(batch)
        loss = (self.step + 1, ", ".join(batch.ids), losses["loss"].detach())
        if self.device.type == "cpu":
            self._check([loss])
        else:  # would have to be waited for
            self.unchecked.append(loss)
        return losses

    def _check(self, losses: list[tuple[int, str, torch.Tensor]], process: Process = ALONE) -> None:
        """Raise NonFiniteLossError for the first of some losses, in the order of their steps, that is not finite, in
        any of the processes that call this together."""
        values = torch.stack([value for *_, value in losses]).tolist()
        own = [(step, ids, v) for (step, ids, _), v in zip(losses, values) if not math.isfinite(v)]
        found = [first for firsts in process.gather([own[:1]]) for first in firsts]
        if found:
            step, ids, value = min(found)
            raise NonFiniteLossError(
                f"the loss is {value} at step {step}, documents {ids}; "
                f"the last checkpoint in {self.folder} is from before. Try a lower learning rate."
            )

    def _check_unchecked(self) -> None:
        """Check all losses since the last check. Processes do so together: gradients that are not finite in one of
        them break the weights of all, and none may save those."""
        losses, self.unchecked = self.unchecked, []
        if losses:
            self._check(losses, Process(self.rank, self.world))

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
        rows, tokens = self._limits()
        settings = rows, self.vocab_size, self._autocast, tokens, self.by_words, Process(self.rank, self.world)
        losses = evaluate_loss(self.model, self.corpus["val"], *settings)
        if self.rank == 0:
            self._log({"step": self.step, "split": "val", **losses})
            self._keep(losses["loss"])
        wait_for_all(self.world)
        self.rises = self._rises()

    def _limits(self) -> tuple[int, int | None]:
        """Documents and source words of a batch in validation, at most: those of a part of one in training."""
        tokens = self.config.batch_tokens
        return -(-self.config.batch_size // self.parts), tokens and tokens // self.parts

    def _rises(self) -> int:
        """The number of validations whose loss was higher than that of the one before; the one at the end of a run,
        which may go on, does not count."""
        validated = [m for m in read_metrics(self.folder) if m["split"] == "val"]
        losses = [m["loss"] for m in validated if m["step"] % self.validate_every == 0]
        return sum(after > before for before, after in pairwise(losses))

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
        tensors = weights_of(self.model)
        if which == "last":
            for index, parameter in enumerate(self.model.parameters()):
                for key, value in self.optimizer.state.get(parameter, {}).items():
                    tensors[f"optimizer.{index}.{key}"] = value
            tensors["random"] = torch.get_rng_state()
        tensors = {k: v.detach().cpu().contiguous() for k, v in tensors.items()}
        meta = {"step": self.step, "best": self.best, "loss": loss}
        write_whole(self.folder / f"{which}.safetensors", save(tensors, {"meta": json.dumps(meta)}))


def parts_that_fit(peak: int, rest: int, parts: int, memory: int) -> int:
    """The fewest parts of an update that fit into a share `FILLED` of `memory` bytes, where one of `parts` parts has
    reached `peak` bytes and `rest` are there without it. What a part needs is in proportion to its size.

    It is rounded up to a power of two, so that a small change of what is measured does not change the run. Where not
    even the rest fits, the parts stay as many as they are.
    """
    room = FILLED * memory - rest
    least = math.ceil((peak - rest) * parts / room) if room > 0 else parts
    return 1 << (max(1, least) - 1).bit_length()


def _parts(batch: np.ndarray, accumulate: int, rank: int, world: int) -> list[np.ndarray]:
    """A process's documents of a batch, in its share of the parts: none is larger than with one process alone."""
    mine = batch[rank::world]
    return np.array_split(mine, min(-(-accumulate // world), len(mine)))


def backward_in_threads(
    model: nn.Module, losses_of: Callable, shares: Sequence, weights: Sequence[float], seeds=()
) -> dict[str, torch.Tensor]:
    """Gradients of the weighted sum of `losses_of(share)["loss"]`, added to the parameters'; returns all sums.

    Each share, such as some of a batch's documents, is one thread's; `seeds` and its number determine its dropout.
    """
    parameters, total = list(model.parameters()), {}

    def gradients(number: int):
        with random_numbers(*seeds, number):
            losses = losses_of(shares[number])
        share_gradients = torch.autograd.grad(losses["loss"] * weights[number], parameters, allow_unused=True)
        return share_gradients, {name: value.detach() * weights[number] for name, value in losses.items()}

    for share_gradients, losses in in_threads(gradients, range(len(shares)), len(shares)):
        for parameter, gradient in zip(parameters, share_gradients):
            if gradient is not None:
                parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
        total = {name: total.get(name, 0) + value for name, value in losses.items()}
    return total


def evaluate_loss(
    model: Any,
    split,
    batch_size: int,
    vocab_size: int,
    autocast: Callable[[], Any] = nullcontext,
    tokens: int | None = None,
    by_words: bool = False,
    process: Process = ALONE,
) -> dict[str, float]:
    """Mean of every loss term over the documents of a split, or over all their target words. tokens: of a batch, at
    most, as `in_order` takes it. process: one of those that share the batches; each returns what one alone would."""
    model.eval()
    device, sums = next(model.parameters()).device, {}
    whole = sum(len(document.target) for document in split) if by_words else len(split)

    def share(batch: Batch) -> dict[str, float]:
        with torch.no_grad(), autocast():
            losses = model.loss(replace(batch, by_words=by_words).to(device))
        size = int(batch.target_mask.sum()) if by_words else len(batch)
        return {name: value.item() * size / whole for name, value in losses.items()}

    own = process.share(in_order(split, batch_size, vocab_size, tokens))
    for losses in process.gather(in_threads(share, own, threads_on(device))):
        sums = {name: sums.get(name, 0.0) + value for name, value in losses.items()}
    return sums


def _flat(record: dict, prefix: str = "") -> dict:
    """{"train": {"seed": 0}} -> {"train.seed": 0}"""
    flat = {}
    for key, value in record.items():
        flat.update(_flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value})
    return flat


def _made_with(model: nn.Module, corpus: PreparedCorpus) -> dict:
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "code": code_of(train, type(model), type(corpus.options)),
    }
