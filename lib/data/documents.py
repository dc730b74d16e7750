"""One schema for documents, and what is turned into it: records in the layouts of public
corpora."""

import html
import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from lib.data.characters import clean
from lib.data.sentences import split_sentences
from lib.system.errors import InputError

SPLITS = ("train", "val", "test")


class CorpusError(InputError):
    """A corpus that cannot be read: says what, where (file and line) and what to do."""


@dataclass(frozen=True)
class Document:
    """A document and its summary, in sentences. Text keeps its case; models do their own
    preprocessing."""

    id: str
    title: str
    # where the sections are paragraphs of several documents: the document of each
    section_names: list[str]
    sections: list[list[str]]  # sentences, section by section
    summary: list[str]  # sentences
    more_summaries: list[list[str]] = field(default_factory=list)  # by other people, for evaluation
    tokenised: bool = False  # whether words and marks are set apart by spaces already

    @property
    def references(self) -> list[list[str]]:
        return [self.summary, *self.more_summaries]

    @property
    def sentences(self) -> list[str]:
        return [sentence for section in self.sections for sentence in section]

    @property
    def text(self) -> str:
        """Title and sentences, a space after each."""
        return " ".join([self.title, *self.sentences])

    @property
    def places(self) -> list[tuple[int, int]]:
        """Start and end of each sentence in `text`."""
        starts = accumulate(
            (len(sentence) + 1 for sentence in self.sentences), initial=len(self.title) + 1
        )
        return [(start, start + len(text)) for start, text in zip(starts, self.sentences)]


@dataclass(frozen=True)
class Example:
    """A document in words: `sentences` of the source as it was cut, and the summary's words."""

    id: str
    sentences: list[list[str]]
    summary: list[str]
    reference: list[str]  # the summary's sentences as they were
    tokenised: bool = False  # as the document's texts

    @property
    def words(self) -> list[str]:
        """Words of the source, sentence by sentence."""
        return [word for sentence in self.sentences for word in sentence]


# Keys of the source and of the summary in records of public corpora; the first one that a record
# has is read.
SOURCES = ("sections", "article_text", "paragraphs", "article", "document", "text")
SUMMARIES = ("abstract_text", "abstract", "highlights", "summary")
IDS = ("article_id", "id", "url")

# What Multi-News has between the articles of a cluster, and for the ends of their lines.
_BETWEEN_ARTICLES = re.compile(r"\|{5}|story_separator_special_tag", re.IGNORECASE)
_LINE_END = re.compile("newline_char", re.IGNORECASE)


def to_document(record: Any, number: int = 0, reference: bool = True) -> Document:
    """Turn a record of a known layout into a `Document`, its texts cleaned (`checked_text`).

    number: the id of a record without any. reference: whether there must be a summary.
    Raises ValueError with the reason; the caller adds file and line.
    """
    if not isinstance(record, dict):
        raise InputError(
            f"expected an object with a source and a summary, found {type(record).__name__}"
        )
    record = {key: value for key, value in record.items() if _has_value(value)}
    source_key, summary_key = first_key(record, SOURCES), first_key(record, SUMMARIES)
    if not source_key or (reference and not summary_key):
        known = " and ".join(" or ".join(keys) for keys in (SOURCES, SUMMARIES))
        raise InputError(
            f"no source and summary ({known}) among {sorted({*map(str, record)} - {'tokenised'})}"
        )
    names, sections = _sections(record, source_key)
    sentences = _sentences(record[summary_key], summary_key) if summary_key else []
    document = Document(
        id=str(record.get(first_key(record, IDS), number)),
        title=clean(str(record.get("title") or "")),
        section_names=names,
        sections=sections,
        summary=split_summary(sentences),
        more_summaries=[_sentences(s, "more_summaries") for s in _list(record, "more_summaries")],
        tokenised=str(record.get("tokenised")).lower() == "true",  # tables write it in letters
    )
    if not document.sections:
        raise InputError(f"the source ({source_key!r}) is empty")
    if reference and not document.summary:
        raise InputError(f"the summary ({summary_key!r}) is empty")
    return document


