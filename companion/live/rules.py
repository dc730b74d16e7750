"""Rules by which the library cuts texts, for the scripts of live pages: its regular expressions,
as JavaScript writes them with the flag v, and its lists of words.

The library owns them. `static/words.js` and `static/sentences.js` use them under the names that
they have there.
"""

import re
from functools import cache
from types import ModuleType
from typing import Any

import regex

from lib.data import characters, layout, line_heads, plain_text, sentences, tokenize

MODULES = (characters, tokenize, line_heads, sentences, plain_text, layout)
_SCRIPTS = r"\\p\{(?=(?:Han|Hiragana|Katakana|Thai|Lao|Myanmar|Khmer)\})"
_CONCATENATION = r"\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}"
_SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
# What is in a word, or white space, by `re` and by `regex`.
_MEMBERS = {
    re.Pattern: {"w": r"\p{L}\p{N}_", "s": rf"{_SPACE}\x1c-\x1f", "d": r"\p{Nd}"},
    regex.Pattern: {
        "w": r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d",
        "s": _SPACE,
        "d": r"\p{Nd}",
    },
}
# A character and what belongs to it: marks, vowel signs of Thai and Lao, letters that a sign of
# Burmese or Khmer joins to it.
_CLUSTER = (
    r"[^\n](?:[\p{M}\u200c\u200d\u0e33\u0eb3\uff9e\uff9f]"
    r"|(?<=[\u1039\u17d2]\u200d?)[[\p{Script=Myanmar}\p{Script=Khmer}]&&\p{L}])*"
)
_TOKEN = re.compile(
    r"""\\[pP]\{[^}]*\}|\\U[\dA-Fa-f]{8}|\\u[\dA-Fa-f]{4}|\\x[\dA-Fa-f]{2}|\\.
        |\(\?P<|\(\?i:|\[\^?|\*\+|--(?=\[)|.""",
    re.VERBOSE | re.DOTALL,
)
_IN_CLASS = "()[]{}/-|"  # signs that need a backslash
_SYNTAX = "^$\\.*+?()[]{}|/"
_OTHERWISE = {
    ".": r"[^\n]",
    r"\A": "^",
    r"\Z": "$",
    r"\X": _CLUSTER,
    "*+": "*",  # where nothing is lost by going back
}
_IN_LINES = {"^": r"(?<![^\n])", "$": r"(?![^\n])"}


@cache
def cutting_rules() -> dict[str, dict[str, Any]]:
    """Return patterns and lists of words by module and name: a pattern is a text, a list a list."""
    return {module.__name__.rpartition(".")[2]: _rules_of(module) for module in MODULES}


def _rules_of(module: ModuleType) -> dict[str, Any]:
    rules = {}
    for name, value in vars(module).items():
        value = getattr(value, "__self__", value)  # of a pattern that is kept as its method
        if isinstance(value, re.Pattern | regex.Pattern):
            if not value.flags & re.IGNORECASE:  # no script needs them
                rules[name.strip("_")] = in_javascript(value)
        elif isinstance(value, frozenset):
            rules[name.strip("_")] = sorted(value)
        elif isinstance(value, int) and not name.startswith("__"):
            rules[name.strip("_")] = value
    return rules


def in_javascript(pattern: re.Pattern | regex.Pattern) -> str:
    """Return the source of a pattern for JavaScript's flag v."""
    members = next(own for kind, own in _MEMBERS.items() if isinstance(pattern, kind))
    source = re.sub(_SCRIPTS, r"\\p{Script=", pattern.pattern)
    if pattern.flags & re.VERBOSE:
        source = _without_comments(source)
    lines = _IN_LINES if pattern.flags & re.MULTILINE else {}
    tokens = _TOKEN.findall(source)
    written: list[str] = []
    open_classes = 0
    groups: list[bool] = []  # of each open group: whether it ignores case
    for before, token, after in zip(["", *tokens], tokens, [*tokens[1:], ""]):
        if token in ("[", "[^"):
            open_classes += 1
            written.append(token)
        elif token == "]" and open_classes:
            open_classes -= 1
            written.append(token)
        elif open_classes:
            is_range = token == "-" and before not in ("[", "[^") and after != "]"
            written.append(token if is_range else _in_class(token, members, any(groups)))
        elif token in lines:
            written.append(lines[token])
        else:
            written.append(_outside(token, members, groups))
    return "".join(written)


def _without_comments(source: str) -> str:
    """Return a verbose pattern in one line, as it is without the flag."""
    parts = re.findall(r"\\.|\[(?:\\.|[^\]\\])*\]|\#[^\n]*|.", source, re.DOTALL)
    return "".join(part for part in parts if not part.isspace() and part[0] != "#")


def _in_class(token: str, members: dict[str, str], ignores_case: bool) -> str:
    """Write a token of a class of characters."""
    if token == "--":
        return token
    if ignores_case and token.isalpha():
        return token.lower() + token.upper()
    if len(token) == 1:
        return f"\\{token}" if token in _IN_CLASS else token
    if token[0] == "\\":
        return _escape(token, members, _IN_CLASS + "\\^")
    return token  # "*+" are two members


def _outside(token: str, members: dict[str, str], groups: list[bool]) -> str:
    """Write a token that is in no class of characters; `groups` follow the parentheses."""
    if token in ("(", "(?P<", "(?i:"):
        groups.append(token == "(?i:")
        return {"(?P<": "(?<", "(?i:": "(?:"}.get(token, token)
    if token == ")":
        groups.pop()
    elif any(groups) and token.isalpha():
        return f"[{token.lower()}{token.upper()}]"
    elif token in _OTHERWISE:
        return _OTHERWISE[token]
    elif token == r"\b":
        word = members["w"]
        return f"(?:(?<=[{word}])(?![{word}])|(?<![{word}])(?=[{word}]))"
    elif token[0] == "\\":
        return _escape(token, members, _SYNTAX)
    return token


def _escape(token: str, members: dict[str, str], special: str) -> str:
    """Write a token that begins with a backslash. special: signs that keep it."""
    kind = token[1]
    if kind == "U":
        return rf"\u{{{int(token[2:], 16):x}}}"
    if token == r"\p{Prepended_Concatenation_Mark}":  # which JavaScript does not know
        return _CONCATENATION
    if kind.lower() in members:
        negation = "^" if kind.isupper() else ""
        return f"[{negation}{members[kind.lower()]}]"
    return token if kind.isalnum() or kind in special else kind
