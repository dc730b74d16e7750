"""What the hierarchical transformer's page shows of its made-up tasks: a decoder's steps, tables of the numbers of
`companion.solve`, and graphs over paragraphs that are sorted by their town."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
import torch

from companion.pages.frames import Frames
from companion.pages.steps import Step, best_words, decoding_frames
from companion.tasks.town_clusters import FACT_PLACES, TOWN_PIECES, TownCluster, pieces_of, same_town
from companion.tasks.towns import CUTS, KINDS, batch_of, write_towns
from lib.data.vocabulary import BOS, EOS
from lib.models.hierarchical_transformer import HierarchicalTransformer

Measures = Mapping[str, Sequence[float]]


def shares(values: Iterable[float]) -> str:
    """Percentages of several seeds: "100 / 99 / 100%"."""
    return " / ".join(f"{100 * value:.0f}" for value in values) + "%"


LACKS = {
    "HT": "nothing",
    "without global layers": "the way between paragraphs (four local layers)",
    "without local layers": "what the words of a paragraph say to each other (four global layers)",
    "flat": "paragraphs: all pieces are in one row (four layers)",
    "flat, separators": "the same, but <P> stands between paragraphs",
    "one pooling head": "three of a paragraph's four vectors",
    "graph of towns": "one learned head, which has a graph (24): 1 for the same town",
    "without paragraph positions": "the number of its paragraph in each piece",
}


def towns_table(results: Mapping[str, Measures]) -> pd.DataFrame:
    """The rows of the task `towns`; a cell has the share of each seed, but for kinds of errors, which are means."""
    rows = {}
    for row, measures in results.items():
        rows[row] = {"what is missing": LACKS[row], "facts right, 500 steps": shares(measures["right after 500"])}
        if "right after 1000" in measures:  # it was trained for longer
            early = {kind: measures[f"{kind} after 1000"] for kind in (*KINDS, "whole")}
            rows[f"{row}, 2,000 steps"] = {"what is missing": LACKS[row], **_at_the_end(measures)}
            rows[row] |= _at_the_end(early)
        else:
            rows[row] |= _at_the_end(measures)
    return pd.DataFrame.from_dict(rows, orient="index").fillna("")


def _at_the_end(measures: Measures) -> dict[str, str]:
    return {
        "1,000 steps": shares(measures["right"]),
        "whole summaries": shares(measures["whole"]),
        "wrong: " + ", ".join(KINDS[1:]): ", ".join(f"{100 * np.mean(measures[kind]):.0f}%" for kind in KINDS[1:]),
    }


def cuts_table(towns: Measures, named: Measures) -> pd.DataFrame:
    """What is right of the tasks `towns` and `named` where a look between paragraphs is cut, and what the decoder
    still writes when it sees the answer's paragraphs alone, or all others."""
    keys = {"nothing is cut": ("right", "right")}
    keys |= {words: (f"right, {cut}", f"right, {cut}") for cut, words in CUTS.items()}
    keys["decoder: the answer's paragraphs alone"] = "right, decoder sees the title's town", "right, decoder sees it"
    keys["decoder: all others alone"] = "right, decoder sees the other town", "right, decoder sees the rest"
    cells = {words: [shares(towns[one]), shares(named[other])] for words, (one, other) in keys.items()}
    return pd.DataFrame.from_dict(cells, orient="index", columns=["towns: facts right", "named: summaries right"])


def hops_table(results: Mapping[str, Measures]) -> pd.DataFrame:
    """Answers right of the task `hops`, by seed."""
    named = {"right after 250": "250 steps", "right": "500 steps"}
    rows = {
        row: {"seeds": len(measures["seed"]), **{words: shares(measures[key]) for key, words in named.items()}}
        for row, measures in results.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("global layers, graph")


@torch.no_grad()
def town_writing(
    model: HierarchicalTransformer, cluster: TownCluster
) -> tuple[list[str], torch.Tensor, torch.Tensor]:
    """The T pieces of a summary that a model writes, its end too; the distribution of each [T, V]; and how much of
    the decoder's attention the title and each of m paragraphs get [T, 1 + m]."""
    (words,) = write_towns(model, [cluster])
    state = model.encode(batch_of([cluster]))
    tokens = torch.tensor([[BOS, *pieces_of(" ".join(words))]])
    output, _ = model.decode(tokens, state)
    weight, bias = model.output_layer()
    probabilities = (output.features[0] @ weight.T + bias).softmax(-1)
    return [*words, TOWN_PIECES.words[EOS]], probabilities, model.attention_weights(tokens, state)["units"][0]


def town_frames(models: Mapping[str, HierarchicalTransformer], cluster: TownCluster) -> Frames:
    """What the first of two models does before each piece: paragraphs as dark as they are attended to, the best
    pieces of both models, and beside its summary the other's. At first the river is seen."""
    (name, model), (other_name, other) = models.items()
    words, probabilities, paragraphs = town_writing(model, cluster)
    others, other_probabilities, _ = town_writing(other, cluster)
    best = {
        label: [best_words(p, TOWN_PIECES.words) for p in of]
        for label, of in ((f"P, {name}", probabilities), (f"P, {other_name}", other_probabilities))
    }
    text = [[cluster.title], *(paragraph.text.split() for paragraph in cluster.paragraphs)]
    names = ["title", *(f"{n} {paragraph.town}:" for n, paragraph in enumerate(cluster.paragraphs, 1))]
    steps = [
        Step(
            word,
            [weight for line, weight in zip(text, weights) for _ in line],
            {label: of[t] for label, of in best.items() if t < len(of)},
        )
        for t, (word, weights) in enumerate(zip(words, paragraphs.tolist()))
    ]
    return decoding_frames(text, steps, names, {other_name: others}, first=1 + FACT_PLACES[1])


def town_graphs(model: HierarchicalTransformer, cluster: TownCluster) -> list[dict]:
    """Panels for `companion.pages.figures.word_maps`: the graph of same towns, and the head whose attention between
    paragraphs is nearest to it, rows sorted by town behind the title."""
    given = torch.from_numpy(same_town(cluster))
    given = given / given.sum(1, keepdim=True)
    with torch.no_grad():
        between = torch.cat(model.encode(batch_of([cluster])).between)  # [layers, heads, P, P]
    gaps = (between[:, :, 1:, 1:] - given[1:, 1:]).abs().sum((2, 3))
    layer, head = divmod(int(gaps.argmin()), between.shape[1])
    about = [cluster.title, *(p.town for p in cluster.paragraphs)]
    order = sorted(range(len(about)), key=lambda i: (i > 0, about[i] != cluster.title))
    names = ["title", *(about[i] for i in order[1:])]
    panels = {"given: the same town": given, f"learned: layer {layer + 1}, head {head + 1}": between[layer, head]}
    return [
        {"title": title, "values": weights[order][:, order], "rows": names, "columns": names}
        for title, weights in panels.items()
    ]


def graph_density(graph: np.ndarray) -> tuple[float, float]:
    """Compute of a graph [P, P] with P > 1 the share of pairs of paragraphs that it joins, and the mean weight that a
    paragraph has on itself, rows scaled to sum to 1 (equation 24)."""
    own = graph.diagonal()
    pairs = len(graph) * (len(graph) - 1)
    return ((graph > 0).sum() - (own > 0).sum()) / pairs, (own / graph.sum(1)).mean()
