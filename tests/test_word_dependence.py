"""What states depend on: zeros where nothing can pass, and mixed derivatives beside those of autograd."""

import pytest
import torch

from companion.studies.word_dependence import embeddings_of, encoder_states, interaction, reach
from lib.data.batch import EncodedDocument
from lib.data.vocabulary import EOS
from lib.models.read_again import ReadAgain, ReadAgainConfig
from tests.conftest import double

NINE = EncodedDocument.of("nine", range(4, 13), [9], [EOS])
SIZES = {"embedding": 3, "hidden": 4, "dropout": 0.0, "importance": "sigmoid"}


def reader(encoder):
    return double(ReadAgain, ReadAgainConfig(13, 13, encoder=encoder, **SIZES))


@pytest.mark.parametrize("encoder", ["gru", "lstm"])
def test_one_read_depends_on_the_words_before_it(encoder):
    sizes = reach(reader(encoder), NINE)
    assert sizes.shape == (9, 9)
    assert torch.equal(sizes > 0, torch.ones(9, 9).tril().bool())


@pytest.mark.parametrize("encoder", ["bidirectional gru", "read-again gru", "read-again lstm"])
def test_other_encoders_depend_on_all_words(encoder):
    assert (reach(reader(encoder), NINE) > 0).all()


@pytest.mark.parametrize("encoder", ["gru", "lstm", "bidirectional gru"])
def test_words_on_both_sides_do_not_act_together_without_a_second_read(encoder):
    """To the last bit: each number of the state is reached from one side alone."""
    assert interaction(reader(encoder), NINE, 4, 2, 7) == 0
    assert interaction(reader(encoder), NINE, 4, 1, 2) > 1e-4, "words on the same side do"


@pytest.mark.parametrize("encoder", ["read-again gru", "read-again lstm"])
def test_words_on_both_sides_act_together_in_a_second_read(encoder):
    assert interaction(reader(encoder), NINE, 4, 2, 7) > 1e-4


def test_an_interaction_is_the_mixed_second_derivative():
    """Of a first read by PyTorch's own GRU, twice differentiated."""
    model = reader("gru")
    plain = torch.nn.GRU(3, 4, batch_first=True).double()
    plain.load_state_dict(model.first_read.state_dict())
    words = embeddings_of(model, NINE)
    assert torch.allclose(encoder_states(model, NINE, words), plain(words[None])[0][0], rtol=0, atol=1e-12)
    mixed = [
        torch.autograd.functional.hessian(lambda x, k=k: plain(x[None])[0][0, 4, k], words)[1, :, 2, :]
        for k in range(4)
    ]
    assert interaction(model, NINE, 4, 1, 2) == pytest.approx(torch.stack(mixed).abs().max().item(), rel=1e-3)


def test_a_document_is_read_as_before_afterwards():
    model = reader("read-again lstm")
    words = embeddings_of(model, NINE)
    before = encoder_states(model, NINE, words)
    assert not torch.equal(encoder_states(model, NINE, words + 1), before)
    assert torch.equal(embeddings_of(model, NINE), words)
