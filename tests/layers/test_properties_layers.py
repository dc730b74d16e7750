"""Every compiled kernel, and the layers that use them, against the same in a few PyTorch operations
in float64."""

import math
from types import SimpleNamespace
from unittest import mock

import pytest
import torch
from hypothesis import strategies as st
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from lib.layers.attention import Attention, CoverageAttention, _CompiledCoverage, additive_scores
from lib.layers.memory import memory_scan
from lib.layers.pointer import PointerOutput, mixture, mixture_distribution, softmax, target_scores
from lib.layers.recurrent import GRU, GatedGRU
from lib.layers.scan import scan
from lib.models.read_again import ReadAgain, ReadAgainOutput
from tests.conftest import without_kernels
from tests.properties import holds, lengths, mask_of, near, numbers, slopes_for, with_gradients

try:
    from lib.layers import gpu_kernels
except ImportError:  # Triton is for Linux
    gpu_kernels = None

WIDTHS = st.sampled_from([1, 2, 5, 16, 33])
FEW_STEPS = st.integers(1, 4)


def double(tensors):
    return [x.double() if x.is_floating_point() else x for x in tensors]


def poisoned(x, mask, dim):
    """With NaN where there is no word: mask [B, N] of the first axis and of `dim`."""
    shape = [len(mask) if i == 0 else mask.shape[1] if i == dim else 1 for i in range(x.dim())]
    return x.masked_fill(~mask.view(shape), math.nan)


# ---------------------------------------------------------------------------------
# attention


def attention_with_coverage(mask, queries, keys, w, v, coverage):
    """Step after step: [B, K, T, N]."""
    weights = []
    for t in range(queries.shape[2]):
        hidden = keys[:, None] + queries[:, :, t, None] + coverage[..., None] * w
        weights.append((hidden.tanh() @ v).masked_fill(~mask[:, None], -math.inf).softmax(-1))
        coverage = coverage + weights[-1]
    return torch.stack(weights, 2)


def by_steps(queries, keys, w, v, coverage, mask):
    """The layer's own step, repeated, with these weights."""
    layer = CoverageAttention(1, 1, len(w))
    del layer.coverage, layer.v  # parameters
    layer.coverage, layer.v = w, v
    with without_kernels():
        return scan(layer.attend, coverage, [queries], [keys, mask], dim=2)[0]


@holds(
    40, numbers=numbers(), counts=lengths(), beams=st.integers(1, 2), steps=FEW_STEPS, width=WIDTHS
)
def test_attention_with_coverage(numbers, counts, beams, steps, width):
    """Attention with coverage: the kernel and the scan by PyTorch are the equation, values and
    gradients; padding is not read."""
    mask = mask_of(counts, padding=1)
    documents, words = mask.shape
    queries, keys, w, v, coverage = numbers(
        (documents, beams, steps, width),
        (documents, words, width),
        (width,),
        (width,),
        (documents, beams, words),
    )
    # not both, or rounding in a step decides where the next one looks
    if numbers.kind == "extreme":
        w = w / 1e4
    inputs = [queries, keys, w, v, coverage.abs() / (1e4 if numbers.kind == "extreme" else 1)]
    slopes = [slopes_for((documents, beams, steps, words))[0] * mask[:, None, None]]
    exact = with_gradients(lambda *x: attention_with_coverage(mask, *x), double(inputs), slopes)
    scale = (1 + v.abs().sum().item()) ** 1.5
    near(with_gradients(lambda *x: by_steps(*x, mask), inputs, slopes), exact, scale)
    unread = [queries, poisoned(keys, mask, 1), w, v, poisoned(inputs[-1], mask, 2)]
    ours = with_gradients(lambda *x: _CompiledCoverage.apply(*x, mask), unread, slopes)
    near(ours, exact, scale)
    assert not ours[0].masked_select(~mask[:, None, None]).any()
    assert (ours[0].sum(-1) - 1).abs().max() < 1e-5
    if gpu_kernels and numbers.dtype == torch.float32:
        near(
            with_gradients(lambda *x: gpu_kernels.CoverageScan.apply(*x, mask), unread, slopes),
            exact,
            scale,
        )


