"""Synthetic tasks on the hierarchical transformer's page: a decoder's steps, a head of a global
layer, learning curves, and tables of the numbers of `companion.train_task`."""

from collections.abc import Mapping, Sequence

import pandas as pd
import torch
from IPython.display import HTML

from companion.pages.frames import Frames
from companion.pages.measured import task_results, task_table
from companion.pages.steps import (
    BLUE,
    CELL,
    PAPER,
    WHITE,
    Step,
    best_words,
    decoding_frames,
    shade,
    share_bar,
)
from companion.results.kept import stored_numbers
from companion.tasks import towns
from companion.tasks.towns import TownCluster
from lib.data.vocabulary import BOS, EOS
from lib.models.hierarchical_transformer import HierarchicalTransformer


def hops_table() -> pd.DataFrame:
    """Tabulate the share of right answers in the task `hops`, by seed."""
    table = task_table("hops", {"250 steps": "right after 250", "500 steps": "right"}, by_seed=True)
    return table.rename_axis("global layers, graph")


@torch.no_grad()
def town_writing(
    model: HierarchicalTransformer, cluster: TownCluster
) -> tuple[list[str], torch.Tensor, torch.Tensor]:
    """Write a summary: its T pieces, the end included; the distribution of each [T, V]; and the
    decoder's attention to the title and to each of m paragraphs [T, 1 + m]."""
    (words,) = towns.write_towns(model, [cluster])
    state = model.encode(towns.batch_of([cluster]))
    tokens = torch.tensor([[BOS, *towns.pieces_of(" ".join(words))]])
    output, _ = model.decode(tokens, state)
    weight, bias = model.output_layer()
    probabilities = (output.features[0] @ weight.T + bias).softmax(-1)
    return (
        [*words, towns.TOWN_PIECES.words[EOS]],
        probabilities,
        model.attention_weights(tokens, state)["units"][0],
    )


def town_frames(
    models: Mapping[str, HierarchicalTransformer],
    cluster: TownCluster,
    places: Sequence[int] = towns.FACT_PLACES,
) -> Frames:
    """Show what two models do before they write each fact: paragraphs as dark as the first model
    attends to them, how much each model attends to either town, the most probable pieces of both,
    and their summaries so far."""
    written = {name: town_writing(model, cluster) for name, model in models.items()}
    (words, _, paragraphs), (others, *_) = written.values()
    text = [[cluster.title], *(paragraph.text.split() for paragraph in cluster.paragraphs)]
    names = [
        "title",
        *(f"{n} {paragraph.town}:" for n, paragraph in enumerate(cluster.paragraphs, 1)),
    ]
    steps = []
    for t, (word, weights) in enumerate(zip(words, paragraphs.tolist())):
        best = {
            f"{name} writes": best_words(P[t], towns.TOWN_PIECES.words)
            for name, (_, P, _) in written.items()
            if t < len(P)
        }
        best |= {
            f"{name} attends to": attended_towns(a[t], cluster)
            for name, (_, _, a) in written.items()
            if t < len(a)
        }
        steps.append(
            Step(word, [weight for line, weight in zip(text, weights) for _ in line], best)
        )
    frames = decoding_frames(text, steps, names, {list(models)[1]: others}).frames
    return Frames([frames[t] for t in places if t < len(frames)], first=min(2, len(places)))


def attended_towns(weights: torch.Tensor, cluster: TownCluster) -> list[tuple[str, float]]:
    """Sum the attention to the title and each paragraph [1 + m] over the paragraphs about each
    town."""
    own = torch.tensor([paragraph.town == cluster.title for paragraph in cluster.paragraphs])
    about = {
        cluster.title: own,
        next(name for name in cluster.truth if name != cluster.title): ~own,
    }
    return [(town, float(weights[1:][rows].sum())) for town, rows in about.items()]


