"""The running text of an HTML page, by Beautiful Soup and lxml (the extra `files`)."""

import re
from collections.abc import Iterator
from typing import Any

from lib.data.markdown import aside, heading_line, joined_parts, plain_lines, raised

_UNSEEN = {"script", "style", "template", "noscript", "svg", "head", "iframe", "object", "canvas"}
_BESIDE = {"nav", "aside", "footer", "header", "form", "button", "select", "dialog"}  # the text of a page
_INLINE = re.compile(
    "a|abbr|b|bd[io]|cite|code|data|del|dfn|em|font|i|ins|kbd|label|mark|q|s|samp|small|span|strong|sub|time|tt|u|var|wbr"
)
_LEVEL = re.compile(r"h([1-6])")


def html_text(source: str) -> str:
    """Headings and paragraphs of a page, or of the main part that it names; menus, code and what else stands beside
    the text stand aside. Without a heading of the first level the page's title is the title."""
    from bs4 import BeautifulSoup

    page = BeautifulSoup(source, "lxml")  # which knows what ends a paragraph that nothing ends
    title = page.find("h1") or page.title
    articles = page.find_all("article")
    root = page.find("main") or (articles[0] if len(articles) == 1 else page.body or page)
    parts = list(_Parts().of(root))
    if title and not any(part.startswith("# ") for part in parts):
        parts.insert(0, heading_line(title.get_text(), 1))
    for read in filter(None, (root, page.title)):
        read.extract()  # what is left stands beside the text
    return joined_parts([*parts, aside(_seen(page))])


def _seen(element: Any) -> str:
    texts = (text for text in element.find_all(string=True) if not _hidden(text))
    return " ".join(" ".join(texts).split())


def _hidden(text: Any) -> bool:
    """Whether a string is a comment, or stands where a browser shows none."""
    return type(text).__name__ != "NavigableString" or any(above.name in _UNSEEN for above in text.parents)


class _Parts:
    """What a walk through a page has read of the paragraph it is in."""

    def __init__(self) -> None:
        self._words: list[str] = []

    def of(self, element: Any) -> Iterator[str]:
        """Parts of an element in Markdown."""
        yield from self._inside(element)
        yield from self._paragraph()

    def _paragraph(self) -> Iterator[str]:
        text = " ".join("".join(self._words).split())
        self._words.clear()
        yield plain_lines(text)

    def _inside(self, element: Any) -> Iterator[str]:
        for child in element.children:
            if child.name is None:
                self._words += [] if _hidden(child) else [str(child)]
            elif not (child.name in _UNSEEN or child.has_attr("hidden") or child.get("aria-hidden") == "true"):
                yield from self._of_child(child)

    def _of_child(self, child: Any) -> Iterator[str]:
        name = child.name
        if name == "sup":  # one with a link leads to a note
            self._words += [] if child.find("a") else [raised("".join(self._words), child.get_text())]
        elif name == "br" or name in ("td", "th"):
            yield from self._inside(child)
            self._words.append(" ")
        elif _INLINE.fullmatch(name):
            yield from self._inside(child)
        else:
            yield from self._paragraph()
            yield from self._block(child)
            yield from self._paragraph()

    def _block(self, child: Any) -> Iterator[str]:
        if level := _LEVEL.fullmatch(child.name):
            yield heading_line(child.get_text(), int(level[1]))
        elif child.name == "pre":
            text = child.get_text()
            yield from [aside(text)] if child.find("code") else map(plain_lines, re.split(r"\n\s*\n", text))
        elif child.name in _BESIDE and not (
            child.name in ("header", "footer") and child.find_parent(["article", "main"])
        ):
            yield aside(_seen(child))
        else:
            yield from self._inside(child)
