"""Summaries from a model: batched beam search, greedy search and sampling, on the path that training uses."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Annotated, Any, TypeVar
from zlib import crc32

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from lib.data.batch import Batch, EncodedDocument, rows_of
from lib.data.batching import in_order
from lib.data.vocabulary import BOS, EOS, PAD, UNK, Vocabulary
from lib.layers.pointer import bar_words
from lib.models.summarizer import Extractor, Summarizer
from lib.system.errors import CompanionError, InputError
from lib.system.fields import Natural, Positive, checked
from lib.system.threads import in_threads, threads_on
from lib.training.devices import ALONE, Process

Score = TypeVar("Score", float, Tensor)
DECODINGS = {"plain beam search": 0, "trigram blocking": 3}  # `DecodeConfig.block_ngrams`


@checked
class DecodeConfig:
    """Beam search, or sampling. Lengths count words without [EOS], and symbols that steer the model."""

    beam: Annotated[int, Field(ge=1, le=1_000)] = 4  # the paper's (appendix A.2)
    min_length: int = 0
    max_length: Annotated[int, Field(ge=1, le=100_000)] = 200
    # p: hypotheses are ranked by log P / ((length + offset) / (1 + offset))^p
    length_penalty: Annotated[float, Field(ge=-9, le=9)] = 1.0
    length_offset: Natural = 0  # 0 with p = 1: mean log P a symbol; 5: the rule of Wu et al. 2016
    block_ngrams: Natural = 0  # no n-gram of this size twice; 0: anything goes
    forbidden: tuple[Natural, ...] = (PAD, UNK, BOS)  # words that are never written; ids that no word has do nothing
    sample: Natural = 0  # draw each word from so many of the most probable ones, without a beam; 0: no draws
    temperature: Positive = 1.0  # of what is drawn: P^(1 / temperature)

    def __post_init__(self):
        if self.min_length > self.max_length:
            raise InputError(f"min_length {self.min_length} must be at most max_length, {self.max_length}")

    def rank(self, log_prob: Score, length: int) -> Score:
        """Compute the score by which hypotheses of `length` symbols ([EOS] counted in) are compared."""
        return log_prob / ((length + self.length_offset) / (1 + self.length_offset)) ** self.length_penalty

    def among(self, words: int) -> "DecodeConfig":
        """Leave out `forbidden` ids that none of so many words has, copy ids counted in."""
        return replace(self, forbidden=tuple(i for i in self.forbidden if i < words))


@dataclass(frozen=True)
class Hypothesis:
    """A summary: extended ids without [EOS], their log-probability with it, and the rank score."""

    ids: list[int]
    log_prob: float
    score: float


@torch.no_grad()
def beam_search(model: Summarizer, batch: Batch, config: DecodeConfig) -> list[list[Hypothesis]]:
    """Find the hypotheses of every document of the batch, best first, at most `config.beam` each.

    All hypotheses of all documents are one batch; what the encoder made is not copied for them; a document leaves
    when `beam` hypotheses have ended and no open one ranks higher than the worst of them.

    Raises InputError for a document of which no hypothesis ends: every word was barred before `min_length`.
    """
    model.eval()
    search = _Search(model, batch, config)
    for length in range(1, config.max_length + 2):
        search.step(length)
        if not len(search.documents):
            break
    _check_ended(model, batch, [bool(hypotheses) for hypotheses in search.ended])
    return [sorted(hypotheses, key=lambda h: -h.score)[: config.beam] for hypotheses in search.ended]


class NoProbabilityError(CompanionError, FloatingPointError):
    """No word has a probability: the model's numbers overflow."""


