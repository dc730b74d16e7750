"""One schema for documents, and the layouts of public corpora that are turned into it, record by record."""

import re
from dataclasses import dataclass, field

from lib.data.text import split_sentences

SPLITS = ("train", "val", "test")


class CorpusError(ValueError):
    """A corpus that cannot be read: says what, where (file and line) and what to do."""


@dataclass(frozen=True)
class Document:
    """A document and its summary, in sentences. Text keeps its case; models do their own preprocessing."""

    id: str
    title: str
    section_names: list[str]  # where the sections are paragraphs of several documents: the document of each
    sections: list[list[str]]  # sentences, section by section
    summary: list[str]  # sentences
    more_summaries: list[list[str]] = field(default_factory=list)  # by other people, for evaluation

    @property
    def references(self) -> list[list[str]]:
        return [self.summary, *self.more_summaries]

    @property
    def sentences(self) -> list[str]:
        return [sentence for section in self.sections for sentence in section]


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


def to_document(record: dict, number: int = 0) -> Document:
    """Turn one record of any known layout into a `Document`.

    Raises ValueError with the reason: keys missing, a value of the wrong type, a null byte, nothing in the source or
    in the summary. The caller adds file and line.
    """
    if not isinstance(record, dict):
        raise ValueError(f"expected an object with a source and a summary, found {type(record).__name__}")
    source_key, summary_key = _layout(record)
    names, sections = _sections(record, source_key)
    summary = [_SUMMARY_TAGS.sub("", s).strip() for s in _sentences(record[summary_key], summary_key)]
    document = Document(
        id=_string(record, ("article_id", "id", "url"), str(number)),
        title=_string(record, ("title",), ""),
        section_names=names,
        sections=sections,
        summary=[s for s in summary if s],
        more_summaries=[_sentences(text, "more_summaries") for text in record.get("more_summaries", ())],
    )
    if not document.sections:
        raise ValueError(f"the source ({source_key!r}) is empty")
    if not document.summary:
        raise ValueError(f"the summary ({summary_key!r}) is empty")
    return document


def _layout(record: dict) -> tuple[str, str]:
    for source_key, summary_key in LAYOUTS.values():
        if record.get(source_key) is not None and summary_key in record:
            return source_key, summary_key
    known = ", ".join(f"{source}/{summary}" for source, summary in LAYOUTS.values())
    raise ValueError(f"no known pair of keys (one of {known}) among {sorted(map(str, record))}")


def _sections(record: dict, key: str) -> tuple[list[str], list[list[str]]]:
    """Section names and sentences; a source without sections is one section without a name."""
    if key == "paragraphs":
        return _paragraphs(record[key])
    if key != "sections":
        sentences = _sentences(record[key], key)
        return ([""], [sentences]) if sentences else ([], [])
    sections = record[key]
    if not isinstance(sections, list):
        raise ValueError(f"'sections' must be a list of lists of sentences, found {type(sections).__name__}")
    names = record.get("section_names")
    if names is None:
        names = [""] * len(sections)
    if not isinstance(names, list) or len(names) != len(sections):
        count = len(names) if isinstance(names, list) else type(names).__name__
        raise ValueError(f"'section_names' ({count}) and 'sections' ({len(sections)}) differ in length")
    kept = [(_text(name, "section_names"), _sentences(s, "sections")) for name, s in zip(names, sections)]
    kept = [(name, sentences) for name, sentences in kept if sentences]
    return [name for name, _ in kept], [sentences for _, sentences in kept]


def _paragraphs(value) -> tuple[list[str], list[list[str]]]:
    """Paragraphs as texts, or as objects with `text` and `source`: the source of each, and its sentences."""
    if not isinstance(value, list):
        raise ValueError(
            f"'paragraphs' must be a list of texts or of objects with 'text', found {type(value).__name__}"
        )
    parts = [p if isinstance(p, dict) else {"text": p} for p in value]
    kept = [
        (_string(part, ("source",), ""), sentences)
        for part in parts
        if (sentences := _sentences(part.get("text"), "paragraphs"))
    ]
    return [source for source, _ in kept], [sentences for _, sentences in kept]


def _sentences(value, key: str) -> list[str]:
    """Sentences of a list of sentences, of a text with one a line, or of plain text."""
    if isinstance(value, list):
        return [s for s in (_text(v, key).strip() for v in value) if s]
    return [s for line in _text(value, key).splitlines() for s in split_sentences(line)]


def _text(value, key: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{key!r} must hold text, found {type(value).__name__}")
    if "\0" in value:
        raise ValueError(f"{key!r} holds a null byte")
    return value


def _string(record: dict, keys: tuple[str, ...], default: str) -> str:
    value = next((record[k] for k in keys if record.get(k) is not None), default)
    return _text(str(value) if isinstance(value, int) else value, keys[0])
