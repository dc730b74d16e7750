"""The project's texts, with the kept tables and the claims in their places."""

import re
from collections.abc import Mapping
from pathlib import Path

from companion.claims.text import claims_texts, draw_claims
from companion.results.kept import SCORES, kept_tables
from companion.results.numbers import ANY_TABLE
from companion.results.text import markdown
from lib.system.files import project_root, read_numbers, write_json, write_whole

_BLOCK = "<!-- table {} -->\n{}\n<!-- end -->"


def shown_in() -> list[str]:
    """List the files that may show tables: the project's texts, and the cards of its trained
    runs."""
    patterns = ("docs/**/*.md", "trained/*/README.md")
    paths = (path for pattern in patterns for path in sorted(project_root().glob(pattern)))
    return [
        "papers.md",
        "README.md",
        *(path.relative_to(project_root()).as_posix() for path in paths),
    ]


def keep(path: Path, size: str = "") -> Path:
    """Put a table and its scores into figures/, and show it in the texts that have a place for it.

    size: the end of its name, where the same table of the same corpus is kept in several sizes.
    """
    numbers = read_numbers(path, "table", ANY_TABLE)
    name = "_".join(filter(None, (numbers["table"], numbers.get("corpus"), size)))
    target = project_root() / "figures" / f"{name}.json"
    write_json(target, numbers)
    source, scores = path.with_suffix(SCORES), target.parent / "scores" / f"{name}{SCORES}"
    if source.is_file():
        write_whole(scores, source.read_bytes())
    else:
        scores.unlink(missing_ok=True)  # of the previous table
    render()
    return target


def render() -> list[str]:
    """Write every kept table and the claims into the texts that show them. Returns their names."""
    contents = place_contents()
    for file, text in _texts().items():
        if (rendered := _rendered(text, contents)) != text:
            write_whole(project_root() / file, rendered)
    draw_claims()
    return list(contents)


def place_contents() -> dict[str, str]:
    """Write each kept table and each paper's claims in Markdown, by the name of its place."""
    return {name: markdown(numbers) for name, numbers in kept_tables().items()} | claims_texts()


def _texts() -> dict[str, str]:
    return {file: (project_root() / file).read_text(encoding="utf-8") for file in shown_in()}


def _place(name: str) -> re.Pattern:
    begin, end = _BLOCK.format(re.escape(name), "|").split("|\n")
    return re.compile(f"{begin}(?:.*?\n)??{end}", re.DOTALL)  # also an empty one


def _rendered(text: str, contents: Mapping[str, str]) -> str:
    """Fill each place of a text with its content."""
    for name, content in contents.items():
        block = _BLOCK.format(name, content)
        text = _place(name).sub(lambda _, block=block: block, text, count=1)
    return text
