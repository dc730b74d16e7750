"""Exercises of the page on hierarchical transformers."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from operator import itemgetter

import torch
from torch import Tensor
from torch.nn import functional as F

from companion.exercises.exercise import Case, Exercises
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


@PAGE.exercise(1, points=2)
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


@PAGE.exercise(2, points=2)
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


@PAGE.exercise(3, points=2, shown=2)
def attention_scores() -> Iterator[Case]:
    for lengths in ([5, 5, 5], [2, 7, 3, 4], [9, 1]):
        batch = _batch(_cluster(*lengths))
        state, owner = small_transformer(global_layers=1).encode(batch), batch.sentence_of[0]
        pairs, inside = owner[:, None] + owner, owner[:, None] == owner
        levels = inside.sum() + state.pooling[0][0, :, 0].numel() + state.between[0][0, 0].numel()
        yield Case(f"paragraphs of {', '.join(map(str, lengths))}", (lengths,), [pairs.numel(), levels.item()])


@PAGE.exercise(4, points=3, shown=2)
def score_without_knowing() -> Iterator[Case]:
    for y in ([0.1, 0.3, 0.2], [0.9, 0.05, 0.4, 0.7], [0.02, 0.0, 0.0, 0.1, 0.0]):
        labels, low, high = torch.tensor(y).double(), torch.tensor(-20.0).double(), torch.tensor(20.0).double()
        for _ in range(60):  # halves the interval in which the slope is 0
            q = ((low + high) / 2).requires_grad_()
            loss = F.binary_cross_entropy_with_logits(q.expand_as(labels), labels)
            (slope,) = torch.autograd.grad(loss, q)
            low, high = (q.detach(), high) if slope < 0 else (low, q.detach())
        yield Case(f"recalls {y}", (y,), low)


@PAGE.exercise(5, points=3)
def push_on_the_pooling() -> Iterator[Case]:
    random = torch.manual_seed(0)
    for n, s in ((4, 3), (7, 2), (2, 5)):
        a, b, g = (torch.randn(*size, generator=random) for size in ((n,), (n, s), (s,)))
        a.requires_grad_()
        weights = a.softmax(0)
        (slope,) = torch.autograd.grad(weights @ b @ g, a)
        yield Case(f"{n} words", (weights.detach(), b, g), slope)


def _depends(G: Tensor, layers: int) -> Tensor:
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


@PAGE.exercise(6, points=3, shown=2)
def reached() -> Iterator[Case]:
    chain, ring = torch.diag(torch.ones(4), 1), torch.eye(5).roll(1, 0)
    chain[-1, -1] = 1
    star = torch.eye(4)
    star[0], star[:, 0] = 0.5, 0.2
    for what, G, layers in (
        ("a chain, 1 layer", chain, 1),
        ("a chain, 2 layers", chain, 2),
        ("a chain, 3 layers", chain, 3),
        ("a ring, 2 layers", ring, 2),
        ("a star, 1 layer", star, 1),
        ("a star, 2 layers", star, 2),
    ):
        yield Case(what, (G, layers), _depends(G, layers))


def _reaches(global_layers: int, heads: int = 2, graph: Tensor | None = None) -> bool:
    """Whether a word of the last paragraph changes the states of the first one."""
    model = small_transformer(global_layers=global_layers, pooling_heads=heads)
    one = _cluster(2, 3, 3, 3)
    other = replace(one, source=[*one.source[:-1], 7 + (one.source[-1] == 7)])
    first, second = (model.encode(_batch(cluster), graph).words[0, 2:5] for cluster in (one, other))
    return not torch.allclose(first, second)


@PAGE.exercise(7, points=3)
def other_paragraphs_change() -> Iterator[Case]:
    alone = torch.eye(4)[None].double()
    truth = {
        "no global layer": _reaches(0),
        "one global layer": _reaches(1),
        "G = I, one head": _reaches(1, heads=1, graph=alone),
        "G = I, two heads": _reaches(1, graph=alone),
    }
    for number, (what, value) in enumerate(truth.items()):
        yield Case(what, (), int(value), of=itemgetter(number))


def _order_matters(G: Tensor | None = None, moved: Tensor | None = None, positions: bool = True) -> bool:
    """Whether the states of the words change when the last two of three paragraphs change places."""
    model = small_transformer(paragraph_positions=positions)
    one, order = _cluster(2, 3, 4, 4), [0, 1, 3, 2]
    words = torch.arange(13).split([2, 3, 4, 4])
    places = torch.cat([words[i] for i in order])
    other = EncodedDocument.of("", one.source[places.numpy()], [2, 3, 4, 4], [EOS])
    first, second = (model.encode(_batch(c), graph).words[0] for c, graph in ((one, G), (other, moved)))
    return not torch.allclose(first[places], second)


@PAGE.exercise(8, points=3)
def order_matters() -> Iterator[Case]:
    G = torch.rand(1, 4, 4, generator=torch.manual_seed(1)).double()
    moved = G[:, [0, 1, 3, 2]][..., [0, 1, 3, 2]]
    truth = {
        "both positions": _order_matters(),
        "without paragraph positions": _order_matters(positions=False),
        "and a graph that stays": _order_matters(G, G, positions=False),
        "and a graph that moves with them": _order_matters(G, moved, positions=False),
    }
    for number, (what, value) in enumerate(truth.items()):
        yield Case(what, (), int(value), of=itemgetter(number))


def _title_is_known(*cuts: list[tuple[int, int]]) -> bool:
    """Whether a word of the title changes the states of the last paragraph's words. Of each global layer: which rows
    take nothing from which."""
    model = small_transformer(global_layers=len(cuts))
    for layer, pairs in zip(model.global_layers, cuts):
        open_ = torch.ones(4, 4, dtype=torch.bool)
        for i, j in pairs:
            open_[i, j] = False
        layer.reachable = lambda present, open_=open_: open_[None]  # type: ignore[method-assign]
    one = _cluster(2, 3, 3, 3)
    other = replace(one, source=[7 + (one.source[0] == 7), *one.source[1:]])
    first, second = (model.encode(_batch(cluster)).words[0, -3:] for cluster in (one, other))
    return not torch.allclose(first, second)


@PAGE.exercise(9, points=3)
def title_is_known() -> Iterator[Case]:
    title = [(i, 0) for i in (1, 2, 3)]  # no paragraph takes anything from the title
    truth = {
        "cut in layer 1": _title_is_known(title, []),
        "cut in layer 2": _title_is_known([], title),
        "cut in both layers": _title_is_known(title, title),
        "paragraph 1 may look, in layer 1": _title_is_known(title[1:], title),
        "paragraph 1 may look, in layer 2": _title_is_known(title, title[1:]),
    }
    for number, (what, value) in enumerate(truth.items()):
        yield Case(what, (), int(value), of=itemgetter(number))


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


@PAGE.exercise(10, points=3)
def still_right() -> Iterator[Case]:
    truth = {
        "the decoder sees the named paragraph alone": _right("the named"),
        "it sees the title alone": _right("the title"),
        "it sees all but the title": _right("no title"),
        "it sees all, and no paragraph the title": _right(title_cut=True),
    }
    for number, (what, share) in enumerate(truth.items()):
        yield Case(what, (), int(share > 0.8), of=itemgetter(number))