@holds(40, numbers=numbers(), counts=lengths(least=0), steps=FEW_STEPS, width=WIDTHS)
def test_additive_scores(numbers, counts, steps, width):
    """Additive scores are the equation, values and gradients, also of a text without words."""
    mask = mask_of(counts, padding=1)
    documents, words = mask.shape
    inputs = numbers((documents, steps, width), (documents, words, width), (width,))
    slopes = [slopes_for((documents, steps, words))[0] * mask[:, None]]

    def scores(queries, keys, v):
        return ((queries[:, :, None] + keys[:, None]).tanh() @ v) * mask[:, None]

    exact, scale = with_gradients(scores, double(inputs), slopes), 1 + inputs[2].abs().sum().item()
    theirs = with_gradients(lambda *x: additive_scores(*x) * mask[:, None], inputs, slopes)
    near(theirs, exact, scale)


@holds(
    30,
    numbers=numbers(),
    counts=lengths(),
    steps=FEW_STEPS,
    width=WIDTHS,
    score=st.sampled_from(["concat", "general", "dot"]),
)
def test_attention_layer(numbers, counts, steps, width, score):
    """Luong's three scores: weights are the softmax over the words that are there, whatever stands
    in the padding."""
    mask = mask_of(counts, padding=2)
    queries, keys = numbers((len(counts), steps, width), (len(counts), mask.shape[1], width))
    layer = numbers.module(Attention, width, width, width, score)
    keys = keys.masked_fill(~mask[..., None], 7.0)
    with torch.no_grad():
        projected, read = layer.project_queries(queries), layer.project(keys)
        weights = layer(projected, read, mask)
        for row, count in enumerate(counts):
            q, k = projected[row].double(), read[row, :count].double()
            scores = q @ k.T
            if score == "concat":
                scores = (q[:, None] + k).tanh() @ layer.v.weight[0].double()
            near([weights[row, :, :count]], [scores.softmax(-1)], 1 + scores.abs().max().item())
        assert not weights.masked_select(~mask[:, None]).any()


# ---------------------------------------------------------------------------------
# recurrence


@holds(
    40,
    numbers=numbers(),
    counts=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    sizes=st.tuples(WIDTHS, WIDTHS),
    bidirectional=st.booleans(),
    started=st.booleans(),
    packed=st.booleans(),
)
def test_recurrent_layers(numbers, counts, sizes, bidirectional, started, packed):
    """GRU: states, last states and all gradients are PyTorch's, of texts of any lengths, packed or
    not."""
    ours = numbers.module(GRU, *sizes, bidirectional)
    if numbers.kind == "extreme":
        torch.nn.init.normal_(ours.weight_hh_l0, std=3.0)
    theirs = torch.nn.GRU(*sizes, batch_first=True, bidirectional=bidirectional).double()
    theirs.load_state_dict(ours.state_dict())
    if not packed:
        counts = [max(counts)] * len(counts)
    inputs, start = numbers(
        (len(counts), max(counts), sizes[0]), (1 + bidirectional, len(counts), sizes[1])
    )
    start = [start.clamp(-1, 1)]  # no state is larger

    def read(layer):
        def states(x, first):
            if packed:
                x = pack_padded_sequence(
                    x, torch.tensor(counts), batch_first=True, enforce_sorted=False
                )
            made, last = layer(x, first if started else None)
            return [made.data if isinstance(made, PackedSequence) else made, last]

        return states

    with torch.no_grad():
        shapes = [x.shape for x in read(theirs)(inputs.double(), *double(start))]
    found, exact = (
        with_gradients(read(layer), given, slopes_for(*shapes), list(layer.parameters()))
        for layer, given in ((ours, [inputs, *start]), (theirs, double([inputs, *start])))
    )
    near(found, exact, 1e4 if numbers.kind == "extreme" else 10.0)


@holds(30, numbers=numbers(), documents=st.integers(1, 3), words=st.integers(1, 5), width=WIDTHS)
def test_gated_gru(numbers, documents, words, width):
    """A GRU whose update is held back: the kernel and PyTorch's steps are equations 4 and 6 of
    Read-Again, values and gradients."""
    layer = numbers.module(GatedGRU, 3, width)
    parameters = [p.detach() for p in layer.gru.parameters()]
    inputs, alpha = numbers((documents, words, 3), (documents, words, width))
    given, slopes = [inputs, alpha.sigmoid(), *parameters], slopes_for((documents, words, width))

    def by_hand(x, alpha, weight_ih, weight, bias_ih, bias):
        hidden, states = x.new_zeros(documents, width), []
        for i in range(words):
            (xr, xz, xn), (hr, hz, hn) = (
                (y @ w.T + b).chunk(3, 1)
                for y, w, b in ((x[:, i], weight_ih, bias_ih), (hidden, weight, bias))
            )
            new = (xn + (xr + hr).sigmoid() * hn).tanh()
            z = 1 - (xz + hz).sigmoid()  # of the paper
            hidden = (1 - alpha[:, i] * z) * hidden + alpha[:, i] * z * new
            states.append(hidden)
        return torch.stack(states, 1)

    def scan(x, alpha, *parameters):
        return torch.func.functional_call(
            layer,
            dict(zip([f"gru.{n}" for n, _ in layer.gru.named_parameters()], parameters)),
            (x, alpha),
        )

    exact, scale = with_gradients(by_hand, double(given), slopes), 10 + inputs.abs().max().item()
    near(with_gradients(scan, given, slopes), exact, scale)
    with without_kernels():
        near(with_gradients(scan, given, slopes), exact, scale)


