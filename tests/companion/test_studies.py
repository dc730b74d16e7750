"""Studies: how papers are read through windows, what states depend on, rankings, importance and
repetition."""

import json
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from companion.studies import (
    forced_name,
    importance,
    marking,
    ranking,
    repetition,
    slides,
    town_marks,
)
from companion.studies.windows import SentenceLists, copied_from
from companion.studies.word_dependence import embeddings_of, encoder_states, interaction, reach
from companion.tasks.towns import batch_of, open_towns, unseen_towns
from lib.data.batch import EncodedDocument
from lib.data.vocabulary import EOS
from lib.decoding.config import DecodeConfig
from lib.models.changes import batch_alone
from lib.models.read_again import ReadAgain, ReadAgainConfig
from lib.papers import resolve
from lib.papers.windowed.windows import best_path
from lib.system.files import trained_folder
from tests.conftest import document, double

# ---------------------------------------------------------------------------------
# papers through windows

WINDOWED = str(trained_folder("windowed"))


@pytest.mark.slow
def test_searches_that_decide_first_are_compared_with_the_papers(tmp_path, capsys):
    output, systems = (
        tmp_path / "slides.json",
        ["the paper's search, greedy", "by half, greedy", "drawn", "equal chunks"],
    )
    options = [
        WINDOWED,
        "--dataset",
        "pmc-sample",
        "--documents",
        "2",
        "--output",
        str(output),
        "--systems",
    ]
    slides.main([*options, "the paper's search"])
    slides.main([*options, *systems])
    held = json.loads(output.read_text("utf-8"))
    effects = {effect["name"]: effect for effect in held["effects"]}
    half = effects["by half, greedy - the paper's search, trigram blocking"]
    first, second = (
        held[f"{name}, trigram blocking"] for name in ("the paper's search", "by half, greedy")
    )
    assert half["values"] == pytest.approx(np.subtract(second["values"], first["values"]), abs=1e-3)
    assert half["mean"] == pytest.approx(np.mean(half["values"]), abs=1e-3)
    assert first["by window"] != second["by window"] and [
        len(row) for row in second["by window"]
    ] == [3, 3]
    assert {
        f"{name} - the paper's search, plain beam search" for name in ("equal chunks", "drawn")
    } < set(effects)
    shown = held["example"]["the paper's search"]
    assert all(shown["slide"][place] > shown["word"][place] for place in shown["slides"]), (
        "it beats every single word"
    )
    (first, *_) = held["example"]["by the median"]["slides"]
    median = held["example"]["by the median"]
    assert median["product"][first] * (1 - median["slide"][first]) < 0.5 <= median["product"][first]


def test_words_by_window():
    ids = [9, 4, 9, 9, 4, 4, 9, 9, 9]
    assert slides.words_by_window(ids, 4) == [1, 2, 3] and slides.words_by_window([9, 9], 4) == [
        2,
        0,
        0,
    ]
    assert slides.words_by_window([9, 4, 9, 9], 2) == [1, 0, 2] and slides.words_by_window(
        [9], 1
    ) == [1, 0, 0]


def test_the_best_path_is_the_best_of_all_that_never_go_back():
    random, sources = np.random.default_rng(0), np.array([0, 0, 1, 2, 2, 2])
    for _ in range(20):
        similar = random.random((4, 6))
        best = [[similar[i, sources == w].max() for w in range(3)] for i in range(4)]
        paths = [path for path in product(range(3), repeat=4) if list(path) == sorted(path)]
        expected = max(paths, key=lambda path: sum(best[i][w] for i, w in enumerate(path)))
        assert best_path(similar, sources).tolist() == list(expected)
        linked = sources[similar.argmax(1)]
        assert (
            marking.apply_rule("never goes back", similar, sources).tolist()
            == np.maximum.accumulate(linked).tolist()
        )


def test_marks_of_papers_are_counted(tmp_path, capsys):
    output = tmp_path / "links.json"
    marking.main([WINDOWED, "--dataset", "pmc-sample", "--documents", "3", "--output", str(output)])
    held = json.loads(output.read_text("utf-8"))
    rows = {name: np.array(row) for name, row in held["counts"].items()}
    assert set(rows) == {f"{links}, {rule}" for links in marking.LINKS for rule in marking.RULES}
    assert all(
        (row[:, 0] <= row[:, 1]).all() and (row[:, 2] + row[:, 3] <= row[:, 4]).all()
        for row in rows.values()
    )
    last = {name: row[:, 2].sum() for name, row in rows.items()}
    assert last["random, never goes back"] > last["random, link alone"]
    effect = next(
        e for e in held["effects"] if e["name"].startswith("last: random, never goes back - ")
    )
    total = rows["random, link alone"][:, 4].sum()
    gained = last["random, never goes back"] - last["random, link alone"]
    assert effect["mean"] == pytest.approx(100 * gained / total, abs=1e-2)


