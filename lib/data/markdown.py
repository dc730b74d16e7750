"""Markdown as a `Text`, by markdown-it-py. Words that are not read are kept aside by kind."""

import html
import json
import re
from itertools import count

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.front_matter import front_matter_plugin
from mdit_py_plugins.texmath import texmath_plugin

from lib.data.documents import checked_text
from lib.data.from_pandoc import formula
from lib.data.pages import goes_on
from lib.data.raised import CITED, script, without_citations
from lib.data.texts import BETWEEN_LINKS, MENUS, Text, is_section_name
from lib.system.errors import InputError

_MARKDOWN = (
    MarkdownIt("commonmark")
    .enable("table")
    .use(front_matter_plugin)
    .use(footnote_plugin)
    # "$5 and $6" is no formula
    .use(dollarmath_plugin, allow_space=False, allow_digits=False, double_inline=True)
    .use(texmath_plugin, delimiters="brackets")
)
_TAG = re.compile(  # "a<b and c>d" is none
    r"</?(?:a|abbr|b|blockquote|center|cite|code|del|d[dlt]|details|div|em|figure|font|h[1-6r]"
    r"|i|img|ins|kbd|li|mark|[ou]l|p|picture|q|s|samp|section|small|span|strong|su[bp]|summary|table|t[dhr]|tt|u|var)"
    r"(?:\s+(?:[\w:-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s>]+)|open|hidden))*\s*/?>"
)
_LINK = re.compile(r"<a\b.*?</a>", re.DOTALL)
_LINE_BREAK = re.compile(r"<br\b[^>]*>")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
# Raised and lowered text while a paragraph is read; other signs of this kind are not in texts.
_SCRIPTS = {"<sup>": "\ufdd2", "<sub>": "\ufdd3", "</sup>": "\ufdd4", "</sub>": "\ufdd4"}
_SCRIPT = re.compile("(\ufdd2|\ufdd3)([^\ufdd2-\ufdd4]*)\ufdd4")
_SCRIPT_TAG = re.compile("|".join(_SCRIPTS))
_CAPTION = re.compile(r"(?:Figure|Fig\.|Table|TABLE) \d")
# "> 0.05 was the value", "- 2.4 degrees": the sign belongs to the text
_AMOUNT = re.compile(r"[.,~≈±$€£]?\d")


def _heading(found: re.Match[str]) -> str:
    return f"\n{'#' * int(found[1])} {' '.join(found[2].split())}\n"


_HIGHLIGHT = re.compile(r"^\{% (?:end)?highlight\b.*%\}$", re.MULTILINE)  # code in Jekyll
_CODE = re.compile(r"^[ >]*(```+|~~~+).*?^[ >]*\1|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_KEPT = "\ufdd1{}\ufdd1"  # for code, in which nothing is replaced
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
    # a heading as HTML, with a logo
    (re.compile(r"^<h([1-6])\b[^>]*>(.*?)</h\1>", re.MULTILINE | re.DOTALL), _heading),
    # of Obsidian: a remark, marked words, names of places, tags
    (re.compile(r"%%.*?%%|[ ]\^[\w-]+$|^(?:#[^\W\d][\w/-]*[ ]*)+$", re.DOTALL | re.MULTILINE), ""),
    (re.compile(r"==(?=\S)([^=\n]+)(?<=\S)=="), r"\1"),
    # a notice on GitHub or in Obsidian, a part between colons, attributes of kramdown
    (re.compile(r"^> \[!\w+\][ ]*(?:\n|(?=\S))", re.MULTILINE), "> "),
    (re.compile(r"^:{3,}.*$|^\{:.*\}$", re.MULTILINE), ""),
    # tags of Jekyll and Hugo; imports, remarks and components of MDX
    (re.compile(r"\{%[^{}\n]*%\}|\{\{[<%]?[^{}\n]*\}\}|\{/\*.*?\*/\}", re.DOTALL), ""),
    (re.compile(r"^import .* from .*$|^export (?:const|default|function) .*$", re.MULTILINE), ""),
    (re.compile(r"^[ \t]*</?[A-Z][\w.]*(?:\s[^<>]*)?>[ \t]*$", re.MULTILINE), "\n"),
    (re.compile(r"<[A-Z][\w.]*(?:\s[^<>]*)?/>", re.MULTILINE), ""),
    (re.compile(r"<([A-Z][\w.]*)(?:\s[^<>]*)?>([^<>\n]*)</\1>"), r"\2"),
    # a link of a wiki, and a citation by its key
    (re.compile(r"!\[\[[^\]\n]*\]\]"), ""),
    (re.compile(r"\[\[(?:[^\]|\n]*\|)?([^\]|\n]+)\]\]"), r"\1"),
    (re.compile(r"[ ]?\[-?@[\w:.-]+(?:[,;] [^\]\n]*)?\]"), ""),
    (re.compile(r"(?<![\\\w$])\$(?=\d[\d.,]*(?:[kKmM]|bn)?[\s.,;)])"), r"\$"),  # an amount of money
    (re.compile(r"(?<=[\d)])\*(?=[\d(])"), r"\\*"),  # a product
    (re.compile(r"^(\s*)[•‣▪●◦](?=\s)", re.MULTILINE), r"\1-"),
    # a mail's signature, which would make its last line a heading
    (re.compile(r"^--[ ]?$", re.MULTILINE), ""),
]