def _sections(record: dict, key: str) -> tuple[list[str], list[list[str]]]:
    """Section names and sentences; of paragraphs the document of each. Empty sections are left
    out."""
    if key == "paragraphs":
        parts = [p if isinstance(p, dict) else {"text": p} for p in _list(record, key)]
        pairs = [(str(part.get("source") or ""), part.get("text")) for part in parts]
    elif key == "sections":
        sections = _list(record, key)
        names = _list(record, "section_names") or [""] * len(sections)
        if len(names) != len(sections):
            raise InputError(
                f"'section_names' ({len(names)}) and 'sections' ({len(sections)}) differ in length"
            )
        pairs = list(zip(names, sections))
    else:
        articles = [record[key]]
        if isinstance(record[key], str):
            articles = [
                article for article in _BETWEEN_ARTICLES.split(record[key]) if article.strip()
            ]
        pairs = [
            (f"article {n}" if len(articles) > 1 else "", article)
            for n, article in enumerate(articles, 1)
        ]
    filled = [(checked_text(name, "section_names"), _sentences(text, key)) for name, text in pairs]
    filled = [(name, sentences) for name, sentences in filled if sentences]
    return [name for name, _ in filled], [sentences for _, sentences in filled]


def _list(record: dict, key: str) -> list:
    value = record.get(key)
    if not isinstance(value, list | None):
        raise InputError(f"{key!r} must be a list, found {type(value).__name__}")
    return value or []


def _sentences(value, key: str) -> list[str]:
    """Sentences of a list of sentences, or of a text."""
    if isinstance(value, list):
        return [s for s in (checked_text(v, key).strip() for v in value) if s]
    return split_sentences(_LINE_END.sub("\n", checked_text(value, key)))


def checked_text(value, key: str) -> str:
    """Return the text of a record's key or of a file, as `clean` makes it. Raises InputError for
    what is no text."""
    if not isinstance(value, str):
        raise InputError(f"{key!r} must hold text, found {type(value).__name__}")
    return clean(value)


# What summarizers put between sentences, such as <n>, <q> and </s>; and HTML's entities.
_MARK = re.compile(r"</?(?:n|q|t|s|pad)>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:[a-z]{2,8}|#\d{2,5}|#x[\da-f]{2,4});", re.IGNORECASE)


def split_summary(summary: str | list[str]) -> list[str]:
    """Split a summary, a text or its sentences, at line ends and marks; HTML's entities become
    characters."""
    sentences = []
    for text in [summary] if isinstance(summary, str) else summary:
        for part in _MARK.split(text):
            part = clean(html.unescape(part).replace("\xa0", " "))
            sentences += split_sentences(part) if isinstance(summary, str) else [part.strip()]
    return [sentence for sentence in sentences if sentence]


def report_marks(name: str, summaries: Iterable[str | list[str]]) -> None:
    """Print a line to standard error about marks and entities, if there are any."""
    texts = (
        text
        for summary in summaries
        for text in ([summary] if isinstance(summary, str) else summary)
    )
    counts = Counter(
        found for text in texts for mark in (_MARK, _ENTITY) for found in mark.findall(text)
    )
    if counts:
        found = ", ".join(f"{mark} {count} times" for mark, count in counts.most_common(6))
        print(
            f"{name}: {found}: read as ends of sentences, or as the characters that they mean",
            file=sys.stderr,
        )


def first_key(record: dict, keys: tuple[str, ...]) -> str | None:
    return next((key for key in keys if key in record), None)


def _has_value(value: Any) -> bool:
    """Whether a value is none of those that tables have for a missing one: None and the NaN of
    floats and pandas."""
    return isinstance(value, str | list | dict) or str(value) not in ("None", "nan", "<NA>", "NaT")
