"""Training: the loop over updates, for a page and for the command line (`lib.train`).

`_Loop.run` is the loop, and `_Loop.step` is one update. What an update is made of is in `parts`,
the files of a run are in `checkpoint`, and the terminal is in `console`.
"""

import sys
import time
import warnings
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from filelock import FileLock
from torch import nn

from lib.data.prepared import PreparedCorpus, code_of
from lib.layers.dropout import seed_of
from lib.system import devices
from lib.system.devices import ALONE, Process
from lib.system.errors import RunError
from lib.system.files import cached, write_whole
from lib.system.fingerprints import digest
from lib.system.threads import batches_ahead, flush_denormals, made_ahead, torch_threads
from lib.training import folder as run_folder
from lib.training.checkpoint import Checkpoint, Progress
from lib.training.config import TrainConfig
from lib.training.console import Bar, received_signals
from lib.training.folder import Recipe, checkpoints, determining, run_config
from lib.training.losses import NonFiniteLossError, evaluate_loss, mean_terms
from lib.training.parts import Part, Terms, Updates

if TYPE_CHECKING:
    from lib.decoding.run import Run

__all__ = ["NonFiniteLossError", "check_output", "evaluate_loss", "train", "train_in_cache"]

CPU = torch.device("cpu")


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
) -> "Run":
    """Train `model` on the training split, on one device or as one of torchrun's processes.

    Args:
        recipe: whose model it is, and how it is used: for whoever opens the run.
        model: anything with `loss(batch) -> {"loss": ..., named terms}` and a `config`. It is
            trained in place.
        output: the run's folder. A finished run in it is loaded, an unfinished one continued, if
            `resume`.
        device: "cuda" where there is one, otherwise "cpu".
        alone: train in this process only, whatever others torchrun has started.

    Raises:
        RunError: the folder holds another run; there is no such device; a batch has fewer documents
            than processes.
        NonFiniteLossError: the loss became NaN or infinite.
    """
    output = Path(output)
    flush_denormals()
    with nullcontext(ALONE) if alone else devices.processes() as process:
        place = devices.device_named(device)
        if config.bf16 and not devices.computes_bf16(place):
            warnings.warn(
                "this processor has no products in bfloat16, so that bf16 has no effect: the run "
                "computes in float32",
                stacklevel=2,
            )
        loop = _Loop(recipe, model.to(place), corpus, config, output, process, place, progress)
        check_output(output, resume)
        # A second training of this run waits until the first one ends.
        lock = nullcontext() if process.rank else FileLock(output / ".lock")
        with (
            lock,
            devices.float32_products(config.matmul_precision),
            devices.attention_of_many_lengths(),
        ):
            process.wait()
            loop.start()
            loop.run()
    from lib.decoding.run import (
        Run,  # what only a trained model needs: the search, texts for people
    )

    return Run(output, loop.files.record, model, corpus.encoder, recipe.decode)


