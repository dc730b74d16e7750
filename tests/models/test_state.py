"""The type of a decoder's state says which values follow their hypothesis."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from lib.decoding.config import DecodeConfig
from lib.decoding.search import beam_search
from lib.models.headline_baselines import WordsLVT, WordsLVTConfig
from lib.models.mem2mem import Mem2MemState
from lib.models.state import DecoderState, PerDocument, PerHypothesis
from tests.conftest import RAGGED, VOCAB, batch_of, double, tiny_model


def test_settings_of_hypotheses_follow_from_the_type():
    assert Mem2MemState.hypotheses == {"hidden", "coverage", "memory", "read"}


def test_a_field_without_a_label_is_refused():
    with pytest.raises(TypeError, match="Forgotten: declare read as one of PerDocument, "):

        @dataclass(frozen=True, kw_only=True)
        class Forgotten(DecoderState):
            words: PerDocument[Tensor]
            read: Tensor


def test_a_wrong_label_is_found_by_a_search(monkeypatch):
    """With several hypotheses the sizes contradict it."""
    monkeypatch.setattr(Mem2MemState, "hypotheses", Mem2MemState.hypotheses - {"read"})
    with pytest.raises(
        ValueError, match=r"Mem2MemState: different numbers of documents: .*'read': 12"
    ):
        beam_search(tiny_model(), batch_of(), DecodeConfig(beam=4, max_length=5))


def test_reorder_chooses_rows_and_documents():
    @dataclass(frozen=True, kw_only=True)
    class State(DecoderState):
        words: PerDocument[Tensor]
        hidden: PerHypothesis[tuple[Tensor, Tensor | None]]

    state = State(words=torch.arange(3), hidden=(torch.arange(6), None))
    after = state.reorder(torch.tensor([1, 0, 5, 5]), torch.tensor([0, 2]))
    assert after.words.tolist() == [0, 2]
    assert after.hidden[0].tolist() == [1, 0, 5, 5] and after.hidden[1] is None
    assert state.reorder(torch.tensor([0] * 6)).words is state.words
    with pytest.raises(TypeError):
        state.replace(unknown=1)


def test_a_value_of_the_batch_follows_its_documents_only_if_it_has_all_of_them():
    """In training all documents share candidates; in a search each has its own."""
    sizes = {"candidates": 9, "embedding": 4, "hidden": 5}
    model = double(WordsLVT, WordsLVTConfig(vocab_size=VOCAB, source_vocab_size=VOCAB, **sizes))
    rows = documents = torch.tensor([2, 0])

    state = model.train().encode(batch_of(*RAGGED))
    after = state.reorder(rows, documents)
    assert len(after.values) == 2 and torch.equal(after.values, state.values[documents])
    assert len(state.candidates) == 1 and after.candidates is state.candidates

    state = model.eval().encode(batch_of(*RAGGED))
    after = state.reorder(rows, documents)
    assert len(state.candidates) == len(RAGGED)
    for name in ("candidates", "weight", "bias"):
        assert torch.equal(getattr(after, name), getattr(state, name)[documents])
