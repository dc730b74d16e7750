"""Summaries from a model: batched beam search, greedy search and sampling, on the path that
training uses."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import itemgetter
from typing import Any
from zlib import crc32

import torch
from torch import Tensor
from torch.nn import functional as F

from lib.data.batch import Batch, EncodedDocument, in_order, rows_of
from lib.data.vocabulary import BOS, EOS, Vocabulary
from lib.decoding.config import DecodeConfig
from lib.layers.pointer import bar_words
from lib.models.summarizer import Extractor, Summarizer
from lib.system.devices import ALONE, Process
from lib.system.errors import InputError
from lib.system.threads import in_threads, threads_on


@dataclass(frozen=True)
class Hypothesis:
    """A summary: extended ids without [EOS], their log-probability with it, and the rank score."""

    ids: list[int]
    log_prob: float
    score: float


@torch.no_grad()
def beam_search(model: Summarizer, batch: Batch, config: DecodeConfig) -> list[list[Hypothesis]]:
    """Find the hypotheses of every document of the batch, best first, at most `config.beam` each.

    All hypotheses of all documents are one batch; what the encoder made is not copied for them; a
    document leaves when `beam` hypotheses have ended and no open one ranks higher than the worst of
    them.

    Raises InputError for a document of which no hypothesis ends: every word was barred before
    `min_length`.
    """
    model.eval()
    search = _Search(model, batch, config)
    for length in range(1, config.max_length + 2):
        if config.ended_first and length > config.max_length:
            search.keep([i for i, d in enumerate(search.documents) if not search.ended[d]])
        if not len(search.documents):
            break
        search.step(length)
    _check_ended(batch, list(map(bool, search.ended)))
    ranked = [sorted(hypotheses, key=lambda h: -h.score) for hypotheses in search.ended]
    return [hypotheses[: config.beam] for hypotheses in ranked]


def _check_ended(batch: Batch, ended: list[bool]) -> None:
    """Raise InputError for the first document of a batch that has no summary."""
    if not all(ended):
        name = batch.ids[ended.index(False)]
        raise InputError(
            f"document {name!r} has no summary: every word is forbidden, or would repeat an "
            "n-gram, before it has min_length words (take a smaller min_length, or block longer "
            "n-grams); or the weights of the model are damaged"
        )


class _Search:
    """Beams of the D documents that are not done; K hypotheses each."""

    def __init__(self, model: Summarizer, batch: Batch, config: DecodeConfig):
        self.model = model
        self.config = config
        self.device = batch.source.device
        self.next_words = _NextWords(model, batch, config)
        self.documents = list(range(len(batch)))  # which document each row of beams is
        self.ended: list[list[Hypothesis]] = [[] for _ in self.documents]
        rows = torch.arange(len(batch), device=self.device)
        self.state = model.encode(batch)
        # [D, K, length], and [D, K].
        self.tokens = torch.full((len(batch), config.beam, 1), BOS, device=self.device)
        self.log_prob = torch.full((len(batch), config.beam), -torch.inf, device=self.device)
        self.log_prob[:, 0] = 0  # the beams of a document are one at first
        self._reorder(rows.repeat_interleave(config.beam))

    def step(self, length: int) -> None:
        """Extend every hypothesis to `length` symbols; end, keep and drop."""
        inputs = self.tokens[..., -1].reshape(-1, 1)
        output, self.state = self.model.decode(inputs, self.state)
        k = 2 * self.config.beam  # of 2K candidates at most K end, so that K open ones are left
        log_p, words = self.next_words.best(output, self.state, self.tokens.flatten(0, 1), k)
        total = self.log_prob[..., None] + log_p.unflatten(0, self.log_prob.shape)  # [D, K, 2K]
        values, places = total.flatten(1).topk(k, dim=1)
        parents = places // log_p.shape[1]
        words = words.view(total.shape[0], -1).gather(1, places)
        ends = words == EOS
        self._collect(values, parents, ends, length)
        self._advance(values.masked_fill(ends, -torch.inf), parents, words)
        self._drop_done(length)

    def _collect(self, values: Tensor, parents: Tensor, ends: Tensor, length: int) -> None:
        """Collect the candidates that end and are among the best K of their document."""
        best = ends & (values > -torch.inf)
        best[:, self.config.beam :] = False
        for row, column in best.nonzero().tolist():
            ids = self.tokens[row, parents[row, column], 1:].tolist()
            log_prob = values[row, column].item()
            hypothesis = Hypothesis(ids, log_prob, self.config.rank(log_prob, length))
            self.ended[self.documents[row]].append(hypothesis)

    def _advance(self, values: Tensor, parents: Tensor, words: Tensor) -> None:
        """Keep the best K open candidates of each document, and move their state."""
        self.log_prob, chosen = values.topk(self.config.beam, dim=1)  # [D, K]
        parents, words = parents.gather(1, chosen), words.gather(1, chosen)
        rows = torch.arange(len(self.documents), device=self.device)[:, None]
        self.tokens = torch.cat([self.tokens[rows, parents], words[..., None]], -1)
        self._reorder((rows * self.config.beam + parents).flatten())

    def _drop_done(self, length: int) -> None:
        best_open = self.config.rank(self.log_prob[:, 0], length).tolist()
        keep = []
        for i, document in enumerate(self.documents):
            if not self._done(document, best_open[i]):
                keep.append(i)
        self.keep(keep)

    def keep(self, keep: Sequence[int]) -> None:
        """Go on with the documents in these rows only."""
        if len(keep) == len(self.documents):
            return
        self.documents = [self.documents[i] for i in keep]
        rows = torch.tensor(keep, device=self.device, dtype=torch.long)
        beams = torch.arange(self.config.beam, device=self.device)
        self.tokens, self.log_prob = self.tokens[rows], self.log_prob[rows]
        self._reorder((rows[:, None] * self.config.beam + beams).flatten(), rows)

    def _reorder(self, rows: Tensor, documents: Tensor | None = None) -> None:
        self.state = self.state.reorder(rows, documents)
        self.next_words.reorder(rows, documents)

    def _done(self, document: int, best_open: float) -> bool:
        if best_open == -torch.inf:
            return True
        beam = self.config.beam
        scores = sorted((h.score for h in self.ended[document]), reverse=True)[:beam]
        return len(scores) == beam and scores[-1] >= best_open


class _NextWords:
    """The words that may come next: no forbidden ones, no [EOS] while a summary is too short, no
    repeated n-grams."""

    def __init__(self, model: Summarizer, batch: Batch, config: DecodeConfig):
        self.model = model
        self.config = config
        self.extra = max(map(len, batch.unknown), default=0)  # copy ids
        device = batch.source.device
        forbidden = [i for i in config.forbidden if i < model.config.vocab_size + self.extra]
        # Copied once, not at every step.
        self.barred = torch.tensor([*forbidden, EOS], device=device)
        self.control = torch.tensor([*model.control_symbols], dtype=torch.long, device=device)
        self.rule = config.rule(batch, self.control)

    def reorder(self, rows: Tensor, documents: Tensor | None = None) -> None:
        if self.rule is not None:
            self.rule.reorder(rows, documents)

    def best(self, output: Any, state: Any, tokens: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Find log P and ids, [R, k] each, of the k best words that may follow `tokens` [R, length]
        ([BOS] first).

        -inf where there are fewer words.
        """
        length = tokens.shape[1]
        if length > self.config.max_length:  # only [EOS] is left, however improbable
            words = torch.full_like(tokens[:, :1], EOS).expand(-1, k).contiguous()
            log_p = self.model.log_prob(output, words[:, :1], state)
            return F.pad(log_p, (0, k - 1), value=-torch.inf), words
        barred = self.barred if length <= self.config.min_length else self.barred[:-1]
        barred = barred.expand(len(tokens), -1)
        if self.config.block_ngrams:
            repeated = repeating(tokens[:, 1:], self.config.block_ngrams, self.control)
            barred = torch.cat([barred, repeated], 1)
        p = bar_words(self.model.distribution(output, state, self.extra + 1), barred)
        if self.rule is not None:
            self.rule.restrict(p)
        values, words = largest(p, min(k, p.shape[1]))
        return values.log(), words


