"""Helpers of the windowed page: a model of facts step by step, and the windows that a run's words
come from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from companion.claims.verdicts import Setting, effect_of
from companion.pages.checks import CheckError, Checks, Line, gradients
from companion.pages.figures import interval_bars, lines
from companion.pages.frames import Frames
from companion.pages.measured import task_results
from companion.pages.shown import PageFigures, ShownFigure, clip
from companion.pages.steps import CELL, GREY, ORANGE, PAPER, WHITE, decoding_frames, pointer_steps
from companion.results.kept import stored_numbers
from companion.studies import marking, slides
from companion.studies.windows import SentenceLists, embeddings_of, window_counts
from companion.tasks.synthetic import FACT
from companion.tasks.windows import STRIDE, VOCABULARY, WINDOW
from lib.data.batch import EncodedDocument, make_batch
from lib.data.documents import Document
from lib.data.prepared import TextEncoder
from lib.data.vocabulary import BOS, EOS, SLIDE, SLIDE_SYMBOL, Vocabulary
from lib.decoding.config import DECODINGS, DecodeConfig
from lib.decoding.run import Run
from lib.decoding.search import beam_search
from lib.evaluation.bootstrap import Interval, interval
from lib.models.windowed import Windowed, WindowedConfig, count_windows, window_of
from lib.papers.windowed.windows import ArticleOptions, windows_of

NAMES = {FACT: "FACT", SLIDE: "→", BOS: "[BOS]", EOS: "[EOS]"}
WORDS = [NAMES.get(i, str(i)) for i in range(VOCABULARY)]  # of the task
# on the page
RULES = {marking.ALONE: "most similar", marking.FORWARD: "never back", marking.PATH: "best path"}


@torch.no_grad()
def fact_frames(
    model: Windowed, document: EncodedDocument, ids: Sequence[int] | None = None
) -> Frames:
    """Show what a model of facts does before it writes each of `ids`, or of what a beam of two
    finds."""
    batch = make_batch([document], VOCABULARY)
    if ids is None:
        ids = beam_search(model, batch, DecodeConfig(beam=2, max_length=18))[0][0].ids
    result, _ = model.decode(torch.tensor([[BOS, *ids]]), model.encode(batch))
    steps = pointer_steps(model.pointer, result, [*ids, EOS], WORDS)
    views = [(window * STRIDE, window * STRIDE + WINDOW) for window in result.windows[0].tolist()]
    text = [[WORDS[i] for i in document.source]]
    return decoding_frames(text, [replace(step, view=view) for step, view in zip(steps, views)])


@torch.no_grad()
def largest_weights(
    model: Windowed, document: EncodedDocument, vocab_size: int, config: DecodeConfig
) -> dict:
    """Find the places of the largest weights, and the windows, while a summary is written: for a
    figure."""
    batch = make_batch([document], vocab_size)
    ((best, *_),) = beam_search(model, batch, config)
    result, _ = model.decode(torch.tensor([[BOS, *best.ids]]), model.encode(batch))
    weights, where = result.copy[0].max(-1)
    found = {"places": result.places[0][where], "weights": weights, "windows": result.windows[0]}
    return {
        **found,
        "words": len(document.source),
        "window": model.config.window,
        "stride": model.config.stride,
    }


@dataclass(frozen=True)
class Marked:
    """A reference summary as it is marked: how each of n windows begins, and what is linked to
    it."""

    windows: Sequence[tuple[str, str, Sequence[str]]]  # name, first words, sentences

    def _repr_html_(self) -> str:
        rows = []
        for name, begins, sentences in self.windows:
            left = (
                f'<b>{escape(name)}</b><br><span style="color: {GREY}">{escape(begins)} ...</span>'
            )
            right = "<br>".join(map(escape, sentences)) or "&nbsp;"
            arrow = f'<b style="color: {ORANGE}">→</b>' if rows else ""
            cells = "".join(
                f'<td style="{CELL}; vertical-align: top">{cell}</td>'
                for cell in (left, arrow, right)
            )
            rows.append(f'<tr style="{WHITE}; border-top: 1px solid #ddd">{cells}</tr>')
        return f'<table style="{PAPER}">{"".join(rows)}</table>'

    def __repr__(self) -> str:
        return "\n→\n".join(
            f"{name}: {begins} ... | {' | '.join(linked)}" for name, begins, linked in self.windows
        )


def linked_windows(
    run: Run, document: EncodedDocument
) -> tuple[dict[str, np.ndarray], dict[int, int]]:
    """Find the window of each reference sentence by each rule of `companion.studies.marking`, with
    the run's embeddings; and that of the known source of those that have one."""
    sentences = SentenceLists.of(document, run.options.lower)
    windows = windows_of(document, run.model.size, run.model.stride)
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
        first, *linked = (
            run.vocabulary.text(ids, document.unknown) for ids in (here[:words], *linked)
        )
        name = f"window {window + 1}: words {begin + 1:,} to {begin + len(here):,}"
        rows.append((name, first, [f"{text} ..." for text in linked]))
    return Marked(rows)


