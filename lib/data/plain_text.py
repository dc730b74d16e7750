"""Plain text and Markdown as documents."""

import re

from lib.data.documents import Document, checked_text
from lib.data.sentences import split_sentences
from lib.system.errors import InputError

_UNDERLINED = re.compile(r"(?:(?<=\n\n)|\A)(?P<name>\S.*)\n(?P<line>=+|-{2,})$", re.MULTILINE)
_HEADING = re.compile(r"^(?P<marks>#{1,6}) +(?P<name>\S.*?)(?: +#+)?$", re.MULTILINE)
_NUMBERED = re.compile(r"\d+(?:\.\d+)*\.? ")
# What Markdown adds to words, and what is left of it, in this order.
_MARKUP = [
    (re.compile(r"^ {0,3}(?:[-*+>] +|(?:[-*_] *){3,}$)", re.MULTILINE), ""),  # items, quotes, rules
    (re.compile(r"!\[[^\[\]]*\]\([^()]*\)"), ""),  # images
    (re.compile(r"\[([^\[\]]+)\]\([^()\s]*(?: [^()]*)?\)"), r"\1"),  # links
    (re.compile(r"(?<![\w*])(\*{1,3})(?=\S)([^*]+?)(?<=\S)\1(?![\w*])"), r"\2"),
    (re.compile(r"(?<!\w)(_{1,3})(?=\S)([^_]+?)(?<=\S)\1(?!\w)"), r"\2"),
    (re.compile(r"(?<!`)`([^`\n]+)`(?![`\w])"), r"\1"),  # code
]


def parse_text(text: str, name: str = "", paragraphs: bool = False) -> Document:
    """A `Document` without a summary from plain text or Markdown. `name` is its id.

    A section begins at a heading of Markdown, or in a text without such at a short line of its own that looks like
    one. A first-level heading before any text is the title. paragraphs: each is a section, under the name of the
    heading above it. Raises ValueError for a text without a sentence.
    """
    text = "\n".join(line.rstrip() for line in checked_text(text, "text").splitlines())
    text = re.sub(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1[`~]*$|\Z)", "", text, flags=re.MULTILINE | re.DOTALL)
    text = _UNDERLINED.sub(lambda m: ("# " if m["line"][0] == "=" else "## ") + m["name"], text)
    marked = bool(_HEADING.search(text))
    blocks = re.split(r"\n{2,}", _HEADING.sub(r"\n\n\g<0>\n\n", text).strip("\n"))
    title, heading, sections = "", "", []
    for number, block in enumerate(blocks, 1):
        found = _HEADING.fullmatch(block)
        if found and found["marks"] == "#" and not title and not sections:
            title = _plain(found["name"])
        elif found or (not marked and number < len(blocks) and _is_heading(block)):
            heading = _plain(found["name"] if found else block)
            sections.append((heading, []))
        elif sentences := split_sentences(_plain(block)):
            if paragraphs or not sections:
                sections.append((heading, []))
            sections[-1][1].extend(sentences)
    filled = [(heading, sentences) for heading, sentences in sections if sentences]
    if not filled:
        raise InputError("the text has no sentence: there is nothing to summarize")
    return Document(name, title, [heading for heading, _ in filled], [sentences for _, sentences in filled], [])


def _is_heading(block: str) -> bool:
    """Whether a block is a short line that begins like a title or with a number, and does not end like a sentence."""
    line = block.strip()
    short = "\n" not in line and len(line.split()) <= 10 and line[-1] not in ".,;:"
    return short and bool(line[0].isupper() or _NUMBERED.match(line))


def _plain(block: str) -> str:
    """One line without marks of Markdown."""
    for pattern, replacement in _MARKUP:
        block = pattern.sub(replacement, block)
    return " ".join(block.split())
