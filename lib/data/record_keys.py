"""The keys of records: which ones hold the source, the summary and the id, in one table."""

import re
from collections.abc import Iterable
from typing import Any

from lib.system.errors import InputError

# In the layouts of public corpora. The first one that a record has is read.
SOURCES = ("sections", "article_text", "paragraphs", "article", "document", "text")
SUMMARIES = ("abstract_text", "abstract", "highlights", "summary")
IDS = ("article_id", "id", "url")
# Others are read where a record has none of these, and only one of the others.
OTHER_SOURCES = (
    *("dialogue", "dialog", "conversation", "transcript", "body", "content", "full_text"),
    *("report", "story", "passage", "context", "source", "src", "input", "inputs", "prompt"),
    "meeting_transcripts",
)
OTHER_SUMMARIES = (
    *("summary_text", "target", "target_text", "tgt", "output", "outputs", "completion"),
    *("response", "tldr", "headline", "reference", "general_query_list"),
)
ALL_SOURCES, ALL_SUMMARIES = (*SOURCES, *OTHER_SOURCES), (*SUMMARIES, *OTHER_SUMMARIES)
# What a system has written, beside which there may be the reference, as 'summary' or 'highlights'.
PREDICTIONS = (
    *("prediction", "predicted", "generated", "output", "candidate", "hypothesis", "decoded"),
    *("completion", "response", "predict", "pred"),
)

_CHATS = ("messages", "conversations")
_CLUSTERS = ("articles", "documents")
_NUMBERED = re.compile(r"summary_?\d")
_BESIDE = ("title", "section_names", "more_summaries", "tokenised", "readable", "name")
KNOWN_KEYS = frozenset([*ALL_SOURCES, *ALL_SUMMARIES, *IDS, *PREDICTIONS, *_CHATS, *_BESIDE])
_SPEAKERS = {"user": "text", "human": "text", "assistant": "summary", "gpt": "summary"}


class KeysError(InputError):
    """A record without a source or a summary. `short` lacks the list of all known keys."""

    def __init__(self, record: dict):
        self.short = f"no source and summary among {sorted({*map(str, record)} - {'tokenised'})}"
        for others in (OTHER_SOURCES, OTHER_SUMMARIES):
            if len(names := _present(record, others)) > 1:
                self.short += f" (which one: {', '.join(map(repr, names))}?)"
        super().__init__(f"{self.short}. {known_keys()}")


def known_keys() -> str:
    """Name the keys that records may have, and say what to do with others."""
    sources, summaries = ("'" + "', '".join(keys) + "'" for keys in (SOURCES, SUMMARIES))
    return (
        f"A source is named {sources}; a summary {summaries}. Rename your keys, to 'text' and "
        "'summary', say"
    )


def whole_number(name: Any) -> Any:
    """Return an id that is a whole number as one: pandas reads a column with a missing value as
    floats."""
    return int(name) if isinstance(name, float) and name.is_integer() else name


def check_no_table(records: Any) -> None:
    """Raise InputError for a table of pandas, whose items are the names of its columns."""
    if hasattr(records, "columns") and hasattr(records, "to_dict"):
        raise InputError(
            f"a {type(records).__name__} is no list of texts or records: give its rows, "
            "table.to_dict('records'), or a column, table['text']"
        )


def source_key(record: dict) -> str | None:
    """Return the key of a record's source; None where there is none, or more than one might be."""
    return first_key(record, SOURCES) or _only_key(record, OTHER_SOURCES)


def summary_key(record: dict) -> str | None:
    """Return the key of a record's summary, as `source_key` does."""
    return first_key(record, SUMMARIES) or _only_key(record, OTHER_SUMMARIES)


def with_known_keys(record: dict) -> dict:
    """Return a record with known keys in lower case, and all without spaces around them. A chat of
    a question and an answer gets a text and a summary, a cluster of articles sections, and several
    numbered summaries become one and `more_summaries`.

    >>> with_known_keys({"ID": 1, "Text": "Bees fly.", " Year": 2001})
    {'id': 1, 'text': 'Bees fly.', 'Year': 2001}
    """
    found = {}
    for key, value in record.items():
        name = str(key).strip()
        is_known = name.lower() in KNOWN_KEYS and name.lower() not in record
        found[name.lower() if is_known else name] = value
    for key in _present(found, _CHATS):
        found |= _turns(found[key])
    # DialogSum has three summaries of each test text.
    numbered = [found[key] for key in sorted(found) if _NUMBERED.fullmatch(key)]
    numbered = [summary for summary in numbered if summary and isinstance(summary, str | list)]
    if numbered and not _present(found, ALL_SUMMARIES):
        found |= {"summary": numbered[0], "more_summaries": numbered[1:]}
    for key in _present(found, ALL_SUMMARIES):
        found[key] = _first_answer(found[key])
    # Without a summary, the articles are the records.
    if _present(found, ALL_SUMMARIES) and not _present(found, ALL_SOURCES):
        for key in _present(found, _CLUSTERS):
            found |= _cluster(found[key])
    return found


def _cluster(articles: Any) -> dict[str, list]:
    """Return articles as sections, if each is an object with its text."""
    members = articles if isinstance(articles, list) else []
    keys = [source_key(member) if isinstance(member, dict) else None for member in members]
    if not keys or None in keys:
        return {}
    return {
        "section_names": [f"article {number}" for number in range(1, len(keys) + 1)],
        "sections": [member[key] for member, key in zip(members, keys)],
    }


def _first_answer(value: Any) -> Any:
    """Return the answer to QMSum's first query, which is for a summary of the whole meeting; any
    other value as it is."""
    first = value[0] if isinstance(value, list) and value else None
    if isinstance(first, dict) and {"query", "answer"} <= first.keys():
        return first["answer"]
    return value


def _turns(turns: Any) -> dict[str, str]:
    """Return what a person writes in a chat and the answer, as text and summary; nothing where
    there is more than one of each."""
    texts = []
    for turn in turns if isinstance(turns, list) else []:
        speaker = turn.get("role", turn.get("from")) if isinstance(turn, dict) else None
        if speaker in _SPEAKERS:
            texts.append((_SPEAKERS[speaker], turn.get("content", turn.get("value"))))
    names = [name for name, _ in texts]
    return dict(texts) if names == ["text", "summary"] else {}


def first_key(record: dict, keys: Iterable[str]) -> str | None:
    """Return the first of the keys that a record has."""
    return next((key for key in keys if key in record), None)


def _only_key(record: dict, keys: Iterable[str]) -> str | None:
    """Return that one of the keys which a record has, if it has no other of them."""
    present = _present(record, keys)
    return present[0] if len(present) == 1 else None


def _present(record: dict, keys: Iterable[str]) -> list[str]:
    # In Webis TL;DR, "content" is "body" without its summary.
    hidden = "body" if {"normalizedBody", "content"} <= record.keys() else ""
    return [key for key in keys if key in record and key != hidden]
