"""Headlines of an offer and an answer: what a dispatch says, a decoder without context, and the saved numbers."""

import itertools
import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from companion.tasks.short_news import (
    NAMES,
    READ,
    SIX,
    TASK,
    WRITTEN,
    UnknownFedBack,
    dispatch,
    dispatches,
    headlines,
    reader,
    share_right,
)
from companion.tasks.task import by_row
from lib.data.batch import make_batch
from lib.data.vocabulary import EOS, UNK
from lib.models.read_again import ReadAgain
from lib.system.files import project_root


def words_of(document):
    return WRITTEN.text(document.source, document.unknown)


@pytest.mark.parametrize("buys, agrees, answer_first", list(itertools.product((True, False), repeat=3)))
def test_the_headline_says_what_offer_and_answer_say(buys, agrees, answer_first):
    document = dispatch("xanthe", "yorrel", "zinder", buys, agrees, answer_first)
    text, headline = words_of(document), WRITTEN.text(document.target, document.unknown)
    pattern = r"says (\w+) wants to buy (\w+) \." if buys else r"says (\w+) may be sold to (\w+) \."
    ((first, second),) = re.findall(pattern, text)
    buyer, bought = (first, second) if buys else (second, first)
    assert f"the board of {bought} {'agrees' if agrees else 'refuses'} ." in text
    assert text.startswith("the board") == answer_first
    assert headline == (f"{buyer} to buy {bought}" if agrees else f"{bought} rejects {buyer}")
    assert document.target[-1] == EOS and document.reference == [headline]


def test_no_name_can_be_generated_and_half_of_them_are_unknown_to_the_encoder():
    many = dispatches(300, 0)
    assert not set(NAMES) & set(WRITTEN.words)
    for document in many:
        assert {4, 5, 6, EOS} >= {i for i in document.target.tolist() if i < len(WRITTEN)}
        assert UNK not in document.source
    unknown = [np.mean(document.source_ids == UNK) > 0 for document in many]
    known = [bool(set(words_of(document).split()) & set(NAMES)) for document in many]
    assert np.mean(unknown) == pytest.approx(7 / 8, abs=0.06) == np.mean(known)


def test_dispatches_of_a_seed_are_the_same():
    one, other, third = (list(map(words_of, dispatches(20, seed))) for seed in (3, 3, 4))
    assert one == other != third


def test_the_six_of_the_page_have_invented_names_and_both_kinds_of_everything():
    for part in zip(*SIX):
        assert len(set(part)) > 1
    assert not {name for names in SIX for name in names[:3]} & set(READ.words)


@torch.no_grad()
def test_without_context_the_word_before_is_unknown_whichever_it_was():
    document = dispatch(*SIX[0])
    other = document.target.copy()
    other[0] = next(i for i in document.source if i >= len(WRITTEN) and i != other[0])
    batch = make_batch([document, replace(document, target=other)], len(WRITTEN))
    for kind, same in ((ReadAgain, False), (UnknownFedBack, True)):
        model = reader(0, "read-again gru", kind)
        output, _ = model.decode(batch.target_input, model.encode(batch))
        one, another = output.features[:, 1]
        assert torch.allclose(one, another, atol=1e-6) == same, kind


def test_shares_are_of_whole_headlines(monkeypatch):
    documents = [dispatch(*parts) for parts in SIX]
    written = [document.reference[0] for document in documents]
    written[2], written[4] = "velmora to buy", ""
    monkeypatch.setattr("companion.tasks.short_news.headlines", lambda model, given: written)
    assert share_right(reader(0, "gru"), documents) == pytest.approx(4 / 6)


def test_a_model_writes_words_of_the_text():
    document = dispatch(*SIX[0])
    (written,) = headlines(reader(0, "gru"), [document])
    assert set(written.split()) <= {*words_of(document).split(), *WRITTEN.words}


@pytest.fixture(scope="module")
def solved():
    path = project_root() / "figures" / "task_short_news.json"
    return by_row(json.loads(path.read_text(encoding="utf-8"))["results"])


def test_the_saved_rows_are_the_tasks(solved):
    assert set(solved) == set(TASK.rows)
    assert all(measures["seed"] == list(TASK.seeds) for measures in solved.values())


def test_what_the_texts_say_of_the_saved_numbers(solved):
    """All rows that copy solve the task; without copying nothing is right."""
    solved = dict(solved)
    mute = solved.pop("twice, GRU, without copying")
    assert mute["right"] == [0, 0, 0]
    least = min(min(measures["right"]) for measures in solved.values())
    for name in ("notebooks/read_again.py", "docs/papers/read_again.md"):
        text = re.sub(r"\s+", " ", (project_root() / name).read_text(encoding="utf-8"))
        assert f"at least {100 * least:.1f}% of unseen headlines right" in text, name
