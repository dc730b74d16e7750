"""Training: one plain loop, for a page and for the command line (`lib.train`)."""

import json
import math
import platform
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock
from safetensors.torch import save
from torch import nn
from tqdm import tqdm

from lib.data.batch import Batch, BucketSampler, in_order, make_batch
from lib.data.prepared import PreparedCorpus, code_of
from lib.decoding.run import Run
from lib.layers.dropout import random_numbers, seed_of
from lib.system.errors import CompanionError, RunError
from lib.system.files import cached, errors_named, write_json, write_whole
from lib.system.fingerprints import digest
from lib.system.threads import batches_ahead, flush_denormals, in_threads, made_ahead, threads_on, torch_threads
from lib.training import devices
from lib.training import folder as run_folder
from lib.training.config import TrainConfig
from lib.training.devices import ALONE, Process
from lib.training.folder import Recipe, checkpoints, determining, read_metrics, run_config

# Threads pay from so many parameters times source words of a batch: a smaller batch is mostly Python.
WORTH_SHARING = 2e9
# Source words of a part of an update on a CPU, padding counted in: what the hierarchical transformer's authors use.
PART_WORDS = 10_500
# The share of a GPU's memory that a part may fill: the rest is for fragments, and for a later epoch's longer updates.
FILLED = 0.8


CPU = torch.device("cpu")


class NonFiniteLossError(CompanionError, FloatingPointError):
    """A loss that became NaN or infinite, with the step and the documents."""


def train(
    recipe: Recipe, model: nn.Module, corpus: PreparedCorpus, config: TrainConfig, output: str | Path,
    resume: bool = False, progress: bool = True, device: str | None = None, alone: bool = False,
) -> Run:  # fmt: skip
    """Train `model` on the corpus's training split, on one device or as one of torchrun's processes.

    Args:
        recipe: whose model it is, and how it is used: for whoever opens the run.
        model: anything with `loss(batch) -> {"loss": ..., named terms}` and a `config`. It is trained in place.
        output: the run's folder. A finished run in it is loaded, an unfinished one continued, if `resume`.
        device: "cuda" where there is one, otherwise "cpu".
        alone: train in this process only, whatever others torchrun has started.

    Raises:
        RunError: the folder holds another run; there is no such device; a batch has fewer documents than processes.
        NonFiniteLossError: the loss became NaN or infinite.
    """
    output = Path(output)
    flush_denormals()
    with nullcontext(ALONE) if alone else devices.processes() as process:
        place = devices.device_named(device)
        if config.bf16 and not devices.computes_bf16(place):
            warnings.warn(
                "this processor has no products in bfloat16, so that bf16 has no effect: the run computes in float32",
                stacklevel=2,
            )
        loop = _Loop(recipe, model.to(place), corpus, config, output, process, place, progress)
        check_output(output, resume)
        # a second training of this run waits
        lock = nullcontext() if process.rank else FileLock(output / ".lock")
        with lock, devices.float32_products(config.matmul_precision), devices.attention_of_many_lengths():
            process.wait()
            loop.start()
            loop.run()
    return Run(output, loop.record, model, corpus.encoder, recipe.decode)


FINISHED = ".finished"  # a file in the folder of a run in the cache: nothing is written there any more


def train_in_cache(
    kind: str, make: Callable[[], nn.Module], corpus: PreparedCorpus, config: TrainConfig, progress: bool = True
) -> Any:
    """Train a model that helps to prepare a corpus, or load it from the cache; with its best weights.

    make: gives the untrained model. The run is named after all that determines it, this code included.
    """
    torch.manual_seed(config.seed)
    model = make().to(devices.device_named())
    recipe = Recipe(kind)
    name = digest([determining(run_config(recipe, model, corpus, config)), code_of(make)])
    folder = cached(f"{kind}-{name}", FINISHED)
    if not (folder / FINISHED).exists():
        train(recipe, model, corpus, config, folder, resume=True, progress=progress, alone=True)
        write_whole(folder / FINISHED, "")
    return run_folder.load_weights(model, folder, "best").eval()