def test_a_copied_sentence_has_one_source():
    source = [[1, 2, 3, 4, 5, 6], [9, 1, 2, 3, 4, 5], [7, 7, 7]]
    assert copied_from([0, 1, 2, 3, 4, 5, 6], source) == 0, "the longest run of words"
    assert copied_from([0, 1, 2, 3, 4, 5, 0], source) is None, "two sentences share it"
    assert copied_from([0, 9, 1, 2, 3, 0], source) is None, "four words are too few"
    assert copied_from([1, 2, 0, 3, 4, 5, 6], source) is None, "a run has no gap"


def test_a_copy_is_most_similar_where_vectors_distinguish_words():
    """Sentence 1 was copied; sentence 0 is long and of common words."""
    source = [[6, 7, 6, 7, 8, 6, 7, 9, 6, 7], [10, 6, 11, 7, 12], [6, 7, 6, 13]]
    lists = SentenceLists([np.array([10, 6, 11, 7, 12])], [np.array(s) for s in source])
    assert lists.similarities(np.eye(20)).argmax(1).tolist() == [1]


@pytest.mark.parametrize(
    "more, message",
    [
        ([str(trained_folder("mem2mem"))], "this run has no windows"),
        (
            [WINDOWED, "--documents", "3"],
            r"slides\.json is of documents 2, not 3: name another file",
        ),
    ],
)
def test_what_cannot_be_studied(more, message, tmp_path):
    held = {"run": WINDOWED, "corpus": "pmc-sample", "documents": 2, "cut to": 200}
    (tmp_path / "slides.json").write_text(json.dumps(held), "utf-8")
    with pytest.raises(SystemExit, match=f"^error: .*{message}"):
        slides.main([*more, "--dataset", "pmc-sample", "--output", str(tmp_path / "slides.json")])


# ---------------------------------------------------------------------------------
# states --------------

NINE = EncodedDocument.of("nine", range(4, 13), [9], [EOS])


def reader(encoder):
    sizes = {"embedding": 3, "hidden": 4, "dropout": 0.0, "importance": "sigmoid"}
    return double(ReadAgain, ReadAgainConfig(13, 13, encoder=encoder, **sizes))


@pytest.mark.parametrize(
    ("encoder", "all_words", "together"),
    [("gru", False, False), ("bidirectional gru", True, False), ("read-again lstm", True, True)],
)
def test_what_states_depend_on(encoder, all_words, together):
    """One read: the words before. Words on both sides of a word act on its state together only in a
    second read."""
    model = reader(encoder)
    reached = reach(model, NINE) > 0
    assert torch.equal(
        reached, torch.ones(9, 9).bool() if all_words else torch.ones(9, 9).tril().bool()
    )
    both_sides = interaction(model, NINE, 4, 2, 7)
    assert both_sides > 1e-4 if together else both_sides == 0
    assert interaction(model, NINE, 4, 1, 2) > 1e-4, "words on the same side do"


def test_an_interaction_is_the_mixed_second_derivative():
    """Of a first read by PyTorch's own GRU, twice differentiated."""
    model = reader("gru")
    plain = torch.nn.GRU(3, 4, batch_first=True).double()
    plain.load_state_dict(model.first_read.state_dict())
    words = embeddings_of(model, NINE)
    assert torch.allclose(
        encoder_states(model, NINE, words), plain(words[None])[0][0], rtol=0, atol=1e-12
    )
    mixed = [
        torch.autograd.functional.hessian(lambda x, k=k: plain(x[None])[0][0, 4, k], words)[
            1, :, 2, :
        ]
        for k in range(4)
    ]
    assert interaction(model, NINE, 4, 1, 2) == pytest.approx(
        torch.stack(mixed).abs().max().item(), rel=1e-3
    )


# ---------------------------------------------------------------------------------
# clusters