def largest(p: Tensor, k: int, block: int = 256) -> tuple[Tensor, Tensor]:
    """Find the k largest numbers of each row of p [R, W] and their places, as `p.topk(k)` does.

    They are in the k blocks with the largest maxima, or after the last block: topk sorts only
    these, while a maximum takes one fast pass.
    """
    whole = p.shape[1] // block * block
    if whole <= 2 * k * block:
        return p.topk(k, 1)
    maxima = p[:, :whole].unflatten(1, (-1, block)).amax(2)
    blocks = maxima.topk(k, 1).indices
    places = (blocks[..., None] * block + torch.arange(block, device=p.device)).flatten(1)
    rest = torch.arange(whole, p.shape[1], device=p.device).expand(len(p), -1)
    places = torch.cat([places, rest], 1)
    values, chosen = p.gather(1, places).topk(k, 1)
    return values, places.gather(1, chosen)


def repeating(tokens: Tensor, n: int, control: Tensor) -> Tensor:
    """Find words that would end an n-gram which a row of `tokens` [R, T] holds already.

    Returns [R, T - n + 1] ids, -1 where none would, without a column where T < n. n-grams pass over
    symbols of `control` [C].
    """
    places = tokens.shape[1] - n + 1
    if places < 1:
        return tokens[:, :0]
    if len(control):  # symbols first, words after them in their order
        # A stable sort keeps the order of the words.
        symbols = (tokens[..., None] == control).any(-1)
        tokens = tokens.gather(1, (~symbols).int().argsort(dim=1, stable=True))
    ngrams = tokens.unfold(1, n, 1)  # [R, T - n + 1, n]
    repeats = (ngrams[..., :-1] == tokens[:, None, places:]).all(-1)
    if len(control):
        repeats &= torch.arange(places, device=tokens.device) >= symbols.sum(1, keepdim=True)
    return ngrams[..., -1].where(repeats, -1)


