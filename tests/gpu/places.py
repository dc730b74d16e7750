"""A device by name: cuda, cpu, or pretend, which is not there (`tests.tools.pretend_device`)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from lib.training import loop


@contextmanager
def on(name: str) -> Iterator[torch.device]:
    """The device, for as long as this lasts."""
    if name != "pretend":
        yield torch.device(name)
        return
    # registers it with PyTorch for this process
    from tests.tools.pretend_device import DEVICE, pretend_device

    with pretend_device():
        yield DEVICE


def put(model: nn.Module, place: torch.device) -> Any:
    """A model on a device, where layers that share weights go on to share them."""
    if place.type != "pretend":
        return model.to(place)
    from tests.tools.pretend_device import moved

    return moved(model)


def put_training(training: loop._Loop, place: torch.device) -> loop._Loop:
    """A training whose model is on a device, with an optimizer of what is there."""
    put(training.model, place)
    training.optimizer = loop.make_optimizer(training.model, training.config)
    if place.type == "cuda" and training.config.accumulate is None:  # as where a run starts
        training.updates.fit_memory(has_moments=bool(training.optimizer.state))
    return training


def one_update(training: loop._Loop) -> dict[str, torch.Tensor]:
    """An update of a training, its batches made in it. Returns the loss terms."""
    return training.step(training.model, training.updates.make(training.at.step))


def wait(place: torch.device) -> None:
    """Wait for what a device has been asked to do."""
    if place.type == "cuda":
        torch.cuda.synchronize()


def called(name: str) -> str:
    """The device's name as its maker gives it."""
    return torch.cuda.get_device_name() if name == "cuda" else name
