"""The text of a DOCX file as Markdown, by python-docx (the extra `files`)."""

import io
import re

from lib.data.markdown import aside, heading_line, joined_parts, plain_lines
from lib.system.errors import InputError

_READ = (
    "./descendant::*[self::w:t or self::w:tab or self::w:br or "
    "self::w:noBreakHyphen][not(ancestor::w:moveFrom)]"
)
_SIGNS = {"tab": " ", "br": " ", "noBreakHyphen": "-"}


def docx_text(data: bytes) -> str:
    """Return paragraphs, headings and table cells in their order, with all changes accepted."""
    import docx
    from docx.text.paragraph import Paragraph

    try:
        document = docx.Document(io.BytesIO(data))
    except Exception as error:  # python-docx documents none
        raise InputError(f"DOCX that cannot be opened ({error})") from None
    parts = []
    for element in document.element.body.iter("{*}p"):
        if element.xpath("ancestor::*[local-name() = 'Fallback'] | self::*[not(self::w:p)]"):
            continue  # a text box for older programs; a paragraph of a drawing
        own = [t for t in element.xpath(_READ) if next(t.iterancestors("{*}p")) is element]
        text = "".join(
            ("^" if t.xpath("../w:rPr/w:vertAlign[@w:val='superscript']") else "")
            + (t.text or _SIGNS.get(t.tag.rpartition("}")[2], ""))
            for t in own
        )
        named = Paragraph(element, document._body).style
        style = (named.name or "").lower() if named else ""
        level = re.fullmatch(r"heading (\d)", style)
        if style == "title" or level:
            parts.append(heading_line(text, int(level[1]) + 1 if level else 1))
        else:
            parts.append(aside(text) if style.startswith("toc ") else plain_lines(text))
    return joined_parts(parts)
