from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from lib.data.vocabulary import UNK
from lib.layers.attention import Attention, masked_softmax
from lib.layers.coverage import CoverageAttention
from lib.layers.dropout import Dropout, random_numbers
from lib.layers.pointer import Generator, PointerGenerator, PointerOutput, joint_nll, softmax_nll
from lib.layers.transformer import attend
from lib.system.threads import torch_threads
from tests.conftest import barred_ids, without_kernels

MASK = torch.tensor([[True] * 5, [True] * 3 + [False] * 2, [True] + [False] * 4])  # [B, N]


def naive_coverage(module, queries, keys, mask, coverage):
    """Equations 16 and 17 with one row, one step, one word at a time."""
    alpha = torch.zeros(*queries.shape[:3], keys.shape[1], dtype=queries.dtype)
    for b, k in [(b, k) for b in range(len(queries)) for k in range(queries.shape[1])]:
        running = coverage[b, k]
        for t in range(queries.shape[2]):
            scores = torch.stack([
                module.v @ torch.tanh(module.key.weight @ keys[b, i] + module.query.weight @ queries[b, k, t]
                                      + module.coverage * running[i])
                for i in range(int(mask[b].sum()))
            ])  # fmt: skip
            alpha[b, k, t, : len(scores)] = scores.softmax(0)
            running = running + alpha[b, k, t]
    return alpha


def test_vectors_of_coverage_begin_as_those_of_a_linear_layer():
    """Uniform, within one over the root of the width."""
    module = CoverageAttention(query=4, key=3, width=400)
    for vector in (module.coverage, module.v):
        assert 0.045 < vector.abs().max() <= 0.05 and abs(vector.mean()) < 0.01


@pytest.mark.parametrize("hypotheses", [1, 3])
def test_coverage_scan_is_the_equation_and_so_are_its_gradients(hypotheses):
    torch.manual_seed(0)
    module = CoverageAttention(query=4, key=3, width=6).double()
    queries = torch.randn(3, hypotheses, 4, 4, dtype=torch.double, requires_grad=True)
    keys = torch.randn(3, 5, 3, dtype=torch.double, requires_grad=True)
    coverage = (torch.rand(3, hypotheses, 5, dtype=torch.double) * MASK[:, None]).requires_grad_()
    inputs = [queries, keys, coverage, *module.parameters()]

    alpha, after = module(queries, module.project(keys), MASK, coverage)
    naive = naive_coverage(module, queries, keys, MASK, coverage)
    assert torch.allclose(alpha, naive, rtol=0, atol=1e-12)
    assert torch.allclose(after, coverage + naive.sum(2), rtol=0, atol=1e-12)
    assert type(alpha.grad_fn).__name__ == "_CompiledScanBackward", "the fast one, where there is one"

    weights = torch.randn_like(alpha)
    ours = torch.autograd.grad((alpha * weights).sum() + after.square().sum(), inputs)
    theirs = torch.autograd.grad((naive * weights).sum() + (coverage + naive.sum(2)).square().sum(), inputs)
    for a, b in zip(ours, theirs):
        assert torch.allclose(a, b, rtol=0, atol=1e-10)


def test_coverage_scan_gradcheck():
    torch.manual_seed(1)
    module = CoverageAttention(2, 2, 3).double()

    def scan(queries, keys, coverage, w, v):
        parameters = {"coverage": w, "v": v}
        return torch.func.functional_call(module, parameters, (queries, module.project(keys), MASK, coverage))

    shapes = [(3, 2, 3, 2), (3, 5, 2), (3, 2, 5), (3,), (3,)]
    inputs = [torch.rand(s, dtype=torch.double, requires_grad=True) for s in shapes]
    assert torch.autograd.gradcheck(scan, inputs)


def test_coverage_scan_keeps_no_hidden_layer():
    """What autograd holds grows with B * T * N, not with B * T * N * A."""
    module = CoverageAttention(8, 8, 64)
    held = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: held.append(x.numel()) or x, lambda x: x):
        keys = module.project(torch.randn(2, 50, 8))
        module(torch.randn(2, 1, 30, 8), keys, torch.ones(2, 50, dtype=torch.bool), torch.zeros(2, 1, 50))
    assert sum(held) < 2 * 30 * 50 * 8


