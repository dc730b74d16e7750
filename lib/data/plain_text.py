"""Plain text and Markdown as documents, by markdown-it-py."""

import html
import re

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.front_matter import front_matter_plugin

from lib.data.documents import Document, checked_text
from lib.data.sentences import split_sentences
from lib.data.tokenize import is_word
from lib.system.errors import InputError

_MARKDOWN = MarkdownIt("commonmark").enable("table").use(front_matter_plugin).use(footnote_plugin)
_TAG = re.compile(
    r"</?(?:a|abbr|b|center|cite|code|del|details|div|em|figure|font|i|img|ins|kbd|mark|p|picture|q|s|samp"
    r"|section|small|span|strong|su[bp]|summary|table|t[dhr]|tt|u|var)\b[^>]*>"
)
_LINE_BREAK = re.compile(r"<br\b[^>]*>")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
# "> 0.05 was the value", "- 2.4 degrees": the sign belongs to the text
_AMOUNT = re.compile(r"[.,~≈±$€£]?\d")
_PREPARE = [  # what people write and CommonMark does not know
    # front matter in TOML
    (re.compile(r"\A\+\+\+\n(.*?)\n\+\+\+\n", re.DOTALL), r"---\n\1\n---\n"),
    # pandoc ends it by dots
    (re.compile(r"\A---\n((?:[\w#-].*\n|[ \t].*\n)+?)\.\.\.\n"), r"---\n\1---\n"),
    # a line across the page
    (re.compile(r"\A---\n(?!(?:[\w-]+ ?[:=].*\n|[ \t#\[\]-].*\n|\n)+?---\n)"), ""),
    (re.compile(r"^(\s*[-*+]\s+)\[[ xX]\] ", re.MULTILINE), r"\1"),  # tasks
    # pandoc's attributes of a heading
    (re.compile(r"(?<=\S) \{[#.][\w:. -]*\}$", re.MULTILINE), ""),
    (re.compile(r"^> \[!\w+\][ ]*\n", re.MULTILINE), ""),  # a notice on GitHub
    (re.compile(r"^(\s*)[•‣▪●◦](?=\s)", re.MULTILINE), r"\1-"),
    # a mail's signature, which would make its last line a heading
    (re.compile(r"^--[ ]?$", re.MULTILINE), ""),
]
# The names by which sections of papers and reports are known, in a text without marks of headings.
is_section_name = re.compile(
    r"(?:(?:\d{1,3}\.)*\d{1,3}\.?\s+|[IVX]+\.?\s+)?(?=[A-Z])(?i:abstract|introduction|background|motivation"
    r"|overview|objectives?|aims?|(?:related|prior|future) work"
    r"|(?:\w+ and )?method(?:s|ology)?(?: and \w+)?|study design"
    r"|data ?sets?|experiments?|experimental (?:setup|design|results)|statistical "
    r"analys[ei]s|evaluation|findings"
    r"|(?:main )?results(?: and discussion)?|(?:general )?discussion(?: and "
    r"conclusions?)?|limitations|summary"
    r"|conclusions?(?: and \w+(?: \w+)?)?|concluding remarks|acknowledge?ments?|case "
    r"(?:report|presentation)"
    r"|data availability|references|bibliography|appendi(?:x|ces)(?: [a-z])?|(?:chapter|part) "
    r"\w+(?:[:.] .*)?):?"
).fullmatch


def parse_text(text: str, name: str = "", paragraphs: bool = False) -> Document:
    """Make a document without a summary; its title is `title:` in front matter, or a first heading
    of level 1.

    paragraphs: make each paragraph a section. Raises InputError for a text without a sentence.
    """
    title, sections, _ = _read(text, paragraphs)
    sections = [(heading, sentences) for heading, sentences in sections if sentences]
    if not sections:
        raise InputError("the text has no sentence: there is nothing to summarize")
    return Document(
        name,
        title,
        [heading for heading, _ in sections],
        [sentences for _, sentences in sections],
        [],
    )


def left_out_words(text: str) -> int:
    """Count the words that `parse_text` does not read: headings, code, comments, link definitions,
    alt texts."""
    return sum(is_word(word) for part in _read(text)[2] for word in part.split())