def markdown_text(text: str) -> Text:
    """Find the headings and the paragraphs of Markdown.

    The title is `title:` in front matter, or a heading before all else.
    """
    text = checked_text(text, "text")
    found, environment = Text(), {}
    text = _HIGHLIGHT.sub("```", text)
    codes = [code[0] for code in _CODE.finditer(text)]
    numbers = count()
    text = _CODE.sub(lambda _: _KEPT.format(next(numbers)), text)
    for pattern, replacement in _PREPARE:
        if replacement in ("", "\n"):
            found.leave_out("markup", " ".join(match[0] for match in pattern.finditer(text)))
        text = pattern.sub(replacement, text)
    text = re.sub(_KEPT.format(r"(\d+)"), lambda kept: codes[int(kept[1])], text)
    tokens, lines = _MARKDOWN.parse(text, environment), text.split("\n")
    for label, link in environment.get("references", {}).items():
        found.leave_out("links", f"{label} {link['title']}")
    if tokens and tokens[0].type == "front_matter":
        front = tokens[0].content
        found.leave_out("front matter", front)
        title = re.search(r"^title\s*[:=]\s*(?:[|>]-?\s*\n\s+)?(.+)$", front, re.MULTILINE)
        found.title = title[1].strip("\"' ") if title else ""
    has_headings = any(token.type == "heading_open" for token in tokens)
    cells: list[str] = []
    in_notes, start = False, Token("", "", 0)
    for token, opening, item in zip(tokens, [start, *tokens], [start, start, *tokens]):
        plain = _plain(token, found) if token.type in ("inline", "html_block") else token.content
        if item.type == "list_item_open" or opening.type == "heading_open":
            plain = " ".join(plain.split())  # elsewhere the splitter decides what a line end is
        if token.type.startswith("footnote_block"):
            in_notes = token.type == "footnote_block_open"
        is_known = opening.type == "paragraph_open" and not has_headings and token is not tokens[-2]
        is_block = token.type == "html_block" or opening.type == "paragraph_open"
        if is_block and _is_menu(token):
            found.leave_out(MENUS, plain)
        elif in_notes:
            found.leave_out("footnotes", plain)
        elif _is_code(token, lines):
            found.leave_out("code", plain)
        elif opening.type in ("td_open", "th_open"):
            cells.append(plain)
        elif token.type == "tr_close":
            found.add_paragraph(", ".join(cells))
            cells.clear()
        elif opening.type == "heading_open":
            found.add_heading(plain, int(opening.tag[1]))
        elif is_known and is_section_name(plain):
            found.add_heading(plain, 2)
        elif token.type in ("math_block", "math_block_label"):
            found.add_paragraph(formula(plain))
        elif token.type in ("inline", "html_block", "code_block", "fence"):
            found.add_paragraph(_with_sign(plain, item))
            _move_caption(found)
    return found


