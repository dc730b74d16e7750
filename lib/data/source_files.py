"""What pandoc loses of LaTeX, RTF and reStructuredText, put into a form that it reads."""

import re
from pathlib import Path

from lib.data.encodings import decoded
from lib.data.texts import Text

# ---- LaTeX

_VISIBLE = (  # of track changes, of eurosym, and of initials over several lines
    r"\providecommand{\added}[1]{#1}\providecommand{\replaced}[2]{#1}\providecommand{\EUR}[1]{#1 €}"
    r"\providecommand{\IEEEPARstart}[2]{#1#2}\providecommand{\PARstart}[2]{#1#2}"
)
_INPUT = re.compile(
    r"(?P<code>\\begin\{(?P<name>verbatim|lstlisting|minted|comment)\*?\}.*?\\end\{(?P=name)\*?\})"
    r"|(?<!\\)%(?P<comment>[^\n]*)"
    r"|\\(?:input|include|subfile)\s*\{\s*(?P<file>[^{}]+?)\s*\}",
    re.DOTALL,
)
_GROUPS = r"(?:[ \t]*(?:\[[^\[\]]*\]|\{[^{}]*\}))*"
_FLOAT = r"(?:wrap|floating|sideways|margin|SC)(figure|table)\*?\}"
# a command of xparse whose optional argument, if any, is the first
_DEFINED = re.compile(
    r"\\(?:New|Renew|Provide|Declare)DocumentCommand\s*\{?(?P<name>\\\w+)\}?"
    r"\s*\{\s*(?P<optional>o|O\{(?P<default>[^{}]*)\})?(?P<others>[m\s]*)\}"
)
# acronyms and terms of a glossary: their definitions and uses
_ACRONYM = re.compile(
    r"\\(?:newacronym(?:\[[^\[\]]*\])?|newacro|acro(?:def)?)\s*\{(?P<key>[^{}]+)\}"
    r"\s*(?:[\[{](?P<short>[^{}\[\]]*)[\]}]\s*)?\{(?P<long>[^{}]*)\}"
)
_TERM = re.compile(
    r"\\(?:newglossaryentry|DeclareAcronym)\s*\{(?P<key>[^{}]+)\}"
    r"\s*\{(?P<fields>(?:[^{}]|\{[^{}]*\})*)\}"
)
_FIELD_OF_TERM = re.compile(r"\b(name|short|long)\s*=\s*\{?([^{},]*)")
_USE_OF_TERM = re.compile(
    r"\\(?P<form>[gG]ls(?:xtr(?:short|long|full))?|[aA]c(?:[slf]|r(?:short|long|full))?)"
    r"(?P<plural>pl?)?\*?(?:\[[^\[\]]*\])?\{(?P<key>[^{}]+)\}"
)
# references with the name of what they are to
_NAMED_REFERENCE = re.compile(
    r"\\(?P<command>[cC]ref|[aA]utoref)\*?\{(?P<labels>(?P<kind>[a-z]+)[:.][^{}]*)\}"
)
_NAME_OF_KIND = {
    **{"fig": "figure", "tab": "table", "tbl": "table", "sec": "section", "eq": "equation"},
    **{"alg": "algorithm", "ch": "chapter", "chap": "chapter", "app": "appendix"},
}
# what pandoc says about what it does not know
_SKIPPED = re.compile(r"Skipped '(\\\w+\*?[\[{].*?[\]}])' at ", re.DOTALL)
_BEGUN = re.compile(r"Skipped '(\\begin\{[^{}']+\})")
_NO_WORDS = re.compile(
    r"(?i)\\(?:begin|end|todo|comment|fixme|note|missingfigure"
    r"|\w*(?:cite|ref|label|index|space|skip|style|page|length|counter|color|name|document))"
)
_GOES_ON = re.compile(r"[\w,]['’]{0,2}[\s~(-]?$")
_ARGUMENT = re.compile(r"\{((?:[^{}]|\{[^{}]*\})*)\}")
_WORD = re.compile(r"(?<![\\\w.])[^\W\d_]{2}")
_MAX_FILES = 200  # of one document; files may include each other

# ---- RTF

_TOKEN = re.compile(
    r"(?P<brace>[{}])|\\u(?P<code>-?\d{1,6}) ?|\\uc(?P<length>\d) ?|(?P<hex>\\'[0-9a-fA-F]{2})"
    r"|(?P<word>\\[a-zA-Z]+-?\d* ?|\\[^a-zA-Z'])|(?P<text>[^\\{}\r\n]+)|[\r\n]+|\\",
)
# the sign of an item, in a font of signs; pandoc reads it as a letter of text
_BULLET = re.compile(
    r"\{\\pntext\b(?:\\[a-z]+-?\d*|\s)*(?:\\'[0-9a-f]{2}|[^\w\s\\{}])(?:\\tab|\s)*\}", re.IGNORECASE
)
_CENTRED = re.compile(r"\\qc\b(?:\\\*?[a-z]+-?\d* ?|[\s{}])*(?P<words>[^\\{}]+)[\s}]*\\par\b")
_NAMES = re.compile(r"(?:[A-Z\d][\w.,'’-]*\s?){2,8}")
_TITLE_STYLE = re.compile(r"\{(?:\\\*)?(\\s\d+)\b[^{};]*\b[Tt]itle;\}")

# ---- reStructuredText