def _check_ended(model: Summarizer, batch: Batch, ended: list[bool]) -> None:
    """Raise InputError for the first document of a batch that has no summary; NoProbabilityError where the model
    is to blame."""
    if all(ended):
        return
    name = repr(batch.ids[ended.index(False)])
    state, first = model.encode(batch), torch.full_like(batch.source[:, :1], BOS)
    output, state = model.decode(first, state)
    if model.log_prob(output, torch.full_like(first, EOS), state).isnan().any():
        raise NoProbabilityError(
            f"no word of document {name} has a probability: the weights are damaged or too large"
        )
    raise InputError(
        f"document {name}: every word is forbidden, or would repeat an n-gram, before the summary has min_length "
        "words. Take a smaller min_length, or block longer n-grams."
    )


class _Search:
    """Beams of the D documents that are not done; K hypotheses each."""

    def __init__(self, model, batch: Batch, config: DecodeConfig):
        self.model, self.device = model, batch.source.device
        self.extra = max(map(len, batch.unknown), default=0)
        self.config = config.among(model.config.vocab_size + self.extra)
        self.bars = _Bars(self.config, model.control_symbols, self.device)
        self.documents = list(range(len(batch)))  # which document each row of beams is
        self.ended: list[list[Hypothesis]] = [[] for _ in self.documents]
        rows = torch.arange(len(batch), device=self.device)
        self.state = model.encode(batch).reorder(rows.repeat_interleave(config.beam))
        self.tokens = torch.full((len(batch), config.beam, 1), BOS, device=self.device)  # [D, K, length]
        self.log_prob = torch.full((len(batch), config.beam), -torch.inf, device=self.device)
        self.log_prob[:, 0] = 0  # the beams of a document are one at first

    def step(self, length: int) -> None:
        """Extend every hypothesis to `length` symbols; end, keep and drop."""
        inputs = self.tokens[..., -1].reshape(-1, 1)
        output, self.state = self.model.decode(inputs, self.state)
        k = 2 * self.config.beam  # of 2K candidates at most K end, so that K open ones are left
        rows = self.tokens.flatten(0, 1)
        log_p, words = _best_words(self.model, output, self.state, rows, self.bars, k, self.extra)
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
        self.state = self.state.reorder((rows * self.config.beam + parents).flatten())

    def _drop_done(self, length: int) -> None:
        best_open = self.config.rank(self.log_prob[:, 0], length).tolist()
        keep = [i for i, (d, score) in enumerate(zip(self.documents, best_open)) if not self._done(d, score)]
        if len(keep) == len(self.documents):
            return
        self.documents = [self.documents[i] for i in keep]
        rows = torch.tensor(keep, device=self.device, dtype=torch.long)
        beams = torch.arange(self.config.beam, device=self.device)
        self.tokens, self.log_prob = self.tokens[rows], self.log_prob[rows]
        self.state = self.state.reorder((rows[:, None] * self.config.beam + beams).flatten(), rows)

    def _done(self, document: int, best_open: float) -> bool:
        scores = sorted((h.score for h in self.ended[document]), reverse=True)[: self.config.beam]
        return best_open == -torch.inf or (len(scores) == self.config.beam and scores[-1] >= best_open)


def _best_words(
    model: Summarizer,
    output: Any,
    state: Any,
    tokens: Tensor,
    bars: "_Bars",
    k: int,
    extra: int,
) -> tuple[Tensor, Tensor]:
    """log P and ids, [R, k] each, of the k best words that may follow `tokens` [R, length] ([BOS] first).

    extra: copy ids. -inf where there are fewer words.
    """
    if tokens.shape[1] > bars.config.max_length:  # only [EOS] is left, however improbable
        words = torch.full_like(tokens[:, :1], EOS).expand(-1, k).contiguous()
        log_p = model.log_prob(output, words[:, :1], state)
        return F.pad(log_p, (0, k - 1), value=-torch.inf), words
    p = bar_words(model.distribution(output, state, extra + 1), bars.after(tokens))
    values, words = p.topk(min(k, p.shape[1]), 1)
    return values.log(), words