def test_concat_score_gradcheck():
    module = Attention(2, 2, 3).double()

    def weights(queries, keys, v):
        return torch.func.functional_call(module, {"v.weight": v}, (queries, keys, MASK))

    inputs = [torch.rand(s, dtype=torch.double, requires_grad=True) for s in [(3, 4, 3), (3, 5, 3), (1, 3)]]
    assert torch.autograd.gradcheck(weights, inputs)


@pytest.mark.parametrize("score", ["concat", "general", "dot"])
def test_luong_scores(score):
    torch.manual_seed(0)
    module = Attention(4, 4, 6, score).double()
    queries, keys = torch.randn(3, 2, 4).double(), torch.randn(3, 5, 4).double()
    weights = module(module.project_queries(queries), module.project(keys), MASK)
    for b, n in enumerate(MASK.sum(1)):
        for t in range(2):
            q = queries[b, t]
            value = {
                "concat": lambda k, q=q: (
                    module.v.weight[0] @ torch.tanh(module.query.weight @ q + module.key.weight @ k)
                ),
                "general": lambda k, q=q: q @ module.key.weight @ k,
                "dot": lambda k, q=q: q @ k,
            }[score]
            expected = torch.stack([value(k) for k in keys[b, :n]]).softmax(0)
            assert torch.allclose(weights[b, t, :n], expected, rtol=0, atol=1e-12)
            assert (weights[b, t, n:] == 0).all()


def test_scores_are_checked():
    with pytest.raises(ValueError, match="score must be one of"):
        Attention(4, 4, 4, "cosine")
    with pytest.raises(ValueError, match="as wide as keys"):
        Attention(4, 5, 4, "dot")


def test_softmax_of_half_precision_is_float32():
    assert masked_softmax(torch.zeros(1, 5).bfloat16(), MASK[:1]).dtype == torch.float32


@pytest.fixture
def pointer():
    torch.manual_seed(0)
    module = PointerGenerator(hidden=4, context=3, embedding=2, bottleneck=3, vocab_size=7).double()
    hidden, context, embedded = (torch.randn(2, 5, n).double() for n in (4, 3, 2))
    source = torch.tensor([[4, 7, 5, 7], [8, 4, 0, 0]])  # ids from 7 are copies
    copy = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.5, 0.5, 0.0, 0.0]]).double()[:, None].expand(2, 5, 4)
    features, switch = module(hidden, context, embedded)
    return module, PointerOutput(features, switch, copy, source)


def at(output, t):
    """An output of one position alone."""
    return replace(output, **{name: getattr(output, name)[:, t : t + 1] for name in ("features", "switch", "copy")})


def test_distribution_sums_to_one_and_is_the_mixture(pointer):
    module, output = pointer
    p = module.distribution(at(output, 0), extra=2)
    assert torch.allclose(p.sum(1), torch.ones(2).double())
    z, generated = output.switch[:, 0].sigmoid(), module.vocabulary(output.features[:, 0]).softmax(-1)
    assert torch.allclose(p[0, 7], (1 - z[0]) * 0.6)
    assert torch.allclose(p[0, 4], z[0] * generated[0, 4] + (1 - z[0]) * 0.1)
    assert torch.allclose(p[1, 6], z[1] * generated[1, 6])


