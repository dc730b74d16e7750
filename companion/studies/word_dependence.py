"""What the states of an encoder depend on: which words reach a state, and whether two words act on it together.

Both are measured on an encoder that reads a document of its own words, whose embeddings are moved.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from lib.data.batch import EncodedDocument, make_batch
from lib.evaluation.interventions import source_embedding


def encoder_states(model: Any, document: EncodedDocument, embeddings: Tensor) -> Tensor:
    """The encoder's states of the words [N, d] of a document whose words have these embeddings [N, e]."""
    with _embedded(model, embeddings):
        return model.encode(make_batch([document], model.config.vocab_size)).words[0]


@contextmanager
def _embedded(model: Any, embeddings: Tensor) -> Iterator[None]:
    hook = source_embedding(model).register_forward_hook(lambda module, words, output: embeddings[None])
    try:
        yield
    finally:
        hook.remove()


def embeddings_of(model: Any, document: EncodedDocument) -> Tensor:
    """The embeddings of a document's words [N, e]."""
    return source_embedding(model)(make_batch([document], model.config.vocab_size).source[0]).detach()


def reach(model: Any, document: EncodedDocument) -> Tensor:
    """Sizes of the derivatives of each word's state in each word's embedding: [N states, N words]."""
    words = embeddings_of(model, document)
    jacobian = torch.autograd.functional.jacobian(lambda x: encoder_states(model, document, x), words)
    return jacobian.norm(dim=(1, 3))


@torch.no_grad()
def interaction(
    model: Any, document: EncodedDocument, state: int, first: int, second: int, step: float = 1e-3
) -> float:
    """The largest mixed second derivative of a word's state in the embeddings of two words, by differences.

    0 where the one word changes nothing of what the other does to the state, exactly so where each reaches numbers of
    the state that the other does not. The model should compute in double precision: the difference is divided by
    `step` squared.
    """
    words = embeddings_of(model, document)

    def moved(*places: tuple[int, int]) -> Tensor:
        x = words.clone()
        for place in places:
            x[place] += step
        return encoder_states(model, document, x)[state]

    dimensions, neither = range(words.shape[1]), moved()
    one = [moved((first, k)) for k in dimensions]
    other = [moved((second, k)) for k in dimensions]
    mixed = [(moved((first, a), (second, b)) - one[a]) - (other[b] - neither) for a in dimensions for b in dimensions]
    return torch.stack(mixed).abs().max().item() / step**2