class _Bars:
    """Words that may not be written: forbidden ones, [EOS] while a summary is too short, repeated n-grams' last ones.
    Symbols of `control` are not words: n-grams pass over them."""

    def __init__(self, config: DecodeConfig, control: Iterable[int], device: torch.device):
        self.config = config
        self.ids = torch.tensor([*config.forbidden, EOS], device=device)  # copied once, not at every step
        self.control = torch.tensor([*control], dtype=torch.long, device=device)

    def after(self, tokens: Tensor) -> Tensor:
        """Ids [R, M] of those that may not follow `tokens` [R, length] ([BOS] first); -1 is none."""
        ids = self.ids if tokens.shape[1] <= self.config.min_length else self.ids[:-1]
        barred = ids.expand(len(tokens), -1)
        if not self.config.block_ngrams:
            return barred
        return torch.cat([barred, repeating(tokens[:, 1:], self.config.block_ngrams, self.control)], 1)


def repeating(tokens: Tensor, n: int, control: Tensor) -> Tensor:
    """Words that would end an n-gram which a row of `tokens` [R, T] holds already: [R, T - n + 1] ids, -1 where none
    would, without a column where T < n. n-grams pass over symbols of `control` [C]."""
    places = tokens.shape[1] - n + 1
    if places < 1:
        return tokens[:, :0]
    if len(control):  # symbols first, words after them in their order
        symbols = (tokens[..., None] == control).any(-1)
        tokens = tokens.gather(1, (~symbols).int().argsort(dim=1, stable=True))
    ngrams = tokens.unfold(1, n, 1)  # [R, T - n + 1, n]
    repeats = (ngrams[..., :-1] == tokens[:, None, places:]).all(-1)
    if len(control):
        repeats &= torch.arange(places, device=tokens.device) >= symbols.sum(1, keepdim=True)
    return ngrams[..., -1].where(repeats, -1)


def greedy_search(model: Summarizer, batch: Batch, config: DecodeConfig) -> list[Hypothesis]:
    """Write the most probable word at every step, for all documents at once.

    Raises InputError where every word is barred.
    """
    return _one_by_one(model, batch, config, 1, lambda log_p: torch.zeros_like(log_p, dtype=torch.long))


def sample_search(model: Summarizer, batch: Batch, config: DecodeConfig) -> list[Hypothesis]:
    """Draw every word from the `sample` most probable ones (Fan et al. 2018).

    A document's id determines its draws, whatever else is in the batch. Raises InputError where every word is barred.
    """
    drawn_by = [torch.Generator().manual_seed(crc32(name.encode())) for name in batch.ids]

    def draw(log_p: Tensor) -> Tensor:
        # of a row that has no word, or has ended, any is drawn
        p = (log_p / config.temperature).softmax(-1).nan_to_num(1).cpu()
        places = [torch.multinomial(row, 1, generator=generator) for row, generator in zip(p, drawn_by)]
        return torch.stack(places).to(log_p.device)

    return _one_by_one(model, batch, config, config.sample, draw)


@torch.no_grad()
def _one_by_one(
    model: Summarizer, batch: Batch, config: DecodeConfig, k: int, pick: Callable[[Tensor], Tensor]
) -> list[Hypothesis]:
    """Write one hypothesis of every document. pick: log P [B, k] of the k best words -> place [B, 1] of the next."""
    model.eval()
    state, extra = model.encode(batch), max(map(len, batch.unknown), default=0)
    config = config.among(model.config.vocab_size + extra)
    bars = _Bars(config, model.control_symbols, batch.source.device)
    tokens = torch.full((len(batch), 1), BOS, device=batch.source.device)
    log_prob = torch.zeros(len(batch), device=batch.source.device)
    open_ = torch.ones(len(batch), dtype=torch.bool, device=batch.source.device)
    while open_.any():
        output, state = model.decode(tokens[:, -1:], state)
        log_p, words = _best_words(model, output, state, tokens, bars, k, extra)
        place = pick(log_p)
        log_p, word = (x.gather(1, place)[:, 0] for x in (log_p, words))
        log_prob = log_prob + log_p.where(open_, 0)
        tokens = torch.cat([tokens, word.where(open_, EOS)[:, None]], 1)
        open_ = open_ & (word != EOS)
    rows, sums = [row[: row.index(EOS)] for row in tokens[:, 1:].tolist()], log_prob.tolist()
    _check_ended(model, batch, [p > -torch.inf for p in sums])
    return [Hypothesis(ids, p, config.rank(p, len(ids) + 1)) for ids, p in zip(rows, sums)]


