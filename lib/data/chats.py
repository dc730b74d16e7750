"""Chats and meetings as JSON: turns of one conversation, which are the records of an export, or the
value of a key in a record."""

import html
import re
from collections.abc import Sequence
from typing import Any

from lib.data.record_keys import SUMMARIES, first_key

# Types of turns in Slack and Telegram, and in Discord; others are notices of the program.
_TURNS = ("message", "Default", "Reply")
_TIMES = ("ts", "date", "timestamp")
_SPEAKERS = ("speaker", "role")
_WORDS = ("text", "content", "utterance")
_USER = re.compile(r"<@(\w+)(?:\|[^<>]*)?>")
# "<https://a.example|the page>" has words; an address without any remains.
_LINK = re.compile(r"<(?:[^<>|\s]*\|)?([^<>|]+)>")


def conversation(records: Sequence[Any]) -> str:
    """Return the turns of a chat, such as a day of Slack's export, each with its speaker's name.

    The text is empty for other records.
    """
    turns = [
        record
        for record in records
        if isinstance(record, dict)
        and record.get("type") in _TURNS
        and first_key(record, _TIMES)
        and not first_key(record, SUMMARIES)
    ]
    if not turns or 2 * len(turns) < len(records):
        return ""
    names = {str(turn.get("user")): _name(turn) for turn in turns}
    paragraphs = []
    for turn in turns:
        text = _plain(turn.get("text", turn.get("content")), names)
        # "channel_join": Ann has joined the channel
        if text and not str(turn.get("subtype")).startswith(("channel_", "group_")):
            paragraphs.append(f"{_name(turn)}: {text}")
    return "\n\n".join(paragraphs)


def with_turns_as_text(value: Any) -> Any:
    """Return a list of turns, as {speaker, text}, as one text, and any other value as it is.

    >>> with_turns_as_text([{"speaker": "Ann", "text": "Hi."}, {"speaker": "Tom", "text": "Yes?"}])
    'Ann: Hi.\\n\\nTom: Yes?'
    """
    turns = value if isinstance(value, list) else []
    texts = []
    for turn in turns:
        keys = turn if isinstance(turn, dict) else {}
        speaker, words = first_key(keys, _SPEAKERS), first_key(keys, _WORDS)
        if not speaker or not words:
            return value
        if turn[words]:
            texts.append(f"{turn[speaker]}: {turn[words]}")
    return "\n\n".join(texts) if turns else value


def _name(turn: dict) -> str:
    """Return the name of who writes a turn: in a profile (Slack), as "from" (Telegram) or in the
    author (Discord)."""
    about = [turn.get("user_profile"), turn.get("author"), turn]
    keys = ("real_name", "nickname", "name", "from", "username", "user")
    names = [own[key] for own in about if isinstance(own, dict) for key in keys if own.get(key)]
    return str(names[0]) if names else "?"


def _plain(text: Any, names: dict[str, str]) -> str:
    """Return the words of a turn: Telegram has a list of its parts, and Slack marks links and
    names."""
    parts = text if isinstance(text, list) else [text]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    joined = "".join(part for part in texts if isinstance(part, str))
    named = _USER.sub(lambda found: "@" + names.get(found[1], found[1]), joined)
    return html.unescape(_LINK.sub(r"\1", named)).strip()