_FIELD = re.compile(r"^:([^:`\n]+):(?:[ \t]+|(?=\n))(.*\n(?:[ \t]+\S.*\n)*)", re.MULTILINE)
_FIELDS_OR_CODE = re.compile(
    rf"(?P<code>^[ \t]*>>> .*\n(?:.*\S.*\n)*)|(?:{_FIELD.pattern})+", re.MULTILINE
)
_TITLE_LINES = 2  # at most, before fields that describe the whole text


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

    text = _INPUT.sub(replace, text)
    text = re.sub(rf"(\\begin\{{){_FLOAT}{_GROUPS}", r"\1\2}", text)
    text = re.sub(rf"(\\end\{{){_FLOAT}", r"\1\2}", text)
    text = _NAMED_REFERENCE.sub(_as_references, _with_terms(text))
    return _VISIBLE + _DEFINED.sub(_as_newcommand, text), beside


def _with_terms(text: str) -> str:
    """Write each use of an acronym or of a term of the glossary as its words: at the first use an
    acronym follows its long form."""
    shorts, longs = {}, {}
    for acronym in _ACRONYM.finditer(text):
        shorts[acronym["key"]] = acronym["short"] or acronym["key"]
        longs[acronym["key"]] = acronym["long"]
    for term in _TERM.finditer(text):
        fields = dict(_FIELD_OF_TERM.findall(term["fields"]))
        shorts[term["key"]] = fields.get("short") or fields.get("name") or term["key"]
        longs[term["key"]] = fields.get("long", "")
    used: set[str] = set()

    def replace(found: re.Match[str]) -> str:
        key, form = found["key"], found["form"]
        s = "s" if found["plural"] else ""
        words, long = shorts.get(key, key) + s, longs.get(key, "")
        long += s if long else ""
        is_first = form.lower() in ("gls", "ac") and key not in used
        if long and form.endswith(("cl", "long")):
            words = long
        elif long and (is_first or form.endswith(("cf", "full"))):
            words = f"{long} ({words})"
            used.add(key)
        return words[:1].upper() + words[1:] if form[0].isupper() else words

    return _USE_OF_TERM.sub(replace, text)


def _as_references(found: re.Match[str]) -> str:
    name = _NAME_OF_KIND.get(found["kind"])
    if not name:
        return found[0]
    labels = found["labels"].split(",")
    name = name if found["command"] == "cref" else name.capitalize()
    references = " and ".join(f"\\ref{{{label.strip()}}}" for label in labels)
    return f"{name}{'s' * (len(labels) > 1)}~{references}"


def _as_newcommand(found: re.Match[str]) -> str:
    count = found["others"].count("m") + bool(found["optional"])
    default = f"[{found['default'] or ''}]" if found["optional"] else ""
    return f"\\newcommand{{{found['name']}}}[{count}]{default}"


def with_words(text: str, messages: str) -> str:
    """Return LaTeX in which commands that pandoc has skipped are their words, if they are within a
    sentence: between sentences they are remarks of an author. Arguments of unknown environments
    are removed unless they are words.

    messages: pandoc's, about the text.
    """
    for skipped in dict.fromkeys(_SKIPPED.findall(messages)):
        words = " ".join(filter(_WORD.search, _ARGUMENT.findall(skipped)))
        before, _, after = text.partition(skipped)
        in_sentence = _GOES_ON.search(before[-4:]) or re.match(r"\s?[a-z]", after[:2])
        if words and in_sentence and not _NO_WORDS.match(skipped):
            text = text.replace(f"{skipped}[", f"{words} [").replace(skipped, words)
    for begun in dict.fromkeys(_BEGUN.findall(messages)):
        text = re.sub(rf"({re.escape(begun)})({_GROUPS})", _without_measures, text)
    return text


def _without_measures(found: re.Match[str]) -> str:
    return found[0] if _WORD.search(found[2]) else found[1]


def mended_rtf(text: str) -> str:
    r"""Write each sign `\uN` as itself, give the style Title the level of a heading, and remove the
    signs of items.

    Behind `\uN` stand signs for old programs. They are removed, since pandoc skips too many."""
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
    text = _BULLET.sub("{}", text)
    for style in _TITLE_STYLE.findall(text):
        in_text = rf"{re.escape(style)}(?!\d)(?![^{{}}]*;\}})"  # and not in the list of styles
        text = re.sub(in_text, lambda found: rf"{found[0]}\outlinelevel0 ", text)
    return text


def centred_names(text: str) -> list[str]:
    """Return the centred lines of RTF that are all names and numbers, as those of authors."""
    lines = [" ".join(line["words"].split()) for line in _CENTRED.finditer(text)]
    return [line for line in lines if _NAMES.fullmatch(line)]


def mended_rst(text: str) -> tuple[str, Text]:
    """Write each field of a list as a paragraph; also return a text with what is left out: the
    fields before the first paragraph, and examples of Python."""
    beside = Text()

    def replace(found: re.Match[str]) -> str:
        before = re.findall(r"^\w.*", text[: found.start()], re.MULTILINE)
        if found["code"] or len(before) <= _TITLE_LINES:
            beside.leave_out("code" if found["code"] else "front matter", found[0])
            return ""
        fields = _FIELD.findall(found[0])
        return "".join(f"{name}: {' '.join(words.split())}\n\n" for name, words in fields)

    return _FIELDS_OR_CODE.sub(replace, text + "\n"), beside