def extract(
    model: Extractor, split, vocabulary: Vocabulary, batch_size: int = 16, process: Process = ALONE
) -> list[list[str]]:
    """Extract the sentences that a model chooses from every document of a split.

    process: one of those that share the batches; each has the sentences of all.
    """
    numbers = by_length(partial(choices, model, process=process), model, split, vocabulary, batch_size)
    texts = (source_sentences(document, vocabulary) for document in split)
    return [[sentences[i] for i in chosen] for sentences, chosen in zip(texts, numbers)]


def choices(model: Extractor, batches: Iterable[Batch], process: Process = ALONE) -> list[list[int]]:
    """List the numbers of the sentences that a model chooses from every document; processes may share batches."""
    model.eval()
    choose = torch.no_grad()(model.choose)
    return _of_every_document(choose, next(model.parameters()).device, batches, process)


def _of_every_document(function: Callable[[Batch], list], device, batches: Iterable[Batch], process: Process) -> list:
    """Collect the results of `function`, which gives one for each document of a batch."""
    results = in_threads(lambda batch: function(batch.to(device)), process.share(batches), threads_on(device))
    return [result for of_batch in process.gather(results) for result in of_batch]


def by_length(
    work: Callable[[Iterable[Batch]], list],
    model: Summarizer | Extractor,
    split,
    vocabulary: Vocabulary,
    batch_size: int = 16,
    progress: Callable[[list], Iterable] = iter,
) -> list:
    """Collect the results of `work` for the documents of a split, in their order.

    A batch has documents of similar length, the longest first: little is padded, and processes that share the batches
    end together. Batches are the same with any number of processes, and so is every number.
    """
    order = sorted(range(len(split)), key=lambda i: -len(split[i].source))
    found = work(progress(list(batches(model, [split[i] for i in order], batch_size, vocabulary))))
    return [result for _, result in sorted(zip(order, found), key=itemgetter(0))]


def batches(model: Summarizer | Extractor, split, batch_size: int, vocabulary: Vocabulary) -> Iterator[Batch]:
    """Cut a split into batches, at least one for every thread."""
    threads = threads_on(next(model.parameters()).device)
    return in_order(split, max(1, min(batch_size, -(-len(split) // threads))), len(vocabulary))


def source_sentences(document: EncodedDocument, vocabulary: Vocabulary) -> list[str]:
    """List the sentences (paragraphs) of an encoded document, with spaces between words."""
    return [vocabulary.text(row.tolist(), document.unknown) for row in rows_of(document)]


def summarize(
    model: Summarizer,
    split,
    vocabulary: Vocabulary,
    config: DecodeConfig,
    batch_size: int = 16,
    process: Process = ALONE,
) -> list[list[str]]:
    """Write the best summary of every document of a split, in sentences; copied words are the source's own.

    process: one of those that share the batches; each has the summaries of all.
    """
    write, summaries = partial(written, model, config=config, process=process), []
    for document, best in zip(split, by_length(write, model, split, vocabulary, batch_size)):
        words = [i for i in best.ids if i not in model.control_symbols]
        summaries.append(vocabulary.sentences(words, document.unknown))
    return summaries


def written(
    model: Summarizer, batches: Iterable[Batch], config: DecodeConfig, process: Process = ALONE
) -> list[Hypothesis]:
    """Find the best hypothesis of every document of some batches, which processes may share."""

    def search(batch: Batch) -> list[Hypothesis]:
        if config.sample:
            return sample_search(model, batch, config)
        return [best for best, *_ in beam_search(model, batch, config)]

    return _of_every_document(search, next(model.parameters()).device, batches, process)
