"""Headline corpora for Read-Again: the published filters, and two vocabularies.

The encoder knows many words; the decoder writes few, the most frequent ones of the headlines, and copies the rest.
"""

from collections import Counter
from dataclasses import asdict, replace

import numpy as np

from lib.data.batch import EncodedDocument
from lib.data.prepared import PreparedCorpus, Split, cached_corpus, prepare
from lib.data.preprocess import HeadlineOptions
from lib.data.text import EOS, SPECIALS, UNK, Vocabulary

# Words and marks of agency messages that make a headline unfit (Rush et al. 2015, as published with their code);
# the first kind is looked for anywhere in the headline, as they do.
_UNFIT = (  # noqa: SIM905
    "update recasts undated grafs corrects retransmitting dateline writethru recaps inserts incorporates adv## "
    "ld-writethru djlfx edits byline repetition background thruout quotes attention ny### overline embargo ap gmt "
    "adds urgent ? -lrb- -rrb-"
).split()
_UNFIT_WORDS = ("i", ":", "-", "by")


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


def prepare_headlines(corpus, options: HeadlineOptions, limit: int | None = None, **keep) -> PreparedCorpus:
    """`prepare` for the encoder's vocabulary, then the decoder's. Kept in the cache like its result."""
    wide = prepare(corpus, replace(options, vocab_size=options.source_vocab_size), limit, **keep)
    return cached_corpus("headlines", [wide.fingerprint, asdict(options)], lambda: narrow(wide, options))


def narrow(wide: PreparedCorpus, options: HeadlineOptions) -> PreparedCorpus:
    """A corpus in the decoder's vocabulary, each document with `source_ids` of the encoder's.

    Both vocabularies come from the training pairs that are kept; a word of fewer occurrences than `options.fewest` is
    unknown to the encoder.
    """
    pairs = {name: [_words(wide, split[i]) for i in range(len(split))] for name, split in wide.splits.items()}
    kept = {
        name: [i for i, pair in enumerate(found) if name == "test" or not options.filtered or fits(*pair)]
        for name, found in pairs.items()
    }
    counts = [Counter(w for i in kept["train"] for w in pairs["train"][i][side]) for side in (0, 1)]
    counts[1].pop(SPECIALS[UNK], None)  # of a headline, what neither its text nor the encoder's vocabulary has
    written = Vocabulary.from_counts(counts[1], options.vocab_size)
    both = {word: n for word, n in (counts[0] + counts[1]).items() if n >= options.fewest}
    read = Vocabulary.from_counts(Counter(both), options.source_vocab_size)
    splits = {
        name: Split.of([
            _narrow(wide.splits[name][i], *pairs[name][i], written, read, options.summary_tokens) for i in kept[name]
        ])
        for name in pairs
    }  # fmt: skip
    dropped = {name: len(pairs[name]) - len(kept[name]) for name in pairs if len(pairs[name]) > len(kept[name])}
    report = f"{wide.report} Left out by the filters: {dropped or 'none'}. The encoder knows {len(read):,} words."
    return replace(wide, options=options, vocabulary=written, splits=splits, report=report)


def _words(corpus: PreparedCorpus, document: EncodedDocument) -> tuple[list[str], list[str]]:
    source, target = (
        corpus.vocabulary.decode(ids.tolist(), document.unknown) for ids in (document.source, document.target)
    )
    return source, target


def _narrow(document, source, target, written: Vocabulary, read: Vocabulary, summary_tokens: int) -> EncodedDocument:
    ids, unknown = written.encode_source(source)
    known = read.encode_target(source, [])  # words it does not know are [UNK]
    wanted = [*written.encode_target(target, unknown), EOS][:summary_tokens]
    arrays = (np.array(values, dtype=np.int32) for values in (ids, wanted, known))
    source_ids, target_ids, read_ids = arrays
    return replace(document, source=source_ids, target=target_ids, source_ids=read_ids, unknown=unknown)