def check_output(folder: str | Path, resume: bool) -> None:
    """Make a run's folder. Raises RunError where a run would be overwritten."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    if not resume and checkpoints(folder):
        raise RunError(f"{folder} holds a run already: --resume continues it; or choose another --output")


def _optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    common: dict[str, Any] = {"lr": config.learning_rate, "weight_decay": config.weight_decay}
    if config.optimizer == "adagrad":
        return torch.optim.Adagrad(model.parameters(), **common)
    if config.optimizer == "sgd":
        return torch.optim.SGD(model.parameters(), **common, fused=True)
    common |= {"betas": (0.9, config.beta2), "eps": config.epsilon}
    return torch.optim.Adam(model.parameters(), **common, fused=True)


@dataclass(frozen=True)
class _Part:
    """Documents of an update that one process computes at once."""

    documents: np.ndarray  # their numbers
    share: float  # of the update's loss; processes are averaged
    batch: Batch


class _Loop:
    def __init__(self, recipe, model, corpus, config, folder, process=ALONE, device=CPU, progress=False):
        self.model, self.corpus, self.config, self.folder = model, corpus, config, folder
        self.process, self.device, self.progress = process, device, progress and process.rank == 0
        self.record = run_config(recipe, model, corpus, config)
        self.vocab_size = len(corpus.vocabulary)
        lengths, limits = corpus["train"].source_lengths, {"tokens": config.batch_tokens, "least": process.world}
        self.sampler = BucketSampler(lengths, config.batch_size, config.seed, config.pool, **limits)
        self.steps_an_epoch = self.sampler.batches_in(1)
        self.total = config.steps or self.sampler.batches_in(config.epochs)
        self.validate_every = config.validate_every or self.steps_an_epoch
        self.by_words = config.loss_mean == "words"
        if self.by_words and not getattr(model, "by_words", False):
            raise RunError(f"the loss of {type(model).__name__} has no mean over words: loss_mean must be documents")
        if self.sampler.batch_size < process.world:
            raise RunError(f"{process.world} processes cannot share a batch of {self.sampler.batch_size} documents")
        self.optimizer = _optimizer(model, config)
        self.threads = threads_on(device) if process.world == 1 else 1
        self.parameters = sum(p.numel() for p in model.parameters())
        self.step = 0
        self.best = float("inf")  # least validation loss
        self.rises = 0  # validations whose loss was higher than the previous one's
        # step, documents and loss of the updates since the last check: a check at each would wait for a GPU
        self.unchecked: list[tuple[int, str, torch.Tensor]] = []
        words = min(config.batch_tokens or sys.maxsize, self.sampler.batch_size * int(lengths.max()))
        self.parts = config.accumulate or -(-words // PART_WORDS)

    # ------------------------------------------------------------------------------------- start and resume

    def start(self) -> None:
        """Begin the run in its folder, or load what is there of it."""
        torch.manual_seed(self.config.seed)
        before = run_folder.read_config(self.folder) if checkpoints(self.folder) else {}
        if before:
            self._check_same(before)
            self._load()
        self.process.wait()
        versions = {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}
        code = code_of(train, type(self.model), type(self.corpus.options))
        self.record["made_with"] = {**versions, "code": code}
        if self.config.bf16:
            in_bf16 = devices.computes_bf16(self.device)
            self.record["made_with"]["products"] = "bfloat16" if in_bf16 else "float32"
            if in_bf16 and self.progress:
                print("products are in bfloat16; recurrent layers, softmax and sums in float32", file=sys.stderr)
        if self.config.accumulate is None:
            if self.step == self.total:  # a finished run computes nothing any more
                self.parts = before["made_with"].get("parts", self.parts)
            elif self.device.type == "cuda":
                self.parts = self._parts_by_memory()
            self.record["made_with"]["parts"] = self.parts
            if self.progress:
                print(f"an update is computed in {self.parts} parts; --accumulate changes this", file=sys.stderr)
        if self.process.rank == 0:
            self.corpus.encoder.save(self.folder)
            write_json(self.folder / "config.json", self.record)
            metrics = [m for m in read_metrics(self.folder) if m["step"] <= self.step]
            write_whole(self.folder / "metrics.jsonl", "".join(json.dumps(m) + "\n" for m in metrics))
        if not self.step:
            self._save("last")
        self.process.wait()
        self.rises = self._count_rises()

    def _check_same(self, stored: dict) -> None:
        """A stored run may be continued to more steps, with its corpus in another place; all else must be equal."""
        now, before = determining(self.record), determining(stored)
        free = {"train.steps", "train.epochs", "train.save_every", "corpus", "data", "model.vocab_size"}
        differing = [
            f"{key} is {before.get(key)!r} there and {now.get(key)!r} now"
            for key in sorted((before.keys() | now.keys()) - free)
            if before.get(key) != now.get(key)
        ]
        if not differing and before["data"] != now["data"]:
            differing = ["the corpus has other documents, another order of them or another vocabulary"]
        if differing:
            raise RunError(f"{self.folder} holds another run: {'; '.join(differing)}. Choose another output folder.")

    def _load(self) -> None:
        path = self.folder / "last.safetensors"
        # The optimizer keeps its tensors, which must not be a map of the file that the run will replace.
        state = {name: tensor.clone() for name, tensor in run_folder.load_tensors(path).items()}
        meta = run_folder.read_meta(path)
        run_folder.put_weights(self.model, state, path)
        moments = {i: run_folder.under(f"optimizer.{i}", state) for i, _ in enumerate(self.model.parameters())}
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": {i: m for i, m in moments.items() if m}, "param_groups": groups})
        torch.set_rng_state(state["random"])
        self.step, self.best = meta["step"], meta["best"]
        if self.step > self.total:
            raise RunError(f"{self.folder} holds {self.step} steps, more than the {self.total} asked for")

    def _parts_by_memory(self) -> int:
        """Find the fewest parts of an update that fit into the GPU's memory, the same number in all processes."""
        memory = torch.cuda.get_device_properties(self.device).total_memory
        parts = -(-self.parts // self.process.world) * self.process.world  # as `_parts` shares them out
        return max(self.process.gather([parts_that_fit(*self._measured(parts), parts, memory)]))

    def _measured(self, parts: int) -> tuple[int, int]:
        """Measure the peak bytes of a GPU while it computes the largest of an update's `parts`, and without the part.

        The part is of the first epoch's update with the most padded words. It is computed, and nothing remains of it.
        """
        lengths = self.corpus["train"].source_lengths

        def padded(documents: np.ndarray) -> int:
            return len(documents) * int(lengths[documents].max())

        update = max(self.sampler.epoch(0), key=padded)
        largest = max(_parts(update, parts, self.process), key=padded)
        torch.cuda.reset_peak_memory_stats(self.device)
        rest = torch.cuda.memory_allocated(self.device)
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            self._backward(self.model.train(), _Part(largest, 1.0, self._batch(largest)))
        peak = torch.cuda.max_memory_allocated(self.device)
        self.model.zero_grad(set_to_none=True)
        self.unchecked.clear()
        torch.cuda.empty_cache()
        # not there yet: gradients, and two moments of an optimizer that has not made a step
        weights = sum(p.numel() * p.element_size() for p in self.model.parameters())
        later = weights if self.optimizer.state else 3 * weights
        return peak + later, rest + later

    # --------------------------------------------------------------------------------------------- the loop

    def run(self) -> None:
        model = self.model
        if self.process.world > 1:
            model = devices.with_shared_gradients(model, self.device)
        started = time.perf_counter()
        shown = {}  # losses, in the bar
        made = made_ahead(self._update, range(self.step, self.total), batches_ahead(self.device))
        with closing(made) as updates, _signals() as signals:
            how = {"initial": self.step, "mininterval": 5, "ncols": 80, "disable": not self.progress}
            bar = tqdm(updates, "training", self.total, file=sys.stdout, **how)
            for parts in bar:
                losses = self._step(model, parts)
                logs, validates, saves = (
                    self.step == self.total or self.step % every == 0
                    for every in (self.config.log_every, self.validate_every, self.config.save_every)
                )
                stopped = self.process.any(bool(signals))
                if logs or validates or saves or stopped:
                    self._check_unchecked()
                if logs:
                    values = self._mean(losses)
                    shown["loss"] = values["loss"]
                    bar.set_postfix(shown, refresh=False)
                    seconds = round(time.perf_counter() - started, 3)
                    self._log({"step": self.step, "split": "train", **values, "seconds": seconds})
                if validates and len(self.corpus["val"]):
                    shown["val"] = self._validate()
                    bar.set_postfix(shown, refresh=False)
                    if self.progress:
                        losses_text = f"training loss {losses['loss'].item():.3f}, validation loss {shown['val']:.3f}"
                        bar.write(f"step {self.step:,}: {losses_text}")
                if validates or saves or stopped:
                    self._save("last")
                if stopped:
                    self.process.wait()  # torchrun ends the others when one has left
                    raise KeyboardInterrupt

    def _update(self, step: int) -> list[_Part]:
        """Make what this process computes of an update."""
        documents = self.sampler.batch(step)
        world, size = self.process.world, self._size(documents)
        parts = _parts(documents, self.parts, self.process)
        return [_Part(part, world * self._size(part) / size, self._batch(part)) for part in parts]

    def _size(self, documents: np.ndarray) -> int:
        """The weight of documents in the loss of an update: their number, or that of their target words."""
        return int(self.corpus["train"].target_lengths[documents].sum()) if self.by_words else len(documents)

    def _batch(self, documents: np.ndarray) -> Batch:
        batch = make_batch([self.corpus["train"][i] for i in documents], self.vocab_size)
        batch = replace(batch, by_words=self.by_words)
        if self.device.type != "cuda":
            return batch
        with torch.cuda.device(self.device):
            return batch.pinned()

    def _step(self, model: Any, parts: list[_Part]) -> dict[str, torch.Tensor]:
        """Make one update: the gradient of all parts, clipped, and a step of the optimizer."""
        model.train()
        self.optimizer.zero_grad(set_to_none=True)
        rank, world = self.process
        if world > 1 or self.device.type != "cpu":  # dropout of a process and step, also after resuming
            torch.manual_seed(seed_of(self.config.seed, self.step, rank))
        terms = []
        for part in parts:
            waits = part is not parts[-1] and world > 1  # processes exchange gradients with the last part
            with model.no_sync() if waits else nullcontext():
                terms.append(self._backward(model, part))
        self.step += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.rate(self.step, (self.step - 1) / self.steps_an_epoch, self.rises)
        with torch_threads(1):  # many small operations
            if self.config.max_norm is not None:
                nn.utils.clip_grad_norm_(self.model.parameters(), self.config.max_norm)
            self.optimizer.step()
        return _sum_terms(terms)

    def _backward(self, model: nn.Module, part: _Part) -> dict[str, torch.Tensor]:
        """Add the gradients of a part of an update; return its loss terms, weighted by its share."""
        words = int(self.corpus["train"].source_lengths[part.documents].sum())
        threads = min(self.threads, len(part.documents))
        if threads > 1 and self.parameters * words > WORTH_SHARING:
            return self._backward_in_threads(part, threads)
        with torch_threads(self.threads if len(part.documents) == 1 else 1):
            losses = self._losses(model, part.batch)
            (losses["loss"] * part.share).backward()
        return {name: value.detach() * part.share for name, value in losses.items()}

    def _backward_in_threads(self, part: _Part, threads: int) -> dict[str, torch.Tensor]:
        """Do what `_backward` does, with the documents shared out among threads."""
        shares = [part.documents[i::threads] for i in range(threads)]
        parameters = list(self.model.parameters())

        def gradients(number: int):
            weight = part.share * self._size(shares[number]) / self._size(part.documents)
            with random_numbers(self.config.seed, self.step, number):
                losses = self._losses(self.model, self._batch(shares[number]))
            share_gradients = torch.autograd.grad(losses["loss"] * weight, parameters, allow_unused=True)
            return share_gradients, {name: value.detach() * weight for name, value in losses.items()}

        terms = []
        for share_gradients, losses in in_threads(gradients, range(threads), threads):
            for parameter, gradient in zip(parameters, share_gradients):
                if gradient is not None:
                    parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
            terms.append(losses)
        return _sum_terms(terms)

    def _losses(self, model: nn.Module, batch: Batch) -> dict[str, torch.Tensor]:
        batch = batch.to(self.device)
        with self._autocast():
            losses = model(batch)
        self.unchecked.append((self.step + 1, ", ".join(batch.ids), losses["loss"].detach()))
        return losses

    def _check_unchecked(self) -> None:
        """Raise NonFiniteLossError for the first loss since the last check, in any process, that is not finite.

        Processes check together: gradients that are not finite in one of them break the weights of all.
        """
        losses, self.unchecked = self.unchecked, []
        values = torch.stack([value for *_, value in losses]).tolist()
        own = [(step, ids, v) for (step, ids, _), v in zip(losses, values) if not math.isfinite(v)]
        found = [first for firsts in self.process.gather([sorted(own)[:1]]) for first in firsts]
        if found:
            step, ids, value = min(found)
            raise NonFiniteLossError(
                f"the loss is {value} at step {step}, documents {ids}; "
                f"the last checkpoint in {self.folder} is from before. Try a lower learning rate."
            )

    def _autocast(self):
        if self.config.bf16 and devices.computes_bf16(self.device):
            return torch.autocast(self.device.type, torch.bfloat16)
        return nullcontext()

    def _mean(self, losses: dict[str, torch.Tensor]) -> dict[str, float]:
        """Losses as numbers, averaged over the processes."""
        own = torch.stack([value.double() for value in losses.values()]).tolist()
        return dict(zip(losses, np.mean(self.process.gather([own]), axis=0).tolist()))

    # ------------------------------------------------------------------------------- validation and the folder

    def _validate(self) -> float:
        """Log the validation loss and keep the best weights. Batches are as large as a part of one in training."""
        rows = -(-self.config.batch_size // self.parts)
        tokens = self.config.batch_tokens and self.config.batch_tokens // self.parts
        how = rows, self.vocab_size, self._autocast, tokens, self.by_words, self.process
        losses = evaluate_loss(self.model, self.corpus["val"], *how)
        if self.process.rank == 0:
            self._log({"step": self.step, "split": "val", **losses})
            if losses["loss"] < self.best:
                self.best = losses["loss"]
                self._save("best")
            if self.config.keep_best > 1:
                self._save(f"best-{self.step}", losses["loss"])
                for name in run_folder.kept_checkpoints(self.folder)[self.config.keep_best :]:
                    (self.folder / f"{name}.safetensors").unlink()
        self.process.wait()
        self.rises = self._count_rises()
        return losses["loss"]

    def _count_rises(self) -> int:
        """Count validations whose loss was higher than the previous one's, which lower the rate (`anneal`).

        The validation at the end of a run does not count: the run may be continued.
        """
        validated = [m for m in read_metrics(self.folder) if m["split"] == "val"]
        losses = [m["loss"] for m in validated if m["step"] % self.validate_every == 0]
        return sum(after > before for before, after in pairwise(losses))

    def _log(self, values: dict) -> None:
        if self.process.rank == 0:
            path = self.folder / "metrics.jsonl"
            with errors_named(path), open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps(values) + "\n")

    def _save(self, which: str, loss: float | None = None) -> None:
        """Write `last` (all that resuming needs), or weights only."""
        if self.process.rank:
            return
        tensors = run_folder.weights_of(self.model)
        if which == "last":
            for index, parameter in enumerate(self.model.parameters()):
                for key, value in self.optimizer.state.get(parameter, {}).items():
                    tensors[f"optimizer.{index}.{key}"] = value
            tensors["random"] = torch.get_rng_state()
        tensors = {name: value.cpu().contiguous() for name, value in tensors.items()}
        meta = {"step": self.step, "best": self.best, "loss": loss}
        write_whole(self.folder / f"{which}.safetensors", save(tensors, {"meta": json.dumps(meta)}))


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Collect Ctrl-C and SIGTERM, so that a run ends after an update and is saved. A second one ends it at once."""
    received: list[int] = []

    def receive(number: int, _: Any) -> None:
        received.append(number)
        signal.signal(number, signal.default_int_handler)

    handled = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGINT, signal.SIGTERM) if handled else ()
    # a command in the background ignores Ctrl-C
    before = {n: signal.signal(n, receive) for n in numbers if signal.getsignal(n) is not signal.SIG_IGN}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def parts_that_fit(peak: int, rest: int, parts: int, memory: int) -> int:
    """Compute the fewest parts of an update that fit into the share `FILLED` of `memory` bytes.

    One of `parts` parts has reached `peak` bytes, `rest` of them without it; a part needs memory in proportion to its
    size. The result is rounded up to a power of two, so that a small change of the measurement does not change the
    run. Where not even the rest fits, the number of parts does not change.
    """
    room = FILLED * memory - rest
    least = math.ceil((peak - rest) * parts / room) if room > 0 else parts
    return 1 << (max(1, least) - 1).bit_length()


def _parts(batch: np.ndarray, accumulate: int, process: Process) -> list[np.ndarray]:
    """Split a process's documents of a batch into its share of the parts."""
    mine = batch[process.rank :: process.world]
    return np.array_split(mine, min(-(-accumulate // process.world), len(mine)))


def _sum_terms(losses: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Sum each term of several losses."""
    return {name: sum(terms[name] for terms in losses) for name in losses[0]}


def evaluate_loss(
    model: Any, split, batch_size: int, vocab_size: int, autocast: Callable[[], Any] = nullcontext,
    tokens: int | None = None, by_words: bool = False, process: Process = ALONE,
) -> dict[str, float]:  # fmt: skip
    """Compute the mean of every loss term over the documents of a split, or over all their target words.

    tokens: most source words of a batch, as in `in_order`. process: one of those that share the batches; each returns
    the mean over all.
    """
    model.eval()
    device = next(model.parameters()).device
    whole = sum(len(document.target) for document in split) if by_words else len(split)

    def share(batch: Batch) -> dict[str, float]:
        with torch.no_grad(), autocast():
            losses = model.loss(replace(batch, by_words=by_words).to(device))
        size = int(batch.target_mask.sum()) if by_words else len(batch)
        return {name: value.item() * size / whole for name, value in losses.items()}

    own = process.share(in_order(split, batch_size, vocab_size, tokens))
    return _sum_terms(process.gather(in_threads(share, own, threads_on(device))))
