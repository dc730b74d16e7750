"""What pandoc loses of DOCX, PPTX, ODT and EPUB, put into a form that it reads."""

import io
import posixpath
import re
import zipfile
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from lib.data.raised import script, without_citations
from lib.data.texts import Text
from lib.system.errors import InputError

_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_ODT_BESIDE = {
    "annotation": "comments",
    "tracked-changes": "deleted text",
    "table-of-content": "table of contents",
    "illustration-index": "table of contents",
    "table-index": "table of contents",
    "alphabetical-index": "table of contents",
    "bibliography": "references",
}
_ODT_HEADING = re.compile(r"Heading(?:_20_(\d+))?")
# names of pages of a book, in its guide (EPUB 2) or as `epub:type` (EPUB 3)
_BOOK_BESIDE = {
    *("cover", "title-page", "titlepage", "halftitlepage", "copyright-page", "copyright", "toc"),
    *("landmarks", "loi", "lot", "index", "colophon", "imprint"),
}
_BOOK_TYPE = re.compile(r"""<(?:body|section|nav|div)\b[^>]*\bepub:type=["']([\w-]+)""")
_PAGE_BREAK = re.compile(r"<(\w+)[^>]*epub:type=[\"']pagebreak[\"'][^>]*(?:/>|>[^<]*</\1>)")
_NOTE_MARK = re.compile(r"<a\b[^>]*epub:type=[\"']noteref[\"'][^>]*>.*?</a>", re.DOTALL)
# pandoc reads those with a mark of the same page, and loses the others
_NOTE = re.compile(
    r"<(\w+)\b[^>]*epub:type=[\"'](?:foot|end|rear)note[\"'][^>]*>.*?</\1>", re.DOTALL
)
_LINK = re.compile(r"<a\b.*?</a>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_TITLE_WORDS = 30  # of a page with the title, at most
_SLIDE_BESIDE = {"ftr", "hdr", "sldNum", "dt"}  # footer, header, number, date
_KNOWN_SYMBOLS = ("Symbol", "Wingdings")  # fonts whose signs pandoc knows


def mended(data: bytes) -> tuple[bytes, Text]:
    """Return a document that pandoc reads whole, and a text with what is left out of it.

    DOCX: headings by outline level get a style of headings; text in boxes, fields and parts of its
    own is read; hidden text and the table of contents are left out. PPTX: raised signs keep their
    meaning, a word of several runs is one, and shapes in groups are read; footers and notes of the
    speaker are left out. PPTX and ODT: formulas become @formula. ODT: titles
    are headings; tables in tables are read; authors, remarks and the table of contents are left
    out. EPUB: so are notes, and the pages of title, rights and contents.
    """
    beside = Text()
    file = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(file, "w") as copy:
            levels: dict[str, int] = {}
            names = sorted(archive.namelist(), key=lambda name: not name.endswith("styles.xml"))
            for name in names:
                part = archive.read(name)
                if name == "word/styles.xml":
                    part = _mend_styles(_parsed(part), levels)
                elif re.fullmatch(r"word/(?:document\d*|footnotes|endnotes)\.xml", name):
                    part = _mend_part(_parsed(part), levels, beside)
                elif name == "word/comments.xml":
                    beside.leave_out("comments", " ".join(_parsed(part).itertext()))
                elif re.fullmatch(r"ppt/slides/slide\d+\.xml", name):
                    part = _mend_slide(_parsed(part), beside)
                elif re.fullmatch(r"ppt/notesSlides/notesSlide\d+\.xml", name):
                    beside.leave_out("notes of the speaker", " ".join(_parsed(part).itertext()))
                elif name == "content.xml":
                    part = _mend_odt(_parsed(_mend_formulas(part, archive)), beside)
                elif name.endswith(".opf"):
                    part = _mend_book(_parsed(part), name, archive, beside)
                elif name.endswith(("html", ".htm")):
                    part = _mend_page(part, beside)
                copy.writestr(name, part)
    except (zipfile.BadZipFile, ElementTree.ParseError, EOFError) as error:
        raise InputError(f"document that is damaged ({error})") from None
    return file.getvalue(), beside


def _mend_formulas(content: bytes, archive: zipfile.ZipFile) -> bytes:
    """Replace the formulas of an ODT, which are objects of their own."""

    def replace(found: re.Match[bytes]) -> bytes:
        name = f"{found[1].decode().removeprefix('./').rstrip('/')}/content.xml"
        is_formula = name in archive.namelist() and b"<math" in archive.read(name)
        return b"@formula" if is_formula else found[0]

    before = rb"<draw:frame\b(?:(?!</draw:frame>).)*?"
    frame = before + rb'<draw:object[^>]*xlink:href="([^"]*)".*?</draw:frame>'
    return re.sub(frame, replace, content, flags=re.DOTALL)


def _mend_odt(root: Element, beside: Text) -> bytes:
    parents = {
        _attribute(style, "name"): _attribute(style, "parent-style-name")
        for style in root.iter()
        if style.tag.endswith("}style")
    }
    for parent in list(root.iter()):
        for place, child in reversed(list(enumerate(parent))):
            kind = child.tag.rpartition("}")[2]
            style = _attribute(child, "style-name")
            style = parents.get(style) or style
            words = " ".join(child.itertext())
            if kind in _ODT_BESIDE or (kind == "p" and style in ("Subtitle", "Author")):
                beside.leave_out(_ODT_BESIDE.get(kind, "front matter"), words)
                _remove(parent, place)
            elif kind == "p" and style == "Title":
                child.tag = child.tag[:-1] + "h"
                child.set(child.tag[:-1] + "outline-level", "1")
            elif kind in ("h", "p") and (heading := _ODT_HEADING.fullmatch(style)):
                child.tag = child.tag[:-1] + "h"
                level = _attribute(child, "outline-level") or heading[1] or "2"
                child.set(child.tag[:-1] + "outline-level", level)
            elif kind == "table" and parent.tag.endswith("}table-cell"):
                parent[place : place + 1] = [p for p in child.iter() if p.tag.endswith("}p")]
    return ElementTree.tostring(root)


def _remove(parent: Element, place: int) -> None:
    """Remove an element, and keep the text behind it."""
    tail = parent[place].tail or ""
    if place:
        parent[place - 1].tail = (parent[place - 1].tail or "") + tail
    else:
        parent.text = (parent.text or "") + tail
    del parent[place]


def _mend_book(root: Element, name: str, archive: zipfile.ZipFile, beside: Text) -> bytes:
    """Remove the pages beside the text from the order of reading."""
    folder = name.rpartition("/")[0]
    items = {item.get("id"): item for item in root.iterfind("{*}manifest/{*}item")}
    marked = {
        reference.get("href", "").partition("#")[0]
        for reference in root.iterfind("{*}guide/{*}reference")
        if reference.get("type") in _BOOK_BESIDE
    }
    title = " ".join(root.findtext("{*}metadata/{*}title", "").split())
    for spine in root.iterfind("{*}spine"):
        for page in list(spine):
            item = items.get(page.get("idref"), page)
            file = item.get("href", "")
            path = posixpath.normpath(posixpath.join(folder, file))
            if path not in archive.namelist() or len(spine) == 1:
                continue
            content = archive.read(path).decode(errors="replace")
            body = content[max(content.find("<body"), 0) :]
            is_nav = "nav" in item.get("properties", "").split()
            if is_nav or file in marked or _is_beside(body, title):
                beside.leave_out("title page, table of contents and rights", _words(body))
                spine.remove(page)
    return ElementTree.tostring(root)


def _mend_page(page: bytes, beside: Text) -> bytes:
    """Remove the ends of printed pages, and the notes with their marks, from a page of a book."""
    text = _PAGE_BREAK.sub("", page.decode(errors="surrogateescape"))
    for note in _NOTE.finditer(text):
        beside.leave_out("footnotes", _words(note[0]))
    text = _NOTE.sub("", _NOTE_MARK.sub("", text))
    return text.encode(errors="surrogateescape")


def _is_beside(body: str, title: str) -> bool:
    """Return whether a page of a book says that it is not text, is a list of links, or begins with
    the book's title and has no sentence."""
    words, linked = _words(body), _words(" ".join(_LINK.findall(body)))
    is_short = len(words.split()) <= _TITLE_WORDS and words[-1:] not in tuple(".!?")
    is_title = bool(title) and words.startswith(title) and is_short
    is_marked = not _BOOK_BESIDE.isdisjoint(_BOOK_TYPE.findall(body[:1000]))
    return is_marked or is_title or 2 * len(linked) > len(words)


def _words(page: str) -> str:
    return " ".join(_TAG.sub(" ", page).split())


def _mend_shapes(root: Element, beside: Text) -> None:
    """Take shapes out of groups; remove the footer, number and date of a slide."""
    for parent in reversed(list(root.iter())):  # from the inside, as groups hold groups
        for place, child in reversed(list(enumerate(parent))):
            holder = child.find("{*}nvSpPr/{*}nvPr/{*}ph")
            if child.tag.endswith("}AlternateContent"):  # a shape with a formula, for new programs
                parent[place : place + 1] = list(child[0])
            elif child.tag.endswith("}grpSp"):
                parent[place : place + 1] = list(child)
            elif holder is not None and holder.get("type") in _SLIDE_BESIDE:
                beside.leave_out("footers of slides", " ".join(child.itertext()))
                parent.remove(child)


def _mend_slide(root: Element, beside: Text) -> bytes:
    """Write each paragraph as one run, since pandoc sets runs apart."""
    _mend_shapes(root, beside)
    for paragraph in root.iter(f"{_DRAWING}p"):
        text, first = "", None
        for part in list(paragraph):
            kind = part.tag.rpartition("}")[2]
            if kind not in ("r", "br", "fld", "m"):
                continue
            run = part.find("{*}t")
            if kind == "r" and run is not None:
                properties = part.find("{*}rPr")
                baseline = 0 if properties is None else int(properties.get("baseline", 0))
                raised = "sup" if baseline > 0 else "sub"
                text += script(raised, run.text or "", text) if baseline else run.text or ""
                first = run if first is None else first
            else:
                text += " " if kind in ("br", "fld") else " @formula "
            if run is None or run is not first:
                paragraph.remove(part)
        if first is not None:
            first.text = without_citations(text)
    return ElementTree.tostring(root)


def _parsed(part: bytes) -> Element:
    """Parse a part, and keep its prefixes, by which pandoc knows what it reads."""
    for _, (prefix, address) in ElementTree.iterparse(io.BytesIO(part), ["start-ns"]):
        if not re.fullmatch(r"ns\d+", prefix):  # which ElementTree has for itself
            ElementTree.register_namespace(prefix, address)
    return ElementTree.fromstring(part)


def _mend_styles(root: Element, levels: dict[str, int]) -> bytes:
    """Add styles of headings, and note the outline level that each style has."""
    for style in root.iterfind("{*}style"):
        outline = style.find("{*}pPr/{*}outlineLvl")
        name = style.find("{*}name")
        is_heading = name is not None and _value(name).lower().startswith(("heading", "title"))
        if outline is not None and not is_heading:
            levels[_attribute(style, "styleId")] = int(_value(outline))
    space = root.tag.rpartition("}")[0] + "}"
    for level in range(9):
        own = {f"{space}type": "paragraph", f"{space}styleId": f"Outline{level}"}
        style = ElementTree.SubElement(root, f"{space}style", own)
        ElementTree.SubElement(style, f"{space}name", {f"{space}val": f"heading {level + 1}"})
    return ElementTree.tostring(root)


def _mend_part(root: Element, levels: dict[str, int], beside: Text) -> bytes:
    space = root.tag.rpartition("}")[0] + "}"
    for parent in list(root.iter()):
        for place, child in reversed(list(enumerate(parent))):
            kind = child.tag.rpartition("}")[2]
            if kind == "cr":
                child.tag = f"{space}br"
            elif kind == "noBreakHyphen":
                child.tag, child.text = f"{space}t", "-"
            elif kind == "sym" and not _attribute(child, "font").startswith(_KNOWN_SYMBOLS):
                code = int(_attribute(child, "char"), 16)
                child.tag, child.text = f"{space}t", chr(code if code < 0xE000 else 0xFFFD)
                if code >= 0xE000:  # a place of the font's own
                    font = _attribute(child, "font")
                    beside.notes.append(f"a sign of the font {font} is unknown, and written \ufffd")
            elif kind == "r" and _is_on(child.find("{*}rPr/{*}vanish")):
                beside.leave_out("hidden text", "".join(child.itertext()))
                parent.remove(child)
            elif kind == "sdt" and _is_contents(child):
                beside.leave_out("table of contents", " ".join(child.itertext()))
                parent.remove(child)
            elif kind in ("fldSimple", "customXml"):
                parent[place : place + 1] = list(child)
            elif kind == "p":
                _mend_paragraph(parent, place, levels, beside)
    return ElementTree.tostring(root)


def _is_contents(part: Element) -> bool:
    gallery = part.find("{*}sdtPr/{*}docPartObj/{*}docPartGallery")
    return gallery is not None and _value(gallery) == "Table of Contents"


def _mend_paragraph(parent: Element, place: int, levels: dict[str, int], beside: Text) -> None:
    """Give a heading its style; put the text of boxes behind their paragraph."""
    paragraph = parent[place]
    space = paragraph.tag.rpartition("}")[0] + "}"
    style = paragraph.find("{*}pPr/{*}pStyle")
    name = "" if style is None else _value(style)
    outline = paragraph.find("{*}pPr/{*}outlineLvl")
    level = levels.get(name, 9) if outline is None else int(_value(outline))
    if name.lower().startswith("toc") and name.lower() != "tocheading":
        beside.leave_out("table of contents", "".join(paragraph.itertext()))
        parent.remove(paragraph)
        return
    if level < 9 and not name.lower().startswith(("heading", "title")):
        properties = paragraph.find("{*}pPr")
        if style is None and properties is not None:
            style = Element(f"{space}pStyle")
            properties.insert(0, style)
        if style is not None:
            style.set(f"{space}val", f"Outline{level}")
    boxes = []
    for alternative in paragraph.iter():
        for choice in alternative.findall("{*}Fallback"):
            alternative.remove(choice)
    for box in paragraph.iter(f"{space}txbxContent"):
        boxes += list(box)
        box.clear()
    parent[place + 1 : place + 1] = boxes


def _attribute(element: Element, name: str) -> str:
    values = (value for key, value in element.items() if key.rpartition("}")[2] == name)
    return next(values, "")


def _value(element: Element) -> str:
    return _attribute(element, "val")


def _is_on(element: Element | None) -> bool:
    return element is not None and _value(element) not in ("0", "false", "off")