SYSTEMS = {
    "greedy search": f"{slides.PAPERS}, greedy",
    "drawn": slides.DRAWN,
    "beam of 4": slides.PAPERS,
    "decided first": slides.MEDIAN,
    "decided first, greedy": f"{slides.MEDIAN}, greedy",
}
REFERENCES = "references as marked"


class Windows:
    """The windows that a run's words come from: stored results of the shipped run on its own
    sample, or measured here.

    words: of each system, how many words each document has from the first window, from those
    between and from the last. slide, word: P of → and of the most probable word before the first
    word of each document. begins: how greedy search begins the first summary.
    """

    def __init__(self, run: Run, documents: Sequence[Document], figures: PageFigures, stored: bool):
        self.run, self.figures, self.encoded = run, figures, run.encode(documents)
        plain = replace(run, decode=replace(run.decode, block_ngrams=0))
        if stored:
            numbers = stored_numbers("windowed_slides_pmc")
            words = {
                name: numbers[f"{system}, plain beam search"]["by window"]
                for name, system in SYSTEMS.items()
            }
            self.links, self.example = (
                stored_numbers("windowed_links")["counts"],
                numbers["example"],
            )
            first = numbers["first step"]
        else:
            words = {}
            for name, system in SYSTEMS.items():
                pairs = zip(
                    slides.write_with(plain, system, self.encoded), window_counts(run, self.encoded)
                )
                words[name] = [slides.words_by_window(*pair) for pair in pairs]
            # three windows at least, unless no text has as many
            self.links = marking.count(run, documents) or marking.count(run, documents, 1)
            self.example = slides.example(run, self.encoded[0])
            first = slides.first_step(run, self.encoded)
        references = [
            [n - a - b, b, a] for *_, a, b, n in self.links[f"embeddings, {marking.FORWARD}"]
        ]
        self.words = {REFERENCES: references, **words}
        self.slide, self.word = np.array(first["slide"]), np.array(first["word"])
        self.link_shares = marking.shares(self.links)
        (ids,) = slides.write_with(plain, SYSTEMS["greedy search"], self.encoded[:1])
        self.begins = run.vocabulary.text(ids[:14], self.encoded[0].unknown).replace(
            SLIDE_SYMBOL, "→"
        )

    def share(self, name: str, window: int = -1) -> Interval:
        """Compute the share of the words from a window (0: first, 1: between, -1: last), with its
        interval."""
        words = np.array(self.words[name], dtype=float)
        return interval(100 * words[:, window], weights=words.sum(1))

    def text(self, name: str, window: int = -1) -> str:
        found = self.share(name, window)
        return f"{found.mean:.0f}% [{found.low:.0f}, {found.high:.0f}]"

    def bars(self, *names: str, saved_as: str = "windowed_words") -> ShownFigure:
        """Draw the shares of these systems."""
        parts = {"first window": 0, "windows between": 1, "last window": 2}
        series = {
            label: {name: self.share(name, part).drawn for name in names}
            for label, part in parts.items()
        }
        caption = (
            "Shares of the words by the window that they were written from, with 95% intervals "
            "over articles."
        )
        return self.figures.show(
            interval_bars, caption, saved_as, series=series, xlabel="% of the words"
        )

    def probabilities(self, steps: int = 110) -> ShownFigure:
        """Draw P of → and of the most probable word at the first steps of one summary that decides
        first."""
        found = self.example[slides.MEDIAN]
        panel = {
            "series": {
                name: [list(range(1, 1 + len(found[key][:steps]))), found[key][:steps]]
                for name, key in (("→", "slide"), ("most probable word", "word"))
            },
            "styles": {"→": "C3-", "most probable word": "C0-"},
            "xlabel": "step",
            "ylabel": "probability",
            "marks": [n + 1 for n in found["slides"] if n < steps],
            "zero": True,
            "legend": {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 2},
        }
        caption = (
            "P of → and of the most probable word at each step of one summary. The search of the "
            "next section wrote"
            " it, and slid at the dotted lines. Greedy search slides where the line of → is the "
            "upper one."
        )
        return self.figures.show(lines, caption, "windowed_probability", panels=[panel], width=8)

    def marks(self) -> tuple[str, str, list[pd.DataFrame]]:
        """Tabulate the marks of the abstract that the rule "never goes back" changes most, and the
        shares of right windows. Returns also how many sentences there are, and how many of the
        abstract's the rule changes."""
        found = [linked_windows(self.run, document) for document in self.encoded]
        moved = [int((of[marking.FORWARD] != of[marking.ALONE]).sum()) for of, _ in found]
        most = int(np.argmax(moved))
        (rules, sources), document = found[most], self.encoded[most]
        texts = SentenceLists.of(document, self.run.options.lower).reference
        names = [clip(self.run.vocabulary.text(ids.tolist(), document.unknown), 8) for ids in texts]
        known = [f"{sources[i] + 1}" if i in sources else "" for i in range(len(names))]
        example = pd.DataFrame(
            {RULES[rule]: rules[rule] + 1 for rule in RULES} | {"source": known}, index=names
        )
        rows = {
            f"{kind}, {RULES[rule]}": {
                "right window, %": row["right"],
                "words in the last window, %": row["last"],
            }
            for kind in ("embeddings", "random")
            for rule in RULES
            for row in [self.link_shares[f"{kind}, {rule}"]]
        }
        count = sum(len(of_document) for _, of_document in found)
        return (
            f"{count}",
            f"{moved[most]} of {len(names)}",
            [example, pd.DataFrame.from_dict(rows, orient="index")],
        )

    def right(self, kind: str, rule: str, measure: str = "right") -> str:
        """Format a share of `companion.studies.marking` without its interval."""
        return f"{float(self.link_shares[f'{kind}, {rule}'][measure].split()[0]):.0f}%"