def greedy_search(model: Summarizer, batch: Batch, config: DecodeConfig) -> list[Hypothesis]:
    """Write the most probable word at every step: a beam of one. Raises InputError where every word
    is barred."""
    return [best for best, *_ in beam_search(model, batch, replace(config, beam=1))]


@torch.no_grad()
def sample_search(model: Summarizer, batch: Batch, config: DecodeConfig) -> list[Hypothesis]:
    """Draw every word from the `sample` most probable ones (Fan et al. 2018).

    A document's id determines its draws, whatever else is in the batch. Raises InputError where
    every word is barred.
    """
    model.eval()
    generators = [torch.Generator().manual_seed(crc32(name.encode())) for name in batch.ids]
    next_words = _NextWords(model, batch, config)
    state = model.encode(batch)
    tokens = torch.full((len(batch), 1), BOS, device=batch.source.device)
    log_prob = torch.zeros(len(batch), device=batch.source.device)
    is_open = torch.ones(len(batch), dtype=torch.bool, device=batch.source.device)
    while is_open.any():
        output, state = model.decode(tokens[:, -1:], state)
        log_p, words = next_words.best(output, state, tokens, config.sample)
        # Of a row that has no word, or has ended, any is drawn.
        p = (log_p / config.temperature).softmax(-1).nan_to_num(1).cpu()
        drawn = [torch.multinomial(row, 1, generator=own) for row, own in zip(p, generators)]
        place = torch.stack(drawn).to(words.device)
        word = words.gather(1, place)[:, 0]
        log_prob = log_prob + log_p.gather(1, place)[:, 0].where(is_open, 0)
        tokens = torch.cat([tokens, word.where(is_open, EOS)[:, None]], 1)
        is_open = is_open & (word != EOS)
    rows = [row[: row.index(EOS)] for row in tokens[:, 1:].tolist()]
    sums = log_prob.tolist()
    _check_ended(batch, [p > -torch.inf for p in sums])
    return [Hypothesis(ids, p, config.rank(p, len(ids) + 1)) for ids, p in zip(rows, sums)]


