"""Markdown of texts in other formats, as `lib.data.plain_text` reads it."""

import re


def _escape(text: str) -> str:
    """Escape the signs of Markdown in a text."""
    text = re.sub(r"[\\`*_\[\]<&]", r"\\\g<0>", text)
    text = re.sub(r"^\s*(?=[#>+~=•‣▪●◦-])", r"\\", text, flags=re.MULTILINE)
    return re.sub(r"^(\s*\d+)(?=[.)])", r"\1\\", text, flags=re.MULTILINE)


def heading_line(text: str, level: int) -> str:
    words = " ".join(text.split())
    return f"{'#' * min(level, 6)} {_escape(words)}" if words else ""


def plain_lines(text: str) -> str:
    """Return a paragraph; lines stay lines, so that words which hyphens cut at their ends are
    joined."""
    return _escape("\n".join(filter(None, (" ".join(line.split()) for line in text.splitlines()))))


def aside(text: str) -> str:
    """Return a text as code, which is counted and not read."""
    words = " ".join(text.split())
    return f"```\n{words.replace('```', '')}\n```" if words else ""


def joined_parts(parts: list[str]) -> str:
    return "\n\n".join(filter(None, parts)) + "\n"
