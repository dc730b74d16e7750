"""Searches with Mem2Mem; their definitions are in `test_properties_runs.py`."""

import math
from dataclasses import replace
from itertools import product

import pytest
import torch

from lib.data.batch import in_vocabulary
from lib.data.vocabulary import BOS, EOS, PAD, UNK, Vocabulary
from lib.decoding.config import DecodeConfig
from lib.decoding.search import (
    beam_search,
    greedy_search,
    repeating,
    sample_search,
    summarize,
)
from lib.system.errors import InputError
from tests.conftest import RAGGED, VOCAB, batch_of, document, tiny_model

PLAIN = {"min_length": 0, "length_penalty": 0.0}


def model_score(model, item, ids):
    """log P of `ids` and [EOS], by teacher forcing."""
    batch = batch_of(item)
    state = model.encode(batch)
    inputs = in_vocabulary(torch.tensor([[BOS, *ids]]), VOCAB)
    output, _ = model.decode(inputs, state)
    return model.log_prob(output, torch.tensor([[*ids, EOS]]), state).sum().item()


@pytest.mark.parametrize("variant", [{}, {"write": False}])
def test_exhaustive_search_agrees(variant):
    """Every summary of at most two words, scored by the model: a beam that is wide enough finds the
    best ones."""
    model = tiny_model(**variant)
    config = DecodeConfig(beam=200, max_length=2, **PLAIN)  # as many as there are
    for item, found in zip(RAGGED, beam_search(model, batch_of(), config)):
        words = [w for w in range(VOCAB + len(item.unknown)) if w not in (PAD, UNK, BOS, EOS)]
        everything = [(), *((a,) for a in words), *product(words, words)]
        scored = sorted(((model_score(model, item, ids), ids) for ids in everything), reverse=True)
        assert [tuple(h.ids) for h in found] == [ids for _, ids in scored][: len(found)]
        assert [h.log_prob for h in found[:20]] == pytest.approx(
            [s for s, _ in scored[:20]], abs=1e-9
        )
        assert len(found) > 20


def naive_repeating(tokens, n):
    context = tokens[len(tokens) - n + 1 :]
    return [
        tokens[i + n - 1] for i in range(len(tokens) - n + 1) if tokens[i : i + n - 1] == context
    ]


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("control", [(), (7,), (7, 9)])
def test_words_that_would_repeat_an_ngram(n, control):
    """Of many rows at once, and over symbols that are no words."""
    symbols = torch.tensor(control, dtype=torch.long)
    random = torch.Generator().manual_seed(0)
    for length in range(9):
        rows = torch.randint(4, 10, (200, length), generator=random)
        found = repeating(rows, n, symbols)
        assert found.shape == (200, max(0, length - n + 1))
        for row, ids in zip(rows.tolist(), found.tolist()):
            words = [i for i in row if i not in control]
            assert [i for i in ids if i >= 0] == (
                naive_repeating(words, n) if len(words) >= n else []
            )


def test_unknown_words_come_out_as_the_sources_own():
    model = tiny_model()
    with torch.no_grad():
        model.pointer.switch.bias.fill_(-50.0)  # only copies
    item = document([[12, 13, 12]], [12, 3])
    item.unknown[:] = ["zebra", "Okapi"]
    vocabulary = Vocabulary([f"w{i}" for i in range(VOCAB - 4)])
    (summary,) = summarize(
        model, [item], vocabulary, DecodeConfig(beam=2, min_length=3, max_length=3)
    )
    assert set(" ".join(summary).split()) <= {"zebra", "Okapi"}


