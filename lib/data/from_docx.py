"""The text of a DOCX file, by python-docx (the extra `files`)."""

import io
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from lib.data.markdown import aside, heading_line, joined_parts, plain_lines, raised
from lib.system.errors import InputError

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_SIGNS = {_W + "tab": " ", _W + "br": " ", _W + "cr": " ", _W + "noBreakHyphen": "-"}


def docx_text(data: bytes) -> str:
    """Paragraphs in their order, those of tables and text boxes too; notes and a table of contents stand aside.

    Raises InputError for a damaged file.
    """
    import docx
    from docx.text.paragraph import Paragraph

    try:
        document = docx.Document(io.BytesIO(data))
    except Exception as error:  # whatever the library raises of a damaged file
        raise InputError(f"DOCX that cannot be opened ({' '.join(str(error).split())})") from None
    parts: list[str] = []
    for element in document.element.body.iter(_W + "p"):
        if any(str(above.tag).endswith("}Fallback") for above in element.iterancestors()):
            continue  # a text box for older programs, once more
        text, styles = _words(element), _styles(Paragraph(element, document._body))  # type: ignore
        levels = [int(level[1]) for style in styles if (level := re.fullmatch(r"heading (\d)", style))]
        if styles[:1] == ["title"] or levels:
            parts.append(heading_line(text, levels[0] + 1 if levels else 1))
        else:
            parts.append(aside(text) if styles and styles[0].startswith("toc ") else plain_lines(text))
    package: Any = document.part.package
    notes = [p.blob for p in package.iter_parts() if re.search(r"/(foot|end)notes\.xml$", str(p.partname))]
    return joined_parts([*parts, aside(" ".join(t.text or "" for n in notes for t in _xml_texts(n)))])


def _xml_texts(data: bytes) -> Iterator[ElementTree.Element]:
    return ElementTree.fromstring(data).iter(_W + "t")


def _words(paragraph: Any) -> str:
    """The text of a paragraph as it is after all changes, without that of text boxes in it."""
    words: list[str] = []
    for element in paragraph.iter():
        if element.tag in (_W + "t", _M + "t"):
            above = [a for a in element.iterancestors() if a.tag in (_W + "p", _W + "moveFrom")]
            is_raised = element.getparent().find(f"{_W}rPr/{_W}vertAlign[@{_W}val='superscript']") is not None
            if above[0] is paragraph:
                words.append(raised("".join(words), element.text or "") if is_raised else element.text or "")
        else:
            words.append(_SIGNS.get(element.tag, ""))
    return "".join(words)


def _styles(paragraph: Any) -> list[str]:
    """Names of a paragraph's style and of those that it is derived from."""
    style, names = paragraph.style, []
    while style is not None and len(names) < 20:
        names.append((style.name or "").lower())
        style = style.base_style
    level = paragraph._p.find(f"{_W}pPr/{_W}outlineLvl")
    number = 9 if level is None else int(level.get(_W + "val", 9))
    return [*names, f"heading {number + 1}"] if number < 9 else names
