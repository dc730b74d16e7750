"""The running text of an HTML page as Markdown, by Beautiful Soup and lxml (the extra `files`)."""

import re

from lib.data.jats import CITED, script
from lib.data.markdown import aside, heading_line, joined_parts, plain_lines

_INVISIBLE = (
    "script, style, template, noscript, svg, head, iframe, object, canvas, [hidden], "
    "[aria-hidden=true]"
)
_BESIDE = "nav, aside, form, button, select, dialog, pre:has(code)"
_BLOCKS = re.compile(
    "p|div|section|header|footer|[uod]l|li|d[td]|table|tr|blockquote|pre|figure|h[1-6]"
)
_BREAK = "\x1e"  # before and after a block
_HEADING = "\x1d"  # before a heading, as often as its level


def html_text(data: bytes) -> str:
    """Return headings and paragraphs of a page, or of its only `main` or `article`; set the rest
    aside."""
    from bs4 import BeautifulSoup

    page = BeautifulSoup(data, "lxml")
    title = (page.find("h1") or page.title or page.new_tag("p")).get_text()
    articles = page.find_all("article")
    root = page.find("main") or (articles[0] if len(articles) == 1 else page.body or page)
    for element in page.select(_INVISIBLE):
        element.decompose()
    beside = []
    for element in root.select(
        _BESIDE if root.name in ("main", "article") else f"{_BESIDE}, header, footer"
    ):
        if not element.decomposed:  # together with an element around it
            beside.append(element.get_text(" "))
            element.decompose()
    for element in root(["sup", "sub"]):
        before, after = (
            s if isinstance(s, str) else ""
            for s in (element.previous_sibling, element.next_sibling)
        )
        text = "" if element.find("a") else script(element.name, element.get_text(), before, after)
        element.replace_with(text.replace(CITED, ""))
    for element in root(["br", "td", "th"]):
        element.append(" ")
    for element in root("pre"):
        element.string = element.get_text().replace("\n\n", _BREAK)
    for element in root(lambda element: bool(_BLOCKS.fullmatch(element.name))):
        element.insert(
            0, _BREAK + _HEADING * int(element.name[1]) if element.name[1:].isdigit() else _BREAK
        )
        element.append(_BREAK)
    blocks = [block.strip(" \n\t") for block in root.get_text().split(_BREAK)]
    parts = [
        heading_line(b.strip(_HEADING), b.count(_HEADING)) if _HEADING in b else plain_lines(b)
        for b in blocks
    ]
    if not any(part.startswith("# ") for part in parts):
        parts.insert(0, heading_line(title, 1))
    root.extract()
    return joined_parts([*parts, aside(" ".join([*beside, page.get_text(" ")]))])
