"""A paper's own preprocessing, as named steps from a `Document` to words.

`cohan` is what Mem2Mem says of its data: "generally" the steps of Cohan et al. 2018 with 4 sections of 500 tokens and
200 summary tokens (facts of the paper's appendix A.2), lower-cased.
"""

from dataclasses import dataclass

from lib.data.documents import Document
from lib.data.text import tokenize


@dataclass(frozen=True)
class CohanOptions:
    """Sizes of Cohan et al.'s preprocessing as Mem2Mem uses it."""

    sections: int = 4  # introduction, the next ones, conclusion
    section_tokens: int = 500
    summary_tokens: int = 200  # [EOS] counted in
    vocab_size: int = 50_000  # special symbols counted in
    lower: bool = True

    def __post_init__(self):
        for name in ("sections", "section_tokens", "summary_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.vocab_size < 5:
            raise ValueError(f"vocab_size must hold the four special symbols and a word, not {self.vocab_size}")


@dataclass(frozen=True)
class Example:
    """A document in words: `sentences` of the kept source, and the summary's words."""

    id: str
    sentences: list[list[str]]
    summary: list[str]
    reference: list[str]  # the summary's sentences as they were


def cohan(document: Document, options: CohanOptions) -> Example:
    """Keep introduction, middle sections and conclusion, cut each to its first tokens, and lower-case.

    A document without sections keeps its first `sections * section_tokens` tokens. Nothing is discarded: Cohan et
    al.'s reader leaves out documents with odd lengths, from the test set too.
    """
    if len(document.sections) == 1:
        kept, budget = document.sections, options.sections * options.section_tokens
    else:
        chosen = choose_sections(document.section_names, options.sections)
        kept, budget = [document.sections[i] for i in chosen], options.section_tokens
    sentences = [words for section in kept for words in _cut(section, budget, options.lower)]
    summary = [w for s in document.summary for w in _words(s, options.lower)]
    return Example(document.id, sentences, summary[: options.summary_tokens], document.summary)


def choose_sections(names: list[str], count: int) -> list[int]:
    """Which sections are kept, in order (Cohan et al. 2018).

    From the first whose name has "intro" to the last whose name has "conclu" (where there are any); of those the
    first, the ones after it, and the last: `count` in all.
    """
    lowered = [name.lower() for name in names]
    first = next((i for i, name in enumerate(lowered) if "intro" in name), 0)
    last = max((i for i, name in enumerate(lowered) if "conclu" in name), default=len(names) - 1)
    span = list(range(first, last + 1)) if first <= last else list(range(len(names)))
    if len(span) <= count:
        return span
    return [*span[: count - 1], span[-1]] if count > 1 else span[:1]


def _words(sentence: str, lower: bool) -> list[str]:
    return tokenize(sentence.lower() if lower else sentence)


def _cut(section: list[str], budget: int, lower: bool) -> list[list[str]]:
    """Sentences in words until `budget` is used up; the last one may be cut."""
    kept = []
    for sentence in section:
        words = _words(sentence, lower)[:budget]
        if words:
            kept.append(words)
            budget -= len(words)
        if budget <= 0:
            break
    return kept