# ---------------------------------------------------------------------------------
# whole splits


def for_each(
    function: Callable[[Batch], list],
    model: Summarizer | Extractor,
    split: Sequence[EncodedDocument],
    vocabulary: Vocabulary,
    batch_size: int = 16,
    process: Process = ALONE,
    progress: Callable[[list], Iterable] = iter,
) -> list:
    """Collect what `function` returns for each document of a split, in their order; processes may
    share batches.

    A batch has documents of similar length, the longest first: little is padded, and processes end
    together. There is a batch for every thread at least. Batches are the same with any number of
    processes, and so is every number.
    """
    device = next(model.parameters()).device
    threads = threads_on(device)
    order = sorted(range(len(split)), key=lambda i: -len(split[i].source))
    size = max(1, min(batch_size, -(-len(split) // threads)))
    batches = list(in_order([split[i] for i in order], size, len(vocabulary)))
    own = process.share(progress(batches))
    results = process.gather(in_threads(lambda batch: function(batch.to(device)), own, threads))
    # Back to the order of the documents.
    numbered = zip(order, chain.from_iterable(results))
    return [result for _, result in sorted(numbered, key=itemgetter(0))]


def search_split(
    model: Summarizer,
    split: Sequence[EncodedDocument],
    vocabulary: Vocabulary,
    config: DecodeConfig,
    **how: Any,
) -> list[Hypothesis]:
    """Find the best hypothesis of every document of a split. how: more for `for_each`."""

    def search(batch: Batch) -> list[Hypothesis]:
        if config.sample:
            return sample_search(model, batch, config)
        return [best for best, *_ in beam_search(model, batch, config)]

    return for_each(search, model, split, vocabulary, **how)


def summarize(
    model: Summarizer,
    split: Sequence[EncodedDocument],
    vocabulary: Vocabulary,
    config: DecodeConfig,
    **how: Any,
) -> list[list[str]]:
    """Write the best summary of every document of a split, in sentences; copied words are the
    source's own."""
    summaries = []
    hypotheses = search_split(model, split, vocabulary, config, **how)
    for document, best in zip(split, hypotheses):
        words = [i for i in best.ids if i not in model.control_symbols]
        summaries.append(vocabulary.sentences(words, document.unknown))
    return summaries


def choose_sentences(
    model: Extractor, split: Sequence[EncodedDocument], vocabulary: Vocabulary, **how: Any
) -> list[list[int]]:
    """List the numbers of the sentences that a model chooses from every document of a split."""
    model.eval()
    return for_each(torch.no_grad()(model.choose), model, split, vocabulary, **how)


def extract(
    model: Extractor, split: Sequence[EncodedDocument], vocabulary: Vocabulary, **how: Any
) -> list[list[str]]:
    """Extract the sentences that a model chooses from every document of a split."""
    summaries = []
    for document, chosen in zip(split, choose_sentences(model, split, vocabulary, **how)):
        sentences = source_sentences(document, vocabulary)
        summaries.append([sentences[i] for i in chosen])
    return summaries


def source_sentences(document: EncodedDocument, vocabulary: Vocabulary) -> list[str]:
    """List the sentences (paragraphs) of an encoded document, with spaces between words."""
    return [vocabulary.text(row.tolist(), document.unknown) for row in rows_of(document)]
