"""A trained run in use: the summaries that it writes, and where it looked."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lib.data.batch import Batch, EncodedDocument, make_batch, rows_of
from lib.data.documents import Document, to_document
from lib.data.plain_text import parse_text
from lib.data.prepared import TextEncoder
from lib.data.vocabulary import BOS
from lib.models.summarizer import Extractor
from lib.runs.folder import read_metrics
from lib.runs.search import DecodeConfig, Hypothesis, batches, choices, source_sentences, written
from lib.system.errors import InputError


@dataclass(frozen=True)
class Summary:
    """A summary that a run wrote, and where it looked. `str` gives its text.

    T words of the summary, N words of the source in L sentences (or paragraphs), as the model reads them.
    """

    sentences: list[str]
    score: float  # log P of the summary, normalised as the search ranks
    tokens: list[list[str]]  # words or pieces of each sentence, T in all, with the space that stands before each
    source: list[list[str]]  # of each sentence that was read, likewise
    copied: list[bool]  # [T] whether a word was rather copied than generated; empty where that was not asked for
    attention: dict[str, np.ndarray] = field(default_factory=dict)  # by name, where it was asked for

    def __str__(self) -> str:
        return " ".join(self.sentences)


@dataclass
class Run:
    """A trained model, all that it needs, and the folder where it is saved."""

    folder: Path
    config: dict  # config.json
    model: Any  # a `Summarizer`, or an `Extractor`
    encoder: TextEncoder
    decode: DecodeConfig = DecodeConfig()

    @property
    def vocabulary(self):
        return self.encoder.vocabulary

    @property
    def options(self):
        return self.encoder.options

    @cached_property
    def metrics(self) -> list[dict]:
        """Logged values: training losses (`split` "train") and validation losses ("val"), by step."""
        return read_metrics(self.folder)

    @property
    def step(self) -> int:
        return max((m["step"] for m in self.metrics), default=0)

    @property
    def hours(self) -> float:
        """Hours of training, at the median time of a step: pauses do not count."""
        logged = [m for m in self.metrics if "seconds" in m]
        paces = [(b["seconds"] - a["seconds"]) / (b["step"] - a["step"]) for a, b in pairwise(logged)]
        paces = [pace for pace in paces if pace > 0]  # where it was resumed the clock begins again
        return self.step * float(np.median(paces)) / 3600 if paces else 0.0

    def encode(self, documents: Iterable[Document]) -> list[EncodedDocument]:
        """Documents in ids, as those that the run was trained on."""
        return self.encoder.encode(documents)

    def documents(self, texts: Iterable[str | dict | Document], names: Sequence[str] = ()) -> list[Document]:
        """Texts, with or without references, as documents. A string may be plain text or Markdown.

        Raises ValueError for a text without a sentence, naming it.
        """
        if isinstance(texts, str | dict):
            raise InputError("texts are given as a list: [text]")
        documents = []
        for number, text in enumerate(texts):
            name = names[number] if number < len(names) else f"text {number + 1}"
            try:
                documents.append(self._document(text, name))
            except InputError as reason:
                raise InputError(f"{name}: {reason}") from None
        return documents

    def _document(self, text: str | dict | Document, name: str) -> Document:
        if isinstance(text, Document):
            return text
        if isinstance(text, str):
            return parse_text(text, name, paragraphs=self.options.of_paragraphs)
        if not isinstance(text, dict):
            raise InputError(f"a text is a string, a record or a document, not {type(text).__name__}")
        return to_document({"id": name, **text}, reference=False)

    def summarize(
        self, texts: Iterable[str | dict | Document], attention: bool = False, batch_size: int = 16, names=(),
        progress: Callable[[list], Iterable] = iter,
    ) -> list[Summary]:  # fmt: skip
        """A summary of each text: strings, records with sections or paragraphs, or documents.

        attention: with what the model attended to, by name (`Summarizer.attention_weights`); of an `Extractor`
        there is none.
        Raises ValueError for a text that holds nothing to read.
        """
        documents = self.encode(self.documents(texts, names))
        shares = progress(list(batches(self.model, documents, batch_size, self.vocabulary)))
        if isinstance(self.model, Extractor):
            return [self._extract(*pair) for pair in zip(documents, choices(self.model, shares))]
        hypotheses = written(self.model, shares, self.decode)
        return [self._summary(document, best, attention) for document, best in zip(documents, hypotheses)]

    def _summary(self, document: EncodedDocument, best: Hypothesis, attention: bool) -> Summary:
        ids = best.ids
        seen = self._attention(document, ids) if attention else {}
        places = [t for t, i in enumerate(ids) if i not in self.model.control_symbols]
        words, vocabulary = [ids[t] for t in places], self.vocabulary
        groups = vocabulary.by_sentence(words, document.unknown)
        word_places = [places[place] for group in groups for place in group]
        seen = {name: value if name in PER_DOCUMENT else value[word_places] for name, value in seen.items()}
        return Summary(
            sentences=vocabulary.sentences(words, document.unknown),
            score=best.score,
            tokens=[vocabulary.tokens([words[place] for place in group], document.unknown) for group in groups],
            source=self._source(document),
            copied=(seen["generate"] < 0.5).tolist() if "generate" in seen else [],
            attention=seen,
        )

    def _source(self, document: EncodedDocument) -> list[list[str]]:
        """Words of each sentence of the source."""
        return [self.vocabulary.tokens(row.tolist(), document.unknown) for row in rows_of(document)]

    def _extract(self, document: EncodedDocument, chosen: list[int]) -> Summary:
        """Sentences as they stand in the source; there is no other summary that they could be."""
        texts, source = source_sentences(document, self.vocabulary), self._source(document)
        return Summary([texts[i] for i in chosen], 0.0, [source[i] for i in chosen], source, [])

    @torch.no_grad()
    def _attention(self, document: EncodedDocument, ids: list[int]) -> dict[str, np.ndarray]:
        """Weights while the model reads its own summary: what it looked at before it wrote each symbol, and before
        the end of one that is empty."""
        device = next(self.model.parameters()).device
        batch: Batch = make_batch([document], len(self.vocabulary)).to(device)
        tokens = torch.tensor([[BOS, *ids[:-1]]], device=device)
        seen = self.model.attention_weights(tokens, self.model.encode(batch))
        return {name: value[0].float().cpu().numpy() for name, value in seen.items()}


PER_DOCUMENT = ("heads", "importance", "windows")  # attention that is not of a word of the summary