@torch.no_grad()
def layer_picture(
    model: HierarchicalTransformer, cluster: TownCluster, layer: int, head: int, rows: Sequence[int]
) -> HTML:
    """Show a head of a global layer on some rows of a cluster: words as dark as they are pooled,
    and how much a row attends to the title, to the title's town and to the other."""
    state = model.encode(towns.batch_of([cluster]))
    text = [[cluster.title, "[end]"], *(paragraph.text.split() for paragraph in cluster.paragraphs)]
    pooled = state.pooling[layer][0, :, head].split([len(line) for line in text])
    names = [
        "title",
        *(f"{n} {paragraph.town}" for n, paragraph in enumerate(cluster.paragraphs, 1)),
    ]
    html = "".join(
        f"<th style='{CELL}'>{title}</th>" for title in ("", "1. pool", "2. attend", "3. broadcast")
    )
    for i in rows:
        words = [
            f'<span style="{shade(weight)}">{word}</span>'
            for word, weight in zip(text[i], pooled[i].tolist())
        ]
        weights = state.between[layer][0, head, i]
        shares = [("title", float(weights[0])), *attended_towns(weights, cluster)]
        bars = [
            f"{share_bar(share, '3rem', f'rgb({BLUE})')} {share:.2f}&nbsp;{to}"
            for to, share in shares
        ]
        last = f"the same vector for its {len(words)} words"
        cells = "".join(
            f"<td style='{CELL}; vertical-align: top; min-width: 6rem'>{part}</td>"
            for part in (names[i], " ".join(words), "<br>".join(bars), last)
        )
        html += f'<tr style="{WHITE}">{cells}</tr>'
    return HTML(
        f'<div style="overflow-x: auto"><table style="{PAPER}; line-height: 1.6">{html}</table></div>'
    )


def curves_panel() -> dict:
    """Make a panel of `companion.pages.figures.lines`: percent of facts right over training steps,
    a line a seed."""
    looks = {
        "HT": "C0o-",
        "without global layers, trained longer": "C2s--",
        "flat, trained longer": "C4^:",
    }
    results, series, styles = task_results("towns"), {}, {}
    for row, look in looks.items():
        steps = sorted(int(name[12:]) for name in results[row] if name.startswith("right after "))
        for n, seed in enumerate(results[row]["seed"]):
            # with "_" it is not in the legend
            name = f"_{row}, seed {seed}" if n else row.partition(",")[0]
            series[name] = [
                [0, *steps],
                [0, *(100 * results[row][f"right after {step}"][n] for step in steps)],
            ]
            styles[name] = look
    axes = {"xlabel": "training steps", "ylabel": "% of facts right", "zero": True}
    return {"series": series, "styles": styles, **axes}


def marks_table() -> pd.DataFrame:
    """Tabulate what the second global layer adds to paragraphs about each town
    (`companion.studies.town_marks`)."""
    effects = stored_numbers("town_marks")["effects"]
    texts = {row["change"]: "{mean:.1f} [{low:.1f}, {high:.1f}]".format(**row) for row in effects}
    columns = {"its length": "layer 2: length", "% of facts lost without it": "layer 2: left out"}
    cells = {
        town: {column: texts[f"{name}, {town}"] for column, name in columns.items()}
        for town in ("the title's town", "the other town")
    }
    return pd.DataFrame.from_dict(cells, orient="index").rename("paragraphs about {}".format)


LEVERS = {
    "no lever": "own name",
    "forced first word": "other name forced",
    "strange title": "absent title, own name",
}


def followed(row: str, condition: str) -> tuple[float, float]:
    """Return which percentages of the facts are those of the title's town and of the other town,
    in models that have learned the task: means over clusters and seeds
    (`companion.studies.forced_name`)."""
    effects = {e["name"]: e["mean"] for e in stored_numbers("forced_name")["effects"]}
    title, other = (effects[f"{row}, {condition}: {town}'s facts"] for town in ("title", "other"))
    return title, other


def levers_table(
    *levers: str, rows: Sequence[str] = ("HT", "without global layers")
) -> pd.DataFrame:
    """Tabulate whose facts models report under some of the `LEVERS`."""
    cells = {
        lever: {row: "{:.0f} / {:.0f}".format(*followed(row, LEVERS[lever])) for row in rows}
        for lever in levers
    }
    return pd.DataFrame.from_dict(cells, orient="index")
