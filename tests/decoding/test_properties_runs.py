"""Search and sampling against their definitions."""

import math
from dataclasses import dataclass, replace
from zlib import crc32

import torch
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from lib.data.batch import in_vocabulary, make_batch
from lib.data.vocabulary import BOS, EOS, PAD, UNK
from lib.decoding.config import DecodeConfig
from lib.decoding.search import beam_search, greedy_search, sample_search
from lib.layers.attention import masked_softmax
from lib.layers.pointer import PointerOutput
from lib.models.state import DecoderState, PerDocument, PerHypothesis, per_hypothesis
from lib.models.summarizer import PointerModel
from lib.papers.windowed.sliding import SlidingConfig
from lib.system.errors import InputError
from tests.properties import Numbers, documents, holds, numbers

WORDS = 7  # of the vocabulary, special symbols counted in: few, so that all may be barred
CLOSE = 1e-9  # of numbers of about 1: sums that are nearer are equal, but for rounding


@dataclass(frozen=True, kw_only=True)
class ChainState(DecoderState):
    source: PerDocument[Tensor]  # [B, N]
    mask: PerDocument[Tensor]  # [B, N]
    before: PerHypothesis[Tensor]  # [R] the last word read


class Chain(PointerModel):
    """A model whose next word depends on the last two and on the source, by tables."""

    def __init__(
        self, table: Tensor, switch: Tensor, copy: Tensor, control: frozenset[int] = frozenset()
    ):
        """table: [V, V * V] scores; switch: [V * V]; copy: [V, longest source]."""
        super().__init__()
        self.config = Numbered(len(table))
        self.table = torch.nn.Parameter(table)
        self.switch, self.copy, self.control_symbols = switch, copy, control

    def output_layer(self):
        return self.table, torch.zeros(len(self.table), dtype=self.table.dtype)

    def encode(self, batch):
        before = torch.full((len(batch),), BOS)  # [R] the last word read
        source, mask = batch.source_extended, batch.source_mask
        return ChainState(source=source, mask=mask, before=before)

    def decode(self, tokens, state):
        size = self.config.vocab_size
        known = in_vocabulary(tokens, size)
        pairs = torch.cat([state.before[:, None], known[:, :-1]], 1) * size + known  # [R, T]
        features = F.one_hot(pairs, size * size).to(self.switch.dtype)
        source, mask = (per_hypothesis(x, len(tokens)) for x in (state.source, state.mask))
        copy = masked_softmax(self.copy[known][..., : source.shape[1]], mask[:, None])
        return PointerOutput(features, self.switch[pairs], copy, source), state.replace(
            before=known[:, -1]
        )


@dataclass(frozen=True)
class Numbered:
    vocab_size: int


def chain(numbers: Numbers, control: frozenset[int] = frozenset()) -> Chain:
    table, switch, copy = numbers((WORDS, WORDS * WORDS), (WORDS * WORDS,), (WORDS, 24))
    return Chain(table.double(), switch.double(), copy.double(), control)


@st.composite
def decodings(draw) -> DecodeConfig:
    """What a search may be asked for, but for sampling."""
    least = draw(st.integers(0, 3))
    some = st.lists(st.sampled_from([4, 5, WORDS, WORDS + 1, 2**40]), max_size=2)
    symbols = draw(st.one_of(some, st.just([4, 5])))  # one word is left, or few
    return SlidingConfig(
        beam=draw(st.integers(1, 3)),
        min_length=least,
        max_length=draw(st.integers(max(1, least), 4)),
        length_penalty=draw(st.sampled_from([0.0, 0.4, 1.0, 3.0, -1.0])),
        length_offset=draw(st.sampled_from([0, 1, 5])),
        block_ngrams=draw(st.integers(0, 3)),
        forbidden=(*draw(st.sampled_from([(PAD, UNK, BOS), ()])), *symbols),
        slide=draw(st.sampled_from(["as a word", "half", "median", "coin"])),
    )


CONTROL = st.sampled_from([frozenset(), frozenset({4})])


# ---------------------------------------------------------------------------------
# definition


