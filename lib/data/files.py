"""Texts in files: which format a file has, by its content, and who reads it.

Plain text, Markdown and JATS's XML need no more than the library; PDF, and by pandoc Word files and
many others, need the extra `files`.
"""

import email
import email.policy
import io
import re
import shlex
import tomllib
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lib.data.encodings import decoded
from lib.data.from_html import html_text
from lib.data.from_pandoc import pandoc_text
from lib.data.from_pdf import pdf_text
from lib.data.jats import jats_articles
from lib.data.markdown import markdown_text, notebook_text
from lib.data.office import mended
from lib.data.plain_text import plain_text
from lib.data.source_files import centred_names, mended_latex, mended_rst, mended_rtf
from lib.data.subtitles import subtitle_text
from lib.data.texts import Text
from lib.system.errors import InputError

_PROLOGUE = r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*"
_HTML = re.compile(rf"{_PROLOGUE}<(?:!doctype html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_FRAGMENT = re.compile(  # of a page
    r"\s*<(?:p|div|h[1-6]|article|section|ul|ol|table|span|center|blockquote)\b[^<>]*>(?=.*</)",
    re.IGNORECASE | re.DOTALL,
)
_TAG = re.compile(r"</(?:p|div|b|i|em|strong|a|span|li|h\d)>|<br ?/?>|&(?:nbsp|amp|quot|#\d+);")
_TAGS = 3  # at least, of a text that is worth a note
_XML = re.compile(r"\s*<(?:\?xml\b|!DOCTYPE article\b|pmc-articleset\b|article\b[^>]*\w=)")
# Zip files: a part that each has, pandoc's name of the format, and ours.
_ZIPS = [
    ("word/", "docx", "Word document"),
    ("ppt/", "pptx", "PowerPoint"),
    ("content.xml", "odt", "ODT"),
    ("META-INF/container.xml", "epub", "EPUB"),
]
_FORMATS = tomllib.loads(Path(__file__).with_name("text_formats.toml").read_text(encoding="utf-8"))


def texts_of(data: bytes, name: str = "FILE") -> list[Text]:
    """Return the texts that the bytes of a file hold: one, or one for each article of JATS's XML.

    name: for its ending, and for commands in errors. Raises InputError, with what to do, for a file
    that is not read.
    """
    ending = "".join(Path(name.lower()).suffixes[-2:])
    if b"%PDF-" in data[:1024]:
        _check_installed("PDF", "pdfminer")
        return [pdf_text(data, name)]
    if data.startswith(b"PK\x03\x04"):
        return [_zipped_text(data, name)]
    if ending.endswith((".xml", ".nxml", ".xml.gz", ".nxml.gz")):
        return _articles(data)
    if ending.endswith((".mhtml", ".mht")) or b"\nSnapshot-Content-Location:" in data[:2000]:
        return texts_of(_saved_page(data), f"{name}.html")
    for kind, form in _FORMATS.items():
        if "bytes" in form and data.startswith(form["bytes"].encode("latin-1")):
            raise _refusal(kind, form, name)
    text, note = decoded(data, is_marked_up=ending.endswith((".html", ".htm", ".xhtml")))
    head = text[:20_000]
    if _HTML.match(head) or ending.endswith((".html", ".htm", ".xhtml")):
        _check_installed("HTML", "bs4", "pypandoc")
        text, note = decoded(data, is_marked_up=True)
        found = html_text(text)
    elif _XML.match(head):
        return _articles(data)
    else:
        reader = _reader(head, name)
        if reader is plain_text and _FRAGMENT.match(head):
            _check_installed("HTML", "bs4", "pypandoc")
            found = html_text(text)
            found.notes.append("begins with a tag: read as HTML")
        else:
            found = reader(text)
            if reader is plain_text and len(_TAG.findall(head)) >= _TAGS:
                found.notes.append(
                    "tags of HTML are read as text: name the file .html if it is a page"
                )
    found.notes += [note] * bool(note)
    return [found]


