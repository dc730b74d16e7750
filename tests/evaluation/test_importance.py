"""Importance of units on tiny models in double precision."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lib.data.batch import make_batch
from lib.data.vocabulary import UNK
from lib.evaluation.interventions import (
    by_erasure,
    by_gradient,
    known_words,
    log_probs,
    rank_agreement,
    source_embedding,
)
from lib.models.windowed import Windowed, WindowedConfig
from tests.conftest import RAGGED, VOCAB, double, tiny_model
from tests.evaluation.test_interventions import MODELS

SIZES = {"embedding": 5, "hidden": 4, "window": 6, "stride": 4}
ALL = {**MODELS, "windowed": lambda: double(Windowed, WindowedConfig(VOCAB, **SIZES))}
DOCUMENT = RAGGED[0]  # 11 words in 3 sentences


@pytest.mark.parametrize("name", ALL)
def test_the_gradient_is_the_slope_by_a_words_size(name):
    """The log-probability when the embedding of one word is a little longer, by central
    differences."""
    model = ALL[name]().eval()
    batch = make_batch([DOCUMENT], VOCAB)
    embedding = source_embedding(model)

    @torch.no_grad()
    def log_p(word: int, longer: float) -> float:
        scale = 1 + longer * (torch.arange(11) == word).double()
        places = []

        def change(module, inputs, output):
            return output * scale[places.pop(0)][..., None]

        record = embedding.register_forward_pre_hook(
            lambda module, inputs: places.append(inputs[0].clone())
        )
        model.encode(replace(batch, source=torch.arange(11)[None]))
        record.remove()
        hook = embedding.register_forward_hook(change)
        state = model.encode(batch)
        hook.remove()
        output, _ = model.decode(batch.target_input, state)
        return model.log_prob(output, batch.target, state)[known_words(batch, VOCAB)].mean().item()

    slopes = np.array([(log_p(word, 1e-5) - log_p(word, -1e-5)) / 2e-5 for word in range(11)])
    expected = [part.sum() for part in np.split(np.abs(slopes), [4, 6])]
    assert np.allclose(by_gradient(model, DOCUMENT), expected, rtol=0, atol=1e-8)
    assert max(expected) > 1e-4


def test_erasure_is_what_is_lost():
    model = tiny_model()
    lost = by_erasure(model, DOCUMENT)
    without = replace(
        DOCUMENT, source=np.where(np.isin(np.arange(11), [4, 5]), UNK, DOCUMENT.source)
    )
    whole, erased = log_probs(model, [DOCUMENT, without], only_known=True)
    assert lost[1] == pytest.approx(whole - erased, abs=1e-12)
    assert lost.shape == (3,)


def test_agreement_is_of_ranks():
    assert rank_agreement(np.array([1.0, 2.0, 9.0]), np.array([0.1, 0.2, 0.3])) == pytest.approx(1)
    assert rank_agreement(np.array([1.0, 2.0, 9.0]), np.array([3.0, 2.0, 1.0])) == pytest.approx(-1)
    assert rank_agreement(np.array([1.0, 1.0]), np.array([3.0, 2.0])) == 0
