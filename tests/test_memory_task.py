"""The task of `lib.tasks.memory`: its model that knows of a text by the memory alone, and its measures."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lib.data.batch import make_batch
from lib.data.synthetic import planted_at, planted_sentences
from lib.data.vocabulary import EOS
from lib.evaluation.slots import slots_after
from lib.models.mem2mem import Mem2Mem, Mem2MemConfig
from lib.tasks.memory import MemoryAlone, heads_scores, reads_scores, words_right

SIZES = {"embedding": 6, "hidden": 6, "bottleneck": 5, "slots": 3, "compression": 4}


def small_model(kind: type[Mem2Mem] = MemoryAlone, **changes):
    torch.manual_seed(0)
    model = kind(Mem2MemConfig(20, **SIZES, **changes)).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return model


def documents_of(count=2):
    return planted_sentences(count, seed=0, sentences=5, words=4, planted=2, vocab_size=20)


@pytest.mark.parametrize("kind, same", [(MemoryAlone, True), (Mem2Mem, False)])
def test_with_the_same_memory_another_text_changes_nothing(kind, same):
    model, (one, other) = small_model(kind), documents_of()
    summary = one.target
    a, b = (make_batch([replace(document, target=summary)], 20) for document in (one, other))
    state_a, state_b = model.encode(a), model.encode(b)
    with_memory_of_b = replace(state_a, memory=state_b.memory)
    log_probs = [
        model.log_prob(model.decode(batch.target_input, state)[0], batch.target, state)
        for batch, state in ((a, with_memory_of_b), (b, state_b), (a, state_a))
    ]
    assert torch.equal(log_probs[0], log_probs[1]) == same
    assert not torch.allclose(log_probs[0], log_probs[2]), "the memory itself says something"


def test_with_the_memory_alone_no_word_is_copied():
    model, (document, _) = small_model(), documents_of()
    unknown = replace(document, source=np.full_like(document.source, 20), unknown=("okapi",))
    batch = make_batch([unknown], 20)
    output, state = model.decode(batch.target_input, model.encode(batch))
    assert model.distribution(output, state, 1)[:, 20].tolist() == [0.0]


def test_what_is_left_of_a_slot_is_the_product_of_the_gates():
    model = small_model(Mem2Mem)
    with torch.no_grad():  # nothing is written in place of what goes
        for layer in (model.write_hidden, model.write_read, model.write_memory):
            layer.weight[6:] = 0
    batch = make_batch(documents_of(1), 20)
    memories = [model.encode(batch).memory, *(after(model, batch, n) for n in (1, 2, 3, 4))]
    found = slots_after(model, batch, (0, 1, 3))
    shares = [(memories[n] / memories[0]).mean().item() for n in (0, 1, 3)]
    assert found["left"] == pytest.approx(shares) and shares[0] == 1 > shares[1] > shares[2]
    unit = torch.nn.functional.normalize(memories[3][0], dim=1)
    cosines = [(unit[i] @ unit[j]).item() for i, j in ((0, 1), (0, 2), (1, 2))]
    assert found["cosine"][2] == pytest.approx(np.mean(cosines))


def after(model, batch, count):
    """The memory after `count` words: the decoder writes before each read but the first."""
    return model.decode(batch.target_input[:, : count + 1], model.encode(batch))[1].memory


def test_of_a_memory_that_is_never_written_all_is_left():
    model, batch = small_model(Mem2Mem, write=False), make_batch(documents_of(1), 20)
    assert slots_after(model, batch, (0, 2))["left"].tolist() == [1, 1]


def test_precision_recall_and_weight_on_the_marked_sentences():
    (document,) = planted_sentences(1, seed=3, sentences=4, words=3, planted=2, vocab_size=20)
    first, second = planted_at(document)
    (plain, *_) = sorted({0, 1, 2, 3} - {first, second})
    attention = torch.zeros(1, 3, 4)
    attention[0, 0, first], attention[0, 0, second] = 0.75, 0.25
    attention[0, 1, first], attention[0, 1, plain] = 0.5, 0.5 - 1e-3
    attention[0, 2, plain] = 1.0
    scores = heads_scores(attention, [document])
    assert scores["precision"] == scores["recall"] == 0.5
    assert scores["on marked"] == pytest.approx((1 + 0.5 + 0) / 3)
    assert scores["strongest"] == pytest.approx((0.75 + 0.5 + 1) / 3)


def test_reads_from_the_sentence_that_is_written():
    (document,) = planted_sentences(1, seed=3, sentences=4, words=6, planted=2, vocab_size=20)
    attention = torch.zeros(1, 2, 4)
    attention[0, [0, 1], planted_at(document)] = 1.0  # a slot for each marked sentence
    psi = torch.zeros(1, 11, 2)  # ten words and the end
    psi[0, :5, 0], psi[0, 5:, 1] = 1.0, 0.6
    psi[0, 5:, 0] = 0.4
    scores = reads_scores(psi, attention, [document])
    assert scores["read from"] == pytest.approx((1 + 0.6) / 2)
    assert [scores["psi 1"], scores["psi 2"]] == pytest.approx([1, 0.6])


def test_words_right_are_those_that_the_model_would_write():
    model, (document, _) = small_model(), documents_of()
    words = []
    for _ in range(6):  # greedily
        batch = make_batch([replace(document, target=np.array([*words, EOS], dtype=np.int32))], 20)
        output, _ = model.decode(batch.target_input, model.encode(batch))
        words.append(int(model.pointer.distribution(output, 0).argmax()))
    own = replace(document, target=np.array([*words, EOS], dtype=np.int32))
    wrong = replace(document, target=np.array([*words[:-1], (words[-1] + 1) % 20, EOS], dtype=np.int32))
    right = [words_right(model, make_batch([each], 20)) for each in (own, wrong)]
    assert right == pytest.approx([1, 5 / 6])
