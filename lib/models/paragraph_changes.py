"""Changes of what a hierarchical transformer computes between paragraphs."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from lib.data.batch import EncodedDocument, with_units
from lib.models.changes import Change, hooks, replaced


def between_paragraphs(model: Any) -> dict[str, Change]:
    """Return the changes of global layers, of the paragraphs' order and of their numbers."""
    changes = {}
    itself = "a paragraph attends to itself alone"
    others = "no paragraph attends to the first but itself"
    every = range(len(model.global_layers))
    for i in every:
        layer = f"layer {i + 1}"
        alone = _cut([i], _see_itself)
        changes[f"{layer} cut"] = Change(f"in global {layer} {itself}", model=alone)
        first = _cut([i], _see_all_but_the_first)
        name = f"first paragraph cut in {layer}"
        changes[name] = Change(f"in global {layer} {others}", model=first)
    if every:
        changes["layers cut"] = Change(itself, model=_cut(every, _see_itself))
        changes["first paragraph cut"] = Change(others, model=_cut(every, _see_all_but_the_first))
    changes["paragraphs backwards"] = Change(
        "the paragraphs that are read in the opposite order, the first at its place",
        document=_backwards,
    )
    if model.config.paragraph_positions:
        what = "all paragraphs have number 1; the places of tokens in them stay"
        changes["no paragraph positions"] = Change(what, model=_number_alike)
    return changes


def _backwards(document: EncodedDocument) -> EncodedDocument:
    # Unlike reversed sections, which are cut afterwards, they are the same paragraphs.
    last = len(document.sentence_lengths) - 1
    return with_units(document, [0, *range(last, 0, -1)])


def _number_alike(model: Any) -> AbstractContextManager:
    # The code of a token's place is as it was in training.
    positions = model.positions

    def alike(numbers: Tensor, tokens: Tensor) -> Tensor:
        return positions(torch.ones_like(numbers), tokens)

    return replaced(model, "positions", alike)


def _see_itself(paragraphs: int) -> Tensor:
    return torch.eye(paragraphs, dtype=torch.bool)


def _see_all_but_the_first(paragraphs: int) -> Tensor:
    sees = torch.ones(paragraphs, paragraphs, dtype=torch.bool)
    sees[1:, 0] = False
    return sees


def _cut(
    layers: Sequence[int], sees: Callable[[int], Tensor]
) -> Callable[[Any], AbstractContextManager]:
    """Let each paragraph attend only to those that it `sees`, [P, P] of P, in some global
    layers."""

    def reachable(present: Tensor) -> Tensor:  # [B, 1, P]
        count, device = present.shape[2], present.device
        # What is no paragraph attends to itself: a softmax needs an entry.
        itself = _see_itself(count).to(device) & ~present.transpose(1, 2)
        return present & sees(count).to(device) | itself

    names = [f"global_layers.{i}.reachable" for i in layers]
    return hooks(reachable, *names)


def decoder_sees(paragraphs: Tensor) -> Change:
    """Let the decoder attend only to the words of some paragraphs: [B, P] of one batch."""

    def hide(model: Any) -> AbstractContextManager:
        def encode(*arguments: Any) -> Any:
            state = type(model).encode(model, *arguments)
            return state.replace(mask=state.mask & paragraphs.gather(1, state.paragraph_of))

        return replaced(model, "encode", encode)

    return Change("the decoder attends only to the words of some paragraphs", model=hide)
