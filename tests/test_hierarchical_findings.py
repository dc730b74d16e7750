"""What the text on the hierarchical transformer says of changed models and of graphs, against what is kept."""

import re
from collections import Counter
from itertools import islice

import numpy as np

from companion.pages.measured import lost_table
from companion.pages.runs import unseen_papers
from companion.studies import retrain
from lib.data.batch import rows_of
from lib.data.corpora import load_corpus
from lib.data.options import words_of
from lib.evaluation.interventions import TEXTS
from lib.papers import open_run, resolve
from lib.papers.hierarchical_transformer.graphs import capitalised_names, discourse_graph, similarity_graph
from lib.system.files import project_root, read_numbers, trained_folder

FIGURES, DOCS = project_root() / "figures", project_root() / "docs"
TEXT = (DOCS / "papers" / "hierarchical_transformer.md").read_text(encoding="utf-8")
PAGE = (project_root() / "notebooks" / "hierarchical_transformer.py").read_text(encoding="utf-8")
CLAIMS = (project_root() / "papers.md").read_text(encoding="utf-8")


def finding(beginning):
    (text,) = re.findall(rf"^\* \*\*{re.escape(beginning)}.*\n(?:  .*\n)*", TEXT, re.MULTILINE)
    return text


def in_points(difference):
    """As tables have it: with its sign, and the interval behind it."""
    return "{mean:+.2f} [{low:+.2f}, {high:+.2f}]".format(**difference)


def says(text, found):
    """Whether a text has a difference of log-probabilities as a loss, its interval after it in the same sentence."""
    mean, low, high = (f"{-value:.3f}".replace("-0.000", "0.000") for value in found)
    return re.search(rf"(?<![\d.-]){re.escape(mean)} [^.:0-9]*{re.escape(f'[{high}, {low}]')}", text)


def changes(name):
    numbers = read_numbers(FIGURES / f"interventions_{name}.json", "interventions", ("run", "changes"))
    assert (numbers["documents"], numbers["of"]) == (50, "references")
    return {row["change"]: (row["difference"], row["low"], row["high"]) for row in numbers["changes"]}


def test_what_changed_models_lose_is_kept():
    plain, copying = changes("hierarchical_transformer"), changes("hierarchical_transformer_copying")
    layers = finding("On papers the shipped models hardly use")
    names = ("layers cut", "layer 1 cut", "layer 2 cut", "sections backwards", "paragraphs backwards")
    assert all(says(layers, copying[name]) for name in names)
    assert all(says(layers, plain[name]) for name in ("layers cut", "paragraphs backwards"))
    assert f"{-copying['no copying'][0]:.2f} nats are lost without copying" in layers
    assert says(CLAIMS, copying["layers cut"])
    assert "by {:.3f} [{:.3f}, {:.3f}]; why".format(*copying["last section first"]) in layers
    positions = finding("Paragraph positions are not seen to help")
    assert all(says(positions, of["no paragraph positions"]) for of in (plain, copying))


def test_sections_backwards_are_mostly_other_paragraphs():
    """What the text says of this change: sections are turned before the first paragraphs are read."""
    papers = unseen_papers(load_corpus("pmc-sample"), 50)
    run = open_run(trained_folder("hierarchical_transformer_copying"))
    backwards, same = [TEXTS["sections backwards"].text(paper) for paper in papers], []
    for as_it_is, turned in zip(run.encode(papers), run.encode(backwards)):
        one, other = (Counter(row.tobytes() for row in rows_of(document)[1:]) for document in (as_it_is, turned))
        same.append((one & other).total() / one.total())
    share = f"{np.mean(same):.0%}"
    assert f"of the paragraphs {share} stay the same" in finding("On papers the shipped models hardly use")
    assert f"only {share} of the paragraphs that are read stay the same" in PAGE


def test_what_short_texts_say_is_kept():
    table = read_numbers(FIGURES / "hierarchical_table_short_sumpubmed.json", "table", ())
    for other, beginning in (
        ("HT without global layers", "Global layers are not seen"),
        ("FT 300", "Reading paragraph by"),
    ):
        (pair,) = (pair for pair in table["pairs"] if {pair["first"], pair["second"]} == {other, "HT"})
        number = in_points(pair["R-1"])
        assert number in finding(beginning) and number in CLAIMS
    (longer,) = (pair for pair in table["pairs"] if {pair["first"], pair["second"]} == {"FT 150", "FT 300"})
    assert in_points(longer["R-1"]) in finding("Reading paragraph by")
    graphs = read_numbers(FIGURES / "hierarchical_table_short_pmc.json", "table", ())["pairs"]
    for name in ("similarity", "discourse"):
        (pair,) = (pair for pair in graphs if pair["second"] == f"HT + {name} graph")
        number = in_points(pair["R-1"])
        assert number in finding("A graph of discourse is no better tested") and number in CLAIMS


def on_h100() -> dict:
    return read_numbers(FIGURES / "hierarchical_on_h100.json", "record of trainings", ("runs",))


