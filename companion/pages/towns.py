"""What the hierarchical transformer's page shows of its synthetic tasks: a decoder's steps, tables of the numbers of
`companion.solve`, and graphs over paragraphs that are sorted by their town."""

from collections.abc import Mapping

import pandas as pd
import torch

from companion.pages.frames import Frames
from companion.pages.measured import task_table
from companion.pages.steps import Step, best_words, decoding_frames
from companion.tasks import towns
from companion.tasks.towns import TownCluster
from lib.data.vocabulary import BOS, EOS
from lib.models.hierarchical_transformer import HierarchicalTransformer


def towns_table() -> pd.DataFrame:
    """Facts right in the task `towns` on the way, whole summaries, and wrong facts by their kind."""
    columns = {f"facts right, {steps:,} steps": f"right after {steps}" for steps in (500, 1000, 2000, 3000)}
    columns |= {"whole summaries": "whole", **{f"wrong: {kind}": kind for kind in towns.KINDS[1:]}}
    return task_table("towns", columns, by_seed=True)


def cuts_table() -> pd.DataFrame:
    """What HT has right of the tasks `towns` and `named` where a look between paragraphs is cut, and what the decoder
    still writes when it sees the answer's paragraphs alone, or all others."""
    keys = {"right": "nothing is cut"}
    keys |= {f"right, {cut}": text for cut, text in (towns.CUTS | towns.DECODER_CUTS).items()}
    columns = {"towns: facts right": "towns", "named: summaries right": "named"}
    tables = {column: task_table(task, dict(zip(keys, keys)), {"HT": "HT"}, True) for column, task in columns.items()}
    return pd.DataFrame({column: table.loc["HT"] for column, table in tables.items()}).rename(keys)


def hops_table() -> pd.DataFrame:
    """Answers right of the task `hops`, by seed."""
    table = task_table("hops", {"250 steps": "right after 250", "500 steps": "right"}, by_seed=True)
    return table.rename_axis("global layers, graph")


@torch.no_grad()
def town_writing(
    model: HierarchicalTransformer, cluster: TownCluster
) -> tuple[list[str], torch.Tensor, torch.Tensor]:
    """The T pieces of a summary that a model writes, its end too; the distribution of each [T, V]; and how much of
    the decoder's attention the title and each of m paragraphs get [T, 1 + m]."""
    (words,) = towns.write_towns(model, [cluster])
    state = model.encode(towns.batch_of([cluster]))
    tokens = torch.tensor([[BOS, *towns.pieces_of(" ".join(words))]])
    output, _ = model.decode(tokens, state)
    weight, bias = model.output_layer()
    probabilities = (output.features[0] @ weight.T + bias).softmax(-1)
    return [*words, towns.TOWN_PIECES.words[EOS]], probabilities, model.attention_weights(tokens, state)["units"][0]


def town_frames(models: Mapping[str, HierarchicalTransformer], cluster: TownCluster) -> Frames:
    """What the first of two models does before each piece: paragraphs as dark as they are attended to, the best
    pieces of both models, and beside its summary the other's. At first the river is seen."""
    (name, model), (other_name, other) = models.items()
    words, probabilities, paragraphs = town_writing(model, cluster)
    others, other_probabilities, _ = town_writing(other, cluster)
    distributions = {f"P, {name}": probabilities, f"P, {other_name}": other_probabilities}
    text = [[cluster.title], *(paragraph.text.split() for paragraph in cluster.paragraphs)]
    names = ["title", *(f"{n} {paragraph.town}:" for n, paragraph in enumerate(cluster.paragraphs, 1))]
    steps = []
    for t, (word, weights) in enumerate(zip(words, paragraphs.tolist())):
        best = {label: best_words(P[t], towns.TOWN_PIECES.words) for label, P in distributions.items() if t < len(P)}
        steps.append(Step(word, [weight for line, weight in zip(text, weights) for _ in line], best))
    return decoding_frames(text, steps, names, {other_name: others}, first=1 + towns.FACT_PLACES[1])


def town_graphs(model: HierarchicalTransformer, cluster: TownCluster) -> list[dict]:
    """Panels for `companion.pages.figures.word_maps`: the graph of same towns, and the head whose attention between
    paragraphs is nearest to it, rows sorted by town behind the title."""
    given = torch.from_numpy(towns.same_town(cluster))
    given = given / given.sum(1, keepdim=True)
    with torch.no_grad():
        between = torch.cat(model.encode(towns.batch_of([cluster])).between)  # [layers, heads, P, P]
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
