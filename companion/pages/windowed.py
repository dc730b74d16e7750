"""What the windowed page shows: a model of facts step by step, and where a run on articles writes its words from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np
import torch
from torch import Tensor

from companion.pages.checks import Checks, gradients
from companion.pages.frames import Frames
from companion.pages.steps import CELL, GREY, ORANGE, PAPER, WHITE, decoding_frames, pointer_steps
from companion.studies import marking
from companion.studies.slides import words_by_window, write_with
from companion.studies.windows import SentenceLists, embeddings_of, window_counts
from companion.tasks.synthetic import FACT
from companion.tasks.windows import STRIDE, VOCABULARY, WINDOW
from lib.data.batch import EncodedDocument, make_batch
from lib.data.documents import Document
from lib.data.prepared import TextEncoder
from lib.data.vocabulary import BOS, EOS, SLIDE, SLIDE_SYMBOL, Vocabulary
from lib.decoding.run import Run
from lib.decoding.search import DecodeConfig, beam_search
from lib.evaluation.bootstrap import interval
from lib.models.windowed import Windowed, WindowedConfig
from lib.papers.windowed.windows import ArticleOptions

NAMES = {FACT: "FACT", SLIDE: "→", BOS: "[BOS]", EOS: "[EOS]"}
WORDS = [NAMES.get(i, str(i)) for i in range(VOCABULARY)]  # of the task
Bars = dict[str, dict[str, list[float]]]


@torch.no_grad()
def fact_frames(model: Windowed, document: EncodedDocument, ids: Sequence[int] | None = None) -> Frames:
    """Show what a model of facts does before it writes each of `ids`, or of what a beam of two finds."""
    batch = make_batch([document], VOCABULARY)
    if ids is None:
        ids = beam_search(model, batch, DecodeConfig(beam=2, max_length=18))[0][0].ids
    result, _ = model.decode(torch.tensor([[BOS, *ids]]), model.encode(batch))
    steps = pointer_steps(model.pointer, result, [*ids, EOS], WORDS)
    views = [(window * STRIDE, window * STRIDE + WINDOW) for window in result.windows[0].tolist()]
    text = [[WORDS[i] for i in document.source]]
    return decoding_frames(text, [replace(step, view=view) for step, view in zip(steps, views)])


@torch.no_grad()
def largest_weights(model: Windowed, document: EncodedDocument, vocab_size: int, config: DecodeConfig) -> dict:
    """Find the places of the largest weights, and the windows, while a summary is written: for a figure."""
    batch = make_batch([document], vocab_size)
    ((best, *_),) = beam_search(model, batch, config)
    result, _ = model.decode(torch.tensor([[BOS, *best.ids]]), model.encode(batch))
    weights, where = result.copy[0].max(-1)
    found = {"places": result.places[0][where], "weights": weights, "windows": result.windows[0]}
    return {**found, "words": len(document.source), "window": model.config.window, "stride": model.config.stride}


@dataclass(frozen=True)
class Marked:
    """A reference summary as it is marked: how each of n windows begins, and what is linked to it."""

    windows: Sequence[tuple[str, str, Sequence[str]]]  # name, first words, sentences

    def _repr_html_(self) -> str:
        rows = []
        for name, begins, sentences in self.windows:
            left = f'<b>{escape(name)}</b><br><span style="color: {GREY}">{escape(begins)} ...</span>'
            right = "<br>".join(map(escape, sentences)) or "&nbsp;"
            arrow = f'<b style="color: {ORANGE}">→</b>' if rows else ""
            cells = "".join(f'<td style="{CELL}; vertical-align: top">{cell}</td>' for cell in (left, arrow, right))
            rows.append(f'<tr style="{WHITE}; border-top: 1px solid #ddd">{cells}</tr>')
        return f'<table style="{PAPER}">{"".join(rows)}</table>'

    def __repr__(self) -> str:
        return "\n→\n".join(f"{name}: {begins} ... | {' | '.join(linked)}" for name, begins, linked in self.windows)


def linked_windows(run: Run, document: EncodedDocument) -> tuple[dict[str, np.ndarray], dict[int, int]]:
    """Find the window of each reference sentence by each rule of `companion.studies.marking`, with the run's
    embeddings; and that of the known source of those that have one."""
    sentences, windows = SentenceLists.of(document, run.options.lower), marking.windows_of(document, run)
    similar = sentences.similarities(embeddings_of(run))
    found = {rule: marking.apply_rule(rule, similar, windows) for rule in marking.RULES}
    return found, {i: int(windows[j]) for i, j in sentences.copies}


def marked(run: Run, document: EncodedDocument, words: int = 14) -> Marked:
    """Mark a document's reference as for training; `words` of each text are shown."""
    of_sentence, size = linked_windows(run, document)[0][marking.FORWARD], run.model.config.window
    sentences, rows = SentenceLists.of(document, run.options.lower).reference, []
    for window in range(window_counts(run, [document])[0]):
        begin = window * run.model.config.stride
        here = document.source[begin : begin + size].tolist()
        linked = [s[:words].tolist() for s, w in zip(sentences, of_sentence) if w == window]
        first, *linked = (run.vocabulary.text(ids, document.unknown) for ids in (here[:words], *linked))
        name = f"window {window + 1}: words {begin + 1:,} to {begin + len(here):,}"
        rows.append((name, first, [f"{text} ..." for text in linked]))
    return Marked(rows)


