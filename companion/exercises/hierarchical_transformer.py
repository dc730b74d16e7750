"""The cases of the exercises of the page on hierarchical transformers.

The solutions are on the page, below each exercise: `notebooks/hierarchical_transformer.py`.
"""

from collections.abc import Iterator, Sequence
from functools import cache, partial
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from companion.exercises.exercise import Case, Exercises, Function
from companion.pages.frames import Frames
from companion.pages.towns import town_frames
from companion.tasks import towns
from companion.tasks.synthetic import planted_clusters
from companion.tasks.task import learn, share_written
from lib.data.batch import Batch, EncodedDocument, Ragged, make_batch
from lib.data.vocabulary import EOS
from lib.evaluation.interventions import changes_of
from lib.models.hierarchical_transformer import GlobalLayer, HierarchicalTransformer
from lib.models.paragraph_changes import decoder_sees

PIECES = 24  # of the vocabulary; the first seven are symbols
PAGE = Exercises()
check, grade, progress = PAGE.check, PAGE.grade, PAGE.progress
TRUE = torch.tensor(True)


def small_transformer(seed: int = 0, **changes) -> HierarchicalTransformer:
    """Make a model with random weights, in double precision."""
    torch.manual_seed(seed)
    sizes = {"width": 16, "heads": 2, "inner": 16, "local_layers": 1, **changes}
    return towns.small_transformer(PIECES, **sizes).double().requires_grad_(False)


def _cluster(*lengths: int, seed: int = 0) -> EncodedDocument:
    """Make a title and paragraphs of so many random pieces."""
    pieces = torch.randint(7, PIECES, (sum(lengths),), generator=torch.manual_seed(seed)).tolist()
    return EncodedDocument.of("", pieces, list(lengths), [EOS])


def _batch(*clusters: EncodedDocument) -> Batch:
    return make_batch(clusters, PIECES)


LENGTHS = [[2, 5, 3], [4, 1, 6, 2]]  # of the words in padded paragraphs


def _padded(lengths: list[int]) -> tuple[Tensor, Tensor, Tensor]:
    """Draw scores [m, n, heads] and values [m, n, heads, s], also where there is padding; mask
    [m, n]."""
    random, m, n = torch.manual_seed(0), len(lengths), max(lengths)
    scores, values = (
        3 * torch.randn(m, n, 2, generator=random),
        torch.randn(m, n, 2, 8, generator=random),
    )
    return scores, values, torch.arange(n) < torch.tensor(lengths)[:, None]


@PAGE.cases(1, points=2)
def pooling_weights() -> Iterator[Case]:
    for lengths in LENGTHS:
        scores, _, mask = _padded(lengths)
        weights = torch.zeros_like(scores)
        for i, n in enumerate(lengths):
            weights[i, :n] = scores[i, :n].softmax(0)
        yield Case(f"paragraphs of {', '.join(map(str, lengths))} words", (scores, mask), weights)


@PAGE.cases(2, points=1)
def paragraph_vectors() -> Iterator[Case]:
    for lengths in LENGTHS:
        scores, values, mask = _padded(lengths)
        weights = scores.masked_fill(~mask[..., None], -torch.inf).softmax(1)
        pooled = [
            [(w[:, z, None] * v[:, z]).sum(0) for z in range(2)] for w, v in zip(weights, values)
        ]
        yield Case(
            f"{len(lengths)} paragraphs",
            (weights, values),
            torch.stack([torch.stack(p) for p in pooled]),
        )


@PAGE.cases(3, points=3)
def attention_between() -> Iterator[Case]:
    for lengths in (((2, 3), (2, 3, 4)), ((1, 5, 2, 2), (2, 3), (2, 1, 3))):
        model, batch, given = (
            small_transformer(global_layers=1),
            _batch(*(_cluster(*n) for n in lengths)),
            [],
        )
        layer: Any = model.global_layers[0]
        for linear in layer.between[:2]:
            linear.register_forward_hook(lambda *passed, given=given: given.append(passed[2]))
        (weights,), (q, k), present = model.encode(batch).between, given, batch.sentence_mask
        rows = present[:, None, :, None]  # those of padding do not count
        what = f"clusters of {', '.join(str(len(n)) for n in lengths)} paragraphs"
        yield Case(
            what, (q, k, present), weights * rows, of=lambda result, rows=rows: result * rows
        )


