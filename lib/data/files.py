"""Texts in files, as Markdown: what `lib.data.plain_text` makes a document of.

The content of a file determines its format: plain text and Markdown, JATS's XML, and with the extra
`files` PDF, DOCX and HTML. What is no running text becomes code, which is counted and not read:
menus, page numbers, the abstract of an article, its figures, tables, boxes and statements.
"""

import codecs
import re
import shlex
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lib.data.from_docx import docx_text
from lib.data.from_html import html_text
from lib.data.from_pdf import pdf_text
from lib.data.jats import jats_articles
from lib.data.markdown import aside, heading_line, joined_parts, plain_lines
from lib.system.errors import InputError

# of texts beside a summary
ENDINGS = (".txt", ".md", ".markdown", ".pdf", ".docx", ".html", ".htm")

_PROLOGUE = r"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*"
_HTML = re.compile(rf"{_PROLOGUE}<(?:!doctype html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_XML = re.compile(
    r"(?:\xef\xbb\xbf)?\s*<(?:\?xml\b|!DOCTYPE article\b|pmc-articleset\b|article\b[^>]*\w=)"
)
_KNOWN = "plain text, Markdown, PDF, DOCX, HTML and JATS's XML are read"


def texts_of(data: bytes, name: str = "FILE") -> list[str]:
    """Return the texts that the bytes of a file hold as Markdown: one, or one for each article of
    JATS's XML.

    name: for commands in errors. Raises InputError, with what to do, for a file that is not read.
    """
    ending, head = Path(name).suffix.lower(), data[:4096].decode("latin-1")
    if b"%PDF-" in data[:1024]:
        _check_installed("PDF", "pdfminer")
        return [pdf_text(data, name)]
    if data.startswith(b"PK\x03\x04"):
        _check_installed("DOCX", "docx")
        return [docx_text(data)]
    if _HTML.match(head) or ending in (".html", ".htm", ".xhtml"):
        _check_installed("HTML", "bs4", "lxml")
        return [html_text(data)]
    if (
        _XML.match(head)
        or ending in (".xml", ".nxml")
        or name.lower().endswith((".xml.gz", ".nxml.gz"))
    ):
        return [_article_text(article) for article in jats_articles(data)]
    text = _decode(data, name)
    _check_format(text, name)
    return [text]


_OTHER_FORMATS = tomllib.loads(
    Path(__file__).with_name("refused_formats.toml").read_text(encoding="utf-8")
)


def _check_format(text: str, name: str) -> None:
    """Raise InputError, with what to do, for a text in a format that would be read as words.

    name: of the file, for its ending and for commands.
    """
    head, ending = text.lstrip("\ufeff")[:20_000], Path(name).suffix.lower()[1:]
    for kind, form in _OTHER_FORMATS.items():
        begins = form.get("begins", "(?!)")
        if ending in form.get("endings", ()) or re.match(begins, head, re.MULTILINE | re.DOTALL):
            words = {"file": shlex.quote(name), "stem": shlex.quote(Path(name).stem)}
            raise InputError(f"{kind}: {form['advice'].format(**words)}")


def _check_installed(kind: str, *modules: str) -> None:
    if any(find_spec(module) is None for module in modules):
        raise InputError(f'{kind}: to read it, install the extra `files`: pip install ".[files]"')


def _decode(data: bytes, name: str) -> str:
    """Return the text of bytes in UTF-8, or in UTF-16 with a byte-order mark."""
    encoding = (
        "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    )
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        # Few letters with accents among others are Windows-1252, which holds Latin-1.
        if re.search(rb"[\x00-\x08\x81\x8d\x8f\x90\x9d]|[\x80-\xff]{3}", data):
            convert = (
                f"iconv -f WINDOWS-1252 -t UTF-8 {shlex.quote(name)} > "
                f"{shlex.quote(Path(name).stem)}.utf8.txt"
            )
            raise InputError(
                f"not UTF-8 ({error.reason} at byte {error.start}); {_KNOWN}. "
                f"If it is a text in another encoding, such as WINDOWS-1252, convert it: {convert}"
            ) from None
        text = data.decode("cp1252")
    if "\0" in text:
        raise InputError(f"no text; {_KNOWN}. Convert it, or recognise its text")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _article_text(article: dict[str, Any]) -> str:
    if not article["sections"]:
        raise InputError("an article without a text: it has the abstract at most")
    parts = [
        heading_line(article["title"], 1),
        aside(" ".join([*article["abstract_text"], *article["beside"]])),
    ]
    for name, paragraphs in zip(article["section_names"], article["sections"]):
        parts += [heading_line(name, 2), *map(plain_lines, paragraphs)]
    return joined_parts(parts)
