"""Towns, two hops, the named paragraph: their clusters, what is measured, and what the committed numbers say."""

from collections import Counter

import numpy as np
import pytest
import torch

from companion.pages.measured import task_results
from companion.pages.towns import cuts_table, hops_table, shares, town_frames, town_writing, towns_table
from companion.tasks import hops, named, towns
from companion.tasks.hop_clusters import ALIASES, NAMES, hop_cluster, hop_document, shared_names
from companion.tasks.town_clusters import (
    FACT_PLACES,
    FACTS,
    PHRASES,
    TOWN_PIECES,
    TOWNS,
    VALUES,
    same_town,
    town_cluster,
    town_document,
)  # fmt: skip
from lib.data.batch import rows_of
from lib.data.vocabulary import EOS, PARAGRAPH_END, TITLE_END
from lib.evaluation.interventions import changes_of, decoder_sees
from lib.system.files import project_root, read_numbers

CLUSTERS = towns.unseen_towns(50)


def said(cluster, town, fact):
    return Counter(v for p in cluster.paragraphs if p.town == town for f, v in zip(p.facts, p.values) if f == fact)


@pytest.mark.parametrize("count, groups", [(2, 1), (2, 4), (3, 2)])
def test_each_fact_is_said_three_times_and_once_at_most_wrongly(count, groups):
    random, wrong = np.random.default_rng(1), []
    for _ in range(20):
        cluster = town_cluster(random, count, groups)
        assert len(cluster.truth) == count and len(cluster.paragraphs) == 6 * groups * count
        for town, facts in cluster.truth.items():
            for fact, value in enumerate(facts):
                values = said(cluster, town, fact)
                assert values.total() == 3 * groups and values[value] >= 3 * groups - 1
                assert set(values) <= set(VALUES[fact])
                wrong.append(values[value] < 3 * groups)
    assert 0.35 < np.mean(wrong) < 0.65


def test_what_a_paragraph_says_stands_in_its_text():
    for paragraph in (p for cluster in CLUSTERS for p in cluster.paragraphs):
        first, second = paragraph.text.removesuffix(" .").split(" . ")
        assert first.removeprefix("the town of ").startswith(f"{paragraph.town} ")
        assert second.startswith("it ") and paragraph.town not in second
        assert paragraph.facts[0] != paragraph.facts[1]
        for sentence, fact, value in zip((first, second), paragraph.facts, paragraph.values):
            assert any(sentence.endswith(phrase.format(value)) for phrase in PHRASES[fact])
            assert [word for word in sentence.split() if word in TOWNS] == [paragraph.town] * (sentence is first)


def test_no_place_in_a_cluster_tells_the_town_of_the_title():
    random = np.random.default_rng(2)
    clusters = [town_cluster(random) for _ in range(400)]
    own = np.mean([[p.town == c.title for p in c.paragraphs] for c in clusters], axis=0)
    assert (abs(own - 0.5) < 0.1).all()


def test_a_summary_has_the_facts_of_the_title_where_they_are_looked_for():
    for cluster in CLUSTERS:
        words = cluster.summary.split()
        assert len(words) == 23 and words[0] == cluster.title
        assert [words[place] for place in FACT_PLACES] == cluster.truth[cluster.title]


def test_a_town_document_in_its_three_forms():
    cluster = CLUSTERS[0]
    by_row, flat = town_document(cluster), town_document(cluster, flat=True)
    parted = town_document(cluster, flat=True, separator=True)
    texts = [[TOWN_PIECES.words[i] for i in row] for row in rows_of(by_row)]
    assert texts[0] == [cluster.title, "<T>"] and by_row.source[1] == TITLE_END
    assert [" ".join(row) for row in texts[1:]] == [p.text for p in cluster.paragraphs]
    assert [TOWN_PIECES.words[i] for i in by_row.target] == [*cluster.summary.split(), "[EOS]"]
    assert by_row.target[-1] == EOS and by_row.graph is None
    assert flat.source.tolist() == by_row.source.tolist() and flat.sentence_lengths.tolist() == [len(flat.source)]
    marks = parted.source == PARAGRAPH_END
    assert marks.sum() == 11 and parted.source[~marks].tolist() == flat.source.tolist()


def test_the_graph_of_towns_joins_the_title_with_its_own():
    cluster = CLUSTERS[0]
    graph = same_town(cluster)
    assert graph.sum() == 7**2 + 6**2 and graph[0].sum() == 7
    for i, one in enumerate(cluster.paragraphs, 1):
        assert graph[0, i] == graph[i, 0] == (one.town == cluster.title)
        assert graph[i, 1:].tolist() == [one.town == other.town for other in cluster.paragraphs]
    assert town_document(cluster, graph=True).graph.tolist() == graph.ravel().tolist()  # type: ignore[union-attr]