@PAGE.cases(4, points=1)
def broadcast() -> Iterator[Case]:
    for row in ([0, 0, 0, 1, 1], [0, 2, 2, 1]):
        x, c = torch.randn(len(row), 4), torch.randn(max(row) + 1, 4)
        yield Case(
            f"words of paragraphs {row}",
            (x, c, torch.tensor(row)),
            [x[j] + c[i] for j, i in enumerate(row)],
        )


class OwnLayer(nn.Module):
    """A global layer of the library in which the functions of exercises 1 to 4 do their part."""

    def __init__(self, layer: GlobalLayer, functions: Sequence[Function]):
        super().__init__()
        self.layer, self.functions = layer, functions

    def forward(
        self, x: Tensor, rows: Ragged, present: Tensor, graph: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        layer, (weigh, pool, attend, add) = self.layer, self.functions
        at, shape = (rows.row, rows.place), (len(rows.owner), int(rows.place.max()) + 1)
        normed, mask = (
            layer.norms[0](x),
            torch.zeros(shape, dtype=torch.bool).index_put((rows.row, rows.place), TRUE),
        )
        scores, values = (
            part.new_zeros(*shape, *part.shape[1:]).index_put(at, part)
            for part in (layer.score(normed), layer.value(normed).unflatten(-1, (layer.heads, -1)))
        )
        pooling = weigh(scores, mask)
        heads = layer.pool_norm(pool(pooling, values))
        grid = heads.new_zeros(*present.shape, *heads.shape[1:]).index_put(
            (rows.owner, rows.number), heads
        )
        q, k, v = (linear(grid.transpose(1, 2)) for linear in layer.between)
        between = attend(q, k, present)
        contexts = (between @ v).transpose(1, 2).flatten(2)[rows.owner, rows.number]
        x = add(x, layer.output(contexts), rows.row)
        return x + layer.feed_forward(layer.norms[1](x)), pooling[at], between


class RiverCluster(towns.TownCluster):
    """Paragraphs that each name a river of one of two towns."""

    @property
    def summary(self) -> str:
        return f"{self.title} lies on the {self.truth[self.title][0]} ."


def river_cluster(random: np.random.Generator, names: int = 8) -> RiverCluster:
    """Draw three paragraphs about each town; with probability 1/2 one of the three may name another
    river."""
    rivers = towns.VALUES[1][:names]
    truth = {
        towns.TOWNS[i]: [rivers[random.integers(names)]] for i in random.permutation(names)[:2]
    }
    paragraphs = []
    for town, (river,) in truth.items():
        said = [river, river, rivers[random.integers(names)] if random.random() < 0.5 else river]
        texts = [towns.PHRASES[1][random.integers(3)].format(value) for value in said]
        paragraphs += [
            towns.Paragraph(town, (1, 1), (v, v), f"{town} {t} .") for v, t in zip(said, texts)
        ]
    return RiverCluster(truth, [paragraphs[i] for i in random.permutation(len(paragraphs))])


def own_model(*functions: Function, steps: int = 400) -> Frames | None:
    """Train a model whose global layer is made of the functions of exercises 1 to 4, the library's,
    and one without a global layer; print how many summaries they write correctly, and show six
    clusters to the first and the last."""
    if not PAGE.ready(1, 2, 3, 4):
        return None
    random, models = np.random.default_rng(10**6), {}
    unseen = [river_cluster(random) for _ in range(200)]
    for name, layers in {"Your model": 1, "the library's": 1, "without global layers": 0}.items():
        torch.manual_seed(1)
        sizes = {"width": 32, "inner": 64, "local_layers": 1, "global_layers": layers}
        model = models[name] = towns.small_transformer(len(towns.TOWN_PIECES), **sizes)
        if name == "Your model":
            own: Any = model.global_layers
            model.global_layers = nn.ModuleList(OwnLayer(layer, functions) for layer in own)
        draws = (np.random.default_rng([1, step]) for step in range(steps))
        learn(
            model,
            (towns.batch_of([river_cluster(draw) for _ in range(32)]) for draw in draws),
            3e-3,
        )
        print(
            f"{name}: {share_written(model, towns.documents_of([*unseen]), 8):.0%} of 200 "
            "summaries are right"
        )
    del models["the library's"]
    return Frames(
        [town_frames(models, cluster, places=[4]).frames[0] for cluster in unseen[:6]], first=1
    )


@PAGE.cases(5, points=2)
def attention_of_graph() -> Iterator[Case]:
    batch = _batch(_cluster(2, 3), _cluster(2, 3, 4), _cluster(1, 5, 2, 2))
    G = torch.rand(3, 4, 4, generator=torch.manual_seed(1))
    attention = small_transformer().encode(batch, G).between[0][:, 0]
    for one, present, weights in zip(G, batch.sentence_mask, attention):
        what = f"{int(present.sum())} of {len(one)} rows are there"
        yield Case(what, (one.clone(), present), weights[present], of=itemgetter(present))


CHAIN, RING, STAR = torch.diag(torch.ones(4), 1), torch.eye(5).roll(1, 0), torch.eye(4)
CHAIN[-1, -1] = 1
STAR[0], STAR[:, 0] = 0.5, 0.2
GRAPHS = {f"a chain, {layers} layer{'s' * (layers > 1)}": (CHAIN, layers) for layers in (1, 2, 3)}
GRAPHS |= {
    "a ring, 2 layers": (RING, 2),
    "a star, 1 layer": (STAR, 1),
    "a star, 2 layers": (STAR, 2),
}


@PAGE.exercise(6, points=3, shown=2, cases=GRAPHS)
def reached(G: Tensor, layers: int) -> Tensor:
    """Compute whether the states of each paragraph's words depend on the words of each [m, m], in a
    model whose only head has G as its attention."""
    m, words = len(G), []
    model, batch = (
        small_transformer(global_layers=layers, pooling_heads=1),
        _batch(_cluster(*[2] * len(G))),
    )
    model.local_layers[-1].register_forward_hook(
        lambda _, x, output: words.append(output.requires_grad_())
    )
    states = model.encode(batch, G[None].double()).words[0].view(m, 2, -1)
    direction, found = (
        torch.randn(2, states.shape[-1], generator=torch.manual_seed(0)),
        torch.zeros(m, m),
    )
    for i in range(m):
        (slope,) = torch.autograd.grad((states[i] * direction).sum(), words, retain_graph=True)
        found[i].index_add_(0, batch.ragged.number[batch.ragged.row], slope.abs().sum(-1).float())
    return found != 0


_named = partial(planted_clusters, paragraphs=3, words=1, names=3, vocab_size=22)


@PAGE.prediction(7, points=3)
@cache
def still_right() -> dict[str, bool]:
    model = small_transformer(1, width=32, heads=4, inner=32).float().requires_grad_()
    batches = [_batch(*_named(256, seed)) for seed in range(4)]
    learn(model, iter(batches * 15), 1e-2)
    clusters, rows = _named(200, 10**6), torch.eye(4, dtype=torch.bool)
    named = rows[[1 + int(c.labels.argmax()) for c in clusters]]  # type: ignore[union-attr]
    title = rows[[0] * len(clusters)]
    changes = {
        "the decoder sees only the named paragraph": decoder_sees(named),
        "it sees only the title": decoder_sees(title),
        "it sees all but the title": decoder_sees(~title),
        "it sees all, and no paragraph the title": changes_of(model)["first paragraph cut"],
    }
    return {
        what: share_written(model, clusters, 2, change) > 0.8 for what, change in changes.items()
    }
