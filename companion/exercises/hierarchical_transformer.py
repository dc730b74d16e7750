"""Exercises of the page on hierarchical transformers."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from operator import itemgetter

import torch
from torch import Tensor
from torch.nn import functional as F

from companion.exercises.exercise import Case, Exercises, slope
from companion.tasks.synthetic import planted_clusters
from companion.tasks.task import learn
from lib.data.batch import Batch, EncodedDocument, make_batch
from lib.data.vocabulary import EOS
from lib.evaluation.interventions import changes_of
from lib.models.hierarchical_transformer import HierarchicalTransformer, HierarchicalTransformerConfig

PIECES = 24  # of the vocabulary; the first seven are symbols
PAGE = Exercises()
check, grade, progress = PAGE.check, PAGE.grade, PAGE.progress


def small_transformer(seed: int = 0, **changes) -> HierarchicalTransformer:
    """With random weights, in double precision."""
    torch.manual_seed(seed)
    sizes = {"width": 16, "heads": 2, "inner": 16, "local_layers": 1, "dropout": 0.0, "smoothing": 0.0, **changes}
    model = HierarchicalTransformer(HierarchicalTransformerConfig(PIECES, **sizes))
    return model.double().requires_grad_(False)


def _cluster(*lengths: int, seed: int = 0) -> EncodedDocument:
    """A title and paragraphs of so many random pieces."""
    pieces = torch.randint(7, PIECES, (sum(lengths),), generator=torch.manual_seed(seed)).tolist()
    return EncodedDocument.of("", pieces, list(lengths), [EOS])


def _batch(*clusters: EncodedDocument) -> Batch:
    return make_batch(list(clusters), PIECES)


@PAGE.cases(1, points=2)
def attention_of_graph() -> Iterator[Case]:
    batch = _batch(_cluster(2, 3), _cluster(2, 3, 4), _cluster(1, 5, 2, 2))
    G = torch.rand(3, 4, 4, generator=torch.manual_seed(1))
    attention = small_transformer().encode(batch, G).between[0][:, 0]
    for one, present, weights in zip(G, batch.sentence_mask, attention):
        what = f"{int(present.sum())} of {len(one)} rows are there"
        yield Case(what, (one.clone(), present), weights[present], of=itemgetter(present))


def _pooling(model: HierarchicalTransformer, batch: Batch) -> dict[str, tuple[Tensor, Tensor]]:
    """What enters and leaves parts of the first global layer: scores, values, and the norm of what is pooled."""
    layer, found = model.global_layers[0], {}
    with ExitStack() as stack:
        for name in ("score", "value", "pool_norm"):

            def keep(module, inputs, output, name=name) -> None:
                found[name] = inputs[0].float(), output.float()

            stack.callback(getattr(layer, name).register_forward_hook(keep).remove)
        model.encode(batch)
    return found


@PAGE.cases(2, points=2)
def pooled_words() -> Iterator[Case]:
    for lengths in ([2, 5, 3], [4, 1, 6, 2]):
        batch = _batch(_cluster(*lengths))
        found, rows = _pooling(small_transformer(seed=len(lengths)), batch), batch.ragged
        m, n, at = len(lengths), max(lengths), (rows.number[rows.row], rows.place)
        random = torch.manual_seed(0)  # what stands in padding
        a, b = 3 * torch.randn(m, n, 2, generator=random), torch.randn(m, n, 2, 8, generator=random)
        a[at], b[at] = found["score"][1], found["value"][1].unflatten(-1, (2, 8))
        mask = torch.arange(n) < torch.tensor(lengths)[:, None]
        pooled = found["pool_norm"][0][rows.number.argsort()]
        yield Case(f"rows of {', '.join(map(str, lengths))} words", (a, b, mask), pooled)


@PAGE.exercise(3, points=2, shown=2, cases=[[[5, 5, 5]], [[2, 7, 3, 4]], [[9, 1]]])
def attention_scores(lengths: list[int]) -> list[int]:
    batch = _batch(_cluster(*lengths))
    state, owner = small_transformer(global_layers=1).encode(batch), batch.sentence_of[0]
    inside = int((owner[:, None] == owner).sum())
    pooled, between = state.pooling[0][0, :, 0].numel(), state.between[0][0, 0].numel()
    return [len(owner) ** 2, inside + pooled + between]


@PAGE.exercise(4, points=3, shown=2, cases=[[[0.1, 0.3, 0.2]], [[0.9, 0.05, 0.4, 0.7]], [[0.02, 0.0, 0.0, 0.1, 0.0]]])
def score_without_knowing(recalls: list[float]) -> float:
    labels, low, high = torch.tensor(recalls).double(), -20.0, 20.0
    for _ in range(60):  # halves the interval in which the slope is 0
        middle = (low + high) / 2
        push = slope(lambda q: F.binary_cross_entropy_with_logits(q.expand_as(labels), labels), middle)
        low, high = (middle, high) if push < 0 else (low, middle)
    return low


def _weights_values_gradient(n: int, s: int) -> tuple[Tensor, Tensor, Tensor]:
    random = torch.manual_seed(n)
    a, b, g = (torch.randn(*size, generator=random) for size in ((n,), (n, s), (s,)))
    return a.softmax(0), b, g


@PAGE.exercise(5, points=3, cases={f"{n} words": _weights_values_gradient(n, s) for n, s in ((4, 3), (7, 2), (2, 5))})
def push_on_the_pooling(weights: Tensor, b: Tensor, g: Tensor) -> Tensor:
    return slope(lambda a: a.softmax(0) @ (b @ g).double(), weights.log())


CHAIN, RING, STAR = torch.diag(torch.ones(4), 1), torch.eye(5).roll(1, 0), torch.eye(4)
CHAIN[-1, -1] = 1
STAR[0], STAR[:, 0] = 0.5, 0.2
GRAPHS = {
    "a chain, 1 layer": (CHAIN, 1),
    "a chain, 2 layers": (CHAIN, 2),
    "a chain, 3 layers": (CHAIN, 3),
    "a ring, 2 layers": (RING, 2),
    "a star, 1 layer": (STAR, 1),
    "a star, 2 layers": (STAR, 2),
}


@PAGE.exercise(6, points=3, shown=2, cases=GRAPHS)
def reached(G: Tensor, layers: int) -> Tensor:
    """[m, m]: whether the states of each paragraph's words depend on the words of each, as the library's only head
    takes G for its attention."""
    m, words = len(G), []
    model, batch = small_transformer(global_layers=layers, pooling_heads=1), _batch(_cluster(*[2] * len(G)))
    local = model.local_layers[-1]
    hook = local.register_forward_hook(lambda _, x, output: words.append(output.requires_grad_()))
    states = model.encode(batch, G[None].double()).words[0].view(m, 2, -1)
    hook.remove()
    direction, found = torch.randn(2, states.shape[-1], generator=torch.manual_seed(0)), torch.zeros(m, m)
    for i in range(m):
        (slope,) = torch.autograd.grad((states[i] * direction).sum(), words, retain_graph=True)
        found[i] = torch.zeros(m).index_add(0, batch.ragged.number[batch.ragged.row], slope.abs().sum(-1).float())
    return found != 0


def _reaches(global_layers: int, heads: int = 2, graph: Tensor | None = None) -> bool:
    """Whether a word of the last paragraph changes the states of the first one."""
    model = small_transformer(global_layers=global_layers, pooling_heads=heads)
    one = _cluster(2, 3, 3, 3)
    other = replace(one, source=[*one.source[:-1], 7 + (one.source[-1] == 7)])
    first, second = (model.encode(_batch(cluster), graph).words[0, 2:5] for cluster in (one, other))
    return not torch.allclose(first, second)


@PAGE.prediction(7, points=3)
def other_paragraphs_change() -> dict[str, bool]:
    alone = torch.eye(4)[None].double()
    return {
        "no global layer": _reaches(0),
        "one global layer": _reaches(1),
        "G = I, one head": _reaches(1, heads=1, graph=alone),
        "G = I, two heads": _reaches(1, graph=alone),
    }


def _order_matters(G: Tensor | None = None, moved: Tensor | None = None, positions: bool = True) -> bool:
    """Whether the states of the words change when the last two of three paragraphs change places."""
    model = small_transformer(paragraph_positions=positions)
    one, order = _cluster(2, 3, 4, 4), [0, 1, 3, 2]
    words = torch.arange(13).split([2, 3, 4, 4])
    places = torch.cat([words[i] for i in order])
    other = EncodedDocument.of("", one.source[places.numpy()], [2, 3, 4, 4], [EOS])
    first, second = (model.encode(_batch(c), graph).words[0] for c, graph in ((one, G), (other, moved)))
    return not torch.allclose(first[places], second)


@PAGE.prediction(8, points=3)
def order_matters() -> dict[str, bool]:
    G = torch.rand(1, 4, 4, generator=torch.manual_seed(1)).double()
    moved = G[:, [0, 1, 3, 2]][..., [0, 1, 3, 2]]
    return {
        "both positions": _order_matters(),
        "without paragraph positions": _order_matters(positions=False),
        "and a graph that stays": _order_matters(G, G, positions=False),
        "and a graph that moves with them": _order_matters(G, moved, positions=False),
    }


def _title_is_known(*cuts: list[tuple[int, int]]) -> bool:
    """Whether a word of the title changes the states of the last paragraph's words. Of each global layer: which rows
    take nothing from which."""
    model = small_transformer(global_layers=len(cuts))
    for layer, pairs in zip(model.global_layers, cuts):
        open_ = torch.ones(4, 4, dtype=torch.bool)
        for i, j in pairs:
            open_[i, j] = False
        layer.get_submodule("reachable").register_forward_hook(lambda *_, open_=open_: open_[None])
    one = _cluster(2, 3, 3, 3)
    other = replace(one, source=[7 + (one.source[0] == 7), *one.source[1:]])
    first, second = (model.encode(_batch(cluster)).words[0, -3:] for cluster in (one, other))
    return not torch.allclose(first, second)


@PAGE.prediction(9, points=3)
def title_is_known() -> dict[str, bool]:
    title = [(i, 0) for i in (1, 2, 3)]  # no paragraph takes anything from the title
    return {
        "cut in layer 1": _title_is_known(title, []),
        "cut in layer 2": _title_is_known([], title),
        "cut in both layers": _title_is_known(title, title),
        "paragraph 1 may look, in layer 1": _title_is_known(title[1:], title),
        "paragraph 1 may look, in layer 2": _title_is_known(title, title[1:]),
    }


NAMES, CONTENT = 3, 12  # of the paragraphs; words that may stand behind a name


def _named(count: int, seed: int) -> list[EncodedDocument]:
    size = 7 + NAMES + CONTENT
    return planted_clusters(count, seed, paragraphs=3, words=1, names=NAMES, vocab_size=size)


@cache
def _trained() -> HierarchicalTransformer:
    model = small_transformer(1, width=32, heads=4, inner=32).float().requires_grad_()
    batches = [_batch(*_named(256, seed)) for seed in range(4)]
    return learn(model, iter(batches * 15), 1e-2).eval().requires_grad_(False)


@cache
def _right(sees: str = "all", title_cut: bool = False) -> float:
    """The share of unseen clusters of which the trained model writes the right word."""
    model, clusters = _trained(), _named(200, 10**6)
    named = torch.tensor([[1 + c.labels.argmax()] for c in clusters])  # type: ignore[union-attr]
    batch = _batch(*clusters)
    with ExitStack() as stack:
        if title_cut:
            stack.enter_context(changes_of(model)["first paragraph cut"].model(model))
        state = model.encode(batch)
    row = state.paragraph_of
    chosen = {"all": row >= 0, "the named": row == named, "the title": row == 0, "no title": row > 0}[sees]
    output, _ = model.decode(batch.target_input, replace(state, mask=state.mask & chosen))
    best = model.scores(output.features)[:, 0].argmax(-1)
    return (best == batch.target[:, 0]).float().mean().item()


@PAGE.prediction(10, points=3)
def still_right() -> dict[str, bool]:
    shares = {
        "the decoder sees the named paragraph alone": _right("the named"),
        "it sees the title alone": _right("the title"),
        "it sees all but the title": _right("no title"),
        "it sees all, and no paragraph the title": _right(title_cut=True),
    }
    return {what: share > 0.8 for what, share in shares.items()}