def facts_right(mode: str, windows: int) -> str:
    """Write the share of facts that models of the toy task write in their place, mean of the
    seeds."""
    return f"{100 * np.mean(task_results('windows')[mode][f'facts of {windows}']):.0f}%"


def points(source: str, name: str = "", *, pair: tuple[str, str] | None = None) -> str:
    """Write a stored difference, by its name or of a pair of rows, with its interval."""
    found = effect_of(Setting("", source, *(pair or ()), effect=name))
    return f"{found.mean:+.2f} [{found.low:+.2f}, {found.high:+.2f}]"


def gains_of_median() -> list[str]:
    """Write the differences in R-1 that deciding first makes: on the run's own corpus, with plain
    beam search and with trigram blocking, and in two rows of the paper's table."""
    found = [
        points("windowed_slides", f"by the median - the paper's search, {decoding}")
        for decoding in DECODINGS
    ]
    for row in ("CD_II", "WIKI_IV"):
        pair = f"{row}, plain beam search", f"{row}, slides decided first, plain beam search"
        found.append(points("windowed_table_sumpubmed", pair=pair))
    return found


SMALL_OPTIONS = ArticleOptions(
    source_tokens=40, summary_tokens=20, vocab_size=19, window=8, stride=6
)
SMALL_WORDS = Vocabulary(
    [
        SLIDE_SYMBOL,
        *["the", "cat", "ran", "sat", "saw", "a", "it", "was", "not", "and", "fast", ".", ",", "!"],
    ]
)
SMALL_TEXTS = [
    (
        ["The cat saw a zebra.", "It ran!", "The cat was fast, and the zebra was not.", "It sat."],
        ["The zebra saw the cat.", "The cat was fast."],
    ),
    (["A quokka sat."], ["A quokka."]),
    (
        ["The cat sat and sat.", "The zebra ran.", "The quokka saw it.", "It was the cat, not it."],
        ["The okapi sat.", "The quokka saw the cat.", "It was not it."],
    ),
]


def small_corpus() -> list[EncodedDocument]:
    """Encode three small texts, whose summaries have no marks."""
    documents = [
        Document(str(n), "", [""], [text], summary) for n, (text, summary) in enumerate(SMALL_TEXTS)
    ]
    return TextEncoder(SMALL_OPTIONS, SMALL_WORDS).encode(documents)


def same_weights(model: Windowed, **changes) -> Windowed:
    """Make a model with the weights of another one."""
    other = Windowed(replace(model.config, **changes)).double()
    other.load_state_dict(model.state_dict())
    return other


def check_windows(checks: Checks, count: Callable, words: int) -> Line:
    """Compare (1), the function of the page, with the library; show it for the toy text of so many
    words."""
    sizes = np.array([1, 8, 9, 14, 15, 40])
    naive = torch.tensor([count(size, 8, 6) for size in sizes.tolist()])
    checks.close(naive, torch.from_numpy(count_windows(sizes, 8, 6)), "(1)", "number of windows")
    return checks.line(
        f"The toy text: n = 1 + ⌈({words} − {WINDOW}) / {STRIDE}⌉ = {count(words, WINDOW, STRIDE)}."
        f" 1,160 words in windows of 400 that slide by 380: {count(1160, 400, 380)}."
    )


