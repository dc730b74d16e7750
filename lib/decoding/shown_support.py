"""A summary beside its text as the page shows both: which of its tokens the text does not have, and which sentences
of the text carry each of its sentences."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from lib.data.characters import lowered
from lib.data.sentences import split_sentences
from lib.decoding.reading import Reading
from lib.evaluation.support import Names, SourceText, Term, not_in_text, terms

TITLE = -1  # the number of a text's title, which is none of its sentences


class ShownText:
    """The sentences of a text by number: those that a model read, with their places, and then those that it did not.

    spans: of each that was read, its first token and its end, of all tokens of `Reading.rows`.
    """

    def __init__(self, reading: Reading, unit: str, title: str = ""):
        self.spans: list[tuple[int, int]] = []
        sentences, starts = [], accumulate(map(len, reading.rows), initial=0)
        for start, row in zip(starts, reading.rows):
            for first, end in [(0, len(row))] if unit == "sentence" else _sentences_of(row):
                self.spans.append((start + first, start + end))
                sentences.append("".join(row[first:end]))
        sentences += [sentence for _, text in reading.unread for sentence in split_sentences(text)]
        self._titled = len(sentences) if title else None  # the last one: equal sentences are before it
        self._source = SourceText([*sentences, *filter(None, [title])])

    def support(
        self, sentences: Iterable[Sequence[str]], names: Names
    ) -> tuple[list[str], list[list[tuple[int, float]]]]:
        """For each token of a summary "number", "name" or "word" where that is not in the text, otherwise "", and for
        each sentence the sentences that carry it with their shares (`SourceText.carriers`), or `TITLE`.

        sentences: tokens of each, with the space before each.
        """
        lacks, carriers = [], []
        for tokens in sentences:
            sentence = terms("".join(tokens))
            lacks += _by_token(tokens, not_in_text(sentence, self._source, names))
            found = self._source.carriers(sentence)
            carriers.append([(TITLE if c.sentence == self._titled else c.sentence, c.share) for c in found])
        return lacks, carriers


def _sentences_of(row: Sequence[str]) -> Iterator[tuple[int, int]]:
    """First token and end of each sentence of a row of tokens."""
    letters = [len("".join(token.split())) for token in row]
    ends = list(accumulate(letters))  # letters up to the end of each token
    first, seen = 0, 0
    for sentence in split_sentences("".join(row)):
        seen += len("".join(sentence.split()))
        end = next((place + 1 for place in range(first, len(row)) if ends[place] >= seen), len(row))
        if end > first:
            yield first, end
        first = end


def _by_token(tokens: Sequence[str], missing: Sequence[tuple[Term, str]]) -> list[str]:
    """The kind of what is missing for each token that has a part in it."""
    ends = list(accumulate(map(len, tokens)))
    starts = [end - len(token.lstrip()) for token, end in zip(tokens, ends)]
    return [
        next((kind for term, kind in missing if term.start < end and start < term.end), "")
        for start, end in zip(starts, ends)
    ]


def spaced(sentence: str) -> list[str]:
    """What white space sets apart in a sentence, each with the space before it."""
    return [f" {word}" for word in sentence.split()]


def cased_names(texts: Iterable[Iterable[str]]) -> Names:
    """Names by texts of sentences; one that is all in lower case, as models write, shows none."""
    cased = (list(sentences) for sentences in texts)
    return Names(s for sentences in cased if any(s != lowered(s) for s in sentences) for s in sentences)
