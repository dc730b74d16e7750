"""Subtitles (SRT, WebVTT, ASS, SSA, transcripts of videos): the words, without numbers and
times."""

import html
import re

from lib.data.characters import join_lines
from lib.data.documents import checked_text
from lib.data.texts import Text

_TIME = r"(?:\d+:)?\d{1,2}:\d\d(?:[,.]\d{1,3})?"
# With the number of the cue before it, and places on the screen behind it.
_CUE = r"(?:[ \t]*\d+|(?<=\n\n)\S{1,40})[ \t]*\n"
_TIMES = re.compile(
    rf"^(?:{_CUE})?[ \t]*{_TIME}[ \t]*-->.*$|^[ \t]*{_TIME}[ \t]*$"
    rf"|^[ \t]*\[{_TIME}[ \t]*-->[ \t]*{_TIME}\]",  # Whisper's, before the words
    re.MULTILINE,
)
_HEADER = re.compile(r"\s*WEBVTT.*(?:\n.+)*|^(?:NOTE|STYLE|REGION)\b.*(?:\n.+)*", re.MULTILINE)
_SPEAKER = re.compile(r"<v(?:\.\S*)?\s+([^>]+)>")
_TAG = re.compile(r"</?(?:[bciuv]|font|ruby|rt|lang)\b[^>]*>|<[\d:.]+>|\{\\[^}]*\}", re.IGNORECASE)
_DRAWING = re.compile(r"\\p[1-9]")  # a shape in place of words
_NEW_SPEAKER = re.compile(r"[-–—]\s?\S|>>")


def subtitle_text(text: str) -> Text:
    """Read the words of subtitles. A sentence may go on in the next one, but for another speaker.

    What several subtitles in a row repeat (captions that roll) is read once.
    """
    found = Text()
    text = checked_text(text, "text")
    if "[Script Info]" in text[:100]:
        text = _cues_of_script(text, found)
    for kind, pattern in (("notes of subtitles", _HEADER), ("times of subtitles", _TIMES)):
        for part in pattern.findall(text):
            found.leave_out(kind, part)
        text = pattern.sub("\n\n", text)
    paragraphs: list[list[str]] = [[]]
    last: list[str] = []
    for cue in re.split(r"\n\s*\n", text.strip()):
        plain = html.unescape(_TAG.sub("", _SPEAKER.sub(r"\1: ", cue)))
        lines = [" ".join(line.split()) for line in plain.splitlines() if line.strip()]
        fresh = [line for line in lines if line not in last]
        found.leave_out("repeated lines of subtitles", " ".join(set(lines) - set(fresh)))
        last = lines
        is_named = bool(_SPEAKER.match(cue.strip()))
        for number, line in enumerate(fresh):
            if _NEW_SPEAKER.match(line) or (is_named and number == 0):
                paragraphs.append([line])
            elif number == 0:
                paragraphs[-1].append(line)
            else:
                paragraphs[-1][-1] = join_lines([paragraphs[-1][-1], line])
    for paragraph in paragraphs:
        found.add_paragraph("\n".join(paragraph))
    return found


def _cues_of_script(text: str, found: Text) -> str:
    """Return the speech of a script for subtitles (ASS, SSA) as cues, in the order of their times.

    A script names the fields of its events once; the last one is the speech.
    """
    head, _, events = text.partition("[Events]")
    found.leave_out("notes of subtitles", head)
    fields: list[str] = []
    cues: list[tuple[str, str]] = []
    for line in events.splitlines():
        kind, _, values = line.partition(":")
        if kind == "Format":
            fields = [name.strip() for name in values.split(",")]
        elif kind == "Dialogue" and not _DRAWING.search(values):
            event = dict(zip(fields, values.split(",", len(fields) - 1)))
            speech = re.sub(r"\{[^}]*\}", "", event.get("Text", ""))
            cues.append((event.get("Start", ""), re.sub(r"\\[Nn]", "\n", speech)))
        else:
            found.leave_out("notes of subtitles", line)
    cues.sort(key=lambda cue: cue[0])
    return "\n\n".join(speech.replace("\\h", " ") for _, speech in cues)