def _reader(head: str, name: str) -> Callable[[str], Text]:
    """Return the reader of a text that begins so. Raises InputError, with what to do, for a format
    whose words would not be running text.

    name: of the file, for its ending and for commands.
    """
    ending = Path(name).suffix.lower()[1:]
    is_markdown = ending in ("md", "markdown")  # whose code may be of another format
    by_ending = [kind for kind, form in _FORMATS.items() if ending in form.get("endings", ())]
    by_content = [
        kind
        for kind, form in _FORMATS.items()
        if re.match(form.get("begins", "(?!)"), head, re.MULTILINE | re.DOTALL)
        and not (is_markdown and ("pandoc" in form or kind == "subtitles"))
    ]
    for kind in [*by_ending, *by_content]:
        form = _FORMATS[kind]
        if kind == "a notebook":
            return notebook_text
        if kind == "subtitles":
            return subtitle_text
        if "pandoc" not in form:
            raise _refusal(kind, form, name)
        _check_installed(kind, "pypandoc")
        return lambda text: _source_text(text, form["pandoc"], kind, name)
    return markdown_text if is_markdown else plain_text


def _source_text(text: str, form: str, kind: str, name: str) -> Text:
    beside, front = Text(), []
    if form == "latex":
        text, beside = mended_latex(text, name)
    elif form == "rst":
        text, beside = mended_rst(text)
    elif form == "rtf":
        text = mended_rtf(text)
        front = centred_names(text)
    return _with_beside(pandoc_text(text.encode(), form, kind, front=front), beside)


def _with_beside(found: Text, beside: Text) -> Text:
    found.set_aside += beside.set_aside
    found.notes += dict.fromkeys(beside.notes)
    return found


def _refusal(kind: str, form: dict[str, Any], name: str) -> InputError:
    words = {"file": shlex.quote(name), "stem": shlex.quote(Path(name).stem)}
    return InputError(f"{kind}: {form['advice'].format(**words)}")


def _saved_page(data: bytes) -> bytes:
    """Return the HTML of a page that a browser has saved in one file, as a mail has it (MHTML)."""
    page = email.message_from_bytes(data, policy=email.policy.default).get_body(("html",))
    if page is None:
        raise InputError("a saved page (MHTML) without its HTML: save it as HTML only")
    return page.get_payload(decode=True)


def _zipped_text(data: bytes, name: str) -> Text:
    """Read a document that is a zip file. Raises InputError for another one."""
    try:
        parts = zipfile.ZipFile(io.BytesIO(data)).namelist()
    except zipfile.BadZipFile as error:
        raise InputError(f"Word document or zip file that is damaged ({error})") from None
    for begin, form, kind in _ZIPS:
        if any(part.startswith(begin) for part in parts):
            _check_installed(kind, "pypandoc")
            data, beside = mended(data)
            return _with_beside(pandoc_text(data, form, kind), beside)
    is_table = any(part.startswith("xl/") for part in parts)
    kind = "an XLSX or another table" if is_table else "a zip file"
    raise _refusal(kind, _FORMATS[kind], name)


def _check_installed(kind: str, *modules: str) -> None:
    if any(find_spec(module) is None for module in modules):
        raise InputError(f'{kind}: to read it, install the extra `files`: pip install ".[files]"')


def _articles(data: bytes) -> list[Text]:
    return [_article_text(article) for article in jats_articles(data)]


def _article_text(article: dict[str, Any]) -> Text:
    if not article["sections"]:
        raise InputError("an article without a text: it has the abstract at most")
    found = Text()
    if article["title"]:
        found.add_heading(article["title"], 1)
    found.leave_out("the abstract", " ".join(article["abstract_text"]))
    found.leave_out("tables, figures and notes", " ".join(article["beside"]))
    for kind, words in article["behind"]:
        found.leave_out(kind, words)
    for name, paragraphs in zip(article["section_names"], article["sections"]):
        if name:
            found.parts.append((2, name))
            found.leave_out("headings", name)
        for paragraph in paragraphs:
            found.add_paragraph(paragraph)
    return found