def test_training_never_sees_what_is_tested():
    again = towns.unseen_towns(50)
    assert again == CLUSTERS
    batches = towns._batches(towns.town_model(), "HT", seed=0, steps=3, on_the_way={})
    read = {tuple(row.tolist()) for batch in batches for row in batch.source}
    unseen = {tuple(row.tolist()) for row in towns.batch_of(CLUSTERS).source}
    assert len(read) == 3 * towns.BATCH and not read & unseen


def test_a_wrong_fact_is_of_one_kind():
    cluster = next(c for c in CLUSTERS if any(len(said(c, c.title, f)) > 1 for f in range(FACTS)))
    own, other = cluster.truth
    fact = next(f for f in range(FACTS) if len(said(cluster, own, f)) > 1)
    minority = next(value for value in said(cluster, own, fact) if value != cluster.truth[own][fact])
    heard = {value for town in cluster.truth for value in said(cluster, town, fact)}
    others = next(value for value in said(cluster, other, fact) if value not in said(cluster, own, fact))
    absent = next(value for value in VALUES[fact] if value not in heard)
    words = cluster.truth[own][fact], others, minority, absent
    assert [towns.kind_of(cluster, fact, word) for word in words] == list(towns.KINDS)
    assert towns.kind_of(cluster, fact, "") == "nowhere"


def test_what_is_measured_of_summaries():
    right = [c.summary.split() for c in CLUSTERS]
    assert towns.kinds_of_facts(CLUSTERS, right) == {
        "right": 1,
        "other town's": 0,
        "minority's": 0,
        "nowhere": 0,
        "whole": 1,
    }
    short = [words[: FACT_PLACES[2]] for words in right]
    assert towns.kinds_of_facts(CLUSTERS, short) == {
        "right": 0.5, "other town's": 0, "minority's": 0, "nowhere": 0.5, "whole": 0,
    }  # fmt: skip


def test_a_row_lacks_what_it_says():
    sizes = {row: towns.town_model(row).config for row in towns.ROWS}
    assert {(c.local_layers + c.global_layers) for c in sizes.values()} == {4}
    assert [row for row, c in sizes.items() if not c.global_layers] == [
        "without global layers", "flat", "flat, separators",
    ]  # fmt: skip
    assert [row for row, c in sizes.items() if c.pooling_heads == 1] == ["one pooling head"]
    assert [row for row, c in sizes.items() if not c.paragraph_positions] == ["without paragraph positions"]
    graphs = {row: towns.batch_of(CLUSTERS[:2], row).graph is not None for row in towns.ROWS}
    assert [row for row, has in graphs.items() if has] == ["graph of towns"]


def test_a_cut_of_the_title_in_one_layer():
    model, batch = towns.town_model().eval(), towns.batch_of(CLUSTERS[:3])
    for layer in (1, 2):
        with torch.no_grad(), changes_of(model)[f"first paragraph cut in layer {layer}"].model(model):
            seen = [weights[:, :, 1:, 0] for weights in model.encode(batch).between]
        assert (seen[layer - 1] == 0).all() and (seen[2 - layer] > 0).all()


def test_a_decoder_that_sees_some_paragraphs():
    model, clusters = towns.town_model().eval(), CLUSTERS[:3]
    batch, open_ = towns.batch_of(clusters), towns.rows_about(clusters, own=True)
    assert open_.sum(1).tolist() == [6] * 3 and not open_[:, 0].any()
    assert (open_ ^ towns.rows_about(clusters, own=False))[:, 1:].all()
    with torch.no_grad():
        with decoder_sees(open_).model(model):
            weights = model.attention_weights(batch.target_input, model.encode(batch))["units"]
        assert (weights[~open_[:, None].expand_as(weights)] == 0).all()
        whole = model.attention_weights(batch.target_input, model.encode(batch))["units"]
    assert (whole > 0).all(), "the model is as it was"


def test_models_are_shipped_in_16_bits_and_open_again(tmp_path, monkeypatch):
    monkeypatch.setattr(towns, "shipped_towns", lambda: tmp_path / "towns.safetensors")
    trained = towns.open_towns(steps=1)
    towns.save_towns(trained, towns.shipped_towns())
    opened = towns.open_towns()
    assert list(opened) == list(trained) == list(towns.SHIPPED)
    for row, model in trained.items():
        for name, weight in opened[row].state_dict().items():
            assert torch.equal(weight, model.state_dict()[name].half().float()), (row, name)


