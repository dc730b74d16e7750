"""A trained run in use: the summaries that it writes, and where it looked."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lib.data.batch import Batch, EncodedDocument, make_batch, rows_of
from lib.data.documents import Document, to_document
from lib.data.pieces import Pieces
from lib.data.plain_text import parse_text
from lib.data.prepared import TextEncoder
from lib.data.record_keys import check_no_table, with_known_keys
from lib.data.texts import Text
from lib.data.tokenize import is_word
from lib.data.vocabulary import BOS, SPECIALS, UNK
from lib.decoding.config import DecodeConfig
from lib.decoding.field import Field, read_field
from lib.decoding.readable import Forms, Readable, Reading, readable, reading_of
from lib.decoding.search import (
    Hypothesis,
    choose_sentences,
    search_split,
    source_sentences,
)
from lib.models.summarizer import Extractor
from lib.system.devices import ALONE, Process, default_device
from lib.system.errors import InputError
from lib.system.metrics import hours_of, read_metrics

FAMILIAR = 2  # pieces of a word that the model knows, at most
_CAUTION = re.compile(r"\*\*It is not to be trusted.*")  # a line of a card
PER_DOCUMENT = ("heads", "importance", "windows")  # attention that is not of a word of the summary


@dataclass(frozen=True)
class Summary:
    """A summary that a run wrote, what it read, and where it looked. `str` gives its text for
    people.

    T words of the summary, N words of the source in L sentences (or paragraphs), as the model reads
    them.
    """

    sentences: list[str]  # in the model's own words, which scores are of
    score: float  # log P of the summary, normalised as the search ranks
    # words or pieces of each sentence, T in all, with the space before each
    tokens: list[list[str]]
    source: list[list[str]]  # of each sentence that was read, likewise
    # [T] whether a word was rather copied than generated; empty where that was not asked for
    copied: list[bool]
    # by name, where it was asked for
    attention: dict[str, np.ndarray] = field(default_factory=dict)
    readable: Readable = field(kw_only=True)  # the same for people: T tokens
    reading: Reading = field(kw_only=True)  # what was read of the text: N tokens in L rows

    @property
    def text(self) -> str:
        """The summary for people."""
        return " ".join(self.readable.sentences)

    def __str__(self) -> str:
        return self.text


# a text that is the name of a file
_FILE_NAME = re.compile(r"\S+\.(?:txt|md|markdown|pdf|docx?|html?|n?xml|jsonl?|csv|tsv|parquet|gz)")


def to_documents(
    texts: Iterable[str | Text | dict | Document],
    names: Sequence[str] = (),
    paragraphs: bool = False,
) -> list[Document]:
    """Turn texts into documents. A string is plain text.

    paragraphs: whether the sections of a string are its paragraphs.
    Raises InputError for a text without a sentence, naming it.
    """
    if isinstance(texts, str | dict):
        raise InputError("texts are given as a list: [text]")
    check_no_table(texts)
    documents = []
    for number, text in enumerate(texts):
        name = names[number] if number < len(names) else f"text {number + 1}"
        try:
            if isinstance(text, Path) or (isinstance(text, str) and _FILE_NAME.fullmatch(text)):
                raise InputError(
                    f"{str(text)!r} is the name of a file: give its text, "
                    "Path(...).read_text('utf-8'), or python -m lib.summarize RUN FILE"
                )
            if isinstance(text, str | Text):
                text = parse_text(text, name, paragraphs=paragraphs)
            elif isinstance(text, dict):
                text = to_document({"id": name, **with_known_keys(text)}, reference=False)
            elif not isinstance(text, Document):
                raise InputError(
                    f"a text is a string, a record or a document, not {type(text).__name__}"
                )
        except InputError as reason:
            raise InputError(f"{name}: {reason}") from None
        documents.append(text)
    return documents


@dataclass
class Run:
    """A trained model, all that it needs, and the folder where it is saved."""

    folder: Path
    config: dict  # config.json
    model: Any  # a `Summarizer`, or an `Extractor`
    encoder: TextEncoder
    decode: DecodeConfig = DecodeConfig()

    @property
    def vocabulary(self) -> Any:
        return self.encoder.vocabulary

    @property
    def options(self) -> Any:
        return self.encoder.options

    @cached_property
    def metrics(self) -> list[dict]:
        """Logged values: training losses (`split` "train") and validation losses ("val"), by
        step."""
        return read_metrics(self.folder)

    @cached_property
    def field(self) -> Field | None:
        return read_field(self.folder)

    @cached_property
    def caution(self) -> str:
        """Return a line on what the model was trained on, and on its errors, as the run's card has
        it."""
        card = self.folder / "README.md"
        found = _CAUTION.search(card.read_text(encoding="utf-8")) if card.exists() else None
        errors = "It is not to be trusted: what it states is often wrong."
        if found:
            errors = found[0].replace("**", "")
        corpus = Path(self.config["corpus"]).name
        texts = f"{self.field.texts} ({corpus})" if self.field else f"documents of {corpus}"
        count = self.config["documents"].get("train", 0)
        return f"The model was trained on {count:,} {texts}. {errors}"

    @property
    def step(self) -> int:
        return max((m["step"] for m in self.metrics), default=0)

    @property
    def updates(self) -> int:
        """The updates that its weights have had, those of the run that it began with among them."""
        return self.step + self.config.get("start", {}).get("updates", 0)

    @property
    def hours(self) -> float:
        return hours_of(self.metrics)

    @property
    def all_hours(self) -> float:
        """The hours of training, those of the run that it began with among them."""
        return self.hours + self.config.get("start", {}).get("hours", 0.0)

    def encode(self, documents: Iterable[Document]) -> list[EncodedDocument]:
        """Encode documents like those that the run was trained on. A model that chooses what is
        read computes on the same device."""
        with default_device(next(self.model.parameters()).device):
            return self.encoder.encode(documents)

    def documents(
        self, texts: Iterable[str | Text | dict | Document], names: Sequence[str] = ()
    ) -> list[Document]:
        """Turn texts, with or without references, into documents. A string is plain text.

        Raises InputError for a text without a sentence, and for the name of a file, naming it.
        """
        return to_documents(texts, names, self.options.of_paragraphs)

    def summarize(
        self,
        texts: Iterable[str | Text | dict | Document],
        attention: bool = False,
        batch_size: int = 16,
        names: Sequence[str] = (),
        progress: Callable[[list], Iterable] = iter,
        process: Process = ALONE,
    ) -> list[Summary]:
        """Summarize each text: strings, records with sections or paragraphs, or documents.

        attention: with what the model attended to, by name (`Summarizer.attention_weights`); of an
        `Extractor` there is none. The summary of a text that is shorter than the shortest summary
        is at most as long as the text. process: one of those that share the work, such as
        `processes` gives; each has all summaries. Raises InputError for a text that holds nothing
        to read, and for one that has no summary.
        """
        originals = self.documents(texts, names)
        documents = self.encode(originals)
        how: dict[str, Any] = {"batch_size": batch_size, "process": process, "progress": progress}
        if self.is_extractor:
            numbers = choose_sentences(self.model, documents, self.vocabulary, **how)
            summaries = []
            for text, document, chosen in zip(originals, documents, numbers):
                summaries.append(self._extract(text, document, chosen))
            return summaries
        hypotheses: dict[int, Hypothesis] = {}
        # Documents that are searched for by the same rule share their batches.
        rules = list(map(self.decode_for, documents))
        for rule in dict.fromkeys(rules):
            places = [place for place, own in enumerate(rules) if own == rule]
            some = [documents[i] for i in places]
            found = search_split(self.model, some, self.vocabulary, rule, **how)
            hypotheses |= zip(places, found)

        def summary(i: int) -> Summary:
            return self._summary(originals[i], documents[i], hypotheses[i], attention)

        return process.gather(map(summary, process.share(range(len(documents)))))

    def decode_for(self, document: EncodedDocument) -> DecodeConfig:
        """Return the run's search; for a text that is shorter than the shortest summary, one at
        most as long."""
        if (length := len(document.source)) >= self.decode.min_length:
            return self.decode
        return replace(self.decode, min_length=0, max_length=length)

    def _summary(
        self, text: Document, document: EncodedDocument, best: Hypothesis, attention: bool
    ) -> Summary:
        vocabulary = self.vocabulary
        places = [t for t, i in enumerate(best.ids) if i not in self.model.control_symbols]
        ids = [best.ids[t] for t in places]
        tokens, shown = [], []
        for group in vocabulary.by_sentence(ids, document.unknown):
            words = [ids[place] for place in group]
            tokens.append(vocabulary.tokens(words, document.unknown))
            shown += [places[place] for place in group]
        seen = self._attention(document, best.ids) if attention else {}
        for name in seen.keys() - PER_DOCUMENT:
            seen[name] = seen[name][shown]
        cut = len(best.ids) >= self.decode_for(document).max_length
        return Summary(
            sentences=vocabulary.sentences(ids, document.unknown),
            score=best.score,
            tokens=tokens,
            source=self._source(document),
            copied=(seen["generate"] < 0.5).tolist() if "generate" in seen else [],
            attention=seen,
            readable=readable(tokens, self._forms(text), self.in_pieces, cut),
            reading=self.reading(text, document),
        )

    @property
    def unit(self) -> str:
        """What a row of the source is: a sentence, a paragraph or a section."""
        return (
            "paragraph" if self.options.of_paragraphs else getattr(self.options, "unit", "sentence")
        )

    @property
    def is_extractor(self) -> bool:
        """Whether the model chooses whole sentences of the text."""
        return isinstance(self.model, Extractor)

    @property
    def in_pieces(self) -> bool:
        """Whether the model writes pieces of words."""
        return isinstance(self.vocabulary, Pieces)

    def _forms(self, text: Document) -> Forms:
        words, surfaces = self.options.words, self.options.surfaces
        pairs = ((words(s, text.tokenised), surfaces(s, text.tokenised)) for s in text.sentences)
        return Forms(pairs, self.options.lower)

    def readable(self, text: Document, sentences: Sequence[str]) -> list[str]:
        """Write a summary of a text, in sentences of the model's words, for people."""
        tokens = []
        for sentence in sentences:
            words = [f" {word}" for word in sentence.split()]
            tokens.append([sentence] if self.in_pieces else words)
        return readable(tokens, self._forms(text), self.in_pieces).sentences

    def reading(self, text: Document, document: EncodedDocument) -> Reading:
        """Tell what is read of a text. document: the same, in ids."""
        return reading_of(text, document, self._unknown(self._source(document)))

    def _unknown(self, rows: list[list[str]]) -> float:
        """Return the share of words that are not in the vocabulary, or take more than `FAMILIAR`
        pieces."""
        known = self.encoder.source_vocabulary or self.vocabulary
        words: list[list[str]] = []  # in tokens; a token of a model that reads words is one
        for token in filter(is_word, chain.from_iterable(rows)):
            if token.startswith(" ") or not words:
                words.append([])
            words[-1].append(token)
        if self.in_pieces:
            strange = [SPECIALS[UNK] in word or len(word) > FAMILIAR for word in words]
        else:
            strange = [word[0].strip() not in known for word in words]
        return sum(strange) / max(1, len(strange))

    def _source(self, document: EncodedDocument) -> list[list[str]]:
        """Return the tokens of each sentence of the source."""
        return [self.vocabulary.tokens(row.tolist(), document.unknown) for row in rows_of(document)]

    def _extract(self, text: Document, document: EncodedDocument, chosen: list[int]) -> Summary:
        """Return the chosen sentences as the source has them."""
        texts = source_sentences(document, self.vocabulary)
        source = self._source(document)
        reading = self.reading(text, document)
        rows = [reading.rows[i] for i in chosen]
        return Summary(
            sentences=[texts[i] for i in chosen],
            score=0.0,
            tokens=[source[i] for i in chosen],
            source=source,
            copied=[],
            readable=Readable(["".join(row).strip() for row in rows], rows),
            reading=reading,
        )

    @torch.no_grad()
    def _attention(self, document: EncodedDocument, ids: list[int]) -> dict[str, np.ndarray]:
        """Return the weights while the model reads its own summary: where it looked before it wrote
        each symbol, and before the end of an empty one."""
        device = next(self.model.parameters()).device
        batch: Batch = make_batch([document], len(self.vocabulary)).to(device)
        tokens = torch.tensor([[BOS, *ids[:-1]]], device=device)
        seen = self.model.attention_weights(tokens, self.model.encode(batch))
        return {name: value[0].float().cpu().numpy() for name, value in seen.items()}
