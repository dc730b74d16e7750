"""The papers' presets with their corpora, at their real sizes: the model, documents of such
lengths, and the training of one update."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lib.data.batch import EncodedDocument
from lib.data.prepared import PreparedCorpus, TextEncoder
from lib.data.split import Split
from lib.data.vocabulary import SLIDE, SPECIALS, Vocabulary
from lib.papers import PAPERS
from lib.papers.paper import Setup
from lib.training import loop
from lib.training.config import TrainConfig


def documents(
    count: int, source: int, target: int, vocab_size: int, sentence: int = 25
) -> list[EncodedDocument]:
    """Make random documents of one length, in which every 50th word is unknown."""
    random = np.random.default_rng(0)
    made = []
    for number in range(count):
        words = random.integers(4, vocab_size, source, dtype=np.int32)
        unknown = source // 50
        words[::50][:unknown] = vocab_size + np.arange(unknown)
        summary = random.choice(words, target).astype(np.int32)
        lengths = np.full(source // sentence, sentence, dtype=np.int32)
        lengths[-1] += source - lengths.sum()
        made.append(
            EncodedDocument(
                str(number), words, lengths, summary, [f"u{i}" for i in range(unknown)], []
            )
        )
    return made


def clusters(count: int, paragraphs: int, target: int, vocab_size: int) -> list[EncodedDocument]:
    """Make random clusters whose paragraphs have 20 to 120 pieces: about 1,600 of 24 paragraphs, as
    the paper's."""
    random, made = np.random.default_rng(0), []
    for number in range(count):
        lengths = random.integers(20, 121, paragraphs)
        words, summary = (
            random.integers(7, vocab_size, n, dtype=np.int32) for n in (lengths.sum(), target)
        )
        made.append(EncodedDocument.of(str(number), words, lengths, summary))
    return made


@dataclass(frozen=True)
class Lengths:
    """Of a corpus: training documents, and mean words of a text and of a summary."""

    training: int
    source: float
    summary: float
    known: str  # the source of each number, or "ours" for an assumption


_HUB = "training documents: recalled from the Hub's splits, not looked up"
CORPORA = {
    "arxiv": Lengths(203_037, 4938, 220, f"lengths: Mem2Mem's paper; {_HUB}"),
    "pubmed": Lengths(119_924, 3016, 203, f"lengths: Mem2Mem's paper; {_HUB}"),
    "newsroom:abstractive": Lengths(
        331_680, 751, 30, "lengths: Mem2Mem's paper; ours: a third of 995,041 articles"
    ),
    "cnn_dailymail": Lengths(287_113, 781, 56, f"lengths: Mem2Mem's paper; {_HUB}"),
    "wikihow": Lengths(
        168_128, 580, 62, "ours: recalled from Koupaee and Wang 2018, not looked up"
    ),
    "gigaword": Lengths(3_800_000, 31.3, 8.3, "Read-Again's paper"),
    "wikisum": Lengths(
        1_579_360, 25 * 70.1, 139.4, "the transformer's paper; ours: a title as long as a paragraph"
    ),
}


@dataclass(frozen=True)
class Case:
    """A preset on one corpus or several that it reads alike."""

    paper: str
    preset: str
    corpora: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.paper} {self.preset} {self.corpora[0].partition(':')[0]}"

    @property
    def setup(self) -> Setup:
        return PAPERS[self.paper].setup(self.preset)

    @property
    def source(self) -> int:
        """Words of a text as the preset reads it: the corpus's mean, cut."""
        options, mean = self.setup.options, CORPORA[self.corpora[0]].source
        limits = [getattr(options, name, None) for name in ("source_tokens", "section_tokens")]
        cut = limits[0] or (limits[1] and limits[1] * options.sections) or mean
        return round(min(cut, mean))

    @property
    def target(self) -> int:
        """Words of the longest summary of a batch, which says how many steps it takes: twice the
        mean, cut."""
        return round(min(self.setup.options.summary_tokens, 2 * CORPORA[self.corpora[0]].summary))

    @property
    def batch(self) -> int:
        """Documents of an update."""
        training = self.setup.train
        tokens = training.batch_tokens
        return min(training.batch_size, tokens // self._longest if tokens else training.batch_size)

    @property
    def _longest(self) -> int:
        return max(len(d.source) for d in clusters(64, 25, 1, self.setup.options.vocab_size))

    def updates(self, corpus: str) -> int:
        """Updates of the whole training."""
        training = self.setup.train
        return training.steps or training.epochs * (CORPORA[corpus].training // training.batch_size)

    def documents(self, count: int) -> list[EncodedDocument]:
        """Random texts of the preset's sizes."""
        options, size = self.setup.options, self.setup.options.vocab_size
        if options.of_paragraphs:
            return clusters(count, 25, self.target, size)
        made = documents(count, self.source, self.target, size, sentence=min(25, self.source))
        if hasattr(options, "source_vocab_size"):
            random = np.random.default_rng(1)
            ids = [
                random.integers(4, options.source_vocab_size, self.source).astype(np.int32)
                for _ in made
            ]
            return [replace(d, source_ids=i) for d, i in zip(made, ids)]
        return [_sliding(d, options) for d in made] if getattr(options, "window", None) else made

    def training(self, device: torch.device, folder: Path, count: int, **train) -> loop._Loop:
        """The training of a model by updates of `count` documents each, on a device; `train`:
        fields that replace the preset's. The model is not moved there yet."""
        setup = self.setup
        config = replace(setup.train, **{"batch_size": count, "batch_tokens": None, **train})
        return training_of(setup, self.documents(count), config, device, folder)


def _sliding(document: EncodedDocument, options: Any) -> EncodedDocument:
    """With [SLIDE] in the summary, as often as the text has further windows."""
    windows = 1 + max(0, -(-(len(document.source) - options.window) // options.stride))
    target = document.target.copy()
    target[np.linspace(0, len(target), windows + 1, dtype=int)[1:-1]] = SLIDE
    return replace(document, target=target)


def training_of(
    setup: Setup,
    documents: Sequence[EncodedDocument],
    config: TrainConfig,
    device: torch.device,
    folder: Path,
) -> loop._Loop:
    """The training of a setup's model on some documents, on a device. Its model is not moved there
    yet."""
    torch.manual_seed(0)
    model = setup.kind(setup.model_config(vocab_size=setup.options.vocab_size))
    corpus = corpus_of(setup.options, documents, setup.options.vocab_size)
    return loop._Loop(setup.recipe, model, corpus, config, folder, device=device)


def corpus_of(options: Any, train: Sequence[EncodedDocument], vocab_size: int) -> PreparedCorpus:
    """Documents as a corpus to train on."""
    vocabulary = Vocabulary([f"w{i}" for i in range(vocab_size - len(SPECIALS))])
    splits = {"train": Split.of(train), "val": Split.of([]), "test": Split.of([])}
    return PreparedCorpus("random", TextEncoder(options, vocabulary), splits)


CASES = (
    Case("mem2mem", "paper", ("arxiv", "pubmed")),
    Case("mem2mem", "paper", ("newsroom:abstractive",)),
    *(Case("windowed", row, ("cnn_dailymail",)) for row in ("CD_I", "CD_II")),
    *(Case("windowed", f"WIKI_{row}", ("wikihow",)) for row in ("I", "II", "III", "IV", "V")),
    Case("read_again", "paper", ("gigaword",)),
    *(Case("hierarchical_transformer", preset, ("wikisum",)) for preset in ("paper", "code")),
)
# of each paper the one whose steps are measured
PAPER_CASES = {case.paper: case for case in reversed(CASES)} | {"windowed": CASES[3]}
