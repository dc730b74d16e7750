"""The files that training writes, and the check that a continued run is the same run.

`lib.training.folder` describes the files, and reads them for everyone else.
"""

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import nn

from lib.system.devices import Process
from lib.system.errors import RunError
from lib.system.files import errors_named, write_json, write_whole
from lib.system.metrics import read_metrics
from lib.training import folder as run_folder
from lib.training.folder import checkpoints, determining, read_config

# What may change when a run is continued: its length, and where its corpus is.
MAY_CHANGE = {"train.steps", "train.epochs", "train.save_every", "corpus"}
# Compared by `data`, the corpus's fingerprint, which gets a message of its own.
FOLLOWS_FROM_DATA = {"data", "model.vocab_size"}


@dataclass
class Progress:
    """How far a run is."""

    step: int = 0  # updates that were made
    best: float = float("inf")  # least validation loss
    rises: int = 0  # validations whose loss was higher than the previous one's


class Checkpoint:
    """The folder of a run that is being trained. Only process 0 writes."""

    def __init__(self, folder: Path, record: dict, process: Process):
        self.folder = folder
        self.record = record  # config.json
        self.process = process

    # ---------------------------------------------------------------------------------------- begin

    def check_same_run(self) -> dict:
        """Return the config of the run in the folder, or {} where there is none.

        Raises RunError where the folder holds another run.
        """
        if not checkpoints(self.folder):
            return {}
        stored = read_config(self.folder)
        now = determining(self.record)
        before = determining(stored)
        differing = [
            f"{key} is {before.get(key)!r} there and {now.get(key)!r} now"
            for key in sorted((before.keys() | now.keys()) - MAY_CHANGE - FOLLOWS_FROM_DATA)
            if before.get(key) != now.get(key)
        ]
        if not differing and before["data"] != now["data"]:
            differing = [
                "the corpus has other documents, another order of them or another vocabulary"
            ]
        if differing:
            raise RunError(
                f"{self.folder} holds another run: {'; '.join(differing)}. Choose another output "
                "folder."
            )
        return stored

    def load(self, model: nn.Module, optimizer: torch.optim.Optimizer, total: int) -> Progress:
        """Load weights, optimizer and random numbers of `last`.

        Raises RunError where it has made more than `total` steps.
        """
        path = self.folder / "last.safetensors"
        # The tensors are copied, because the file that they are a map of will be replaced.
        tensors = {name: value.clone() for name, value in run_folder.load_tensors(path).items()}
        run_folder.put_weights(model, tensors, path)
        torch.set_rng_state(tensors["random"])

        # The optimizer numbers its moments like the model's parameters.
        # A parameter without a gradient has no moments.
        moments = {}
        for index, _ in enumerate(model.parameters()):
            of_parameter = run_folder.under(f"optimizer.{index}", tensors)
            if of_parameter:
                moments[index] = of_parameter
        groups = optimizer.state_dict()["param_groups"]
        optimizer.load_state_dict({"state": moments, "param_groups": groups})

        meta = run_folder.read_meta(path)
        if meta["step"] > total:
            raise RunError(
                f"{self.folder} holds {meta['step']} steps, more than the {total} asked for"
            )
        return Progress(step=meta["step"], best=meta["best"])

    def begin(self, encoder: Any, step: int, **made_with: Any) -> None:
        """Write what determines the run, and drop metrics that are later than `step`."""
        versions = {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
        }
        self.record["made_with"] = {**versions, **made_with}
        if self.process.rank:
            return
        encoder.save(self.folder)
        write_json(self.folder / "config.json", self.record)
        # A run that was killed may have logged updates that `last` does not contain.
        lines = [json.dumps(m) + "\n" for m in read_metrics(self.folder) if m["step"] <= step]
        write_whole(self.folder / "metrics.jsonl", "".join(lines))

    # -------------------------------------------------------------------------------------- weights

    def save_last(self, model: nn.Module, optimizer: torch.optim.Optimizer, at: Progress) -> None:
        """Write all that resuming needs."""
        tensors = {"random": torch.get_rng_state()}
        for index, parameter in enumerate(model.parameters()):
            for key, value in optimizer.state.get(parameter, {}).items():
                tensors[f"optimizer.{index}.{key}"] = value
        self._save("last", model, at, tensors)

    def save_best(self, model: nn.Module, at: Progress, loss: float, keep: int) -> None:
        """Write the weights if they are the best so far, or among the best `keep`."""
        # All processes have the same loss and note it; only process 0 writes.
        if loss < at.best:
            at.best = loss
            self._save("best", model, at)
        if keep > 1 and self.process.rank == 0:
            self._save(f"best-{at.step}", model, at, loss=loss)
            for name in run_folder.kept_checkpoints(self.folder)[keep:]:
                (self.folder / f"{name}.safetensors").unlink()

    def _save(
        self,
        which: str,
        model: nn.Module,
        at: Progress,
        others: Mapping[str, torch.Tensor] | None = None,
        loss: float | None = None,
    ) -> None:
        if self.process.rank:
            return
        tensors = run_folder.weights_of(model) | dict(others or {})
        tensors = {name: value.cpu().contiguous() for name, value in tensors.items()}
        meta = {"step": at.step, "best": at.best, "loss": loss}
        # The file is replaced as a whole, so that a killed run leaves the previous one.
        path = self.folder / f"{which}.safetensors"
        write_whole(path, save(tensors, {"meta": json.dumps(meta)}))

    # -------------------------------------------------------------------------------------- metrics

    def log(self, values: dict) -> None:
        """Add a line to metrics.jsonl."""
        if self.process.rank:
            return
        path = self.folder / "metrics.jsonl"
        with errors_named(path), open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")

    def count_rises(self, validate_every: int) -> int:
        """Count validations whose loss rose, each of which lowers the rate (`anneal`).

        The validation at the end of a run does not count: the run may be continued.
        """
        losses = [
            m["loss"]
            for m in read_metrics(self.folder)
            if m["split"] == "val" and m["step"] % validate_every == 0
        ]
        return sum(after > before for before, after in pairwise(losses))