@pytest.mark.parametrize(
    "bad",
    [
        {"beam": 0},
        {"max_length": 0},
        {"min_length": 9, "max_length": 8},
        {"length_offset": -1},
        {"block_ngrams": -1},
        {"temperature": 0.0},
        {"temperature": math.nan},
        {"forbidden": (PAD, -1)},
    ],
)
def test_numbers_that_no_search_can_use(bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        DecodeConfig(**bad)


def test_an_end_of_no_probability_is_still_an_end():
    model = tiny_model()
    with torch.no_grad():
        model.pointer.vocabulary.bias[EOS] = -1e4
        model.pointer.switch.bias.fill_(50.0)
    for found in beam_search(model, batch_of(), DecodeConfig(beam=2, min_length=3, max_length=3)):
        assert len(found) == 2
        assert all(len(h.ids) == 3 for h in found)


def test_a_summary_that_the_limit_cuts_is_taken_only_where_none_has_ended():
    """A rule that prefers long summaries takes cut ones otherwise."""
    model = tiny_model()
    config = DecodeConfig(beam=4, min_length=0, max_length=4, length_penalty=9.0)
    ended_first = replace(config, ended_first=True)
    assert all(len(found[0].ids) == 4 for found in beam_search(model, batch_of(), config))
    for found in beam_search(model, batch_of(), ended_first):
        assert found and all(len(h.ids) < 4 for h in found)
    with torch.no_grad():
        model.pointer.vocabulary.bias[EOS] = -1e4
        model.pointer.switch.bias.fill_(50.0)
    for found in beam_search(model, batch_of(), ended_first):
        assert all(len(h.ids) == 4 for h in found)


# ---------------------------------------------------------------------------------
# sampling


def test_words_are_drawn_from_the_most_probable_ones():
    """The first word of many documents that differ in their names alone: as often as P^(1 /
    temperature) says."""
    model, config = (
        tiny_model(),
        DecodeConfig(min_length=1, max_length=3, sample=3, temperature=0.2),
    )
    same = [replace(RAGGED[0], id=f"document {i}") for i in range(2_000)]
    found = sample_search(model, batch_of(*same), config)
    state = model.encode(batch_of(same[0]))
    output, state = model.decode(torch.tensor([[BOS]]), state)
    p = model.distribution(output, state, len(same[0].unknown))[0]
    p[[PAD, UNK, BOS, EOS]] = 0
    values, words = p.topk(3)
    expected = (values.log() / 0.2).softmax(0).tolist()
    shares = [sum(h.ids[0] == w for h in found) / len(found) for w in words.tolist()]
    assert sum(shares) == pytest.approx(1) and shares == pytest.approx(expected, abs=0.04)
    assert abs(shares[0] - (values / values.sum())[0].item()) > 0.04, "the temperature shows"


def test_draws_follow_from_the_documents_name():
    model, config = tiny_model(), DecodeConfig(min_length=2, max_length=7, sample=5)
    drawn, others = (
        [
            h.ids
            for h in sample_search(
                model, batch_of(*[replace(d, id=d.id + more) for d in RAGGED]), config
            )
        ]
        for more in ("", " else")
    )
    assert drawn != others


def test_cold_samples_are_greedy():
    model, config = (
        tiny_model(),
        DecodeConfig(min_length=1, max_length=8, sample=4, temperature=1e-4),
    )
    assert [h.ids for h in sample_search(model, batch_of(), config)] == [
        h.ids for h in greedy_search(model, batch_of(), config)
    ]


def test_summaries_are_sampled_where_that_is_asked_for():
    model, vocabulary = tiny_model(), Vocabulary([f"w{i}" for i in range(VOCAB - 4)])
    config = DecodeConfig(min_length=2, max_length=7, sample=5)
    drawn = sample_search(model, batch_of(), config)
    expected = [vocabulary.sentences(h.ids, d.unknown) for h, d in zip(drawn, RAGGED)]
    assert summarize(model, RAGGED, vocabulary, config) == expected
    assert (
        summarize(model, RAGGED, vocabulary, DecodeConfig(min_length=2, max_length=7)) != expected
    )
    assert DecodeConfig().sample == 0, "a beam"


# ---------------------------------------------------------------------------------
# dead ends

DEAD_END = DecodeConfig(
    beam=2, min_length=6, max_length=6, forbidden=(PAD, UNK, BOS, *range(6, 40)), block_ngrams=1
)


@pytest.mark.parametrize("search", [beam_search, sample_search])
def test_where_every_word_is_barred_one_line_says_so(search):
    """Two words, none of which may come again, in a summary of at least six."""
    with pytest.raises(
        InputError, match=r"document 'a' has no summary: every word is forbidden, .* min_length"
    ):
        search(tiny_model(), batch_of(*RAGGED), replace(DEAD_END, sample=3))


def test_a_model_whose_numbers_overflow_writes_nothing():
    model = tiny_model()
    with torch.no_grad():
        model.embedding.weight.fill_(torch.inf)
    with pytest.raises(InputError, match=r"document 'a' has no summary: .* the weights"):
        beam_search(model, batch_of(*RAGGED), DecodeConfig(beam=2, max_length=6))


def test_a_sample_that_has_ended_takes_no_part():
    """All words are blocked for it while another document goes on."""
    model = tiny_model()
    config = replace(DEAD_END, min_length=0, sample=3, forbidden=(PAD, UNK, BOS, *range(5, 12)))
    many = [replace(RAGGED[i % 3], id=f"document {i}") for i in range(12)]
    found = sample_search(model, batch_of(*many), config)
    assert len({len(h.ids) for h in found}) > 1
    for item, h in zip(many, found):
        assert sample_search(model, batch_of(item), config)[0].ids == h.ids and len(
            set(h.ids)
        ) == len(h.ids)
