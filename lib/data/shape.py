"""How a corpus writes its texts: what a list holds, and whether there is HTML, or text that a
program has misread.

A list may hold the sentences of a text, its words or several articles, and "<p>" may be a tag or a
part of the text. One record cannot tell, so the first records of a corpus decide for all of them.
"""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html.entities import html5
from typing import Any

from lib.data.characters import mend_encoding
from lib.data.record_keys import ALL_SUMMARIES, with_known_keys
from lib.data.sentences import split_sentences

SAMPLE = 200  # records of a corpus that decide
# Cohan and others (2018) define that these hold sentences.
_OF_SENTENCES = ("article_text", "abstract_text")
# Lists in these are sections or paragraphs; only what is in them is looked at.
_OF_LISTS = ("sections", "paragraphs")
_LONGEST_WORD = 40

# What separates the articles of a cluster: Multi-News, its copies and Multi-XScience.
BETWEEN_ARTICLES = re.compile(
    r"\|{5}|story_separator_special_tag|<doc[-_]?sep>|\[doc[-_]?sep\]", re.IGNORECASE
)

# <s>, <q> and <t> are not among them: summarizers write these between sentences.
_INLINE = "a|abbr|b|cite|code|del|em|figure|font|i|img|ins|kbd|mark|small|span|strong|su[bp]|tt|u"
_BLOCKS = (
    "article|blockquote|body|center|div|h[1-6]|head|html|li|ol|p|pre|section|table|tr|t[dh]|ul"
)
_ATTRIBUTES = r"""(?:\s+[\w:-]+\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'<>]+))*\s*/?"""  # not "a<b and c>d"
_CLOSING = re.compile(rf"</(?:{_INLINE}|{_BLOCKS})\s*>|<br\s*/?>", re.IGNORECASE)
_TAG = re.compile(rf"</?(?:{_INLINE}){_ATTRIBUTES}>", re.IGNORECASE)
_BLOCK = re.compile(rf"</?(?:{_BLOCKS}){_ATTRIBUTES}>", re.IGNORECASE)
_LINE_BREAK = re.compile(rf"<br{_ATTRIBUTES}>", re.IGNORECASE)
_UNSEEN = re.compile(r"<!--.*?-->|<(script|style)\b.*?</\1\s*>", re.IGNORECASE | re.DOTALL)
_ENTITY = re.compile(r"&(?:#\d{2,6}|#x[\da-f]{2,5}|[a-z]\w{1,8});", re.IGNORECASE)

# Written twice as JSON. LaTeX's commands, as \nu, have small letters.
_UNICODE = re.compile(r"(?:\\u[\da-fA-F]{4})+")
_LINE = re.compile(r"(?:\\r)?\\n(?![a-z])")

WORDS = "lists of words, joined"
ARTICLES = "lists of articles, a section each"
PARAGRAPHS = "lists of paragraphs, cut into sentences"
MARKS = "marks between articles, where sections begin"
TAGS = "HTML's tags, left out"
ENTITIES = "HTML's entities, read as characters"
ESCAPES = "escapes such as \\n and \\u2019, read as characters"
MISREAD = "UTF-8 that was read in another encoding, mended"


@dataclass(frozen=True)
class Shape:
    """How the records of a corpus are read; by default lists hold sentences and nothing is HTML."""

    words: frozenset[str] = frozenset()  # keys whose lists hold single words
    texts: frozenset[str] = frozenset()  # keys whose lists hold texts of several sentences
    tags: bool = False
    entities: bool = False
    escapes: bool = False
    misread: bool = False

    def plain(self, text: str) -> str:
        """Turn HTML, escapes and what was misread into text, where the corpus has any: a block's
        end is a blank line."""
        if self.escapes:
            text = _LINE.sub("\n", _UNICODE.sub(_characters, text))
        if self.misread:
            text = mend_encoding(text)
        if self.tags:
            text = _LINE_BREAK.sub("\n", _BLOCK.sub("\n\n", _UNSEEN.sub("", text)))
            text = re.sub(r"<su([bp])>", lambda found: "_" if found[1] == "b" else "^", text)
            text = _TAG.sub("", text).strip()
        if self.entities:
            text = _ENTITY.sub(lambda found: html.unescape(found[0]), text).replace("\xa0", " ")
        return text

    def kinds(self, record: dict) -> list[str]:
        """Name what of a record was not read as it was written."""
        lists = {key for key, value in record.items() if isinstance(value, list)}
        texts = lists & self.texts
        # A summary's list of texts, and that of a section, has no sections of its own.
        articles = texts - {*_OF_LISTS} - {key for key in texts if _is_summary(key)}
        strings = list(_strings(record))
        found = {
            WORDS: lists & self.words,
            ARTICLES: articles,
            PARAGRAPHS: texts - articles,
            MARKS: any(map(BETWEEN_ARTICLES.search, strings)),
            TAGS: self.tags and any(map(_has_tags, strings)),
            ENTITIES: self.entities and any(map(_has_entities, strings)),
            ESCAPES: self.escapes and any(map(_has_escapes, strings)),
            MISREAD: self.misread and any(map(_is_misread, strings)),
        }
        return [kind for kind, there in found.items() if there]


