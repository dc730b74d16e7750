"""Synthetic tasks: their documents, the models that lack a part, their measures, and the command
that solves them."""

import json
from collections import Counter
from dataclasses import replace
from itertools import islice, product

import numpy as np
import pytest
import torch

import companion.train_task
from companion.pages.measured import task_results
from companion.studies.slots import slots_left
from companion.tasks import hops, memory, read_twice, short_news, tasks, towns, windows
from companion.tasks.synthetic import planted_sentences
from companion.tasks.task import Task, by_row, learn
from lib.data.batch import make_batch, rows_of
from lib.data.vocabulary import EOS, PARAGRAPH_END, SLIDE
from lib.models.mem2mem import Mem2Mem, Mem2MemConfig
from lib.models.read_again import ReadAgain, ReadAgainConfig
from tests.conftest import double

# ---------------------------------------------------------------------------------
# the command


@pytest.fixture
def trained(monkeypatch):
    """The rows and seeds that were trained, in order, of a task `known` with rows `a`, `b`, and
    `fails`."""
    calls = []

    def row(name):
        return lambda seed: calls.append((name, seed)) or {"right": seed / 10}

    def fails(seed):
        raise RuntimeError("a fault")

    task = Task("a task", {"a": row("a"), "b": row("b")}, seeds=(0, 1))
    other = Task("another", {"a": row("a"), "fails": fails}, seeds=(3,))
    monkeypatch.setattr(companion.train_task, "tasks", lambda: {"known": task, "other": other})
    return calls


def test_rows_and_seeds_are_trained_once(trained, tmp_path, capsys):
    output = tmp_path / "known.json"
    companion.train_task.main(["known", "b", "--seeds", "1", "--output", str(output)])
    capsys.readouterr()
    companion.train_task.main(["known", "--output", str(output)])
    assert trained == [("b", 1), ("a", 0), ("a", 1), ("b", 0)]
    assert capsys.readouterr().out.splitlines() == [
        "| row | seed | right |", "| --- | --- | --- |", "| a | 0 / 1 | 0 / 0.1 |", "| b | 0 / 1 | 0 / 0.1 |",
    ]  # fmt: skip
    held = json.loads(output.read_text("utf-8"))
    rows = {row: {"seed": [0, 1], "right": [0.0, 0.1]} for row in "ab"}
    assert held["task"] == "known" and by_row(held["results"]) == rows


SMOKE = [
    ("hops", "1, given"), ("memory", "memory alone, both, plain gate"), ("memory", "all ways, 0.1, 1, plain gate"),
    ("read_twice", "twice, last state"), ("short_news", "twice, GRU, [UNK] fed back"),
    ("towns", "without global layers"), ("windows", "standard"),
    ("windows", "windows without window"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "row"), SMOKE)
def test_a_row_measures_what_is_stored_of_it(name, row, monkeypatch):
    """After two batches, with few unseen texts."""
    module = {"hops": hops, "memory": memory, "read_twice": read_twice, "short_news": short_news,
              "towns": towns, "windows": windows}[name]  # fmt: skip
    monkeypatch.setattr(
        module,
        "learn",
        lambda model, batches, learning_rate: learn(model, islice(batches, 2), learning_rate),
    )
    monkeypatch.setattr(windows, "TESTED", dict.fromkeys(windows.TESTED, 2))
    windows._trained.cache_clear()
    found, stored = tasks()[name].rows[row](0), task_results(name)[row]
    assert found.keys() <= stored.keys() and all(np.isfinite(value) for value in found.values())
    windows._trained.cache_clear()


def test_every_task_is_listed_and_has_every_stored_row(capsys):
    companion.train_task.main(["--list"])
    listed = [
        line.partition(":")[0]
        for line in capsys.readouterr().out.splitlines()
        if not line.startswith(" ")
    ]
    assert listed == list(tasks())
    for name, task in tasks().items():
        assert task_results(name).keys() == task.rows.keys(), name


# ---------------------------------------------------------------------------------
# memory


def small_model(kind=memory.MemoryAlone, **changes):
    torch.manual_seed(0)
    model = kind(
        Mem2MemConfig(20, embedding=6, hidden=6, bottleneck=5, slots=3, compression=4, **changes)
    ).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return model


def planted(count=2):
    return planted_sentences(count, seed=0, sentences=5, words=4, planted=2, vocab_size=20)


