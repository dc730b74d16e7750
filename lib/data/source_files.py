"""What pandoc loses of LaTeX and RTF, put into a form that it reads."""

import re
from pathlib import Path

from lib.data.encodings import decoded
from lib.data.texts import Text

# ---- LaTeX

_VISIBLE = r"\providecommand{\added}[1]{#1}\providecommand{\replaced}[2]{#1}"  # of track changes
_INPUT = re.compile(
    r"(?P<code>\\begin\{(?P<name>verbatim|lstlisting|minted|comment)\*?\}.*?\\end\{(?P=name)\*?\})"
    r"|(?<!\\)%(?P<comment>[^\n]*)"
    r"|\\(?:input|include|subfile)\s*\{\s*(?P<file>[^{}]+?)\s*\}",
    re.DOTALL,
)
_MAX_FILES = 200  # of one document; files may include each other

# ---- RTF

_TOKEN = re.compile(
    r"(?P<brace>[{}])|\\u(?P<code>-?\d{1,6}) ?|\\uc(?P<length>\d) ?|(?P<hex>\\'[0-9a-fA-F]{2})"
    r"|(?P<word>\\[a-zA-Z]+-?\d* ?|\\[^a-zA-Z'])|(?P<text>[^\\{}\r\n]+)|[\r\n]+|\\",
)
_TITLE_STYLE = re.compile(r"\{(?:\\\*)?(\\s\d+)\b[^{};]*\b[Tt]itle;\}")


def mended_latex(text: str, name: str) -> tuple[str, Text]:
    """Put the files that a document names in their places.

    name: of the document. Files are looked for in its folder and below. Also return a text with
    the comments, which are left out, and with a note on each file that is not there.
    """
    folder, beside, files = Path(name).parent.resolve(), Text(), [name]

    def replace(found: re.Match[str]) -> str:
        if found["comment"] is not None or found["name"] == "comment":
            beside.leave_out("comments", found["comment"] or re.sub(r"\\\w+\{\w+\}", "", found[0]))
        if found["file"] is None:
            return found[0]
        path = (folder / found["file"]).resolve()
        paths = [path.with_name(f"{path.name}.tex"), path]
        here = [path for path in paths if path.is_relative_to(folder) and path.is_file()]
        if not here or len(files) > _MAX_FILES:
            beside.notes.append(f"{found['file']} is not beside the document: its text is missing")
            return ""
        files.append(found["file"])
        part, _ = decoded(here[0].read_bytes())
        body = re.search(r"\\begin\{document\}(.*)\\end\{document\}", part, re.DOTALL)
        return _INPUT.sub(replace, body[1] if body else part)

    return _VISIBLE + _INPUT.sub(replace, text), beside


def mended_rtf(text: str) -> str:
    r"""Write each sign `\uN` as itself, without the signs that stand for it in old programs, of
    which pandoc skips too many; and give paragraphs in the style Title the level of a heading."""
    lengths, skipped, was_word = [1], 0, False
    parts: list[str] = []
    for token in _TOKEN.finditer(text):
        part = token[0]
        if token["brace"]:
            skipped = 0
            if part == "{":
                lengths.append(lengths[-1])
            elif len(lengths) > 1:
                lengths.pop()
        elif token["length"]:
            lengths[-1], part = int(token["length"]), "{}"
        elif token["code"]:
            sign = chr(int(token["code"]) % 0x10000)
            part = f"\\{sign}" if sign in "\\{}" else sign
            if was_word and sign.isalnum():
                part = f" {part}"  # else it belonged to the word
            skipped = lengths[-1]
        elif token["text"]:
            part, skipped = part[skipped:], max(skipped - len(part), 0)
        elif skipped and (token["hex"] or token["word"]):
            part, skipped = "", skipped - 1
        parts.append(part)
        was_word = bool(token["word"]) and token[0][-1].isalnum()
    text = "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    for style in _TITLE_STYLE.findall(text):
        in_text = rf"{re.escape(style)}(?!\d)(?![^{{}}]*;\}})"  # and not in the list of styles
        text = re.sub(in_text, lambda found: rf"{found[0]}\outlinelevel0 ", text)
    return text