# ---------------------------------------------------------------------------------
# memory


def memory_by_steps(memory, queries, from_hidden, v, key, write, from_read):
    """Equations 7 to 10 of Mem2Mem, a step after the other."""
    psi, reads = [], []
    for t in range(queries.shape[1]):
        if t:
            z, u = (
                memory @ write.T + (from_hidden[:, t] + reads[-1] @ from_read.T)[:, None]
            ).chunk(2, -1)
            memory = z.sigmoid() * memory + (1 - z.sigmoid()) * u.tanh()
        psi.append(((memory @ key.T + queries[:, t, None]).tanh() @ v).softmax(-1))
        reads.append((psi[-1][..., None] * memory).sum(1))
    return torch.stack(psi, 1), torch.stack(reads, 1), memory


@pytest.mark.slow
@holds(
    40,
    numbers=numbers(),
    rows=st.integers(1, 3),
    slots=st.sampled_from([1, 2, 7]),
    width=WIDTHS,
    attended=st.integers(1, 5),
    steps=FEW_STEPS,
)
def test_memory(numbers, rows, slots, width, attended, steps):
    """A memory that is read and written: equations 7 to 10 of Mem2Mem, values and gradients."""
    shapes = {
        "memory": (rows, slots, width), "queries": (rows, steps, attended), "from_hidden": (rows, steps, 2 * width),
        "v": (attended,), "key": (attended, width), "write": (2 * width, width), "from_read": (2 * width, width),
    }  # fmt: skip
    given = dict(zip(shapes, numbers(*shapes.values())))
    # one extreme factor each, and memories of about 1
    for name in ("memory", "key", "write", "from_read"):
        given[name] = given[name] / (1e4 if numbers.kind == "extreme" else width**0.5)
    slopes = slopes_for((rows, steps, slots), (rows, steps, width), (rows, slots, width))
    exact = with_gradients(memory_by_steps, double(given.values()), slopes)
    scale = 10 * (1 + given["v"].abs().sum().item()) ** 1.5
    near(with_gradients(memory_scan, list(given.values()), slopes), exact, scale)
    if gpu_kernels and numbers.dtype == torch.float32:
        with mock.patch("lib.layers.cpu_kernels.triton_runs", lambda values: True):
            near(with_gradients(memory_scan, list(given.values()), slopes), exact, scale)


# ---------------------------------------------------------------------------------
# vocabulary


@holds(
    40,
    numbers=numbers(),
    words=st.integers(0, 5),
    vocabulary=st.sampled_from([5, 256, 300]),
    chunk=st.integers(1, 6),
)
def test_scores_over_a_vocabulary(numbers, words, vocabulary, chunk):
    """Scores of target words and log-sum-exps: the definition, values and gradients, in chunks of
    any size."""
    features, weight, bias = numbers((1, words, 4), (vocabulary, 4), (vocabulary,))
    if numbers.kind == "extreme":
        weight = weight / 1e4
    target = torch.randint(
        0, vocabulary, (1, words), generator=torch.Generator().manual_seed(numbers.seed)
    )

    def by_definition(features, weight, bias):
        scores = features @ weight.T + bias
        return scores.gather(2, target[..., None])[..., 0], scores.logsumexp(2)

    given, slopes = [features, weight, bias], slopes_for((1, words), (1, words))
    exact = with_gradients(by_definition, double(given), slopes)
    scale = 10 + features.abs().sum().item() + bias.abs().max().item()
    with mock.patch("lib.layers.pointer.room_on", lambda device: 4 * chunk * vocabulary):
        near(with_gradients(lambda *x: target_scores(*x, target), given, slopes), exact, scale)