# ------------------------------------------------------------------------------------------------------------ hops


def test_two_hops_lead_from_the_title_to_the_answer():
    random = np.random.default_rng(0)
    for _ in range(30):
        cluster = hop_cluster(random)
        graph = shared_names(cluster)
        ends = [i for i, row in enumerate(cluster.rows) if row[0] in ALIASES]
        answer = [i for i in ends if cluster.rows[i][1:] == cluster.answer]
        assert len(cluster.rows) == 9 and len(ends) == 4
        assert not graph[0, ends].any() and (graph == graph.T).all() and graph.diagonal().all()
        reached = [i for i in ends if (graph @ graph)[0, i]]
        assert reached == [i for i in answer if i in reached] and len(reached) == 1
        assert graph[0].sum() == 2, "itself, and the paragraph that says its alias"


def test_a_hop_document():
    cluster = hop_cluster(np.random.default_rng(0))
    document = hop_document(cluster, graph=True)
    assert [row.tolist() for row in rows_of(document)] == cluster.rows
    assert document.source[0] in NAMES and document.target.tolist() == [*cluster.answer, EOS]
    assert document.graph.tolist() == shared_names(cluster).ravel().tolist()  # type: ignore[union-attr]
    assert hop_document(cluster).graph is None


def test_rows_of_hops_have_the_layers_that_they_name():
    for row, (layers, graph) in hops.ROWS.items():
        assert row == ("no global layer" if not layers else f"{layers}, {'given' if graph else 'learned'}")
    model, on_the_way = hops.train_hops("2, given", seed=0, steps=1)
    assert (len(model.local_layers), len(model.global_layers), on_the_way) == (1, 2, {})


# ----------------------------------------------------------------------------------------------- the named paragraph


def test_the_ranker_orders_paragraphs_for_the_models_that_read_in_its_order(monkeypatch):
    documents = named.named_clusters(4, seed=3)

    class Knowing:
        @staticmethod
        def logits(batch):
            return batch.labels

    monkeypatch.setattr(named, "named_ranker", lambda seed: Knowing)
    assert named.chosen_first(Knowing) == 1  # type: ignore[arg-type]
    for document, ordered in zip(documents, named._read(documents, "HT, ranked", 0)):
        rows, place = rows_of(document), int(named.named_rows([document]))
        assert rows_of(ordered)[0].tolist() == rows[0].tolist()
        assert rows_of(ordered)[1].tolist() == rows[place].tolist() and rows[place][0] == rows[0][0]
        assert sorted(ordered.source.tolist()) == sorted(document.source.tolist())
    assert named._read(documents, "HT", 0) is documents


# ------------------------------------------------------------------------------ what texts say of committed numbers


def test_shipped_models_write_what_the_numbers_say():
    """They are those of seed 0, in 16 bits."""
    for row, model in towns.open_towns().items():
        measures = task_results("towns")[row]
        assert measures["seed"][0] == 0
        kinds = towns.facts_written(model, row)
        assert all(abs(kinds[kind] - measures[kind][0]) < 0.005 for kind in (*towns.KINDS, "whole"))


def test_the_steps_of_the_page_are_what_shipped_models_write():
    """At the river, HT looks at the three paragraphs that name one of its town's, and the other model writes the
    other town's."""
    models, cluster = towns.open_towns(), CLUSTERS[0]
    words, probabilities, paragraphs = town_writing(models["HT"], cluster)
    assert " ".join(words) == f"{cluster.summary} [EOS]"
    assert torch.allclose(probabilities.sum(1), torch.ones(24)) and torch.allclose(paragraphs.sum(1), torch.ones(24))
    river = FACT_PLACES[1]
    most = paragraphs[river].topk(3)
    said = [cluster.paragraphs[i - 1] for i in most.indices.tolist()]
    assert all(p.town == cluster.title and 1 in p.facts for p in said) and most.values.sum() > 0.8
    frames = town_frames(models, cluster)
    assert frames.first == (str(river + 1),) and len(frames.frames) == 24
    own, other = (facts[1] for facts in cluster.truth.values())
    assert f">{own}</b>" in frames.frames[frames.first] and f">{other}</b>" in frames.frames[frames.first]


