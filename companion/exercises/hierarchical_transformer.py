"""Exercises of the page on hierarchical transformers."""

from collections.abc import Iterator
from functools import cache, partial
from operator import itemgetter

import torch
from torch import Tensor

from companion.exercises.exercise import Case, Exercises
from companion.tasks import towns
from companion.tasks.synthetic import planted_clusters
from companion.tasks.task import learn, share_written
from lib.data.batch import Batch, EncodedDocument, make_batch
from lib.data.vocabulary import EOS
from lib.evaluation.interventions import changes_of, decoder_sees
from lib.models.hierarchical_transformer import HierarchicalTransformer

PIECES = 24  # of the vocabulary; the first seven are symbols
PAGE = Exercises()
check, grade, progress = PAGE.check, PAGE.grade, PAGE.progress


def small_transformer(seed: int = 0, **changes) -> HierarchicalTransformer:
    """With random weights, in double precision."""
    torch.manual_seed(seed)
    sizes = {"width": 16, "heads": 2, "inner": 16, "local_layers": 1, **changes}
    return towns.small_transformer(PIECES, **sizes).double().requires_grad_(False)


def _cluster(*lengths: int, seed: int = 0) -> EncodedDocument:
    """A title and paragraphs of so many random pieces."""
    pieces = torch.randint(7, PIECES, (sum(lengths),), generator=torch.manual_seed(seed)).tolist()
    return EncodedDocument.of("", pieces, list(lengths), [EOS])


def _batch(*clusters: EncodedDocument) -> Batch:
    return make_batch(clusters, PIECES)


@PAGE.cases(1, points=2)
def attention_of_graph() -> Iterator[Case]:
    batch = _batch(_cluster(2, 3), _cluster(2, 3, 4), _cluster(1, 5, 2, 2))
    G = torch.rand(3, 4, 4, generator=torch.manual_seed(1))
    attention = small_transformer().encode(batch, G).between[0][:, 0]
    for one, present, weights in zip(G, batch.sentence_mask, attention):
        what = f"{int(present.sum())} of {len(one)} rows are there"
        yield Case(what, (one.clone(), present), weights[present], of=itemgetter(present))


@PAGE.cases(2, points=2)
def pooled_words() -> Iterator[Case]:
    for lengths in ([2, 5, 3], [4, 1, 6, 2]):
        random, m, n = torch.manual_seed(0), len(lengths), max(lengths)
        a, b = 3 * torch.randn(m, n, 2, generator=random), torch.randn(m, n, 2, 8, generator=random)
        mask = torch.arange(n) < torch.tensor(lengths)[:, None]
        pooled = [(a[i, :k].softmax(0)[..., None] * b[i, :k]).sum(0) for i, k in enumerate(lengths)]
        yield Case(f"rows of {', '.join(map(str, lengths))} words", (a, b, mask), pooled)


@PAGE.exercise(3, points=2, shown=2, cases=[[[5, 5, 5]], [[2, 7, 3, 4]], [[9, 1]]])
def attention_scores(lengths: list[int]) -> list[int]:
    batch = _batch(_cluster(*lengths))
    state, owner = small_transformer(global_layers=1).encode(batch), batch.sentence_of[0]
    inside = int((owner[:, None] == owner).sum())
    pooled, between = state.pooling[0][0, :, 0].numel(), state.between[0][0, 0].numel()
    return [len(owner) ** 2, inside + pooled + between]


CHAIN, RING, STAR = torch.diag(torch.ones(4), 1), torch.eye(5).roll(1, 0), torch.eye(4)
CHAIN[-1, -1] = 1
STAR[0], STAR[:, 0] = 0.5, 0.2
GRAPHS = {f"a chain, {layers} layer{'s' * (layers > 1)}": (CHAIN, layers) for layers in (1, 2, 3)}
GRAPHS |= {"a ring, 2 layers": (RING, 2), "a star, 1 layer": (STAR, 1), "a star, 2 layers": (STAR, 2)}


@PAGE.exercise(4, points=3, shown=2, cases=GRAPHS)
def reached(G: Tensor, layers: int) -> Tensor:
    """[m, m]: whether the states of each paragraph's words depend on the words of each, as the library's only head
    takes G for its attention."""
    m, words = len(G), []
    model, batch = small_transformer(global_layers=layers, pooling_heads=1), _batch(_cluster(*[2] * len(G)))
    model.local_layers[-1].register_forward_hook(lambda _, x, output: words.append(output.requires_grad_()))
    states = model.encode(batch, G[None].double()).words[0].view(m, 2, -1)
    direction, found = torch.randn(2, states.shape[-1], generator=torch.manual_seed(0)), torch.zeros(m, m)
    for i in range(m):
        (slope,) = torch.autograd.grad((states[i] * direction).sum(), words, retain_graph=True)
        found[i].index_add_(0, batch.ragged.number[batch.ragged.row], slope.abs().sum(-1).float())
    return found != 0


def _order_matters(G: Tensor | None = None, moved: Tensor | None = None, positions: bool = True) -> bool:
    """Whether the states of the words change when the last two of three paragraphs change places."""
    model = small_transformer(paragraph_positions=positions)
    one, order = _cluster(2, 3, 4, 4), [0, 1, 3, 2]
    places = torch.cat([torch.arange(13).split([2, 3, 4, 4])[i] for i in order])
    other = EncodedDocument.of("", one.source[places.numpy()], [2, 3, 4, 4], [EOS])
    first, second = (model.encode(_batch(c), graph).words[0] for c, graph in ((one, G), (other, moved)))
    return not torch.allclose(first[places], second)


@PAGE.prediction(5, points=3)
def order_matters() -> dict[str, bool]:
    G = torch.rand(1, 4, 4, generator=torch.manual_seed(1)).double()
    moved = G[:, [0, 1, 3, 2]][..., [0, 1, 3, 2]]
    return {
        "both positions": _order_matters(),
        "without paragraph positions": _order_matters(positions=False),
        "and a graph that stays": _order_matters(G, G, positions=False),
        "and a graph that moves with them": _order_matters(G, moved, positions=False),
    }


_named = partial(planted_clusters, paragraphs=3, words=1, names=3, vocab_size=22)


@PAGE.prediction(6, points=3)
@cache
def still_right() -> dict[str, bool]:
    model = small_transformer(1, width=32, heads=4, inner=32).float().requires_grad_()
    batches = [_batch(*_named(256, seed)) for seed in range(4)]
    learn(model, iter(batches * 15), 1e-2)
    clusters, rows = _named(200, 10**6), torch.eye(4, dtype=torch.bool)
    named = rows[[1 + int(c.labels.argmax()) for c in clusters]]  # type: ignore[union-attr]
    title = rows[[0] * len(clusters)]
    changes = {
        "the decoder sees the named paragraph alone": decoder_sees(named),
        "it sees the title alone": decoder_sees(title),
        "it sees all but the title": decoder_sees(~title),
        "it sees all, and no paragraph the title": changes_of(model)["first paragraph cut"],
    }
    return {what: share_written(model, clusters, 2, change) > 0.8 for what, change in changes.items()}