@pytest.mark.parametrize("kind, same", [(memory.MemoryAlone, True), (Mem2Mem, False)])
def test_with_the_same_memory_another_text_changes_nothing(kind, same):
    model, (one, other) = small_model(kind), planted()
    a, b = (make_batch([replace(document, target=one.target)], 20) for document in (one, other))
    state_a, state_b = model.encode(a), model.encode(b)
    mixed = state_a.replace(memory=state_b.memory)
    first, second, third = (
        model.log_prob(model.decode(batch.target_input, state)[0], batch.target, state)
        for batch, state in ((a, mixed), (b, state_b), (a, state_a))
    )
    assert torch.equal(first, second) == same and not torch.allclose(first, third), (
        "the memory itself matters"
    )


def test_what_is_left_of_a_slot_is_the_product_of_the_gates():
    model = small_model(Mem2Mem)
    with torch.no_grad():  # nothing is written
        for layer in (model.write_hidden, model.write_read, model.write_memory):
            layer.weight[6:] = 0
    batch = make_batch(planted(1), 20)
    first = model.encode(batch).memory
    later = [
        model.decode(batch.target_input[:, : n + 1], model.encode(batch))[1].memory for n in (1, 3)
    ]
    shares = [1.0, *((memory_ / first).mean().item() for memory_ in later)]
    left = slots_left(model, batch, 4)
    assert (left[:, 0] == 1).all() and left[:, [0, 1, 3]].mean((0, 2)).tolist() == pytest.approx(
        shares
    )


# ---------------------------------------------------------------------------------
# windows


def test_facts_are_right_in_their_places():
    facts = [[13, 14, 15, 16], [26, 27, 28, 29]]
    assert windows.facts_in_place([*facts[0], SLIDE, *facts[1]]) == facts
    assert windows.facts_in_place([*facts[0], *facts[1]], symbols=False) == facts
    assert windows.share_in_place([[facts[0]], [facts[1], facts[0]]], [facts, facts]) == 0.25


# ---------------------------------------------------------------------------------
# Read-Again

TEXTS = read_twice.words_between_numbers(400, seed=0)


def kind_of_word(word):
    return (word - read_twice.FIRST_WORD) // read_twice.WORDS


def test_the_sum_of_both_numbers_names_the_kind_and_neither_alone_does():
    for text in TEXTS:
        first, *words, last = text.source.tolist()
        assert sorted(map(kind_of_word, words)) == [0, 1, 2, 3] and max(words) < read_twice.SIZE
        (right,) = (
            word
            for word in words
            if kind_of_word(word) == (first + last - 2 * read_twice.NUMBERS) % 4
        )
        assert text.target.tolist() == [right, EOS]
    for end, number in product((0, -1), range(read_twice.NUMBERS, read_twice.FIRST_WORD)):
        kinds = [kind_of_word(t.target[0]) for t in TEXTS if t.source[end] == number]
        assert np.bincount(kinds, minlength=4).min() > len(kinds) / 8
    zeros = np.mean(
        [
            t.source[0] == read_twice.NUMBERS
            for t in read_twice.words_between_numbers(2000, 1, zeros=0.5)
        ]
    )
    assert zeros == pytest.approx(0.5 + 0.125, abs=0.03)


@pytest.mark.parametrize("encoder", ["gru", "bidirectional gru", "read-again lstm"])
def test_the_decoder_has_only_the_last_state(encoder):
    config = ReadAgainConfig(
        read_twice.SIZE, read_twice.SIZE, 6, 6, encoder, copy=False, dropout=0.0
    )
    model, batch = double(read_twice.LastStateOnly, config), make_batch(TEXTS[:3], read_twice.SIZE)
    state = model.encode(batch)
    features = model.decode(batch.target_input, state)[0].features
    elsewhere = state.replace(keys=torch.randn_like(state.keys))
    assert torch.equal(model.decode(batch.target_input, elsewhere)[0].features, features)
    started = state.replace(hidden=state.hidden + 1)
    assert not torch.allclose(model.decode(batch.target_input, started)[0].features, features)


@pytest.mark.parametrize(
    "said, offer, answer, headline",
    [
        (
            "buys agrees",
            "yorrel wants to buy zinder",
            "the board of zinder agrees",
            "yorrel to buy zinder",
        ),
        (
            "sold refuses",
            "yorrel may be sold to zinder",
            "the board of yorrel refuses",
            "yorrel rejects zinder",
        ),
    ],
)
def test_a_headline_says_what_offer_and_answer_say(said, offer, answer, headline):
    for answer_first in (False, True):
        facts = ("buys" in said, "agrees" in said, answer_first)
        document = short_news.dispatch("xanthe", "yorrel", "zinder", *facts)
        sentences = [f"xanthe says {offer} .", f"{answer} ."][:: -1 if answer_first else 1]
        assert short_news.WRITTEN.text(document.source, document.unknown) == " ".join(sentences)
        assert (
            document.reference
            == [headline]
            == [short_news.WRITTEN.text(document.target, document.unknown)]
        )