def notebook_text(text: str) -> Text:
    """Read the Markdown cells of a Jupyter notebook, of format 4 or 3."""
    try:
        notebook = json.loads(text)
        cells = [*notebook.get("cells", [])]
        for sheet in notebook.get("worksheets", []):
            cells += sheet["cells"]
        sources = [(cell["cell_type"], "".join(cell.get("source", ""))) for cell in cells]
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise InputError(f"a notebook that cannot be read ({error})") from None
    found = markdown_text("\n\n".join(source for kind, source in sources if kind == "markdown"))
    for kind, source in sources:
        if kind != "markdown":
            found.leave_out("code", source)
    return found


def _move_caption(found: Text) -> None:
    """Move a caption between two halves of a sentence behind them."""
    if len(found.parts) < 3:
        return
    (level, first), (_, caption), (_, second) = found.parts[-3:]
    is_between = level == 0 and bool(_CAPTION.match(caption)) and second[0].islower()
    if is_between and goes_on(first, second):
        found.parts[-3:] = [(0, f"{first}\n{second}"), (0, caption)]


def _with_sign(plain: str, item: Token) -> str:
    """Return a paragraph with the number of its item, or the sign before its number."""
    if item.type == "list_item_open" and (item.info or _AMOUNT.match(plain)):
        return f"{item.info}{item.markup} {plain}"
    return f"> {plain}" if item.type == "blockquote_open" and _AMOUNT.match(plain) else plain


def _is_menu(token: Token) -> bool:
    """Return whether a paragraph holds nothing but links: several, or one to a part of the text."""
    marks = {"link_open": '<a href="{href}">', "link_close": "</a>", "image": ""}
    parts = (
        marks.get(part.type, part.content).replace("{href}", str(part.attrGet("href")))
        for part in token.children or [token]
    )
    shown = "".join(parts)
    links = [_TAG.sub("", link).strip() for link in _LINK.findall(shown)]
    is_several = len(list(filter(None, links))) > 1 or '<a href="#' in shown
    others = _TAG.sub("", _LINK.sub("", shown))
    is_sentence = any(link[-1:] in tuple(".!?") for link in links if link)
    return is_several and not is_sentence and not BETWEEN_LINKS.sub("", others)


def _is_code(token: Token, lines: list[str]) -> bool:
    """Return whether a block is code and no prose: fences also set stanzas apart, and paragraphs
    are indented."""
    if token.type == "code_block":
        return not re.match(r"[A-Z].*[.?!]$", token.content.strip(), re.DOTALL)
    if token.type != "fence" or not token.map:
        return False
    is_closed = lines[token.map[1] - 1].strip().startswith(token.markup)
    is_directive = re.match(r"\{(?:note|warning|tip|important|admonition)", token.info)
    return is_closed and not token.content.startswith("\n") and not is_directive


def _plain(token: Token, found: Text) -> str:
    """Return a paragraph as text, apart at hard breaks; set comments and alternative texts
    aside."""
    special = {"softbreak": "\n", "hardbreak": "\n\n", "image": ""}
    text = ""
    for child in token.children or [token]:
        content = special.get(child.type, child.content)
        if child.type in ("html_inline", "html_block"):
            for comment in _COMMENT.findall(content):
                found.leave_out("comments", comment)
            content = _SCRIPT_TAG.sub(lambda tag: _SCRIPTS[tag[0]], _COMMENT.sub("", content))
            content = html.unescape(_TAG.sub("", _LINE_BREAK.sub("\n", content)))
        elif child.type.startswith("math_inline"):
            content = formula(content)
        elif child.type == "image":
            found.leave_out("pictures", child.content)
        text += content
    text = re.sub("[\ufdd2-\ufdd4]", "", _SCRIPT.sub(_in_line, text))
    lines = text.splitlines()
    if CITED in text:
        lines = list(map(without_citations, lines))
    return "\n".join(" ".join(line.split()) for line in lines)


def _in_line(found: re.Match[str]) -> str:
    """Write a raised or lowered text in its line."""
    before, after = found.string[: found.start()][-20:], found.string[found.end() :][:1]
    return script("sup" if found[1] == _SCRIPTS["<sup>"] else "sub", found[2], before, after)
