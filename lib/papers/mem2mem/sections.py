"""Sections of a paper, chosen and cut as Cohan et al. (2018) do it.

Mem2Mem says of its data: "generally" their steps, with 4 sections of 500 tokens and 200 summary
tokens (facts of the paper's appendix A.2), lower-cased.
"""

from itertools import chain
from typing import Annotated, Literal

from lib.data.corpora import Corpus
from lib.data.documents import CorpusError, Document
from lib.data.options import Part, WordOptions, beginnings
from lib.data.sections import choose_sections
from lib.data.vocabulary import HOLDS_A_WORD
from lib.system.settings import Count, checked


@checked
class CohanOptions(WordOptions):
    """Sizes of Cohan et al.'s preprocessing as Mem2Mem uses it."""

    sections: Count = 4  # introduction, the next ones, conclusion
    section_tokens: Count = 500
    summary_tokens: Count = 200
    vocab_size: Annotated[int, HOLDS_A_WORD] = 50_000
    # what an encoder reads before it reads the document
    unit: Literal["sentence", "section"] = "sentence"

    def for_corpus(self, corpus: Corpus) -> "CohanOptions":
        """Raise CorpusError where sections are the units, and no training document of the first
        1,000 has several."""
        if self.unit == "sentence":
            return self
        if not any(len(document.sections) > 1 for document in corpus.split("train", 1_000)):
            raise CorpusError(
                f"{corpus.name}: no document has more than one section, and this model reads "
                "section by section. arXiv and PubMed have sections in the release of Cohan et "
                "al., not on the Hub: give its folder."
            )
        return self

    def parts(self, document: Document) -> list[Part]:
        """Introduction, middle sections and conclusion, each with its first tokens. Nothing is
        discarded: Cohan et al.'s reader leaves out documents with odd lengths, from the test set
        too.

        A document without sections keeps its first `sections * section_tokens` tokens.
        """
        if len(document.sections) == 1:
            whole = range(len(document.sentences))
            return [Part(whole, self.sections * self.section_tokens)]
        numbers = beginnings(document, None)
        chosen = choose_sections(document.section_names, self.sections)
        return [Part(numbers[i], self.section_tokens) for i in chosen]

    def rows(self, parts: list[list[tuple[int, list[str]]]]) -> list[list[str]]:
        if self.unit == "sentence":
            return super().rows(parts)
        # A section is stored as one sentence.
        sections = []
        for part in filter(None, parts):
            sections.append(list(chain.from_iterable(words for _, words in part)))
        return sections