def test_what_the_shipped_size_says_is_kept():
    """The table's difference, and what its runs and others had half-way (`figures/hierarchical_on_h100.json`)."""
    name = "hierarchical_table_copying_sumpubmed_medium.json"
    pair, _ = read_numbers(FIGURES / name, "table", ("pairs",))["pairs"]  # and the one of plain beam search
    number = in_points(pair["R-1"])
    global_layers, flat = finding("Global layers are not seen"), finding("Reading paragraph by")
    assert {pair["first"], pair["second"]} == {"HT", "HT without global layers"}
    assert number in global_layers and number in CLAIMS
    found, losses = on_h100(), {}
    for run in found["runs"]:
        losses.setdefault(run["label"], []).append(run["nll"])
    said = (" and ".join(f"{nll['2000']:.3f}" for nll in losses[row]) for row in ("HT", "HT without global layers"))
    assert "{} with them, {} without".format(*said) in global_layers
    early = found["R-1 after 1,000 steps"]
    numbers = {row: in_points(early[row]) for row in early}
    assert numbers["HT - HT without global layers"] in global_layers
    equal = numbers["HT - FT 2600"]
    assert equal in CLAIMS and equal.replace(" [", " is left after 1,000 steps [") in flat
    plain = early["HT - FT 2600, plain beam search"]
    below = (-plain[end] for end in ("mean", "high", "low"))
    assert "{:.2f} below it in plain beam search [{:.2f}, {:.2f}]".format(*below) in TEXT
    first = {row: runs[0]["1000"] for row, runs in losses.items()}
    assert f"loss of {first['FT 2600']:.3f} where HT has {first['HT']:.3f}" in TEXT
    wide = first["HT of the paper's widths"]
    more = "{mean:.2f} R-1 more than HT [{low:.2f}, {high:.2f}]".format(**early["HT of the paper's widths - HT"])
    assert f"loss of {wide:.3f} after as many steps, and {more}" in TEXT


def test_the_pages_table_of_losses_has_the_kept_numbers():
    """As losses: what the log-probability falls by, the least first in an interval; nothing where a model has no
    such change."""
    columns = {"HT": "hierarchical_transformer", "copying": "hierarchical_transformer_copying"}
    table = lost_table(columns, {"cut": "layers cut", "no copying": "no copying"})
    assert table.to_dict("index") == {
        "cut": {"HT": "0.005 [0.002, 0.009]", "copying": "0.028 [0.018, 0.037]"},
        "no copying": {"HT": "", "copying": "3.996 [3.826, 4.172]"},
    }
    assert all(
        says(f"it costs {cell}.", changes(name)["layers cut"])
        for cell, name in zip(table.loc["cut"], columns.values())
    )


def test_what_is_lost_after_training_on_is_kept():
    numbers = read_numbers(FIGURES / "retrained_hierarchical_transformer_copying.json", "models", ("results",))
    found = retrain.differences(numbers["results"])
    of = {(row, when): (d.mean, d.low, d.high) for row, both in found.items() for when, d in both.items()}
    layers = finding("On papers the shipped models hardly use")
    graphs = finding("A graph of discourse is no better tested")
    for when in ("before", "after"):
        assert says(layers, of["layers cut", when])
        assert all(says(graphs, of[f"graph={kind}", when]) for kind in ("discourse", "similarity"))
    assert all(says(PAGE, of["layers cut", when]) for when in ("before", "after")), "both of the same clusters"
    assert says(CLAIMS, of["layers cut", "after"]) and says(CLAIMS, of["graph=discourse", "after"])
    own = [np.subtract(r["after"], r["before"]) for r in numbers["results"] if r["row"] == retrain.UNCHANGED]
    assert f"the unchanged model gains {np.mean(own):.3f}" in layers
    setting = numbers["setting"]
    assert (setting["steps"], setting["batch size"], setting["documents"]) == (40, 4, 60)
    assert {r["seed"] for r in numbers["results"]} == {0, 1, 2} and "three seeds" in layers


def density(documents, graph):
    """Percent of the pairs among title and first paragraphs that a graph joins, and of the weight that stays."""
    options = resolve("hierarchical_transformer", "small").options
    joined, stays = [], []
    for example in map(options.example, documents):
        weights = graph(example)[: options.paragraphs + 1, : options.paragraphs + 1]
        pairs = weights[~np.eye(len(weights), dtype=bool)]
        joined.append((pairs > 0).mean())
        stays.append((weights.diagonal() / weights.sum(1)).mean())
    return round(100 * np.mean(joined)), round(100 * np.mean(stays))


def similarity(example):
    texts = [example.title, *example.paragraphs]
    return similarity_graph([words_of(t, lower=True, tokenised=example.tokenised) for t in texts])


def discourse(example):
    return discourse_graph([example.title, *example.paragraphs], [None, *example.sources], capitalised_names)


def test_graphs_join_as_many_pairs_as_the_text_says():
    papers = list(islice(load_corpus("pmc-sample").split("test"), 60))
    (joined, stays), (similar, _) = density(papers, discourse), density(papers, similarity)
    said = finding("A graph of discourse is no better tested")
    assert f"joins {joined}% (similarity: {similar}%), and {stays}% of the head's weight stays" in said


def test_graphs_of_the_corpus_in_lower_case(shared):
    papers = list(islice(load_corpus(shared / "sumpubmed").split("test"), 100))
    (joined, _), (similar, stays) = density(papers, discourse), density(papers, similarity)
    assert f"joins {joined}% of the pairs, all of them neighbours" in finding(
        "A graph of discourse is no better tested"
    )
    said = finding("A graph of similarities changes nothing")
    assert f"joins {similar}% of the pairs" in said and f"{stays}% of the head's weight stays" in said
