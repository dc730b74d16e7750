"""Texts of many formats, by pandoc (the extra `files`): its JSON as a `Text`."""

import json
import re
import subprocess
from collections.abc import Iterable
from typing import Any

from lib.data.raised import CITED, script, without_citations
from lib.data.source_files import with_words
from lib.data.texts import ORNAMENT, Text
from lib.system.errors import InputError

FORMULA, IN_TEXT = " @formula ", "@xcite"  # as in corpora of papers
LAYOUT_WORDS = 30  # a table with a cell of as many words holds text, not data
TITLE_WORDS = 15  # at most

_BULLET = re.compile(r"^\s*[•‣▪●◦]\s+")  # of RTF
_MARKS = {"todo", "done", "tag"}  # of Org
_KEYWORDS = {"IEEEkeywords", "keywords", "keyword"}  # environments of LaTeX
# to categories and other languages
_NO_TEXT_LINK = re.compile(
    r"(?:Category|Kategorie|Catégorie|Categor[ií]a|[a-z]{2,3}(?:-[a-z]+)*):\S"
)
_QUOTES = {"DoubleQuote": "“{}”", "SingleQuote": "‘{}’"}
_TEX_SIGNS = {
    **{"leq": "≤", "le": "≤", "geq": "≥", "ge": "≥", "neq": "≠", "approx": "≈", "sim": "∼"},
    **{"times": "×", "cdot": "·", "pm": "±", "infty": "∞", "rightarrow": "→", "circ": "°"},
    **{"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "lambda": "λ"},
    **{"mu": "μ", "pi": "π", "sigma": "σ", "theta": "θ", "chi": "χ", "rho": "ρ", "eta": "η"},
}
# what pandoc says about commands of LaTeX that it does not know
_SKIPPED = re.compile(
    r"Skipped '(\\(?!begin\b|end\b|[hv]space|[hv]skip)[^']*\{.*?)' at ", re.DOTALL
)
_MISSING = re.compile(r"Could not load include file (\S+)(?<!\.sty)(?<!\.cls) at")
_REMARK = re.compile(r"\\(?:todo|comment|marginpar|fixme|note|missingfigure)", re.IGNORECASE)
_FONT = re.compile(r"\\(?:math|text|operator)\w*\{([^{}\\]*)\}")
_SPACE = re.compile(r"\\[,;:! ]|~")


def pandoc_text(
    data: bytes, form: str, kind: str, title: str = "", front: Iterable[str] = ()
) -> Text:
    """Read bytes in one of pandoc's formats (`form`).

    kind: the name of the format in an error. title: of a text that names none. front: lines that
    are no text before the first paragraph.
    Raises InputError for what pandoc cannot read.
    """
    tree, messages = _parsed(data, form, kind)
    if form == "latex":
        mended = with_words(data.decode(), messages).encode()
        tree, messages = (tree, messages) if mended == data else _parsed(mended, form, kind)
    reader = _Reader()
    meta = {name: reader.meta(value) for name, value in tree["meta"].items()}
    reader.found.title = meta.pop("title", "") or title
    reader.front.update(map(str.casefold, [reader.found.title, *front]))
    for name in ("subtitle", "author", "date", "abstract"):
        if meta.get(name):
            part = "the abstract" if name == "abstract" else "front matter"
            reader.found.leave_out(part, meta[name])
            reader.front.add(meta[name].casefold())
    reader.blocks(tree["blocks"])
    for skipped in _SKIPPED.findall(messages):
        kind = "comments" if _REMARK.match(skipped) else "unknown commands"
        reader.found.leave_out(kind, re.sub(r"\\[a-zA-Z]+|[\\{}\[\]]", " ", skipped))
    for missing in _MISSING.findall(messages):  # but for packages
        reader.found.notes.append(f"{missing} is a file of its own: its text is missing")
    return reader.found


def _parsed(data: bytes, form: str, kind: str) -> tuple[dict[str, Any], str]:
    """Return pandoc's tree of a text and its messages."""
    import pypandoc

    command = [pypandoc.get_pandoc_path(), "--sandbox", "--verbose", "--from", form, "--to", "json"]
    done = subprocess.run(command, input=data, capture_output=True)
    messages = done.stderr.decode(errors="replace")
    if done.returncode:
        reason = " ".join(messages.split())
        raise InputError(f"{kind} that cannot be read ({reason[:200]})")
    return json.loads(done.stdout), messages


class _Reader:
    """Walks pandoc's tree, and writes what it finds into a `Text`."""

    def __init__(self) -> None:
        self.found = Text()
        self.front: set[str] = set()  # title and authors, which pages of titles repeat

    def blocks(self, blocks: Iterable[dict]) -> None:
        for block in blocks:
            kind: str = block["t"]
            content: Any = block.get("c")
            if kind == "Header":
                self.found.add_heading(self.line(content[2]), content[0])
            elif kind in ("Para", "Plain"):
                if not self.found.parts and _is_bold_title(content):
                    self.found.add_heading(self.line(content), 1)
                else:
                    self.lines(content)
            elif kind == "LineBlock":
                self.found.add_paragraph("\n".join(map(self.line, content)))
            elif kind == "Div":
                if _KEYWORDS & set(content[0][1]):
                    self.found.leave_out("front matter", _words(content[1]))
                elif "toctree" not in content[0][1]:
                    self.blocks(content[1])
            elif kind == "BlockQuote":
                self.blocks(content)
            elif kind in ("BulletList", "OrderedList"):
                for item in content if kind == "BulletList" else content[1]:
                    self.blocks(item)
            elif kind == "DefinitionList":
                for term, texts in content:
                    self.lines(term)
                    for text in texts:
                        self.blocks(text)
            elif kind == "Table":
                self.table(content)
            elif kind != "HorizontalRule":
                names = {"CodeBlock": "code", "Figure": "captions", "RawBlock": "markup"}
                self.found.leave_out(names.get(kind, "other parts"), _words(content))

    def lines(self, inlines: list[dict]) -> None:
        """Add a paragraph; two line breaks in a row, or an ornament between them, end it."""
        text = _BULLET.sub("", self.inline(inlines))
        for part in re.split(rf"\n(?:{ORNAMENT.pattern})?\n", text):
            lines = "\n".join(filter(None, map(without_citations, part.split("\n"))))
            is_first = all(level for level, _ in self.found.parts)
            if is_first and lines and lines.casefold().removeprefix("by ") in self.front:
                self.found.leave_out("front matter", lines)
            else:
                self.found.add_paragraph(lines)

    def line(self, inlines: list[dict]) -> str:
        return without_citations(self.inline(inlines))

    def inline(self, inlines: list[dict]) -> str:
        text = ""
        for place, part in enumerate(inlines):
            kind: str = part["t"]
            content: Any = part.get("c")
            if kind == "Str":
                text += content
            elif kind in ("Space", "SoftBreak"):
                text += " "
            elif kind == "LineBreak":
                text += "\n"
            elif kind in ("Emph", "Strong", "Underline", "SmallCaps"):
                text += self.inline(content)
            elif kind in ("Link", "Span"):
                inner = self.inline(content[1])
                is_mark = _MARKS & set(content[0][1])
                if "wikilink" in content[0][1] and _NO_TEXT_LINK.match(inner):
                    self.found.leave_out("links", inner)
                    inner = ""
                # of LaTeX, to a label that is not there
                is_open = dict(content[0][2]).get("reference-type") and inner[:1] == "["
                is_raised = [part["t"] for part in content[1]] == ["Superscript"]  # of a note
                is_cited = is_open or (kind == "Link" and is_raised)
                text += CITED if is_cited else "" if is_mark else inner
            elif kind == "Cite":
                mode = content[0][0]["citationMode"]["t"]
                text += self.inline(content[1]) or (IN_TEXT if mode == "AuthorInText" else CITED)
            elif kind == "Quoted":
                text += _QUOTES[content[0]["t"]].format(self.inline(content[1]))
            elif kind == "Code":
                text += content[1]
            elif kind == "Math":
                text += formula(content[1])
            elif kind in ("Superscript", "Subscript"):
                text = self.raised(part, text, inlines[place + 1 : place + 2])
            else:
                names = {"Note": "footnotes", "Image": "pictures", "Strikeout": "struck-out text"}
                self.found.leave_out(names.get(kind, "markup"), _words(content))
        return text

    def raised(self, part: dict, before: str, after: list[dict]) -> str:
        """Return the text up to here with a raised or lowered part at its end. A raised link is a
        citation."""
        inner = self.inline(part["c"])
        if inner[:1] == "[" or any(inline["t"] == "Link" for inline in part["c"]):
            return before + CITED
        kind = "sup" if part["t"] == "Superscript" else "sub"
        inner = script(kind, inner, before, self.inline(after))
        joins = kind == "sub" or inner[:1] == "^"
        return (before.rstrip() if joins else before) + inner

    def table(self, content: list[Any]) -> None:
        """Add each row as a paragraph; set a table of numbers aside, and read the cells of one that
        is only there for the layout. A table in a cell follows."""
        caption, head, bodies = content[1], content[3], content[4]
        self.found.leave_out("captions", _words(caption))
        rows = [*head[1], *(row for body in bodies for part in body[2:4] for row in part)]
        cells = [[cell[4] for cell in row[1]] for row in rows]
        if any(len(_words(cell).split()) >= LAYOUT_WORDS for row in cells for cell in row):
            self.blocks(block for row in cells for cell in row for block in cell)
            return
        inner = []
        for cell in [cell for row in cells for cell in row]:
            inner += [block for block in cell if block["t"] == "Table"]
            cell[:] = [block for block in cell if block["t"] != "Table"]
        filled = [text for row in cells for text in map(_words, row) if text]
        numbers = sum(bool(re.fullmatch(r"[^\w]*\d[^a-zA-Z]*", cell)) for cell in filled)
        if 2 * numbers > len(filled):
            self.found.leave_out("tables", " ".join(filled))
        else:
            for row in cells:
                texts = (self.line(_inlines(cell)) for cell in row)
                self.found.add_paragraph(", ".join(filter(None, texts)))
        self.blocks(inner)

    def meta(self, value: dict) -> str:
        kind, content = value["t"], value["c"]
        return self.line(content) if kind == "MetaInlines" else _words(content)


def _is_bold_title(inlines: list[dict]) -> bool:
    """Return whether a first paragraph is short, bold and without an end."""
    words = _words(inlines).split()
    is_bold = all(part["t"] in ("Strong", "Space") for part in inlines)
    return is_bold and 0 < len(words) <= TITLE_WORDS and words[-1][-1] not in ".,;:!"


def _inlines(blocks: list[dict]) -> list[dict]:
    """Return the inline parts of blocks, with spaces between the blocks."""
    parts: list[dict] = []
    for block in blocks:
        if block["t"] in ("Para", "Plain"):
            parts += [*block["c"], {"t": "Space"}]
        elif block["t"] == "Div":
            parts += _inlines(block["c"][1])
        else:
            parts.append({"t": "Str", "c": f"{_words(block.get('c'))} "})
    return parts


def _words(content: Any) -> str:
    """Return all words below a node of the tree."""
    if isinstance(content, dict):
        leaf = content["c"] if content.get("t") == "Str" else None
        return leaf or _words(content.get("c"))
    if isinstance(content, list):
        if [type(part) for part in content] == [str, list, list]:
            return ""  # an identifier with classes and attributes
        is_code = len(content) == 2 and isinstance(content[1], str)
        return content[1] if is_code else " ".join(filter(None, map(_words, content)))
    return ""


def formula(tex: str) -> str:
    """Return a formula in TeX as text if one line can hold it, and FORMULA otherwise."""
    text = _FONT.sub(r"\1", _SPACE.sub(" ", tex))
    text = re.sub(r"\\([a-z]+)\b ?", lambda found: _TEX_SIGNS.get(found[1], found[0]), text)
    text = re.sub(r"\{([^{}\\]*)\}", _group, text)
    return FORMULA if re.search(r"[\\{}&]", text) or len(text) > 60 else " ".join(text.split())


def _group(found: re.Match[str]) -> str:
    return found[1] if len(found[1]) == 1 or found.start() == 0 else f"({found[1]})"
