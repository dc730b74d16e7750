"""LexRank and Lead in use, as a trained run is (`lib.decoding.run.Run`)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from lib.data.documents import Document
from lib.decoding.readable import Readable, Reading
from lib.decoding.run import Summary, to_documents
from lib.evaluation.baselines import lexrank
from lib.evaluation.comparison import first_words

WORDS = 100  # of a summary, where no number is given


@dataclass(frozen=True)
class Baseline:
    """A system that chooses sentences, and has learned nothing.

    Args:
        name: "lexrank", the most central sentences, or "lead", the first ones.
        words: sentences are chosen until there are so many.
    """

    name: str
    words: int = WORDS

    # as a `Run` has them
    is_extractor: ClassVar[bool] = True
    unit: ClassVar[str] = "sentence"

    @property
    def title(self) -> str:
        return {"lexrank": "LexRank", "lead": "Lead"}[self.name]

    @property
    def caution(self) -> str:
        """Return a line on what the system does."""
        chosen = {"lexrank": "the most central sentences", "lead": "the first sentences"}
        return f"{self.title} chooses {chosen[self.name]} of a text; it has learned nothing."

    def documents(
        self, texts: Iterable[str | dict | Document], names: Sequence[str] = ()
    ) -> list[Document]:
        """Turn texts into documents, as `Run.documents` does."""
        return to_documents(texts, names)

    def summarize(self, documents: Sequence[Document], **_: Any) -> list[Summary]:
        """Choose sentences of each document."""
        return list(map(self._summary, documents))

    def _summary(self, document: Document) -> Summary:
        choose = lexrank if self.name == "lexrank" else first_words
        chosen = choose(document.sentences, self.words)
        rows = [_tokens(sentence) for sentence in document.sentences]
        tokens = [_tokens(sentence) for sentence in chosen]
        return Summary(
            sentences=chosen,
            score=0.0,
            tokens=tokens,
            source=rows,
            copied=[],
            readable=Readable(chosen, tokens),
            reading=_whole_reading(document, rows),
        )


def _whole_reading(document: Document, rows: list[list[str]]) -> Reading:
    """Return what was read of a document: all of it. rows: the words of each sentence."""
    words = sum(map(len, rows))
    pairs = zip(document.section_names, document.sections)
    row_sections = [name for name, section in pairs for _ in section]
    return Reading(
        rows=rows,
        unread=[],
        words=words,
        all_words=words,
        sections=[name for name in dict.fromkeys(row_sections) if name],
        unknown=0.0,
        row_sections=row_sections,
    )


def _tokens(sentence: str) -> list[str]:
    """Split a sentence into words, each with the space before it."""
    return [f" {word}" for word in sentence.split()]
