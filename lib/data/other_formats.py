"""Formats that are text and no running text: what they look like, and what to do with them."""

import re
import shlex
from pathlib import Path

from lib.system.errors import InputError

_PANDOC = "convert it: pandoc -f {format} {file} -t markdown -o {stem}.md"
_RECORDS = "give JSON records one a line, in a file .jsonl with fields title and text"
_MAIL = r"(?i:from|to|cc|date|subject|received|return-path|message-id|mime-version|in-reply-to|delivered-to)"

# Name, what the first characters of the file match, and what to do. The first that matches counts.
_FORMATS = [
    ("a pointer of Git LFS instead of the file", r"version https://git-lfs", "fetch it: git lfs pull"),
    ("a notebook", r"\s*\{(?=.*\"nbformat\")", "convert it: jupyter nbconvert --to markdown {file}"),
    ("JSON", r"\s*(?:\{\s*\"[^\"\n]*\"\s*:|\[\s*[\[{])", _RECORDS),
    ("subtitles", r"WEBVTT\b|\s*(?:\d+\n)?\d\d:\d\d:\d\d[,.]\d{3} --> ", "remove numbers and times, keep the words"),
    ("a mail", rf"(?:From \S+@\S+ .*\n)?(?:{_MAIL}:.*\n(?:[ \t].*\n)*){{3}}", "save its text without the headers"),
    ("a .story with its highlights", r"(?=.*^@highlight$)", "make a corpus of it (docs/corpora.md), or cut it there"),
    ("RTF", r"\s*\{\\rtf", _PANDOC),
    ("LaTeX", r"(?=.*^\s*\\(?:documentclass|begin\{document\}|chapter\*?\{|(?:sub)*section\*?\{))", _PANDOC),
    ("reStructuredText", r"(?=.*^\.\. (?:_[\w-]+:$|[\w-]+::))", _PANDOC),
    ("Org", r"\s*#\+\w+:|(?=.*^\s*:PROPERTIES:$)", _PANDOC),
    ("wiki markup", r"\s*\{\{\w|(?=.*^==[^=\n]+==$)(?=.*\[\[)", _PANDOC),
    ("XML other than JATS", r"\s*<\?xml\b|\s*<rss\b", "extract its text first"),
]
_PANDOC_NAMES = {"reStructuredText": "rst", "wiki markup": "mediawiki"}

# By their endings, since prose may look alike. A first line "#!" names a program too.
_CODE = "py js ts jsx java c cc cpp h hpp cs go rs rb php pl r sh bash sql css scss swift kt scala lua m jl ps1 bat"
_ENDINGS = {
    **dict.fromkeys(_CODE.split(), ("source code", "save the text that you want to summarize as .txt")),
    **dict.fromkeys(("yml", "yaml", "toml", "ini"), ("YAML or another configuration", "save its text as .txt")),
    **dict.fromkeys(("csv", "tsv", "parquet"), ("CSV or another table", "give records with columns title and text")),
}


def check_format(text: str, name: str) -> None:
    """Raise InputError, with what to do, for a text in a format that would be read as words.

    name: of the file, for its ending and for commands.
    """
    head = text.lstrip("\ufeff")[:20_000]
    found = _ENDINGS.get(Path(name).suffix.lower()[1:])
    if head.startswith("#!"):
        found = _ENDINGS["sh"]
    alike = ((k, advice) for k, pattern, advice in _FORMATS if re.match(pattern, head, re.MULTILINE | re.DOTALL))
    if found := found or next(alike, None):
        kind, advice = found
        words = {"file": shlex.quote(name), "stem": shlex.quote(Path(name).stem)}
        raise InputError(f"{kind}: {advice.format(format=_PANDOC_NAMES.get(kind, kind.lower()), **words)}")
