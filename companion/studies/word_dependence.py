"""Measure which words an encoder's states depend on, and whether two words act on a state together.

Both are measured on an encoder that reads a document of its own words, whose embeddings are moved.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from lib.data.batch import EncodedDocument, make_batch
from lib.data.vocabulary import EOS
from lib.evaluation.interventions import source_embedding
from lib.layers.cpu_kernels import without_kernels
from lib.models.read_again import Encoder, ReadAgain, ReadAgainConfig

jacobian: Any = torch.autograd.functional.jacobian


def encoder_states(model: Any, document: EncodedDocument, embeddings: Tensor) -> Tensor:
    """The encoder's states of the words [N, d] of a document whose words have these embeddings
    [N, e]."""
    with source_embedding(model).register_forward_hook(
        lambda module, words, output: embeddings[None]
    ):
        return model.encode(make_batch([document], model.config.vocab_size)).words[0]


def embeddings_of(model: Any, document: EncodedDocument) -> Tensor:
    """The embeddings of a document's words [N, e]."""
    return source_embedding(model)(
        make_batch([document], model.config.vocab_size).source[0]
    ).detach()


def reach(model: Any, document: EncodedDocument) -> Tensor:
    """Sizes of the derivatives of each word's state in each word's embedding:
    [N states, N words]."""
    words = embeddings_of(model, document)
    return jacobian(lambda x: encoder_states(model, document, x), words).norm(dim=(1, 3))


def interaction(
    model: Any, document: EncodedDocument, state: int, first: int, second: int
) -> float:
    """The largest mixed second derivative of a word's state in the embeddings of two words.

    0 where the one word changes nothing of what the other does to the state, exactly so where each
    reaches numbers of the state that the other does not.
    """
    words = embeddings_of(model, document)

    def slope(row: Tensor) -> Tensor:
        """The derivatives in the first word, with this embedding of the second."""
        x = words.index_put((torch.tensor(second),), row)
        with without_kernels():  # they have first derivatives only
            return jacobian(
                lambda x: encoder_states(model, document, x)[state], x, create_graph=True
            )[:, first]

    return jacobian(slope, words[second]).abs().max().item()


def compare_encoders(encoders: Mapping[str, Encoder]) -> tuple[dict[str, Tensor], dict[str, float]]:
    """Compute the `reach` of encoders with random weights on nine words, and the `interaction` of
    words 3 and 8 in the state of word 5, by their names."""
    text, maps, together = EncodedDocument.of("nine words", range(4, 13), [9], [EOS]), {}, {}
    for name, encoder in encoders.items():
        torch.manual_seed(0)
        sizes = {"embedding": 4, "hidden": 6, "dropout": 0.0, "importance": "sigmoid"}
        model = ReadAgain(ReadAgainConfig(13, 13, encoder=encoder, **sizes)).double()
        for parameter in model.parameters():
            nn.init.normal_(parameter, std=0.7)
        maps[name], together[name] = reach(model, text), interaction(model, text, 4, 2, 7)
    return maps, together