def test_a_ranking_is_measured_by_what_its_best_paragraphs_hold(tmp_path, monkeypatch):
    records = [
        {"title": "t", "paragraphs": ["a b c", "d e f", "g h"], "summary": "d e f"},
        {"title": "d", "paragraphs": ["g h", "d e f", "a b c"], "summary": "a b"},
    ] * 6
    for name in ("train", "val", "test"):
        (tmp_path / f"{name}.jsonl").write_text(
            "\n".join(map(json.dumps, records)), encoding="utf-8"
        )
    monkeypatch.setattr(ranking, "COUNTS", (1, 3))
    monkeypatch.setattr(ranking, "SEEDS", (0, 1))
    small = replace(resolve("hierarchical_transformer", "demo"), documents=None)
    small = replace(
        small, options=replace(small.options, vocab_size=40, ranker_steps=2, clones=1.0)
    )
    monkeypatch.setattr(ranking, "resolve", lambda *_: small)
    ranking.main(["--dataset", str(tmp_path), "--output", str(tmp_path / "made.json")])
    made = json.loads((tmp_path / "made.json").read_text("utf-8"))
    assert made["means"]["as they come"] == {"1": [0], "3": [100]}
    assert made["means"]["similarity"]["1"] == [0] and made["means"]["by the labels"]["1"] == [100]
    effects = {effect["change"]: effect for effect in made["effects"]}
    assert len(effects) == 6
    assert effects["by the labels - similarity, 1 paragraphs"]["values"] == [[100] * 12]
    assert effects["by the labels - similarity, 3 paragraphs"]["values"] == [[0] * 12]


def test_marks_of_towns_are_those_of_their_paragraphs():
    model, clusters = open_towns()["HT"], unseen_towns(3)
    together = town_marks.context_lengths(model, clusters, 1)
    alone = torch.cat([town_marks.context_lengths(model, [cluster], 1) for cluster in clusters])
    assert together == pytest.approx(alone, rel=1e-4)
    batch, nothing = batch_of(clusters), torch.zeros(3, 13, dtype=torch.bool)
    words = model.encode(batch).words
    one = nothing.clone()
    one[1, 4] = True
    for rows, changed in ((nothing, nothing), (one, one)):
        with town_marks.without_context(model, 1, rows):
            moved = (model.encode(batch).words - words).abs().sum(-1) > 1e-4
        assert moved.equal(changed.gather(1, batch.sentence_of) & batch.source_mask)
    assert model.encode(batch).words.equal(words), "the model is as before"


# ---------------------------------------------------------------------------------
# importance and repetition


def test_the_place_of_a_word_and_its_kind_are_set_apart():
    """Word 60 is rare, 5 frequent, 1 unknown. The first place takes 0.2 from any word, a rare word
    has 0.1 more."""
    texts = [[60, 5, 1, 5], [5, 60, 5, 1], [1, 5, 60, 60]]
    documents = [document([text], [EOS]) for text in texts]
    places = np.array([-0.2, 0.05, 0.0, 0.0])
    alphas = [(0.5 + places + 0.1 * (np.array(text) == 60))[:, None] * np.ones(3) for text in texts]
    found = importance.place_and_kind(alphas, documents)
    elsewhere = [(0.6 + 0.6 + 0.65) / 3, (0.55 + 0.55 + 0.5 + 0.5) / 4, (0.5 + 0.5) / 2]
    assert found["first word, same word"] == pytest.approx(
        [0.4 - elsewhere[0], 0.3 - elsewhere[1], 0.3 - elsewhere[2]]
    )
    of_places = [np.mean([alpha[i, 0] for alpha in alphas]) for i in range(4)]
    third = alphas[2][:, 0] - of_places
    assert found["rarer words"][1] == pytest.approx(
        alphas[1][1, 0] - of_places[1] - (alphas[1][2, 0] - of_places[2])
    )
    assert np.isnan(found["rarer words"][0]), (
        "the first text has its only rare word at the first place"
    )
    assert found["rarer words"][2] == pytest.approx(third[2:].mean() - third[1])


def test_attention_and_copying_are_compared_word_by_word():
    model = double(ReadAgain, ReadAgainConfig(12, 12, embedding=4, hidden=5, dropout=0.0))
    text = document([[4, 5, 6, 7]], [5, 6, EOS])
    with torch.no_grad():
        batch = batch_alone(model, text)
        output, _ = model.decode(batch.target_input, model.encode(batch))
    beta, k = output.attention[0].numpy(), output.copy[0].numpy()
    differ = 100 * (beta.argmax(1) != k.argmax(1)).mean()
    assert importance.words_that_differ(model, text) == pytest.approx(differ) and differ > 0