class Definition:
    """What may be written of one document, by the definition of each option."""

    def __init__(self, model, document, config: DecodeConfig):
        self.model, self.config, self.batch = model, config, make_batch([document], WORDS)
        self.known: dict[tuple[int, ...], dict[int, float]] = {}
        self.symbol: dict[tuple[int, ...], float] = {}  # P of the symbols that steer the model

    def following(self, ids: tuple[int, ...]) -> dict[int, float]:
        """log P of each word that may follow, all words before read at once."""
        if ids not in self.known:
            state = self.model.encode(self.batch)
            output, _ = self.model.decode(torch.tensor([[BOS, *ids]]), state)
            if len(ids) == self.config.max_length:
                last = self.model.log_prob(output, torch.tensor([[*ids, EOS]]), state)[0, -1]
                self.known[ids] = {EOS: last.item()}
            else:
                log_p = self._log_p(output)
                allowed = (
                    w
                    for w in range(len(log_p))
                    if log_p[w] > -math.inf and not self._barred(ids, w)
                )
                self.known[ids] = self._decided(ids, {w: log_p[w] for w in allowed})
        return self.known[ids]

    def _decided(self, ids: tuple[int, ...], allowed: dict[int, float]) -> dict[int, float]:
        """The symbols alone where the rule says to slide, the words alone where it does not."""
        rule, control = self.config.slide, self.model.control_symbols
        self.symbol[ids] = sum(math.exp(log_p) for w, log_p in allowed.items() if w in control)
        if rule == "as a word":
            return allowed
        since = max((i + 1 for i, w in enumerate(ids) if w in control), default=0)  # the last slide
        stayed = math.prod(1 - self.symbol[ids[:i]] for i in range(since, len(ids) + 1))
        draws = torch.rand(
            len(ids) + 1, generator=torch.Generator().manual_seed(crc32(self.batch.ids[0].encode()))
        )
        slides = {
            "half": self.symbol[ids] > 0.5,
            "median": stayed < 0.5,
            "coin": 1 - self.symbol[ids] < draws[-1].item(),
        }[rule]
        return {w: log_p for w, log_p in allowed.items() if (w in control) == slides}

    def _log_p(self, output: PointerOutput) -> list[float]:
        scores, z = (output.features @ self.model.table.T)[0, -1], output.switch[0, -1]
        extra = len(self.batch.unknown[0])
        generated = F.pad(scores.log_softmax(0) + F.logsigmoid(z), (0, extra), value=-math.inf)
        copied = torch.zeros_like(generated).scatter_add(
            0, output.source[0], (-z).sigmoid() * output.copy[0, -1]
        )
        return torch.logaddexp(generated, copied.log()).tolist()

    def _barred(self, ids: tuple[int, ...], word: int) -> bool:
        config, control, n = self.config, self.model.control_symbols, self.config.block_ngrams
        if word in config.forbidden or (word == EOS and len(ids) < config.min_length):
            return True
        if word in control or word == EOS or not n:
            return False
        written = [i for i in (*ids, word) if i not in control]
        ngrams = [tuple(written[i : i + n]) for i in range(len(written) - n + 1)]
        return ngrams.count(tuple(written[-n:])) > 1

    def log_prob(self, ids: tuple[int, ...]) -> float:
        """log P of a summary, its end counted in; -inf where it may not be written."""
        steps = [self.following(ids[:i]).get(word, -math.inf) for i, word in enumerate([*ids, EOS])]
        return sum(steps)