def words_from(run: Run, documents: Sequence[EncodedDocument], system: str) -> list[list[int]]:
    """Count the words from the first window, from those between and from the last, of each document's summary by a
    search of `companion.studies.slides`, without trigram blocking."""
    plain = replace(run, decode=replace(run.decode, block_ngrams=0))
    counts = window_counts(run, documents)
    return [words_by_window(ids, n) for ids, n in zip(write_with(plain, system, documents), counts)]


def share_bars(counts: Mapping[str, Sequence[Sequence[float]]]) -> Bars:
    """Shares of words by window, in percent with intervals over documents, for `interval_bars`."""
    bars: Bars = {"first window": {}, "windows between": {}, "last window": {}}
    for name, rows in counts.items():
        words = np.array(rows, dtype=float)
        for column, window in enumerate(bars):
            bars[window][name] = interval(100 * words[:, column], weights=words.sum(1)).drawn
    return bars


@torch.no_grad()
def first_symbols(run: Run, documents: Sequence[EncodedDocument]) -> tuple[np.ndarray, np.ndarray]:
    """Compute P of the slide symbol and of the most probable word before the first word of each document."""
    batch = make_batch(documents, len(run.vocabulary))
    output, state = run.model.decode(torch.full((len(batch), 1), BOS), run.model.encode(batch))
    p = run.model.distribution(output, state, max(map(len, batch.unknown)))
    slide = p[:, SLIDE].clone()
    p[:, SLIDE] = 0
    return slide.numpy(), p.amax(1).numpy()


SMALL_OPTIONS = ArticleOptions(source_tokens=40, summary_tokens=20, vocab_size=19, window=8, stride=6)
SMALL_WORDS = Vocabulary([SLIDE_SYMBOL, *"the cat ran sat saw a it was not and fast . , !".split()])
SMALL_TEXTS = [
    (["The cat saw a zebra.", "It ran!", "The cat was fast, and the zebra was not.", "It sat."],
     ["The zebra saw the cat.", "The cat was fast."]),
    (["A quokka sat."], ["A quokka."]),
    (["The cat sat and sat.", "The zebra ran.", "The quokka saw it.", "It was the cat, not it."],
     ["The okapi sat.", "The quokka saw the cat.", "It was not it."]),
]  # fmt: skip


def small_corpus() -> list[EncodedDocument]:
    """Encode three small texts, whose summaries have no marks."""
    documents = [Document(str(n), "", [""], [text], summary) for n, (text, summary) in enumerate(SMALL_TEXTS)]
    return TextEncoder(SMALL_OPTIONS, SMALL_WORDS).encode(documents)


def same_weights(model: Windowed, **changes) -> Windowed:
    """Make a model with the weights of another one."""
    other = Windowed(replace(model.config, **changes)).double()
    other.load_state_dict(model.state_dict())
    return other


def check_batch(checks: Checks, objective: Callable[[EncodedDocument, Windowed], Tensor]) -> None:
    """Compare the page's loss and its gradients with the library's on a padded batch, with random weights; and
    the library with itself in cases that need no equation."""
    torch.manual_seed(1)
    sizes = {"window": SMALL_OPTIONS.window, "stride": SMALL_OPTIONS.stride}
    model = Windowed(WindowedConfig(len(SMALL_WORDS), embedding=5, hidden=3, **sizes)).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    vectors = np.random.default_rng(0).normal(size=(len(SMALL_WORDS), 4))
    documents = [SMALL_OPTIONS.mark(document, vectors) for document in small_corpus()]
    batch = make_batch(documents, len(SMALL_WORDS))
    naive, loss = sum(objective(d, model) for d in documents) / len(documents), model.loss(batch)["loss"]
    checks.close(naive, loss, "(5)-(13)", "loss of a padded batch")
    checks.gradients(gradients(model, naive), gradients(model, loss), "(5)-(13)")
    length = batch.source.shape[1]
    standard = same_weights(model, window=None, stride=None).loss(batch)["loss"]
    wide = same_weights(model, window=length, stride=length).loss(batch)["loss"]
    checks.close(standard, wide, "(9)", "one window: the standard model")
    at_once, _ = model.decode(batch.target_input, model.encode(batch))
    state, parts = model.encode(batch), []
    for token in batch.target_input.split(1, 1):
        output, state = model.decode(token, state)
        parts.append(output.copy.sum(2))
    checks.close(torch.cat(parts, 1), at_once.copy.sum(2), "(9)", "T calls equal one call")
