"""Marks that summarizers put between sentences, such as <n>, <q> and </s>, and HTML's entities in their texts."""

import html
import re
import sys
from collections import Counter
from collections.abc import Iterable

from lib.data.characters import clean
from lib.data.sentences import split_sentences

_MARK = re.compile(r"</?(?:n|q|t|s|pad)>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:[a-z]{2,8}|#\d{2,5}|#x[\da-f]{2,4});", re.IGNORECASE)


def split_summary(summary: str | list[str]) -> list[str]:
    """Split a summary, a text or its sentences, at line ends and marks; entities become characters."""
    sentences = []
    for text in [summary] if isinstance(summary, str) else summary:
        for part in _MARK.split(text):
            part = clean(html.unescape(part).replace("\xa0", " "))
            sentences += split_sentences(part) if isinstance(summary, str) else [part.strip()]
    return [sentence for sentence in sentences if sentence]


def report_marks(name: str, summaries: Iterable[str | list[str]]) -> None:
    """Print a line to standard error about marks and entities, if there are any."""
    texts = [" ".join([summary] if isinstance(summary, str) else summary) for summary in summaries]
    counts = Counter(found for text in texts for mark in (_MARK, _ENTITY) for found in mark.findall(text))
    if counts:
        found = ", ".join(f"{mark} {count} times" for mark, count in counts.most_common(6))
        print(f"{name}: {found}: read as ends of sentences, or as the characters that they mean", file=sys.stderr)