@holds(
    60,
    numbers=numbers(),
    rows=st.integers(1, 3),
    steps=FEW_STEPS,
    chunk=st.integers(1, 6),
    kind=st.sampled_from(["softmax", "mixture", "only generated", "one softmax"]),
)
def test_a_weighted_sum_of_log_probabilities(numbers, rows, steps, chunk, kind):
    """The sum whose gradients are made along with it is the sum of the log-probabilities: value and
    all gradients, in chunks of any size, where some words are not counted, for each way in which a
    score becomes log P."""
    vocabulary, source = 7, 3
    features, weight, bias, switch, copy = double(
        numbers(
            (rows, steps, 3), (vocabulary, 3), (vocabulary,), (rows, steps), (rows, steps, source)
        )
    )
    if numbers.kind == "extreme":
        weight, switch, copy = weight / 1e4, switch.tanh(), copy.tanh()
    generator = torch.Generator().manual_seed(numbers.seed)
    extended = vocabulary if kind == "softmax" else vocabulary + 2
    ids = torch.randint(0, extended, (rows, source), generator=generator)
    target = torch.randint(0, extended, (rows, steps), generator=generator)
    weights = torch.rand(rows, steps, generator=generator).double()
    weights = weights * (torch.rand(rows, steps, generator=generator) < 0.7)
    places = weights.flatten().nonzero()[:, 0]

    def words(features, weight, bias, switch, copy):
        if kind == "softmax":
            return softmax(features, target, weight, bias)
        if kind == "one softmax":
            config = ReadAgain.Config(vocabulary)
            model = SimpleNamespace(
                config=config, vocabulary=SimpleNamespace(weight=weight, bias=bias)
            )
            output = ReadAgainOutput(features, copy, copy, ids)
            return ReadAgain.scored_words(model, output, target, None)  # type: ignore[arg-type]
        switch = torch.full_like(switch, math.inf) if kind == "only generated" else switch
        return mixture(PointerOutput(features, switch, copy.softmax(-1), ids), target, weight, bias)

    given, slopes = [features, weight, bias, switch, copy], slopes_for(())
    exact = with_gradients(lambda *x: (weights * words(*x).log_prob()).sum(), given, slopes)
    with mock.patch("lib.layers.pointer.room_on", lambda device: 4 * chunk * vocabulary):
        found = with_gradients(lambda *x: words(*x).weighted_sum(weights, places), given, slopes)
        # without gradients
        value = words(*(x.detach() for x in given)).weighted_sum(weights, places)
    near(found, exact, 1e3)
    near([value], exact[:1], 1e3)


@holds(
    40,
    numbers=numbers(),
    rows=st.integers(1, 3),
    steps=FEW_STEPS,
    source=st.integers(1, 4),
    copies=st.booleans(),
)
def test_generate_or_copy(numbers, rows, steps, source, copies):
    """Generating or copying: log P is the log of the distribution, and that is the mixture word by
    word."""
    vocabulary, extra = 7, 2
    features, weight, bias, switch, copy = double(
        numbers(
            (rows, steps, 3), (vocabulary, 3), (vocabulary,), (rows, steps), (rows, steps, source)
        )
    )
    if numbers.kind == "extreme":
        weight = weight / 1e4
    if not copies:
        switch = torch.full_like(switch, math.inf)
    generator = torch.Generator().manual_seed(numbers.seed)
    ids = torch.randint(0, vocabulary + extra, (rows, source), generator=generator)
    target = torch.randint(0, vocabulary + extra, (rows, steps), generator=generator)
    copy = copy.softmax(-1)
    output = PointerOutput(features, switch, copy, ids)
    p = mixture_distribution(output, weight, bias, extra)

    z, expected = switch[:, -1].sigmoid(), torch.zeros(rows, vocabulary + extra).double()
    expected[:, :vocabulary] = z[:, None] * (features[:, -1] @ weight.T + bias).softmax(1)
    for row in range(rows):
        for place, word in enumerate(ids[row].tolist()):
            expected[row, word] += (1 - z[row]) * copy[row, -1, place]
    assert torch.allclose(p, expected, rtol=0, atol=1e-12)
    # [UNK]
    last = target[:, -1:] if copies else target[:, -1:].where(target[:, -1:] < vocabulary, 1)
    log_p = mixture(output, target, weight, bias).log_prob()[:, -1]
    assert torch.allclose(log_p.exp(), p.gather(1, last)[:, 0], rtol=1e-9, atol=1e-300)
    places = torch.arange(0, rows * steps, 2)
    some = mixture(output, target, weight, bias).log_prob(places).flatten()[places]
    assert torch.equal(some, mixture(output, target, weight, bias).log_prob().flatten()[places])
