"""Markdown of texts that stand in other formats, as `lib.data.plain_text` reads it."""

import re


def escaped(text: str) -> str:
    """Lines of which no sign is one of Markdown."""
    text = re.sub(r"[\\`*_\[\]]", r"\\\g<0>", text)
    return re.sub(r"^\s*(?=[#>+~=-])", r"\\", text, flags=re.MULTILINE)


def heading_line(text: str, level: int) -> str:
    words = " ".join(text.split())
    return f"{'#' * min(level, 6)} {escaped(words)}" if words else ""


def plain_lines(text: str) -> str:
    """Lines stay lines, so that words which hyphens cut at their ends are joined."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return escaped("\n".join(filter(None, lines)))


def aside(text: str) -> str:
    words = " ".join(text.split())
    return f"```\n{words.replace('```', '')}\n```" if words else ""


def joined_parts(parts: list[str]) -> str:
    return "\n\n".join(filter(None, parts)) + "\n"


def raised(before: str, text: str) -> str:
    """A raised text as it stands in a line: after a number its exponent."""
    return f"^{text}" if before[-1:].isdigit() and re.fullmatch(r"[-+−–]?\d+", text) else text
