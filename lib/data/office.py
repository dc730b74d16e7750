"""What pandoc loses of DOCX, PPTX and ODT, put into a form that it reads."""

import io
import re
import zipfile
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from lib.data.raised import script, without_citations
from lib.data.texts import Text
from lib.system.errors import InputError

_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_KNOWN_SYMBOLS = ("Symbol", "Wingdings")  # fonts whose signs pandoc knows


def mended(data: bytes) -> tuple[bytes, Text]:
    """Return a document that pandoc reads whole, and a text with what is left out of it.

    DOCX: headings by outline level get a style of headings; text in boxes, fields and parts of its
    own is read; hidden text and the table of contents are left out. PPTX: raised signs keep their
    meaning, and a word of several runs is one. PPTX and ODT: formulas become @formula.
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
                elif re.fullmatch(r"ppt/slides/slide\d+\.xml", name):
                    part = _mend_slide(_parsed(part))
                elif name == "content.xml":
                    part = _mend_formulas(part, archive)
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


def _mend_slide(root: Element) -> bytes:
    """Write each paragraph as one run, since pandoc sets runs apart."""
    for parent in list(root.iter()):
        for place, child in reversed(list(enumerate(parent))):
            if child.tag.endswith("}AlternateContent"):  # a shape with a formula, for new programs
                parent[place : place + 1] = list(child[0])
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
            elif kind in ("fldSimple", "customXml"):
                parent[place : place + 1] = list(child)
            elif kind == "p":
                _mend_paragraph(parent, place, levels, beside)
    return ElementTree.tostring(root)


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
