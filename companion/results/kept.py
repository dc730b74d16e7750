"""The tables that the project keeps: their numbers in figures/ and trained/, and the texts that show them."""

import gzip
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from companion.results.numbers import ANY_TABLE
from companion.results.tables import Table
from companion.results.text import markdown
from lib.decoding.search import DECODINGS
from lib.system.errors import InputError
from lib.system.files import project_root, read_numbers, trained_folder, write_json, write_whole

SCORES = ".scores.json.gz"  # the end of the name of a file beside a table, with the scores that it was made of
_BLOCK = "<!-- table {} -->\n{}\n<!-- end -->"


def shown_in() -> list[str]:
    """The files that may show tables: the project's texts, and the cards of its trained runs."""
    patterns = ("docs/**/*.md", "trained/*/README.md")
    paths = (path for pattern in patterns for path in sorted(project_root().glob(pattern)))
    return ["papers.md", "README.md", *(path.relative_to(project_root()).as_posix() for path in paths)]


def keep(path: Path, size: str = "") -> Path:
    """Put a table and its scores into figures/, and show it. Raises InputError where no text has a place for it.

    size: the end of its name, where the same table of the same corpus is kept in several sizes.
    """
    numbers = read_numbers(path, "table", ANY_TABLE)
    name = "_".join(filter(None, (numbers["table"], numbers.get("corpus"), size)))
    if not any(_place(name).search(text) for text in _texts().values()):
        place = _BLOCK.format(name, "")
        raise InputError(f"no text in docs or trained has a place for {name}: put {place!r} where it should be")
    target = project_root() / "figures" / f"{name}.json"
    write_json(target, numbers)
    source, scores = path.with_suffix(SCORES), target.parent / "scores" / f"{name}{SCORES}"
    if source.is_file():
        write_whole(scores, source.read_bytes())
    else:
        scores.unlink(missing_ok=True)  # they belong to the table that was there before
    render()
    return target


def render() -> list[str]:
    """Write every kept table into the texts that show it. Returns the tables' names."""
    tables = kept_tables()
    for file, text in _texts().items():
        if (rendered := _rendered(text, tables)) != text:
            write_whole(project_root() / file, rendered)
    return list(tables)


def kept_tables() -> dict[str, dict]:
    """Read the tables in figures/, and those of the trained runs (`trained_NAME`), by name."""
    root = project_root()
    names = [path.stem for path in sorted((root / "figures").glob("*_table*.json"))]
    names += [f"trained_{path.parent.name}" for path in sorted((root / "trained").glob("*/table.json"))]
    tables = {name: kept_table(name) for name in names}
    return {name: numbers for name, numbers in tables.items() if "table" in numbers}


def kept_table(name: str) -> dict:
    """Read one kept table."""
    run = name.removeprefix("trained_")
    path = project_root() / "figures" / f"{name}.json" if run == name else trained_folder(run) / "table.json"
    return read_numbers(path, "table", ())


def _texts() -> dict[str, str]:
    return {file: (project_root() / file).read_text(encoding="utf-8") for file in shown_in()}


def _place(name: str) -> re.Pattern:
    begin, end = _BLOCK.format(re.escape(name), "|").split("|\n")
    return re.compile(f"{begin}(?:.*?\n)??{end}", re.DOTALL)  # also an empty one


def _rendered(text: str, tables: dict[str, dict]) -> str:
    """A text with each table in its place."""
    for name, numbers in tables.items():
        block = _BLOCK.format(name, markdown(numbers))
        text = _place(name).sub(lambda _, block=block: block, text, count=1)
    return text


def write_table_scores(path: Path, table: Table, scored: Mapping[str, Sequence[dict]]) -> Path:
    """Write the scores of each row, by label, of all its seeds: only the parts that the row is made of."""
    scores_by_label = {}
    for row in table.rows:
        parts = {row.part, *(DECODINGS if table.decodings and row.part == "summaries" else ())}
        if row.label in scored:
            scores_by_label[row.label] = [
                scores | {"parts": {name: part for name, part in scores["parts"].items() if name in parts}}
                for scores in scored[row.label]
            ]
    text = json.dumps(scores_by_label, ensure_ascii=False, separators=(",", ":"))
    return write_whole(path, gzip.compress(text.encode(), mtime=0))


def read_table_scores(path: Path) -> dict[str, list[dict]]:
    """Read what `write_table_scores` wrote."""
    return json.loads(gzip.decompress(path.read_bytes()))
