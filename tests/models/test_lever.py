"""A memory that is exchanged when it is handed over, and extracts of equal length."""

import math
import statistics

import numpy as np
import pytest

import lib
from companion.stored import effect_row
from companion.studies import extracts, lever, reading_order
from companion.tasks.synthetic import planted_sentences
from lib.data.batch import make_batch
from lib.data.corpus import load_corpus, unseen
from lib.evaluation.interventions import log_probs
from lib.evaluation.rouge import rouge
from lib.models.changes import NOTHING, batch_alone
from lib.models.mem2mem import Mem2Mem
from lib.models.memory_changes import MEMORY, one_memory
from lib.system.files import trained_folder
from tests.companion.test_tasks import small_model

# summaries of 15 words and the end
DOCUMENTS = planted_sentences(4, seed=0, sentences=5, planted=3, vocab_size=20)


def test_words_are_counted_by_place():
    model = small_model(Mem2Mem)
    whole, first, later = lever.by_place(model, DOCUMENTS, NOTHING)
    batch = make_batch(DOCUMENTS, 20)
    state = model.encode(batch)
    words = (
        model.log_prob(model.decode(batch.target_input, state)[0], batch.target, state)
        .detach()
        .numpy()
    )
    expected = [words.mean(1), words[:, :10].mean(1), words[:, 10:].mean(1)]
    assert np.allclose([whole, first, later], expected, rtol=0, atol=1e-10)


def test_each_position_of_the_lever_costs_what_its_change_costs():
    models, others = {5: small_model(), 6: small_model(write=False)}, DOCUMENTS[2:]
    rows = {row["name"]: row for row in lever.costs("toy", models, DOCUMENTS[:2], others)}
    assert len(rows) == 15 and rows["toy: erased"]["seeds"] == [5, 6]
    own = log_probs(models[6], DOCUMENTS[:2])
    for name, change in {
        "erased": MEMORY["memory erased"],
        "one for all": one_memory(models[6], others),
    }.items():
        expected = float((own - log_probs(models[6], DOCUMENTS[:2], change)).mean())
        assert (
            rows[f"toy: {name}"]["by seed"][1] == pytest.approx(expected, abs=1e-4)
            and abs(expected) > 1e-3
        )
    assert rows["toy: own"]["by seed"][1] == pytest.approx(-own.mean(), abs=1e-4)


def test_cosines_of_equal_and_of_other_memories():
    model = small_model(Mem2Mem)
    alike, *_ = lever.cosines("toy", {0: model}, [DOCUMENTS[0]] * 3)
    others, *_ = lever.cosines("toy", {0: model}, DOCUMENTS)
    assert alike["mean"] == pytest.approx(1) and others["mean"] < 0.999


def test_slots_and_order_of_reading_are_those_of_single_steps():
    model = small_model(Mem2Mem)
    batch = batch_alone(model, DOCUMENTS[0])
    state, places = model.encode(batch), []
    slots, sentences = state.write_attention.shape[1:]
    used = [0.0] * slots
    for word in batch.target_input[0]:
        output, state = model.decode(word[None, None], state)
        place = 0.0
        for slot, weight in enumerate(output.read[0, 0].tolist()):
            used[slot] += weight
            for sentence in range(sentences):
                share = state.write_attention[0, slot, sentence].item()
                place += weight * share * (sentence + 0.5) / sentences
        places.append(place)
    shares = [total / len(places) for total in used]
    expected = math.prod(share**-share for share in shares)
    found, order = reading_order.reading(model, DOCUMENTS[0])
    assert found == pytest.approx(expected, abs=1e-9) and found < slots - 1e-6
    assert order == pytest.approx(statistics.correlation(range(len(places)), places), abs=1e-9)


def test_reading_is_measured_with_each_memory():
    model = small_model(Mem2Mem)
    changes = {"own": NOTHING, "averaged": MEMORY["slots averaged"]}
    rows = reading_order.effects(model, DOCUMENTS, changes, seed=7)
    assert [row["name"] for row in rows] == [
        "own: slots",
        "own: order",
        "averaged: slots",
        "averaged: order",
    ]
    alike = rows[2]
    slots = model.encode(make_batch(DOCUMENTS, 20)).memory.shape[1]
    assert alike["mean"] == pytest.approx(slots, abs=1e-6), "equal slots are read alike"
    assert rows[0]["mean"] < slots - 1e-6 and rows[0]["seeds"] == [7]
    assert np.isfinite(rows[3]["mean"]), "reading that never moves has an order of 0"


def test_an_effect_has_the_mean_of_its_seeds_for_each_document():
    row = effect_row("a", "b", [[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]], (0, 4), words=7)
    assert (row["values"], row["by seed"], row["mean"]) == ([2, 2, 2], [2, 2], 2)
    assert (row["documents"], row["seeds"], row["words"]) == (3, [0, 4], 7)
    assert row["low"] < 2 < row["high"]


def test_an_extract_is_as_long_as_asked():
    sentences = ["a b c", "d e f g", "h i"]
    assert extracts.as_long(sentences, np.array([2, 0, 1]), 4) == ["a b c", "h i"], (
        "five words, not two"
    )
    assert extracts.as_long(sentences, np.array([2, 1, 0]), 3) == ["h i"]
    assert extracts.as_long(sentences, np.array([1, 0, 2]), 99) == sentences


def test_a_place_is_counted_from_the_nearer_end_of_its_section():
    heads = [(1, 1, 4), (1, 2, 3), (1, 3, 2), (1, 4, 1), (2, 1, 3), (2, 2, 2), (2, 3, 1), (3, 1, 1)]
    assert extracts.at_places(np.array(heads).T, [6, 1]) == [0, 1, 4, 5, 6, 6], (
        "one section has one sentence"
    )


def test_extracts_are_compared_with_chance():
    run = lib.load(trained_folder("mem2mem"))
    documents = unseen(load_corpus("pmc-sample"), "test", [], 2)
    rows = {row["name"]: row for row in extracts.compare(run, documents)}
    heads, chance = rows["heads"], rows["at random, as long"]
    assert abs(heads["words"] - chance["words"]) < 15
    lead = rouge(
        [document.sentences[:10] for document in documents],
        [document.summary for document in documents],
    )
    assert rows["first ten sentences"]["values"] == pytest.approx(lead[:, 0], abs=1e-3)
    difference = np.subtract(heads["values"], chance["values"])
    assert rows["heads - at random, as long"]["values"] == pytest.approx(difference, abs=1e-3)
    small = {row["name"]: row for row in extracts.compare(run, documents, "small")}
    assert small["10 at random"]["words"] != rows["10 at random"]["words"] and "heads" not in small
