"""Files that people have texts in, as Markdown: what `lib.data.plain_text` makes a document of.

What a file holds is told by its content: plain text and Markdown, JATS's XML; with the extra `files` PDF, DOCX and
HTML too. For others an error says what to do. What is no running text stands as code, so that it is counted and not
read: menus, page numbers, footnotes; of an article the abstract, figures, tables, boxes and statements.
"""

import codecs
import io
import re
import shlex
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lib.data.documents import CorpusError
from lib.data.from_docx import docx_text
from lib.data.from_html import html_text
from lib.data.from_pdf import pdf_text
from lib.data.jats import jats_articles
from lib.data.markdown import aside, heading_line, joined_parts, plain_lines
from lib.system.errors import InputError

ENDINGS = (".txt", ".md", ".markdown", ".pdf", ".docx", ".html", ".htm")  # of texts that stand beside a summary


def read_text_file(path: Path) -> list[str]:
    """Texts of a file as Markdown: one, or one for each article of JATS's XML.

    Raises CorpusError for a file that is no text, or that needs what is not installed: what to do.
    """
    if path.is_dir():
        raise CorpusError(f"{path}: a folder: give the texts in it, as {path}/*")
    try:
        return texts_of(path.read_bytes(), str(path))
    except InputError as error:
        raise CorpusError(f"{path}: {error}") from None


def texts_of(data: bytes, name: str = "FILE") -> list[str]:
    """Texts of what a file holds, as `read_text_file` has them. name: for commands that mend it.

    Raises InputError that says what to do.
    """
    try:
        return _texts_of(data, name)
    except RecursionError:
        raise InputError("elements within elements, too deep to be read") from None


def _texts_of(data: bytes, name: str) -> list[str]:
    ending = Path(name).suffix.lower()
    if data.startswith(b"PK\x03\x04"):
        return [_of_zip(data, name)]
    if b"%PDF-" in data[:1024]:
        _check_installed("PDF", "pdfminer")
        return [pdf_text(data, name)]
    if data.startswith(b"\x1f\x8b") and name.lower().endswith((".xml.gz", ".nxml.gz")):
        return [_article(article) for article in jats_articles(data)]
    _check_known(data, name)
    begin = data[:4096].decode("latin-1")
    if _HTML.match(begin) or ending in (".html", ".htm", ".xhtml"):
        _check_installed("HTML", "bs4", "lxml")
        return [html_text(_declared(data, name))]
    if _XML.match(begin) or ending in (".xml", ".nxml"):
        return [_article(article) for article in jats_articles(data)]
    text = decoded(data, name)
    if ending in (".tex", ".latex") or (ending not in (".md", ".markdown") and _LATEX.search(text[:20_000])):
        raise InputError(f"LaTeX, whose commands would be read as words. Convert it: {_pandoc(name, 'latex')}")
    return [text]


# ------------------------------------------------------------------------------------------------- what a file holds

_COMMENTS = r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*"
_HTML = re.compile(rf"(?:\xef\xbb\xbf)?{_COMMENTS}<(?:!doctype html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_XML = re.compile(
    r"(?:\xef\xbb\xbf)?\s*<(?:\?xml\b|!DOCTYPE article\b|pmc-articleset\b|article\b[^>]*(?:type|xmlns|dtd))"
)
_LATEX = re.compile(r"^\s*\\(?:documentclass|begin\{document\}|(?:chapter|(?:sub)*section)\*?\{)", re.MULTILINE)

_UNPACK = "an archive: unpack it, and give the texts in it"
_PICTURE = "a picture: recognise its text first, for example with tesseract {file} {stem}.ocr"
_SOUND = "sound or film, and no text"
_SIGNS = [  # at the begin of a file: what it holds, and what to do
    (rb"\{\\rtf", "RTF. Convert it: {pandoc}"),
    (rb"\xd0\xcf\x11\xe0", "a file of an old Office. Convert it: libreoffice --headless --convert-to docx {file}"),
    (rb"%!PS", "PostScript. Convert it: ps2pdf {file} {stem}.pdf"),
    (rb"\x89PNG|\xff\xd8\xff|GIF8|BM.{4}\0\0\0\0|II\*\0|MM\0\*|RIFF.{4}WEBP|.{4}ftyp(?:heic|avif|mif1)", _PICTURE),
    (rb"AT&TFORM", "DjVu. Take the text out of it: djvutxt {file} {stem}.djvu.txt"),
    (rb"\x1f\x8b|BZh\d|\xfd7zXZ|\x28\xb5\x2f\xfd|7z\xbc\xaf|Rar!|.{257}ustar", _UNPACK),
    (rb"ID3|RIFF.{4}(?:WAVE|AVI )|OggS|fLaC|.{4}ftyp|\x1aE\xdf\xa3", _SOUND),
    (rb"PAR1", "records in Parquet: name it {stem}.parquet"),
    (rb"\x7fELF|MZ.{2}\0|SQLite format 3|\x89HDF", "a program or a data base, and no text"),
]