def _read(
    text: str, paragraphs: bool = False
) -> tuple[str, list[tuple[str, list[str]]], list[str]]:
    """Return the title, the headings with their sentences, and the texts that are left out."""
    text = checked_text(text, "text").replace("\r\n", "\n")
    for pattern, replacement in _PREPARE:
        text = pattern.sub(replacement, text)
    sections, environment, cells = [], {}, []
    tokens, lines = _MARKDOWN.parse(text, environment), text.split("\n")
    left_out = [
        f"{label} {link['title']}" for label, link in environment.get("references", {}).items()
    ]
    front = tokens[0].content if tokens and tokens[0].type == "front_matter" else ""
    found = re.search(r"^title\s*[:=]\s*(?:[|>]-?\s*\n\s+)?(.+)$", front, re.MULTILINE)
    title = found[1].strip("\"' ") if found else ""
    marked = any(token.type == "heading_open" for token in tokens)
    first = next((token for token in tokens if token.type == "inline"), None)

    def add(text: str) -> None:
        if sentences := split_sentences(text):
            if paragraphs or not sections:
                sections.append((sections[-1][0] if sections else "", []))
            sections[-1][1].extend(sentences)

    in_notes, start = False, Token("", "", 0)
    for token, opening, item in zip(tokens, [start, *tokens], [start, start, *tokens]):
        plain = _plain(token, left_out) if token.type in ("inline", "html_block") else token.content
        if item.type == "list_item_open" or opening.type == "heading_open":
            plain = " ".join(plain.split())  # elsewhere the splitter decides what a line end is
        level = int(opening.tag[1]) if opening.type == "heading_open" else 0
        if opening.type == "paragraph_open" and not marked and token is not tokens[-2]:
            level = (
                2 if is_section_name(plain) else int(token is first and _is_title(plain, tokens))
            )
        if token.type.startswith("footnote_block"):
            in_notes = token.type == "footnote_block_open"
        if token.type == "front_matter" or in_notes or _is_code(token, lines):
            left_out.append(plain)
        elif opening.type in ("td_open", "th_open"):
            cells.append(plain)
        elif token.type == "tr_close":
            add(", ".join(cells))
            cells.clear()
        elif level:
            left_out.append(plain)
            is_first = token is first and not is_section_name(plain)
            if not title and not sections and (level == 1 or is_first):
                title = plain
            else:
                sections.append((plain, []))
        elif item.type == "list_item_open" and (item.info or _AMOUNT.match(plain)):
            add(f"{item.info}{item.markup} {plain}")  # the number of an item stays
        else:
            add(f"> {plain}" if item.type == "blockquote_open" and _AMOUNT.match(plain) else plain)
    return title, sections, left_out


def _is_title(line: str, tokens: list[Token]) -> bool:
    """Return whether the first paragraph is a short line without an end (or a question) before one
    of prose."""
    following = next((token.content for token in tokens[3:] if token.type == "inline"), "")
    is_prose = len(following.split()) > 7 and following.rstrip()[-1] in '.?!”"'
    return (
        is_prose
        and len(line.split()) <= 15
        and bool(re.fullmatch(r"[A-Z“\"][^:|\n]*[\w?!)”]", line))
    )


def _is_code(token: Token, lines: list[str]) -> bool:
    """Return whether a block is code and no prose: fences also set stanzas apart, and paragraphs
    are indented."""
    if token.type == "code_block":
        return not re.match(r"[A-Z].*[.?!]$", token.content.strip(), re.DOTALL)
    is_closed = (
        token.type == "fence"
        and token.map
        and lines[token.map[1] - 1].strip().startswith(token.markup)
    )
    return bool(is_closed) and not token.content.startswith("\n")


def _plain(token: Token, left_out: list[str]) -> str:
    """Return a paragraph as text, apart at hard breaks; add comments and alternative texts to
    `left_out`."""
    special = {"softbreak": "\n", "hardbreak": "\n\n", "image": ""}
    text = ""
    for child in token.children or [token]:
        content = special.get(child.type, child.content)
        if child.type in ("html_inline", "html_block"):
            left_out += _COMMENT.findall(content)
            content = _COMMENT.sub("", content).replace("<sup>", "^").replace("<sub>", "_")
            content = html.unescape(_TAG.sub("", _LINE_BREAK.sub("\n", content)))
        elif child.type == "image":
            left_out.append(child.content)
        text += content
    return "\n".join(" ".join(line.split()) for line in text.splitlines())
