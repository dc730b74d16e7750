"""Exports of chats: one conversation, not a document for each turn."""

import json

import pytest

from lib.data.documents import to_document
from lib.data.record_readers import read_json_lines

SLACK = [
    {"type": "message", "subtype": "channel_join", "user": "U2", "text": "came", "ts": "1"},
    {
        "type": "message",
        "user": "U1",
        "text": "It is <https://a.example|new> &amp; red. I",
        "ts": "2",
    },
    {"type": "message", "user": "U2", "text": "<@U1> So\nit is", "ts": "3"},
]
SLACK[1]["user_profile"] = {"real_name": "Ann Lee"}
TELEGRAM = {
    "name": "Town",
    "messages": [
        {"type": "service", "date": "2022-01-01", "actor": "Ann Lee", "action": "create_group"},
        {
            "type": "message",
            "date": "2022-01-01",
            "from": "Ann Lee",
            "text": ["It ", {"text": "is"}],
        },
        {"type": "message", "date": "2022-01-01", "from": "Tom", "text": "So it is"},
    ],
}
DISCORD = {
    "guild": {"name": "Town"},
    "messages": [
        {
            "type": "Default",
            "timestamp": "1",
            "content": "It is",
            "author": {"nickname": "Ann Lee"},
        },
        {"type": "Reply", "timestamp": "2", "content": "So it is", "author": {"name": "Tom"}},
    ],
}
DOCUMENTS = [{"type": "message", "date": "2022", "text": "It is.", "summary": "So."}] * 2


@pytest.mark.parametrize(
    ("export", "sentences"),
    [
        (SLACK, ["Ann Lee: It is new & red.", "I", "U2: @Ann Lee So it is"]),
        (TELEGRAM, ["Ann Lee: It is", "Tom: So it is"]),
        (DISCORD, ["Ann Lee: It is", "Tom: So it is"]),
    ],
    ids=["Slack", "Telegram", "Discord"],
)
def test_an_export_is_one_conversation(tmp_path, export, sentences):
    path = tmp_path / "day.json"
    path.write_text(json.dumps(export, indent=1), encoding="utf-8")
    ((_, record),) = read_json_lines(path)
    assert to_document(record, reference=False).sentences == sentences


def test_records_with_summaries_are_no_conversation(tmp_path):
    path = tmp_path / "train.json"
    path.write_text(json.dumps(DOCUMENTS), encoding="utf-8")
    assert [record for _, record in read_json_lines(path)] == DOCUMENTS
