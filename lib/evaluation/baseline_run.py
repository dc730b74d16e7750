"""LexRank and Lead in use, as a trained run is (`lib.decoding.run.Run`)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from lib.data.documents import Document
from lib.decoding.readable import Readable, reading_of
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
    field: ClassVar[None] = None
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
            reading=reading_of(document, rows, lambda text: (_tokens(text), _tokens(text))),
        )


def _tokens(sentence: str) -> list[str]:
    """Split a sentence into words, each with the space before it."""
    return [f" {word}" for word in sentence.split()]