def check_slides(decide: Callable, example: dict) -> str:
    """Check that the page's decision slides at the steps at which the library's `median` did; show
    some steps."""
    stored, slid, stayed = example[slides.MEDIAN], [], 1.0
    for step, p in enumerate(stored["slide"]):
        now, stayed = decide(p, stayed)
        slid += [step] * bool(now)
    if slid != stored["slides"]:
        raise CheckError(f"the page slides at steps {slid}, lib at {stored['slides']}")
    texts = []
    for step in (n for n in range(slid[0] + 1 if slid else 0) if stored["slide"][n] > 0.05):
        product, p = stored["product"][step], stored["slide"][step]
        texts.append(f"step {step + 1}: {product:.2f} · (1 − {p:.2f}) = {product * (1 - p):.2f}")
    seen = (
        "The summary of Figure 3, up to its first slide, where → has more than 0.05: "
        f"{'; '.join(texts)}."
    )
    return f"{seen} All slides are those of `lib`."


def check_marks(
    checks: Checks, total: Callable, cosine: Callable, window: Callable, mark: Callable
) -> Line:
    """Compare (2) to (4), the functions of the page, with the library on a small text; show some of
    the numbers."""
    document, size, step = small_corpus()[2], SMALL_OPTIONS.window or 0, SMALL_OPTIONS.stride or 0
    parts = SentenceLists.of(document, lower=True)
    for vectors in (
        np.random.default_rng(0).normal(size=(len(SMALL_WORDS), 4)),
        np.eye(len(SMALL_WORDS)),
    ):
        sums = [[total(ids, vectors) for ids in part] for part in (parts.reference, parts.source)]
        similar = np.array([[cosine(a, b) for b in sums[1]] for a in sums[0]])
        checks.close(
            torch.tensor(similar), torch.tensor(parts.similarities(vectors)), "(2), (3)", "cosines"
        )
    ends = np.cumsum(document.sentence_lengths)
    starts, count = ends - document.sentence_lengths, len(document.source)
    windows = [window(a + 1, b, count, size, step) for a, b in zip(starts.tolist(), ends.tolist())]
    of_lib = [
        window_of(a, b, count, size, step) + 1 for a, b in zip(starts.tolist(), ends.tolist())
    ]
    checks.close(torch.tensor(windows), torch.tensor(of_lib), "(4)", "windows of the sentences")
    marked = mark(parts.reference, [windows[row.argmax()] for row in similar])
    of_lib = SMALL_OPTIONS.mark(document, vectors).target[:-1].tolist()
    checks.close(torch.tensor(marked), torch.tensor(of_lib), "(4)", "the marked summary")
    a, b = sums[0][1], sums[1][2]
    summary = SMALL_WORDS.text(marked, document.unknown).replace(SLIDE_SYMBOL, "→")
    return checks.line(
        f"Second sentence of the summary, third of the text: {a @ b:.0f} / √({a @ a:.0f} · "
        f"{b @ b:.0f}) ="
        f" {similar[1, 2]:.2f}. All four: {', '.join(f'{value:.2f}' for value in similar[1])}. The "
        "third sentence is"
        f" words {starts[2] + 1} to {ends[2]}: window 2 (7 to 14) leaves out 1, window 3 (13 to "
        "20) leaves out 2."
        f" Marked: {summary}"
    )


def check_batch(checks: Checks, objective: Callable[[EncodedDocument, Windowed], Tensor]) -> None:
    """Compare the page's loss and its gradients with the library's on a padded batch, with random
    weights."""
    torch.manual_seed(1)
    sizes: dict[str, Any] = {"window": SMALL_OPTIONS.window, "stride": SMALL_OPTIONS.stride}
    model = Windowed(WindowedConfig(len(SMALL_WORDS), embedding=5, hidden=3, **sizes)).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    vectors = np.random.default_rng(0).normal(size=(len(SMALL_WORDS), 4))
    documents = [SMALL_OPTIONS.mark(document, vectors) for document in small_corpus()]
    batch = make_batch(documents, len(SMALL_WORDS))
    naive = torch.stack([objective(d, model) for d in documents]).mean()
    loss = model.loss(batch)["loss"]
    checks.close(naive, loss, "(5)-(13)", "loss of a padded batch")
    checks.gradients(gradients(model, naive), gradients(model, loss), "(5)-(13)")
