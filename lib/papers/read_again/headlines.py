"""Headline corpora for Read-Again: Gigaword's preparation, the published filters, and two
vocabularies.

The encoder knows many words; the decoder writes few, the most frequent ones of the headlines, and
copies the rest.
"""

import re
from collections import Counter
from typing import Annotated

from lib.data.documents import Document, Example
from lib.data.options import Part, WordOptions
from lib.data.prepared import TextEncoder
from lib.data.vocabulary import HOLDS_A_WORD, SPECIALS, UNK, Vocabulary
from lib.system.settings import Count, checked

# Words and marks of agency messages that make a headline unfit (Rush et al. 2015, as published with
# their code); the first kind is looked for anywhere in the headline, as they do.
_UNFIT = (  # noqa: SIM905
    "update recasts undated grafs corrects retransmitting dateline writethru recaps inserts "
    "incorporates adv## ld-writethru djlfx edits byline repetition background thruout quotes "
    "attention ny### overline embargo ap gmt adds urgent ? -lrb- -rrb-"
).split()
_UNFIT_WORDS = ("i", ":", "-", "by")
UNKNOWN_WORD = "<unk>"  # as prepared Gigaword writes it


@checked
class HeadlineOptions(WordOptions):
    """Gigaword's preparation (Rush et al. 2015), for Read-Again: the first sentences, and a
    headline."""

    sentences: Count = 1  # of the text; the paper also reads two
    source_tokens: Count = 100
    summary_tokens: Count = 50
    # |Y|, the most frequent words of the headlines
    vocab_size: Annotated[int, HOLDS_A_WORD] = 15_000
    source_vocab_size: Annotated[int, HOLDS_A_WORD] = 110_000  # words that the encoder knows
    fewest: Count = 5  # occurrences of a word in the training set, for the encoder to know it
    digits: bool = True  # to be written as #
    # training and validation pairs that the published filters drop are left out
    filtered: bool = True

    def words(self, sentence: str, tokenised: bool = False) -> list[str]:
        """Words in lower case, digits as #, `<unk>` as the unknown word. Clitics and marks are
        words, as in PTB."""
        if self.digits:  # a # of the text represents a digit, so that ##.# is one word
            sentence = sentence.replace("#", "0")
        found = super().words(sentence, tokenised)
        words = [SPECIALS[UNK] if word == UNKNOWN_WORD else word for word in found]
        return [re.sub(r"\d", "#", word) for word in words] if self.digits else words

    def spans(self, sentence: str, tokenised: bool = False) -> list[tuple[int, int]]:
        if self.digits:
            sentence = sentence.replace("#", "0")
        return super().spans(sentence, tokenised)

    def parts(self, document: Document) -> list[Part]:
        """The first sentences."""
        first = range(len(document.sentences))[: self.sentences]
        return [Part(first, self.source_tokens)]

    def keeps(self, split_name: str, example: Example) -> bool:
        """The published filters leave pairs out for training and validation only."""
        return split_name == "test" or not self.filtered or fits(example.words, _headline(example))

    def learn_encoder(self, source: Counter, summary: Counter) -> TextEncoder:
        """Learn two vocabularies from the training pairs: the decoder's of the headlines, the
        encoder's of both. A word of fewer occurrences than `fewest` is unknown to the encoder."""
        both = source + summary
        frequent = Counter({word: n for word, n in both.items() if n >= self.fewest})
        for counts in (summary, frequent):
            counts.pop(SPECIALS[UNK], None)  # `<unk>`
        read = Vocabulary.from_counts(frequent, self.source_vocab_size)
        return TextEncoder(self, Vocabulary.from_counts(summary, self.vocab_size), read)


def fits(source: list[str], headline: list[str]) -> bool:
    """Whether Rush et al. (2015) keep the pair: a full stop in the text, 11 to 99 words in it and 4
    to 49 in the headline, a word of more than three letters in both, and nothing of an agency's own
    in the headline."""
    if "." not in source or not 10 < len(source) < 100 or not 3 < len(headline) < 50:
        return False
    if not any(len(word) > 3 for word in set(headline) & set(source)):
        return False
    text = " ".join(headline)
    inner = headline[1:-1]
    if any(unfit in text for unfit in _UNFIT):
        return False
    return not any(word in inner for word in _UNFIT_WORDS)


def _headline(example: Example) -> list[str]:
    """Words of a headline for the filters: a hyphen inside a word, which `tokenize` sets apart, is
    no dash."""
    if "-" in " ".join(example.reference).split():
        return example.summary
    return [word for word in example.summary if word != "-"]
