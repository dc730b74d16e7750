"""The type of a decoder's state says which values follow their hypothesis."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from lib.decoding.search import DecodeConfig, beam_search
from lib.models.mem2mem import Mem2MemState
from lib.models.state import DecoderState, PerDocument, PerHypothesis
from tests.conftest import batch_of, tiny_model


def test_fields_of_hypotheses_follow_from_the_type():
    assert Mem2MemState.hypotheses == {"hidden", "coverage", "memory", "read"}


def test_a_field_without_a_label_is_refused():
    with pytest.raises(TypeError, match="Forgotten: declare read as PerDocument or as PerHypothesis"):

        @dataclass(frozen=True, kw_only=True)
        class Forgotten(DecoderState):
            words: PerDocument[Tensor]
            read: Tensor


def test_a_wrong_label_is_found_by_a_search(monkeypatch):
    """With several hypotheses the sizes contradict it."""
    monkeypatch.setattr(Mem2MemState, "hypotheses", Mem2MemState.hypotheses - {"read"})
    with pytest.raises(ValueError, match=r"Mem2MemState: different numbers of documents: .*'read': 12"):
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
