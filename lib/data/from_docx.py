"""What pandoc loses of a DOCX, put into a form that it reads."""

import io
import re
import zipfile
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from lib.data.texts import Text
from lib.system.errors import InputError

_KNOWN_SYMBOLS = ("Symbol", "Wingdings")  # fonts whose signs pandoc knows


def mended(data: bytes) -> tuple[bytes, Text]:
    """Return a DOCX that pandoc reads whole, and a text with what is left out of it.

    Headings by outline level get a style of headings; text in boxes, fields and parts of its own is
    read; hidden text and the table of contents are left out.
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
                copy.writestr(name, part)
    except (zipfile.BadZipFile, ElementTree.ParseError, EOFError) as error:
        raise InputError(f"Word document that is damaged ({error})") from None
    return file.getvalue(), beside


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