def equal(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= CLOSE * (1 + abs(a) + abs(b))


def rank(config: DecodeConfig, log_p: float, length: int) -> float:
    """log P over the length, [EOS] counted in, with an offset and an exponent (Wu et al. 2016,
    equation 14)."""
    return (
        log_p
        * ((1 + config.length_offset) / (config.length_offset + length)) ** config.length_penalty
    )


def naive_beam_search(definition: Definition) -> list[tuple[int, ...]]:
    """The hypotheses of one document, best first, with loops."""
    config = definition.config
    opened, ended = [(0.0, ())], []
    for length in range(1, config.max_length + 2):
        extensions = [
            (p + q, (*ids, w)) for p, ids in opened for w, q in definition.following(ids).items()
        ]
        best = sorted(extensions, key=lambda found: -found[0])[: 2 * config.beam]
        ended += [
            (rank(config, p, length), ids[:-1]) for p, ids in best[: config.beam] if ids[-1] == EOS
        ]
        ended = sorted(ended, key=lambda found: -found[0])[: config.beam]
        opened = [found for found in best if found[1][-1] != EOS][: config.beam]
        full = len(ended) == config.beam
        if not opened or (full and ended[-1][0] >= rank(config, opened[0][0], length)):
            break
    return [ids for _, ids in ended]


# ---------------------------------------------------------------------------------
# searches


def search_each(search, model, texts, config) -> list:
    """What a search gives of each document of a batch; of all in one batch unless one of them is
    refused."""
    try:
        return search(model, make_batch(texts, WORDS), config)
    except InputError as error:
        found = []
        for text in texts:
            try:
                found += search(model, make_batch([text], WORDS), config)
            except InputError as own:
                assert repr(text.id) in str(own)
                found.append([] if search is beam_search else None)
        assert any(not f for f in found), error
        return found


@holds(
    120,
    numbers=numbers("normal"),
    texts=documents(WORDS, most=3),
    config=decodings(),
    control=CONTROL,
)
@torch.no_grad()
def test_beam_search(numbers, texts, config, control):
    """Each document's hypotheses are those of a search with loops, with every option; none where
    all is barred."""
    model = chain(numbers, control)
    for text, found in zip(texts, search_each(beam_search, model, texts, config), strict=True):
        definition = Definition(model, text, config)
        assert [tuple(h.ids) for h in found] == naive_beam_search(definition)
        for h in found:
            assert equal(h.log_prob, definition.log_prob(tuple(h.ids)))
            assert equal(h.score, rank(config, h.log_prob, len(h.ids) + 1))


@holds(
    80,
    numbers=numbers("normal", "steps"),
    texts=documents(WORDS, most=3),
    config=decodings(),
    control=CONTROL,
)
@torch.no_grad()
def test_greedy_search(numbers, texts, config, control):
    """Greedy search takes a word that is as probable as any at every step, and is beam search of
    width 1."""
    model, config = chain(numbers, control), replace(config, beam=1)
    greedy = search_each(greedy_search, model, texts, config)
    for text, found in zip(texts, greedy, strict=True):
        definition, ids = Definition(model, text, config), []
        for word in [*found.ids, EOS] if found else ():
            following = definition.following(tuple(ids))
            assert word in following and equal(following[word], max(following.values()))
            ids.append(word)
        assert not found or equal(found.log_prob, definition.log_prob(tuple(found.ids)))
    if numbers.kind == "normal":
        beams = search_each(beam_search, model, texts, config)
        for found, of_beam in zip(greedy, beams, strict=True):
            assert [found.ids] if found else [h.ids for h in of_beam] == []


SAMPLES = st.builds(
    lambda config, k, t: replace(config, sample=k, temperature=t),
    decodings(),
    st.integers(1, 5),
    st.sampled_from([0.3, 1.0, 2.0]),
)


@holds(
    100, numbers=numbers("normal"), texts=documents(WORDS, most=3), config=SAMPLES, control=CONTROL
)
@torch.no_grad()
def test_sampled_words(numbers, texts, config, control):
    """Sampled words are of the most probable ones that may follow; a document's own are the same
    again, whatever else is in the batch."""
    model = chain(numbers, control)
    sampled = search_each(sample_search, model, texts, config)
    for text, found in zip(texts, sampled, strict=True):
        definition, ids = Definition(model, text, config), []
        for word in [*found.ids, EOS] if found else ():
            following = definition.following(tuple(ids))
            least = sorted(following.values(), reverse=True)[: config.sample][-1]
            assert word in following and (following[word] >= least or equal(following[word], least))
            ids.append(word)
        if found:
            assert equal(found.log_prob, definition.log_prob(tuple(found.ids)))
            assert sample_search(model, make_batch([text], WORDS), config)[0].ids == found.ids