def _check_known(data: bytes, name: str) -> None:
    """Raise InputError for a format that is not read, with what to do."""
    for sign, advice in _SIGNS:
        if re.match(sign, data[:300], re.DOTALL):
            raise InputError(advice.format(file=shlex.quote(name), stem=_stem(name), pandoc=_pandoc(name, "rtf")))


def _stem(name: str) -> str:
    return shlex.quote(Path(name).stem)


def _pandoc(name: str, form: str) -> str:
    return f"pandoc -f {form} {shlex.quote(name)} -t markdown -o {_stem(name)}.{form}.md"


def _of_zip(data: bytes, name: str) -> str:
    """What is in a zip file: DOCX is; other formats are."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            names = set(file.namelist())
            kind = file.read("mimetype").decode("latin-1") if "mimetype" in names else ""
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise InputError(f"a damaged zip file, or DOCX ({error})") from None
    if "word/document.xml" in names:
        _check_installed("DOCX", "docx")
        return docx_text(data)
    if "opendocument.text" in kind or "epub" in kind:
        known, form = ("EPUB", "epub") if "epub" in kind else ("OpenDocument", "odt")
        raise InputError(f"{known}. Convert it: {_pandoc(name, form)}")
    if any(part.startswith(("ppt/", "xl/")) for part in names) or "opendocument" in kind:
        raise InputError("slides or a table of an Office: save it as PDF, or as CSV with a text in each row")
    raise InputError(_UNPACK)


def _check_installed(kind: str, *modules: str) -> None:
    if any(find_spec(module) is None for module in modules):
        raise InputError(f'{kind}: to read it, install the extra `files`: pip install ".[files]"')


# ------------------------------------------------------------------------------------------------ characters of text


def decoded(data: bytes, name: str = "FILE") -> str:
    """Text of bytes in UTF-8, or in UTF-16 or UTF-32 with a mark. Raises InputError that says what else it may be."""
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF32_LE, "utf-32"),
        (codecs.BOM_UTF32_BE, "utf-32"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if data.startswith(mark):
            return _decoded(data, encoding, name)
    if b"\0" in data and (encoding := _wide(data)):
        raise InputError(f"it seems to be in {encoding}, and does not say so. Convert it: {_iconv(name, encoding)}")
    return _decoded(data, "utf-8", name)


def _declared(data: bytes, name: str) -> str:
    """Text of an HTML page in the encoding that it declares."""
    try:
        return decoded(data, name)
    except InputError:
        declared = re.search(rb"charset=[\"']?([\w-]+)", data[:4096])
        if not declared:
            raise
    encoding = declared[1].decode()
    try:
        return data.decode(encoding)
    except (LookupError, UnicodeDecodeError) as error:
        raise InputError(f"it says that it is in {encoding}: {error}") from None


def _decoded(data: bytes, encoding: str, name: str) -> str:
    try:
        return data.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        said = f"not {'UTF-8' if 'utf-8' in encoding else encoding.upper()} ({error.reason} at byte {error.start})"
        guess = _of_one_byte(data) if encoding == "utf-8" else ""
        if guess:
            raise InputError(f"{said}; it seems to be {guess}. Convert it: {_iconv(name, guess)}") from None
        raise InputError(f"{said}; name its encoding to convert it: {_iconv(name, 'ENCODING')}") from None


def _iconv(name: str, encoding: str) -> str:
    return f"iconv -f {encoding} -t UTF-8 {shlex.quote(name)} > {_stem(name)}.utf8.txt"


def _wide(data: bytes) -> str:
    """The form of UTF-16 in which bytes have the most spaces and line ends; none where there is none."""
    even = data[: len(data) // 2 * 2]
    counts = {}
    for encoding in ("UTF-16LE", "UTF-16BE"):
        text = even.decode(encoding, errors="replace")
        counts[encoding] = sum(text.count(c) for c in " \n") if text.count("\ufffd") <= len(text) // 100 else 0
    best = max(counts, key=lambda encoding: counts[encoding])
    return best if counts[best] else ""


def _of_one_byte(data: bytes) -> str:
    """WINDOWS-1252 or ISO-8859-1 (Latin-1), where the text that these make of bytes is mostly of plain letters, as in
    the languages of western Europe."""
    high = [byte for byte in data if byte >= 0x80]
    letters = sum(chr(byte).isalpha() for byte in data if byte < 0x80)
    if (
        len(high) > letters / 2
        or set(high) & {0x81, 0x8D, 0x8F, 0x90, 0x9D}
        or re.search(rb"[\0-\x08\x0e-\x1a]", data)
    ):
        return ""
    return "WINDOWS-1252" if any(byte < 0xA0 for byte in high) else "ISO-8859-1"


# --------------------------------------------------------------------------------------------------------------- XML


def _article(record: dict[str, Any]) -> str:
    if not record["sections"]:
        raise InputError("an article without a text, of which there is the abstract at most")
    parts = [heading_line(record["title"], 1), aside(" ".join([*record["abstract_text"], *record["beside"]]))]
    for name, paragraphs in zip(record["section_names"], record["sections"]):
        parts += [heading_line(name, 2), *map(plain_lines, paragraphs)]
    return joined_parts(parts)
