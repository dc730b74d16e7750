"""Headline corpora for Read-Again: Gigaword's preparation, the published filters, and two vocabularies.

The encoder knows many words; the decoder writes few, the most frequent ones of the headlines, and copies the rest.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

from lib.data.batch import EncodedDocument
from lib.data.characters import clean
from lib.data.documents import Document
from lib.data.options import Example
from lib.data.prepared import PreparedCorpus, TextEncoder, WordOptions, cached_corpus
from lib.data.split import Split
from lib.data.vocabulary import HOLDS_A_WORD, SPECIALS, UNK, Vocabulary
from lib.data.words import surfaces, word_spans
from lib.system.fields import Count, checked

# Words and marks of agency messages that make a headline unfit (Rush et al. 2015, as published with their code);
# the first kind is looked for anywhere in the headline, as they do.
_UNFIT = (  # noqa: SIM905
    "update recasts undated grafs corrects retransmitting dateline writethru recaps inserts incorporates adv## "
    "ld-writethru djlfx edits byline repetition background thruout quotes attention ny### overline embargo ap gmt "
    "adds urgent ? -lrb- -rrb-"
).split()
_UNFIT_WORDS = ("i", ":", "-", "by")
UNKNOWN_WORD = "<unk>"  # as prepared Gigaword writes it
# what neither the files of prepared Gigaword nor `input.txt` of DUC 2004 can give
FIRST_SENTENCES = "its files have the first sentence of each text alone, and this row reads two"


@checked
class HeadlineOptions(WordOptions):
    """Gigaword's preparation (Rush et al. 2015), for Read-Again: the first sentences, and a headline."""

    sentences: Count = 1  # of the text; the paper also reads two
    source_tokens: Count = 100
    summary_tokens: Count = 50
    vocab_size: Annotated[int, HOLDS_A_WORD] = 15_000  # |Y|, the most frequent words of the headlines
    source_vocab_size: Annotated[int, HOLDS_A_WORD] = 110_000  # words that the encoder knows
    fewest: Count = 5  # occurrences of a word in the training set, for the encoder to know it
    digits: bool = True  # to be written as #
    filtered: bool = True  # training and validation pairs that the published filters drop are left out

    def words(self, sentence: str, tokenised: bool = False) -> list[str]:
        """Words in lower case, digits as #, `<unk>` as the unknown word. Clitics and marks are words, as in PTB."""
        if self.digits:  # a # that is there already stands for a digit, so that ##.# is one word
            sentence = sentence.replace("#", "0")
        words = [SPECIALS[UNK] if word == UNKNOWN_WORD else word for word in super().words(sentence, tokenised)]
        return [re.sub(r"\d", "#", word) for word in words] if self.digits else words

    def surfaces(self, sentence: str, tokenised: bool = False) -> list[str]:
        text = clean(sentence)
        return surfaces(text, word_spans(text.replace("#", "0") if self.digits else text, tokenised))

    def example(self, document: Document) -> Example:
        """The first sentences and the headline."""
        first = self.cut(document.sentences[: self.sentences], self.source_tokens, document.tokenised)
        return self.with_summary(document, first)

    def prepare(
        self, corpus, limit: int | None = None, folder: str | Path | None = None, progress: bool = True, **keep
    ) -> PreparedCorpus:
        """Prepare in the encoder's vocabulary first, in the cache, then in the decoder's."""
        in_one = replace(self, vocab_size=self.source_vocab_size)
        wide = super(HeadlineOptions, in_one).prepare(corpus, limit, progress=progress, **keep)
        key = [wide.fingerprint, asdict(self)]
        return cached_corpus("headlines", key, HeadlineOptions, lambda parts: narrow(wide, self, parts), folder)


def fits(source: list[str], headline: list[str]) -> bool:
    """Whether Rush et al. (2015) keep the pair: a full stop in the text, 11 to 99 words in it and 4 to 49 in the
    headline, a word of more than three letters in both, and nothing of an agency's own in the headline."""
    text = " ".join(headline)
    inner = set(headline[1:-1])
    return (
        "." in source
        and 10 < len(source) < 100
        and 3 < len(headline) < 50
        and bool({w for w in headline if len(w) > 3} & {w for w in source if len(w) > 3})
        and not any(unfit in text for unfit in _UNFIT)
        and not any(word in inner for word in _UNFIT_WORDS)
    )


def _headline(example: Example) -> list[str]:
    """Words of a headline for the filters: a hyphen inside a word, which `tokenize` sets apart, is no dash."""
    if "-" in " ".join(example.reference).split():
        return example.summary
    return [word for word in example.summary if word != "-"]


def narrow(wide: PreparedCorpus, options: HeadlineOptions, parts: Path) -> PreparedCorpus:
    """A corpus in the decoder's vocabulary, each document with `source_ids` of the encoder's, in files of `parts`.

    Both vocabularies come from the training pairs that are left; a word of fewer occurrences than `options.fewest` is
    unknown to the encoder.
    """

    def examples(name: str) -> Iterator[Example]:
        for example in (_in_words(wide, document) for document in wide[name]):
            if name == "test" or not options.filtered or fits(example.words, _headline(example)):
                yield example

    headlines, both = Counter[str](), Counter[str]()
    for example in examples("train"):
        headlines.update(example.summary)
        both.update(example.words)
    both += headlines
    for counts in (headlines, both):  # `<unk>`, and what neither the text nor the encoder's vocabulary has
        counts.pop(SPECIALS[UNK], None)
    read = Vocabulary.from_counts(
        Counter({word: n for word, n in both.items() if n >= options.fewest}), options.source_vocab_size
    )
    encoder = TextEncoder(options, Vocabulary.from_counts(headlines, options.vocab_size), read)
    splits = {}
    for name, split in wide.splits.items():
        most = max(len(read), len(encoder.vocabulary)) + split.longest
        splits[name] = Split.write(parts, name, map(encoder.encode_example, examples(name)), most)
    dropped = {name: n for name, split in wide.splits.items() if (n := len(split) - len(splits[name]))}
    report = f"{wide.report} Left out by the filters: {dropped or 'none'}. The encoder knows {len(read):,} words."
    remarks = ". ".join(filter(None, [wide.remarks, _short_of_sentences(wide, options)]))
    return replace(wide, encoder=encoder, splits=splits, report=report, remarks=remarks)


def _short_of_sentences(corpus: PreparedCorpus, options: HeadlineOptions) -> str:
    """A remark where several sentences are asked for and no training text has a second one; otherwise empty."""
    if options.sentences == 1 or corpus["train"].sentence_counts.max() > 1:
        return ""
    return f"no training text has a second sentence, and {options.sentences} are to be read: the others are zeros"


def _in_words(corpus: PreparedCorpus, document: EncodedDocument) -> Example:
    words, summary = (
        corpus.vocabulary.decode(ids.tolist(), document.unknown) for ids in (document.source, document.target)
    )
    ends = document.sentence_lengths.cumsum()
    sentences = [words[end - n : end] for end, n in zip(ends, document.sentence_lengths)]
    return Example(document.id, sentences, summary, document.reference, document.tokenised)