def test_the_numbers_of_towns_say_what_the_page_says():
    solved = task_results("towns")
    own, cut_off = solved["HT"], [solved["without global layers"], solved["flat"]]
    assert min(own["right"]) > 0.98 and own["seed"] == [0, 1, 2]
    for measures in cut_off:
        for right, other, minority in zip(*(measures[kind] for kind in towns.KINDS[:3])):
            assert 0.35 < right < 0.65 and other > 0.9 * (1 - right) and minority < 0.05
    for paragraphs in (24, 48):
        assert min(own[f"right, {paragraphs} paragraphs"]) > 0.97


def test_the_layer_of_the_look_at_the_title_is_an_accident_of_the_seed():
    for own in (task_results("towns")["HT"], task_results("named")["HT"]):
        first, last, both = (
            own[f"right, first paragraph cut{layer}"] for layer in (" in layer 1", " in layer 2", "")
        )
        for one in (first, last):
            assert min(one) < 0.55 and max(one) > 0.98
        assert max(both) < 0.55


def test_the_decoder_reads_the_answers_paragraphs():
    own, five = task_results("towns")["HT"], task_results("named")["HT"]
    assert min(own["decoder's weight on its town"] + five["decoder's weight on it"]) > 0.85
    assert min(own["right, decoder sees the title's town"] + five["right, decoder sees it"]) > 0.85
    assert max(own["right, decoder sees the other town"] + five["right, decoder sees the rest"]) < 0.06
    assert min(own["other town's, decoder sees the other town"]) > 0.8


def test_the_ranker_does_for_both_models_what_global_layers_do_for_one():
    solved = task_results("named")
    assert min(solved["HT"]["right"]) > 0.99 and max(solved["without global layers"]["right"]) < 0.3
    for row in ("HT, ranked", "without global layers, ranked"):
        assert min(solved[row]["right"]) > 0.95 and min(solved[row]["chosen first"]) == 1


def test_two_hops_take_two_layers_and_the_graph():
    solved = task_results("hops")
    assert min(solved["2, given"]["right"]) == 1 and solved["2, given"]["seed"] == [0, 1, 2]
    for row in ("no global layer", "1, learned", "1, given", "2, learned", "3, learned"):
        assert max(solved.get(row, {"right": [0]})["right"]) < 0.35, row


def test_the_papers_text_has_the_tables_of_the_tasks():
    text = (project_root() / "docs" / "papers" / "hierarchical_transformer.md").read_text(encoding="utf-8")
    solved, five, linked = map(task_results, ("towns", "named", "hops"))
    for frame in (towns_table(solved), cuts_table(solved["HT"], five["HT"]), hops_table(linked)):
        for row, cells in zip(frame.index, frame.astype(str).values.tolist()):
            assert f"| {row} | {' | '.join(cells)} |\n" in text, "the numbers are newer than docs/papers"


def test_what_the_page_says_of_local_layers():
    solved, page = task_results("towns"), project_root() / "notebooks" / "hierarchical_transformer.py"
    without, model = solved["without local layers"], solved["HT"]
    shares = without["right after 500"], model["right after 500"], without["right"]
    early, usual, late = (f"{100 * min(values):.0f} to {100 * max(values):.0f}%" for values in shares)
    said = f"{early} of the facts are right after 500 steps where the model above has {usual}, and {late} after 1,000"
    assert said in page.read_text(encoding="utf-8")


def test_what_texts_say_of_the_rankers_pooling():
    """On the named paragraph and on papers, the latter as `tests.tools.ranker_pooling` has kept it."""
    solved, root = task_results("named"), project_root()
    page = (root / "notebooks" / "hierarchical_transformer.py").read_text(encoding="utf-8")
    text = (root / "docs" / "papers" / "hierarchical_transformer.md").read_text(encoding="utf-8")
    rows = ("the maximum, as in the paper", "the mean", "the state of the last word")
    shown = {row: [shares(solved[row][f"chosen first, {n} words"]) for n in named.LENGTHS] for row in named.RANKERS}
    assert all(f"| {row} | {' | '.join(cells)} |\n" in text for row, cells in zip(rows, shown.values()))
    for row, cells in zip(("the maximum", "the mean"), shown.values()):
        assert f"| {row} | {' | '.join(cells)} |\n" in page
    path = root / "figures" / "hierarchical_ranker_pooling.json"
    mean, last = read_numbers(path, "record of rankers", ("minus max",))["minus max"].values()
    for lost, said in ((mean, "{:.2f} points less"), (last, "{:.2f} less")):
        assert said.format(-lost["mean"]) in text and f"[{lost['low']:.2f}, {lost['high']:.2f}]" in text
    assert f"a mean loses {-mean['mean']:.1f} points of recall [{-mean['high']:.1f}, {-mean['low']:.1f}]" in page