@torch.no_grad()
def test_without_context_each_unknown_previous_word_is_the_same():
    document = short_news.dispatch(*short_news.SIX[0])
    size, other = len(short_news.WRITTEN), document.target.copy()
    other[0] = next(i for i in document.source if i >= size and i != other[0])
    batch = make_batch([document, replace(document, target=other)], size)
    for kind, same in ((ReadAgain, False), (short_news.UnknownFedBack, True)):
        model = short_news.reader(0, "read-again gru", kind)
        output, _ = model.decode(batch.target_input, model.encode(batch))
        one, another = output.features[:, 1]
        assert torch.allclose(one, another, atol=1e-6) == same, kind


# ---------------------------------------------------------------------------------
# towns

CLUSTERS = towns.unseen_towns(50)


def values_of(cluster, town, fact):
    return Counter(
        v
        for p in cluster.paragraphs
        if p.town == town
        for f, v in zip(p.facts, p.values)
        if f == fact
    )


@pytest.mark.parametrize(
    "count, groups, wrong_groups", [(2, 1, 1), (2, 4, 1), (2, 4, 4), (3, 2, 1)]
)
def test_each_fact_is_said_three_times_and_at_most_once_wrongly(count, groups, wrong_groups):
    random, wrong = np.random.default_rng(1), []
    for _ in range(20):
        cluster = towns.town_cluster(random, count, groups, wrong_groups)
        assert len(cluster.truth) == count and len(cluster.paragraphs) == 6 * groups * count
        for town, facts in cluster.truth.items():
            for fact, value in enumerate(facts):
                values = values_of(cluster, town, fact)
                assert values.total() == 3 * groups and values[value] in (
                    3 * groups,
                    3 * groups - wrong_groups,
                )
                assert len(values) <= 2, "one wrong value at most"
                assert set(values) <= set(towns.VALUES[fact])
                wrong.append(values[value] < 3 * groups)
    assert 0.35 < np.mean(wrong) < 0.65


def test_a_town_document_in_its_forms():
    cluster = CLUSTERS[0]
    by_row, flat = towns.town_document(cluster), towns.town_document(cluster, flat=True)
    parted, graph = (
        towns.town_document(cluster, flat=True, separator=True),
        towns.same_town(cluster),
    )
    texts = [" ".join(towns.TOWN_PIECES.words[i] for i in row) for row in rows_of(by_row)]
    assert texts == [f"{cluster.title} <T>", *(p.text for p in cluster.paragraphs)]
    assert [towns.TOWN_PIECES.words[i] for i in by_row.target] == [
        *cluster.summary.split(),
        "[EOS]",
    ]
    assert flat.source.tolist() == by_row.source.tolist() and flat.sentence_lengths.tolist() == [
        len(flat.source)
    ]
    marks = parted.source == PARAGRAPH_END
    assert marks.sum() == 11 and parted.source[~marks].tolist() == flat.source.tolist()
    about = [cluster.title, *(p.town for p in cluster.paragraphs)]
    assert graph.tolist() == [[float(one == other) for other in about] for one in about]
    assert towns.town_document(cluster, graph=True).graph.tolist() == graph.ravel().tolist()


def test_models_are_shipped_in_16_bits_and_write_what_is_stored(tmp_path, monkeypatch):
    for row, model in towns.open_towns().items():
        stored, kinds = task_results("towns")[row], towns.facts_written(model, row)
        assert all(abs(kinds[kind] - stored[kind][0]) < 0.005 for kind in (*towns.KINDS, "whole"))
    monkeypatch.setattr(towns, "shipped_towns", lambda: tmp_path / "towns.safetensors")
    fresh = {row: towns.train_towns(row, 0, 1)[0] for row in towns.SHIPPED}
    towns.save_towns(fresh, towns.shipped_towns())
    opened = towns.open_towns()
    for row, model in fresh.items():
        for name, weight in opened[row].state_dict().items():
            assert torch.equal(weight, model.state_dict()[name].half().float()), (row, name)


def test_two_hops_lead_from_the_title_to_the_answer():
    random = np.random.default_rng(0)
    for _ in range(30):
        document = hops.hop_cluster(random, graph=True)
        rows = [row.tolist() for row in rows_of(document)]
        graph, ends = (
            document.graph.reshape(9, 9),
            [i for i, row in enumerate(rows) if row[0] in hops.ALIASES],
        )
        assert (
            len(rows) == 9 and len(ends) == 4 and graph[0].sum() == 2 and not graph[0, ends].any()
        )
        (reached,) = (i for i in ends if (graph @ graph)[0, i])
        assert document.target.tolist() == [*rows[reached][1:], EOS]