def test_effects_of_seeds_are_means_of_their_documents():
    settings = {
        "encoder": "read-again gru",
        "importance": "sigmoid",
        "embedding": 4,
        "hidden": 5,
        "dropout": 0.0,
    }
    model = double(ReadAgain, ReadAgainConfig(12, 12, **settings))
    runs: Any = [SimpleNamespace(model=model, config={"train": {"seed": seed}}) for seed in (3, 7)]
    documents = [document([[4, 5, 6, 7]], [5, 6, EOS]), document([[7, 5, 4]], [5, EOS])]
    rows = {row["change"]: row for row in importance.effects(runs, documents)}
    assert {*importance.WHAT} - {*rows} == {"rarer words", "unknown words"}, "there are none"
    assert all(row["seeds"] == [3, 7] for row in rows.values())
    alphas = [importance.importance(model, text) for text in documents]
    assert rows["below 0.1"]["values"] == pytest.approx(
        [100 * (alpha < 0.1).mean() for alpha in alphas], abs=1e-4
    )
    assert sum(rows["below 0.1"]["histogram"]) == pytest.approx(1)


def test_repeated_trigrams_are_counted_for_each_way_of_decoding(monkeypatch):
    assert repetition.repeated_percent([[1, 2, 3, 1, 2, 3, 4], [1, 2], [1] * 5]).tolist() == [
        20,
        0,
        200 / 3,
    ]
    ways = []

    def written(model, documents, vocabulary, way):
        ways.append(way)
        return [SimpleNamespace(ids=[1] * 5 if way.sample == 0 else [1, 2, 3]) for _ in documents]

    monkeypatch.setattr(repetition, "search_split", written)
    text: Any = document([[4, 5]], [4, 5, 6, EOS])
    run: Any = SimpleNamespace(
        encode=list, decode=DecodeConfig(block_ngrams=3), vocabulary=range(9), model=None
    )
    rows = {row["change"]: row["mean"] for row in repetition.repetition(run, [text] * 2)}
    assert (
        rows[repetition.BEAM]
        == rows["greedy search"]
        == pytest.approx(200 / 3)
        == rows.popitem()[1]
    )
    assert rows["references"] == rows[repetition.SAMPLED] == 0 and not any(
        way.block_ngrams for way in ways
    )
    assert [way.temperature for way in ways if way.sample == 9] == list(repetition.TEMPERATURES)


def test_the_model_of_towns_keeps_to_its_title_under_a_forced_name():
    """With an absent town in the title it has no reason to choose either."""
    model, about = open_towns()["HT"], forced_name.TRAINED["HT"]
    shares = {
        condition: forced_name.facts_of(model, about, condition).mean(0)
        for condition in forced_name.CONDITIONS
    }
    for condition in ("own name", "other name forced", "absent name forced"):
        assert shares[condition][0] > 98 and shares[condition][1] < 2, condition
    assert 30 < shares["absent title, own name"][0] < 70
    clusters = unseen_towns(2)
    batch = forced_name.batch_of(clusters, [cluster.title for cluster in clusters], about)
    written = forced_name.write_after(model, batch, forced_name.TOWNS[:2])
    assert [summary[0] for summary in written] == forced_name.TOWNS[:2]


def test_the_facts_of_either_town_are_counted_where_they_differ():
    cluster = unseen_towns(1)[0]
    for town, of_title in zip(cluster.truth, (True, False)):
        facts = dict(zip(forced_name.FACT_PLACES, cluster.truth[town]))
        words = [facts.get(i, "") for i in range(max(facts) + 1)]
        assert forced_name._shares(cluster, words) == ((100, 0) if of_title else (0, 100))


def test_every_paragraph_of_a_titled_row_begins_with_the_title():
    cluster = unseen_towns(1)[0]
    about = forced_name.TRAINED["without global layers, the title in every paragraph"]
    batch = forced_name.batch_of([cluster], [cluster.title], about)
    words = [forced_name.TOWN_PIECES.words[i] for i in batch.source[0].tolist()]
    # and the title's own row
    assert words.count("<T>") == len(cluster.paragraphs) + 1