def shape_of(records: Sequence[Any]) -> Shape:
    """Find out how a corpus writes its texts, from its first records."""
    records = [with_known_keys(own) for own in records[:SAMPLE] if isinstance(own, dict)]
    members: dict[str, list[list[str]]] = {}
    for record in records:
        for key, value in record.items():
            members.setdefault(key, []).extend(_lists_of_text(key, value))
    texts = [list(_strings(record)) for record in records]
    return Shape(
        words=frozenset(key for key, lists in members.items() if _hold_words(lists)),
        texts=frozenset(
            key for key, lists in members.items() if key not in _OF_SENTENCES and _hold_texts(lists)
        ),
        tags=_is_frequent(any(map(_has_tags, strings)) for strings in texts),
        entities=_is_frequent(any(map(_has_entities, strings)) for strings in texts),
        escapes=_is_frequent(any(map(_has_escapes, strings)) for strings in texts),
        # Mathematics from PDF files looks misread here and there.
        misread=_is_frequent((any(map(_is_misread, strings)) for strings in texts), one_of=20),
    )


def _is_summary(key: str) -> bool:
    return key in ALL_SUMMARIES


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings within a value of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)


def _lists_of_text(key: str, value: Any) -> list[list[str]]:
    """Return the lists of strings in the value of a key, or of lists."""
    if not isinstance(value, list):
        return []
    if any(isinstance(part, list) for part in value):
        return [list(_strings(part)) for part in value if isinstance(part, list)]
    return [] if key in _OF_LISTS else [[part for part in value if isinstance(part, str)]]


def _hold_words(lists: list[list[str]]) -> bool:
    members = [member for own in lists for member in own]
    single = sum(map(_is_one_word, members))
    return len(members) >= 4 * len(lists) > 0 and single >= 0.8 * len(members)


def _is_one_word(member: str) -> bool:
    """Whether a member is a word, and no sentence of a language without spaces."""
    return (
        0 < len(member) <= _LONGEST_WORD
        and not any(map(str.isspace, member))
        and not re.search(r"\w\w[.。！？!?]$", member)
    )


def _hold_texts(lists: list[list[str]]) -> bool:
    """Whether members have several sentences: half a sentence more in the mean may be an error of
    the splitter, and two words a name or an item."""
    members = [" ".join(member.split()) for own in lists for member in own][:SAMPLE]
    members = [member for member in members if member]
    sentences = [sentence for member in members for sentence in split_sentences(member)]
    whole = sum(len(re.findall(r"[^\W\d_]{2,}", sentence)) > 2 for sentence in sentences)
    return whole >= 1.5 * max(1, len(members))


def _is_frequent(found: Iterable[bool], one_of: int = 100) -> bool:
    """Whether something occurs in one of so many records."""
    records = list(found)
    return sum(records) * one_of >= max(1, len(records))


def _has_tags(text: str) -> bool:
    return "<" in text and bool(_CLOSING.search(text))


def _has_entities(text: str) -> bool:
    """Whether a text has an entity that HTML knows."""
    return "&" in text and any(
        name[1] == "#" or name[1:] in html5 for name in _ENTITY.findall(text)
    )


def _has_escapes(text: str) -> bool:
    return "\\" in text and bool(_UNICODE.search(text) or _LINE.search(text))


def _characters(escapes: re.Match[str]) -> str:
    """Read escapes, of which two may be a character; one half alone is no character."""
    codes = bytes.fromhex(escapes[0].replace("\\u", ""))
    return codes.decode("utf-16-be", errors="replace")


def _is_misread(text: str) -> bool:
    return mend_encoding(text) != text
