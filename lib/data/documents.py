"""One schema for documents, and what is turned into it: records in the layouts of public corpora."""

import re
from dataclasses import dataclass, field

from lib.data.characters import clean
from lib.data.sentences import split_sentences
from lib.system.errors import InputError

SPLITS = ("train", "val", "test")


class CorpusError(InputError):
    """A corpus that cannot be read: says what, where (file and line) and what to do."""


class Absent(InputError):
    """A record that a list names and no file holds: left out and counted, whatever `errors` says."""


class Omitted(InputError):
    """A record that a rule of its reader leaves out: counted by reason, whatever `errors` says."""


@dataclass(frozen=True)
class Document:
    """A document and its summary, in sentences. Text keeps its case; models do their own preprocessing."""

    id: str
    title: str
    section_names: list[str]  # where the sections are paragraphs of several documents: the document of each
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


# The key of the source text and the key of the summary, in the order in which they are looked for.
LAYOUTS = {
    "Cohan et al.": ("sections", "abstract_text"),
    "Cohan et al., without sections": ("article_text", "abstract_text"),
    "cluster of paragraphs": ("paragraphs", "summary"),
    "Hub, papers": ("article", "abstract"),
    "Hub, CNN/DailyMail": ("article", "highlights"),
    "document/summary": ("document", "summary"),
    "article/summary": ("article", "summary"),
    "text/summary": ("text", "summary"),
}

_SUMMARY_TAGS = re.compile(r"</?S>", re.IGNORECASE)
_SURROGATE = re.compile("[\ud800-\udfff]")


def to_document(record: dict, number: int = 0, reference: bool = True) -> Document:
    """Turn one record of any known layout into a `Document`, its texts cleaned (`checked_text`).

    A record with `tokenised` true is of text whose words and marks are set apart by spaces.

    reference: whether there must be a summary.
    Raises ValueError with the reason: keys missing, a value of the wrong type, a null byte or half a character,
    nothing in the source or in the summary. The caller adds file and line.
    """
    if not isinstance(record, dict):
        raise InputError(f"expected an object with a source and a summary, found {type(record).__name__}")
    source_key, summary_key = _layout(record, reference)
    names, sections = _sections(record, source_key)
    written = record.get(summary_key) if reference or record.get(summary_key) is not None else []
    summary = [_SUMMARY_TAGS.sub("", s).strip() for s in _sentences(written, summary_key)]
    document = Document(
        id=_string(record, ("article_id", "id", "url"), str(number)),
        title=clean(_string(record, ("title",), "")),
        section_names=names,
        sections=sections,
        summary=[s for s in summary if s],
        more_summaries=_more_summaries(record.get("more_summaries")),
        tokenised=_tokenised(record.get("tokenised")),
    )
    if not document.sections:
        raise InputError(f"the source ({source_key!r}) is empty")
    if reference and not document.summary:
        raise InputError(f"the summary ({summary_key!r}) is empty")
    return document


def _layout(record: dict, reference: bool) -> tuple[str, str]:
    there = [(source, summary) for source, summary in LAYOUTS.values() if record.get(source) is not None]
    whole = [pair for pair in there if pair[1] in record]
    if whole or (there and not reference):
        return (whole or there)[0]
    known = [f"{source}/{summary}" if reference else source for source, summary in LAYOUTS.values()]
    what = "pair of keys" if reference else "source"
    raise InputError(f"no known {what} (one of {', '.join(dict.fromkeys(known))}) among {sorted(map(str, record))}")


def _sections(record: dict, key: str) -> tuple[list[str], list[list[str]]]:
    """Section names and sentences; a source without sections is one section without a name."""
    if key == "paragraphs":
        return _paragraphs(record[key])
    if key != "sections":
        sentences = _sentences(record[key], key)
        return ([""], [sentences]) if sentences else ([], [])
    sections = record[key]
    if not isinstance(sections, list):
        raise InputError(f"'sections' must be a list of lists of sentences, found {type(sections).__name__}")
    names = record.get("section_names")
    if names is None:
        names = [""] * len(sections)
    if not isinstance(names, list) or len(names) != len(sections):
        count = len(names) if isinstance(names, list) else type(names).__name__
        raise InputError(f"'section_names' ({count}) and 'sections' ({len(sections)}) differ in length")
    filled = [(checked_text(name, "section_names"), _sentences(s, "sections")) for name, s in zip(names, sections)]
    filled = [(name, sentences) for name, sentences in filled if sentences]
    return [name for name, _ in filled], [sentences for _, sentences in filled]


def _paragraphs(value) -> tuple[list[str], list[list[str]]]:
    """Paragraphs as texts, or as objects with `text` and `source`: the source of each, and its sentences."""
    if not isinstance(value, list):
        raise InputError(
            f"'paragraphs' must be a list of texts or of objects with 'text', found {type(value).__name__}"
        )
    parts = [p if isinstance(p, dict) else {"text": p} for p in value]
    filled = [
        (clean(_string(part, ("source",), "")), sentences)
        for part in parts
        if (sentences := _sentences(part.get("text"), "paragraphs"))
    ]
    return [source for source, _ in filled], [sentences for _, sentences in filled]


def _more_summaries(value) -> list[list[str]]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(f"'more_summaries' must be a list of summaries, found {type(value).__name__}")
    return [_sentences(summary, "more_summaries") for summary in value]


def _sentences(value, key: str) -> list[str]:
    """Sentences of a list of sentences, or of a text."""
    if isinstance(value, list):
        return [s for s in (checked_text(v, key).strip() for v in value) if s]
    return split_sentences(checked_text(value, key))


def _tokenised(value) -> bool:
    """What a record says of its text: yes or no, also in the letters of a table; nothing and NaN are no."""
    said = str(value).lower()
    if said not in ("true", "false", "none", "nan", ""):
        raise InputError(f"'tokenised' must be true or false, not {value!r}")
    return said == "true"


def checked_text(value, key: str) -> str:
    """The door of every text: what a record's key or a file holds, as `clean` makes it.

    Raises InputError for what is no text, and for a null byte or half a character in it.
    """
    return clean(_text(value, key))


def _text(value, key: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{key!r} must hold text, found {type(value).__name__}")
    if "\0" in value:
        raise InputError(f"{key!r} holds a null byte")
    if surrogate := _SURROGATE.search(value):
        raise InputError(f"{key!r} holds {surrogate[0]!a}, half of a character: it cannot be written as UTF-8")
    return value


def _string(record: dict, keys: tuple[str, ...], default: str) -> str:
    """The text of the first of these keys that has a value: no value is None, and NaN in a table."""
    key, value = next(
        ((k, record[k]) for k in keys if record.get(k) is not None and record[k] == record[k]), ("", default)
    )
    if isinstance(value, float) and value.is_integer():  # a table with gaps has 7.0 for 7
        value = int(value)
    return str(value) if isinstance(value, int | float) else _text(value, key)
