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
from lib.data.chats import with_turns_as_text
from lib.data.record_keys import (
    IDS,
    KeysError,
    source_key,
    summary_key,
    whole_number,
    with_known_keys,
)
from lib.data.sentences import split_sentences
from lib.data.shape import BETWEEN_ARTICLES, Shape, shape_of
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


# How tables in letters write a missing text.
_NO_TEXT = {"NaN", "nan", "None", "null", "NULL", "N/A", "n/a", "NA", "<NA>", "#N/A"}
# What Multi-News has for the ends of lines.
_LINE_END = re.compile("newline_char", re.IGNORECASE)


def to_document(
    record: Any, number: int = 0, reference: bool = True, shape: Shape | None = None
) -> Document:
    """Turn a record of a known layout into a `Document`, its texts cleaned (`checked_text`).

    number: the id of a record without any. reference: whether there must be a summary. shape: how
    the record's corpus writes its texts; by default found from this record.
    Raises ValueError with the reason; the caller adds file and line.

    >>> to_document({"article": "Bees fly. They eat.", "highlights": "Bees eat."}).sections
    [['Bees fly.', 'They eat.']]
    """
    if not isinstance(record, dict):
        raise InputError(
            f"expected an object with a source and a summary, found {type(record).__name__}"
        )
    record = {key: value for key, value in with_known_keys(record).items() if _has_value(value)}
    shape = shape or shape_of([record])
    own_source, own_summary = source_key(record), summary_key(record)
    if not own_source or (reference and not own_summary):
        raise KeysError(record)
    for key in filter(None, (own_source, own_summary)):
        if isinstance(record[key], str) and record[key].strip() in _NO_TEXT:
            record[key] = ""
    names, sections = _sections(record, own_source, shape)
    sentences = _sentences(record[own_summary], own_summary, shape) if own_summary else []
    document = Document(
        id=checked_unicode(own_id(record) or str(number), "id"),
        title=shape.plain(checked_text(str(record.get("title") or ""), "title")),
        section_names=names,
        sections=sections,
        summary=split_summary(sentences),
        more_summaries=[
            _sentences(summary, "more_summaries", shape)
            for summary in _list(record, "more_summaries")
        ],
        tokenised=str(record.get("tokenised")).lower() == "true",  # tables write it in letters
    )
    if not document.sections:
        raise InputError(f"the source ({own_source!r}) is empty")
    if reference and not document.summary:
        raise InputError(f"the summary ({own_summary!r}) is empty")
    return document


def own_id(record: dict) -> str:
    """Return the id that a record has; an empty text where it has none."""
    ids = [record[key] for key in IDS if _has_value(record.get(key))]
    names = (str(whole_number(name)) for name in ids)
    return next((name for name in names if name.strip()), "")


def _sections(record: dict, key: str, shape: Shape) -> tuple[list[str], list[list[str]]]:
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
        pairs = [(name, part) for name, text in zip(names, sections) for part in _articles(text)]
    else:
        value = with_turns_as_text(record[key])
        is_cluster = isinstance(value, list) and (
            key in shape.texts or any(isinstance(part, list) for part in value)
        )
        articles = [part for text in (value if is_cluster else [value]) for part in _articles(text)]
        pairs = [
            (f"article {n}" if len(articles) > 1 else "", article)
            for n, article in enumerate(articles, 1)
        ]
    filled = [
        (shape.plain(checked_text(name, "section_names")), _sentences(text, key, shape))
        for name, text in pairs
    ]
    filled = [(name, sentences) for name, sentences in filled if sentences]
    return [name for name, _ in filled], [sentences for _, sentences in filled]


def _articles(text: Any) -> list:
    """Cut a text, or a list of sentences or words, at the marks between articles."""
    if isinstance(text, str):
        return [part for part in BETWEEN_ARTICLES.split(text) if part.strip()]
    if not isinstance(text, list):
        return [text]
    parts: list[list] = [[]]
    for member in text:
        first, *others = BETWEEN_ARTICLES.split(member) if isinstance(member, str) else [member]
        parts[-1].append(first)
        parts += [[other] for other in others]
    return [part for part in parts if any(part)]


def _list(record: dict, key: str) -> list:
    value = record.get(key)
    if not isinstance(value, list | None):
        raise InputError(f"{key!r} must be a list, found {type(value).__name__}")
    return value or []


def _sentences(value: Any, key: str, shape: Shape) -> list[str]:
    """Sentences of a text, or of a list of sentences, words or texts."""
    if isinstance(value, list) and key not in shape.words:
        texts = [shape.plain(checked_text(member, key)).strip() for member in value]
        if key in shape.texts:
            return [sentence for text in texts for sentence in split_sentences(text)]
        return [" ".join(text.split()) if shape.tags else text for text in texts if text]
    if isinstance(value, list):
        value = " ".join(checked_text(member, key) for member in value)
    return split_sentences(_LINE_END.sub("\n", shape.plain(checked_text(value, key))))


def checked_text(value: Any, key: str) -> str:
    """Return the text of a record's key or of a file, as `clean` makes it. Raises InputError for
    what is no text."""
    if not isinstance(value, str):
        raise InputError(f"{key!r} must hold text, found {type(value).__name__}")
    return clean(checked_unicode(value, key))


def checked_unicode(text: str, key: str) -> str:
    """Return a text that can be written in UTF-8. Raises InputError for half a surrogate pair,
    which a program leaves where it cuts an emoji in JSON into two."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code = f"\\u{ord(text[error.start]):04x}"
        raise InputError(
            f"{key!r} holds half a character ({code}): a program has cut the text there"
        ) from None
    return text


# What summarizers put between sentences, such as <n>, <q> and </s>; and HTML's entities.
_MARK = re.compile(r"</?(?:n|q|t|s|pad)>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:[a-z]{2,8}|#\d{2,5}|#x[\da-f]{2,4});", re.IGNORECASE)


def split_summary(summary: str | list[str]) -> list[str]:
    """Split a summary, a text or its sentences, at line ends and marks; HTML's entities become
    characters.

    >>> split_summary("Bees fly.<q>They eat &amp; sleep.")
    ['Bees fly.', 'They eat & sleep.']
    """
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


def _has_value(value: Any) -> bool:
    """Whether a value is none of those that tables have for a missing one: None and the NaN of
    floats and pandas."""
    return isinstance(value, str | list | dict) or str(value) not in ("None", "nan", "<NA>", "NaT")