def test_log_prob_is_the_distribution_at_the_target(pointer):
    module, output = pointer
    target = torch.tensor([[4, 7, 6, 5, 3], [8, 4, 1, 2, 6]])
    expected = torch.stack([
        module.distribution(at(output, t), 2)[range(2), target[:, t]].log()
        for t in range(5)
    ], 1)  # fmt: skip
    assert torch.allclose(module.log_prob(output, target), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("joint", [False, True])
def test_scores_over_the_vocabulary_are_in_the_type_of_autocast(joint, monkeypatch):
    """And the loss is as exact as they are: of weights and features that are rounded to bfloat16, in float32."""
    torch.manual_seed(3)
    features, weight, bias, target = (
        torch.randn(5, 6),
        torch.randn(9, 6),
        torch.randn(9),
        torch.tensor([0, 3, 3, 8, 1]),
    )
    weights, copied, copies = torch.rand(5), torch.randn(5), torch.randn(5) + 2
    types, mm = [], torch.mm
    monkeypatch.setattr(torch, "mm", lambda a, b, **out: types.append((a.dtype, b.dtype)) or mm(a, b, **out))

    def loss(x, w):
        if joint:
            return joint_nll(x, w, bias, target, copied, copies, weights)
        return softmax_nll(x, w, bias, target, weights)

    exact = loss(features, weight)
    with torch.autocast("cpu", torch.bfloat16):
        rough = loss(features, weight)
    assert types == [(torch.float32,) * 2, (torch.bfloat16,) * 2] and rough.dtype == torch.float32
    rounded = loss(features.bfloat16().float(), weight.bfloat16().float())
    assert abs(rough - rounded) < 0.02 and rough != exact


def test_the_best_words_without_kernels(pointer):
    module, output = pointer
    best = module.mixture(at(output, 0)).best
    values, words = best(9, barred_ids([[4], []]), 2)
    with without_kernels():
        again, same = best(9, barred_ids([[4], []]), 2)
        assert best(20, barred_ids([[4], []]), 2)[1].shape == (2, 9), "there are no more"
    assert torch.equal(words[values > -torch.inf], same[again > -torch.inf])
    assert torch.allclose(values, again, rtol=0, atol=1e-12)


def test_a_generator_copies_nothing():
    torch.manual_seed(0)
    module = Generator(4, 3, 2, 3, vocab_size=7).double()
    features, switch = module(*(torch.randn(2, 5, n).double() for n in (4, 3, 2)))
    target, weights = torch.tensor([[4, 7, 6, 5, 3], [8, 4, 1, 2, 6]]), torch.rand(2, 5).double()
    output = PointerOutput(features, switch, torch.ones(2, 5, 1).double(), torch.tensor([[7], [8]]))
    expected = module.vocabulary(features).log_softmax(-1).gather(2, target.where(target < 7, UNK)[..., None])[..., 0]
    assert torch.allclose(module.log_prob(output, target), expected, rtol=0, atol=1e-12)
    assert torch.allclose(module.nll(output, target, weights), -(weights * expected).sum(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("entries", [1, 21, 2**20])
def test_nll_is_log_prob_and_so_are_its_gradients(pointer, entries, monkeypatch):
    """In chunks of one row, of three, of all; with words of weight 0, outside the vocabulary and in neither."""
    monkeypatch.setattr("lib.layers.pointer.room_on", lambda device: 4 * entries)
    module, output = pointer
    target = torch.tensor([[4, 7, 6, 9, 3], [8, 4, 1, 0, 0]])
    weights = torch.tensor([[0.1, 0.3, 0.2, 0.4, 0.1], [0.5, 0.2, 0.2, 0.0, 0.0]]).double()
    inputs = [x.detach().requires_grad_() for x in (output.features, output.switch, output.copy)]
    output = PointerOutput(*inputs, output.source)
    ours = 3 * module.nll(output, target, weights)
    theirs = -3 * (weights * module.log_prob(output, target)).sum()
    assert ours.item() == pytest.approx(theirs.item())
    everything = [*inputs, module.vocabulary.weight, module.vocabulary.bias]
    for a, b in zip(torch.autograd.grad(ours, everything), torch.autograd.grad(theirs, everything)):
        assert torch.allclose(a, b, rtol=0, atol=1e-12)


def test_nll_without_gradients_computes_none(pointer, monkeypatch):
    module, output = pointer
    arguments = output, torch.full((2, 5), 4), torch.ones(2, 5).double()
    expected = module.nll(*arguments).item()
    monkeypatch.setattr("lib.layers.pointer._Gradients", lambda *_: pytest.fail("computed gradients"))
    with torch.no_grad():
        assert module.nll(*arguments).item() == expected


def test_nll_keeps_no_scores(pointer):
    """What autograd holds does not grow with words times vocabulary."""
    module = PointerGenerator(4, 3, 2, 3, vocab_size=5000)
    features, switch = module(torch.randn(2, 50, 4), torch.randn(2, 50, 3), torch.randn(2, 50, 2))
    held = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: held.append(x.numel()) or x, lambda x: x):
        copy, source = torch.rand(2, 50, 6), torch.zeros(2, 6, dtype=torch.long)
        module.nll(PointerOutput(features, switch, copy, source), torch.full((2, 50), 7), torch.ones(2, 50))
    assert sum(held) < 2 * 50 * 100


def test_a_word_in_neither_has_a_finite_score_and_gradient(pointer):
    module, output = pointer
    target = torch.full((2, 5), 9)  # a copy id that neither source has
    output.features.retain_grad()
    log_p = module.log_prob(output, target)
    log_p.sum().backward()
    assert torch.isfinite(log_p).all()
    assert torch.isfinite(output.features.grad).all()


def test_nll_goes_backward_once(pointer):
    module, output = pointer
    loss = module.nll(output, torch.full((2, 5), 4), torch.ones(2, 5).double())
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="call nll again"):
        loss.backward()


@pytest.mark.parametrize("entries", [2**22, 40])  # in one part, or row by row
def test_softmax_nll(entries, monkeypatch):
    monkeypatch.setattr("lib.layers.pointer.room_on", lambda device: 4 * entries)
    torch.manual_seed(0)
    features, weight, bias = (torch.randn(*s).double().requires_grad_() for s in ((7, 4), (20, 4), (20,)))
    target, weights = torch.randint(20, (7,)), torch.rand(7).double()
    ours = softmax_nll(features, weight, bias, target, weights)
    expected = weights @ F.cross_entropy(features @ weight.T + bias, target, reduction="none")
    assert ours.item() == pytest.approx(expected.item(), abs=1e-12)
    for a, b in zip(*(torch.autograd.grad(3 * x, (features, weight, bias)) for x in (ours, expected))):
        assert torch.allclose(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("entries", [2**22, 40])
def test_joint_nll(entries, monkeypatch):
    """One softmax over 20 words and the copies, with targets that can be generated, copied, or both; -1 is copied."""
    monkeypatch.setattr("lib.layers.pointer.room_on", lambda device: 4 * entries)
    torch.manual_seed(0)
    shapes = (7, 4), (20, 4), (20,), (7, 3)
    features, weight, bias, copies = everything = [torch.randn(*s).double().requires_grad_() for s in shapes]
    target, weights = torch.tensor([3, 19, 0, -1, 5, -1, 8]), torch.rand(7).double()
    right = torch.rand(7, 3) > 0.5
    right[3], right[5] = torch.tensor([True, False, True]), True
    copied = copies.masked_fill(~right, -1e30).logsumexp(1)
    ours = joint_nll(features, weight, bias, target, copied, copies.logsumexp(1), weights)
    scores = features @ weight.T + bias
    generated = scores.gather(1, target.clamp_min(0)[:, None])[:, 0].exp() * (target >= 0)
    p = (generated + (copies.exp() * right).sum(1)) / (scores.exp().sum(1) + copies.exp().sum(1))
    expected = -weights @ p.log()
    assert ours.item() == pytest.approx(expected.item(), abs=1e-12)
    for a, b in zip(*(torch.autograd.grad(3 * x, everything, retain_graph=True) for x in (ours, expected))):
        assert torch.allclose(a, b, rtol=0, atol=1e-12)


def test_dropout_drops_its_share_and_scales_the_rest():
    torch.manual_seed(0)
    dropout, x = Dropout(0.3), torch.ones(1001, 99, requires_grad=True)
    y = dropout(x)
    assert y.unique().tolist() == [0.0, pytest.approx(1 / 0.7, abs=1e-4)]
    assert (y == 0).float().mean().item() == pytest.approx(0.3, abs=0.006)
    for part in (y[0::2], y[:, 0::4], y[:, 3::4]):  # the four numbers of a draw are alike, and not the same
        assert (part == 0).float().mean().item() == pytest.approx(0.3, abs=0.01)
    assert not torch.equal(y[:, 0], y[:, 1])
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    torch.manual_seed(0)
    assert torch.equal(dropout(x), y), "it follows torch's seed"
    assert not torch.equal(dropout(x), y)
    assert torch.equal(dropout.eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)


DTYPES = {torch.float64: 1e-14, torch.float32: 1e-6, torch.bfloat16: 8e-3}


def drawn(dropout, shape):
    """What the next dropout keeps, and by which factor: of ones."""
    return dropout(torch.ones(shape, dtype=torch.float64))


@pytest.mark.parametrize("dtype", DTYPES)
def test_dropout_in_each_type(dtype):
    """Of what is not contiguous as well, in both directions the same numbers, and bfloat16 to its last bit."""
    dropout, x = Dropout(0.3), torch.randn(9, 33).to(dtype).T.requires_grad_()
    with random_numbers(7):
        factors = drawn(dropout, x.shape).to(torch.promote_types(dtype, torch.float32))
    with random_numbers(7):
        y = dropout(x)
    slope = torch.randn(x.shape).to(dtype)
    (gradient,) = torch.autograd.grad(y, x, slope)
    assert y.dtype == dtype and torch.equal(y, (x * factors).to(dtype)) and y.stride() == x.stride()
    assert gradient.dtype == dtype and torch.equal(gradient, (slope * factors).to(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("p", [1.0, 0.999995])
def test_dropout_of_everything(p, dtype):
    """Zeros, and no gradient, as torch.nn.Dropout gives them; the softmax as well, where nothing is seen besides."""
    torch.manual_seed(0)
    x, mask = torch.randn(2, 3, 4, 5).to(dtype).requires_grad_(), torch.rand(2, 1, 4, 5) > 0.3
    mask[..., 0] = True
    for y in (Dropout(p)(x), Dropout(p).softmax(x, mask)):
        (gradient,) = torch.autograd.grad(y.sum(), x)
        assert y.shape == x.shape and y.dtype == dtype and not y.any() and not gradient.any()


MASKS = {
    "of all": (5, 70),
    "of words": (3, 1, 1, 70),
    "of each": (3, 1, 5, 70),
    "of heads": (3, 4, 5, 70),
    "one": (1, 1),
}


@pytest.mark.parametrize(("dtype", "close"), DTYPES.items())
@pytest.mark.parametrize("shape", MASKS.values(), ids=MASKS)
def test_dropout_of_a_softmax(dtype, close, shape):
    """The softmax and then dropout, and their gradients; no number of what is not seen is read."""
    torch.manual_seed(0)
    dropout, mask = Dropout(0.3), torch.rand(shape) > 0.3
    mask[..., 0] = True
    scores = torch.where(mask, 9 * torch.randn(3, 4, 5, 70), torch.nan).to(dtype).requires_grad_()
    with random_numbers(7):
        factors = drawn(dropout, scores.shape)
    with random_numbers(7):
        weights = dropout.softmax(scores, mask)
    exact = scores.detach().double().requires_grad_()
    expected = exact.masked_fill(~mask, -torch.inf).softmax(-1) * factors
    assert weights.dtype == dtype and (weights - expected).abs().max() < close
    assert (weights[~mask.expand(scores.shape)] == 0).all()
    slope = torch.randn(scores.shape).to(dtype)
    (gradient,) = torch.autograd.grad(weights, scores, slope)
    (right,) = torch.autograd.grad(expected, exact, slope.double())
    assert gradient.dtype == dtype and (gradient - right).abs().max() < 3 * close


def test_threads_change_no_bit_of_dropout():
    scores, found = torch.randn(5, 2, 9, 40, requires_grad=True), []
    for threads in (1, 3):
        with torch_threads(threads), random_numbers(7):
            weights = Dropout(0.3).softmax(scores, torch.ones(1, dtype=torch.bool))
            found.append((weights, *torch.autograd.grad(weights, scores, scores.detach())))
    assert all(torch.equal(a, b) for a, b in zip(*found))


def test_attention_with_dropout_is_attention():
    """The two ways, with dropout that drops nothing."""
    torch.manual_seed(0)
    q, keys, values = (torch.randn(2, 3, n, 4).double() for n in (5, 7, 7))
    mask = torch.rand(2, 1, 5, 7) > 0.3
    mask[..., 0] = True
    none = Dropout(1e-9)
    for seen in (mask, None):
        ours, torchs = (attend(q, keys, values, seen, none.train(training)) for training in (True, False))
        assert torch.allclose(ours, torchs, rtol=0, atol=1e-12)