class _Loop:
    """A run that is being trained: the model, its optimizer, and how far it is (`at`)."""

    def __init__(
        self,
        recipe: Recipe,
        model: nn.Module,
        corpus: PreparedCorpus,
        config: TrainConfig,
        folder: Path,
        process: Process = ALONE,
        device: torch.device = CPU,
        progress: bool = False,
    ):
        self.model = model
        self.corpus = corpus
        self.config = config
        self.process = process
        self.device = device
        self.shown = progress and process.rank == 0
        self.updates = Updates(model, corpus, config, process, device)
        self.optimizer = make_optimizer(model, config)  # after the model is on its device
        self.files = Checkpoint(folder, run_config(recipe, model, corpus, config), process)
        self.at = Progress()
        # Epochs differ in length where a batch has a budget of tokens.
        sampler = self.updates.sampler
        self.steps_an_epoch = sampler.batches_in(1)
        self.total = config.steps or sampler.batches_in(config.epochs)
        self.validate_every = config.validate_every or self.steps_an_epoch

    def start(self) -> None:
        """Begin the run in its folder, or load what the folder has of it."""
        torch.manual_seed(self.config.seed)  # of dropout; `load` continues where a run has stopped
        stored = self.files.check_same_run()
        if stored:
            self.at = self.files.load(self.model, self.optimizer, self.total)
        # Process 0 must not write the files before all processes have read them.
        self.process.wait()
        made_with: dict[str, Any] = {
            "code": code_of(train, type(self.model), type(self.corpus.options))
        }
        if self.config.bf16:
            made_with["products"] = self._name_products()
        if self.config.accumulate is None:
            made_with["parts"] = self._choose_parts(stored)
        self.files.begin(self.corpus.encoder, self.at.step, **made_with)
        if self.at.step == 0:
            # A run that is stopped before its first checkpoint can be continued, too.
            self.files.save_last(self.model, self.optimizer, self.at)
        # From here the other processes read what process 0 has written.
        self.process.wait()
        self.at.rises = self.files.count_rises(self.validate_every)

    def _name_products(self) -> str:
        """Return the type of matrix products where bfloat16 is asked for."""
        if not devices.computes_bf16(self.device):
            return "float32"
        if self.shown:
            text = "products are in bfloat16; recurrent layers, softmax and sums in float32"
            print(text, file=sys.stderr)
        return "bfloat16"

    def _choose_parts(self, stored: dict) -> int:
        if self.at.step == self.total:
            # A finished run computes nothing any more and keeps the number that it was made with.
            self.updates.count = stored["made_with"].get("parts", self.updates.count)
        elif self.device.type == "cuda":
            self.updates.fit_memory(has_moments=bool(self.optimizer.state))
        if self.shown:
            text = f"an update is computed in {self.updates.count} parts; --accumulate changes this"
            print(text, file=sys.stderr)
        return self.updates.count

    # ------------------------------------------------------------------------------------- the loop

    def run(self) -> None:
        """Make all updates that are left; log, validate and save when it is time to."""
        model = self.model
        if self.process.world > 1:
            # Each process computes the mean gradient of all of them.
            model = devices.with_shared_gradients(model, self.device)
        started = time.perf_counter()
        # On a GPU the next batches are made while an update is computed.
        steps = range(self.at.step, self.total)
        ahead = made_ahead(self.updates.make, steps, batches_ahead(self.device))
        with closing(ahead) as updates, received_signals() as signals:
            bar = Bar(updates, self.at.step, self.total, self.shown)
            for parts in bar:
                losses = self.step(model, parts)

                # A signal to one process stops all of them, after the same update.
                stopped = self.process.any(bool(signals))
                logs = self._is_time(self.config.log_every)
                validates = self._is_time(self.validate_every)
                saves = self._is_time(self.config.save_every) or validates or stopped

                # A loss that is not finite must not reach a log or a checkpoint.
                if logs or saves:
                    self.updates.finite.check(self.process, self.files.folder)
                if logs:
                    values = mean_terms(losses, self.process)
                    values["seconds"] = round(time.perf_counter() - started, 3)
                    self.files.log({"step": self.at.step, "split": "train", **values})
                    bar.show(loss=values["loss"])
                if validates and len(self.corpus["val"]):
                    loss = self.validate()
                    bar.show(val=loss)
                    if self.shown:  # to read a loss, the host waits for a GPU
                        now = losses["loss"].item()
                        text = f"training loss {now:.3f}, validation loss {loss:.3f}"
                        bar.write(f"step {self.at.step:,}: {text}")
                if saves:
                    self.files.save_last(self.model, self.optimizer, self.at)
                if stopped:
                    self.process.wait()  # torchrun ends all processes when one of them has ended
                    raise KeyboardInterrupt

    def _is_time(self, every: int) -> bool:
        # After the last update everything is logged, validated and saved.
        return self.at.step == self.total or self.at.step % every == 0

    def step(self, model: Any, parts: list[Part]) -> Terms:
        """Make one update: the gradient of all parts, clipped, and a step of the optimizer."""
        model.train()
        self.optimizer.zero_grad(set_to_none=True)
        rank, world = self.process
        if world > 1 or self.device.type != "cpu":
            # Dropout draws the same numbers after resuming, and other numbers in each process.
            torch.manual_seed(seed_of(self.config.seed, self.at.step, rank))
        losses = self.updates.compute(model, parts, self.at.step)

        # Steps are counted from 1 in the schedule, and epochs from 0.
        epoch = self.at.step / self.steps_an_epoch
        self.at.step += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.rate(self.at.step, epoch, self.at.rises)

        # Threads would wait for each other in many small operations.
        with torch_threads(1):
            # The gradient of the whole update is clipped, not those of its parts.
            if self.config.max_norm is not None:
                nn.utils.clip_grad_norm_(self.model.parameters(), self.config.max_norm)
            self.optimizer.step()
        return losses

    def validate(self) -> float:
        """Log the validation loss and keep the best weights. Returns the loss."""
        parts = self.updates.count
        losses = evaluate_loss(
            self.model,
            self.corpus["val"],
            # what fits into memory in training fits here
            batch_size=-(-self.config.batch_size // parts),
            vocab_size=self.updates.vocab_size,
            autocast=self.updates.autocast,
            tokens=self.config.batch_tokens and self.config.batch_tokens // parts,
            by_words=self.updates.by_words,
            process=self.process,
        )
        self.files.log({"step": self.at.step, "split": "val", **losses})
        self.files.save_best(self.model, self.at, losses["loss"], self.config.keep_best)
        self.process.wait()  # until process 0 has written the line that all read next
        self.at.rises = self.files.count_rises(self.validate_every)
        return losses["loss"]


def make_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """Make the optimizer that a configuration names."""
    common: dict[str, Any] = {"lr": config.learning_rate, "weight_decay": config.weight_decay}
    if config.optimizer == "adagrad":
        return torch.optim.Adagrad(model.parameters(), **common)
    if config.optimizer == "sgd":
        return torch.optim.SGD(model.parameters(), **common, fused=True)
    betas = (0.9, config.beta2)
    return torch.optim.Adam(
        model.parameters(), **common, betas=betas, eps=config.epsilon, fused=True
    )


def check_output(folder: str | Path, resume: bool) -> None:
    """Make a run's folder. Raises RunError where a run would be overwritten."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    if not resume and checkpoints(folder):
        raise RunError(
            f"{folder} holds a run already: --resume continues it; or choose another --output"
        )


# ---------------------------------------------------------------------------------
# models that help to prepare a corpus


# A file in the folder of a run in the cache: nothing is written there any more.
FINISHED = ".finished"


def train_in_cache(
    kind: str,
    make: Callable[[], nn.Module],
    corpus: PreparedCorpus,
    config: TrainConfig,
    progress: bool = True,
) -> Any:
    """Train a model that helps to prepare a corpus, or load it from the cache.

    The run is named after all that determines it, this code included.

    Args:
        make: gives the untrained model.

    Returns:
        the model with its best weights.
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
