"""The task that asks for a second read: its texts, its decoder, and what the texts say of its saved numbers."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from companion.tasks.read_twice import (
    FIRST_WORD,
    KINDS,
    NUMBERS,
    SIZE,
    TASK,
    WORDS,
    LastStateAlone,
    words_between_numbers,
)
from companion.tasks.task import by_row
from lib.data.batch import make_batch
from lib.data.vocabulary import EOS
from lib.models.read_again import ReadAgainConfig
from lib.system.files import project_root
from tests.conftest import double

TEXTS = words_between_numbers(400, seed=0)


def test_a_text_has_a_word_of_each_kind_between_two_numbers():
    for text in TEXTS:
        first, *words, last = text.source.tolist()
        assert {first, last} <= set(range(NUMBERS, FIRST_WORD))
        assert sorted((word - FIRST_WORD) // WORDS for word in words) == list(range(KINDS))
        assert max(words) < SIZE


def test_the_target_is_the_word_of_the_kind_that_the_sum_names():
    for text in TEXTS:
        first, *words, last = text.source.tolist()
        (right,) = (w for w in words if (w - FIRST_WORD) // WORDS == (first - NUMBERS + last - NUMBERS) % KINDS)
        assert text.target.tolist() == [right, EOS]


def test_neither_number_alone_says_the_kind():
    """Given one number, all kinds are about as frequent."""
    for end in (0, -1):
        for number in range(NUMBERS, FIRST_WORD):
            kinds = [(t.target[0] - FIRST_WORD) // WORDS for t in TEXTS if t.source[end] == number]
            assert np.bincount(kinds, minlength=KINDS).min() > 0.5 * len(kinds) / KINDS


def test_the_share_of_first_numbers_that_are_0():
    zeros = np.mean([t.source[0] == NUMBERS for t in words_between_numbers(2000, 1, zeros=0.5)])
    assert zeros == pytest.approx(0.5 + 0.5 / KINDS, abs=0.03)
    assert all(t.source[0] == NUMBERS for t in words_between_numbers(50, 1, zeros=1.0))


def test_texts_of_a_seed_are_the_same():
    again = words_between_numbers(400, seed=0)
    assert all(np.array_equal(a.source, b.source) for a, b in zip(TEXTS, again))
    assert not all(np.array_equal(a.source, b.source) for a, b in zip(TEXTS, words_between_numbers(400, seed=1)))


@pytest.mark.parametrize("encoder", ["gru", "bidirectional gru", "read-again gru", "read-again lstm"])
def test_the_decoder_has_nothing_but_the_last_state(encoder):
    """Where words are looked at changes nothing, and where the decoder starts changes everything."""
    config = ReadAgainConfig(SIZE, SIZE, 6, 6, encoder, copy=False, dropout=0.0)
    model, batch = double(LastStateAlone, config), make_batch(TEXTS[:3], SIZE)
    state = model.encode(batch)
    features = model.decode(batch.target_input, state)[0].features
    elsewhere = replace(state, keys=torch.randn_like(state.keys))
    assert torch.equal(model.decode(batch.target_input, elsewhere)[0].features, features)
    started = replace(state, hidden=state.hidden + 1)
    assert not torch.allclose(model.decode(batch.target_input, started)[0].features, features)


# ------------------------------------------------------------------------------------------- the saved numbers


@pytest.fixture(scope="module")
def solved():
    path = project_root() / "figures" / "task_read_twice.json"
    return by_row(json.loads(path.read_text(encoding="utf-8"))["results"])


def test_every_saved_row_is_one_of_the_task(solved):
    assert set(solved) <= set(TASK.rows)
    for measures in solved.values():
        assert measures["seed"] == list(TASK.seeds[: len(measures["seed"])])


def test_shares_in_the_texts_are_the_saved_ones(solved):
    once, both, twice, attending = (
        ", ".join(f"{100 * share:.0f}" for share in solved[row]["right"])
        for row in ("once, last state", "bidirectional, last states", "twice, last state", "once, all states")
    )
    page = text_of("notebooks/read_again.py")
    assert (
        f"reading once is right in {once} of 100, a bidirectional encoder in {both}, reading again in {twice}" in page
    )
    assert f"With **all states** in sight, reading once is right in {attending} of 100" in page
    for name in ("papers.md", "docs/papers/read_again.md"):
        assert f"once {once}" in text_of(name) and f"twice {twice}" in text_of(name), name


def test_all_rows_know_the_kind(solved):
    assert min(share for measures in solved.values() for share in measures["right kind"]) > 0.99


def text_of(name):
    return re.sub(r"\s+", " ", (project_root() / name).read_text(encoding="utf-8"))


def read(name):
    path = project_root() / "figures" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))["changes"]


def saved(name):
    return {row["change"]: row for row in read(name)}


@pytest.mark.parametrize("ending", ["", "_reuters"])
def test_numbers_of_changes_in_the_text_are_the_saved_ones(ending):
    text = text_of("docs/papers/read_again.md")
    hidden, changes = saved(f"hidden_words_read_again{ending}"), saved(f"interventions_read_again{ending}")
    assert f"{hidden['word hidden']['mean']:.2f}% [" in text
    assert f"[{hidden['word hidden']['low']:.2f}, {hidden['word hidden']['high']:.2f}]" in text
    fed = changes["[UNK] fed back"]
    assert f"{-fed['difference']:.3f}" in text and f"[{-fed['high']:.3f}, {-fed['low']:.3f}]" in text
    for name in ("no copying", "first unit erased"):
        assert f"{-changes[name]['difference']:.2f}" in text
    attention = read(f"attention_read_again{ending}")[0]
    assert f"{attention['mean']:.2f} [{attention['low']:.2f}, {attention['high']:.2f}]" in text
    kept = json.loads((project_root() / "figures" / f"attention_read_again{ending}.json").read_text("utf-8"))
    counted = kept["documents"] if ending else len(attention["values"])  # of Reuters the text names all
    assert f"{counted:,} " in text


def test_a_hidden_words_own_embedding_is_no_nearer_than_chance():
    """On Reuters the interval has a half; of docstrings too."""
    for ending in ("", "_reuters"):
        row = saved(f"hidden_words_read_again{ending}")["word hidden"]
        assert row["low"] < 50 < row["high"]


def test_unknown_fed_back_loses_little_and_for_certain():
    for ending in ("", "_reuters"):
        changes = saved(f"interventions_read_again{ending}")
        assert changes["[UNK] fed back"]["high"] < 0
        assert changes["no copying"]["difference"] < 9 * changes["[UNK] fed back"]["difference"]
