"""The tables that the project keeps: their numbers in figures/ and trained/, and where its texts show them."""

import re
from pathlib import Path

from companion.results.cards import render_cards
from companion.results.numbers import ANY_TABLE
from companion.results.text import markdown
from lib.evaluation.scores import SCORES
from lib.system.errors import InputError
from lib.system.files import check_keys, project_root, read_numbers, trained_folder, write_json, write_whole

_BLOCK = "<!-- table {} -->\n{}\n<!-- end -->"


def shown_in() -> list[str]:
    """The files that may show tables: the texts of the project, and the cards of its trained runs."""
    patterns = ("docs/**/*.md", "trained/*/README.md")
    paths = (path for pattern in patterns for path in sorted(project_root().glob(pattern)))
    return ["papers.md", "README.md", *(path.relative_to(project_root()).as_posix() for path in paths)]


def keep(path: Path, size: str = "") -> Path:
    """Put a table into figures/ and where it is shown. Raises ValueError for a file that is no table or has no place.

    size: at the end of its name, where the same table of the same corpus is kept in several.
    """
    numbers = read_numbers(path, "table", ANY_TABLE)
    if "lines" not in numbers:
        check_keys(numbers, path, "table", ("rows", "corpus", "split", "documents"))
    name = "_".join(filter(None, (numbers["table"], numbers.get("corpus"), size)))
    if not any(_place(name).search(text) for text in _texts().values()):
        place = _BLOCK.format(name, "")
        raise InputError(f"no text in docs or trained has a place for {name}: put {place!r} where it should stand")
    target = project_root() / "figures" / f"{name}.json"
    write_json(target, numbers)
    _keep_scores(path.with_suffix(SCORES), target.parent / "scores" / f"{name}{SCORES}")
    render()
    return target


def _keep_scores(source: Path, target: Path) -> None:
    """Put scores beside the table; where there are none, remove those of the table that was there before."""
    if source.is_file():
        write_whole(target, source.read_bytes())
    else:
        target.unlink(missing_ok=True)


def render() -> list[str]:
    """Every kept table where it is shown, and the cards' front matter, written anew from their numbers. Returns the
    tables' names."""
    tables = kept_tables()
    for file, text in _texts().items():
        if (rendered := _rendered(text, tables)) != text:
            write_whole(project_root() / file, rendered)
    render_cards()
    return list(tables)


def kept_tables() -> dict[str, dict]:
    """The tables in figures/, and those of the trained runs (`trained_NAME`), by name."""
    root = project_root()
    names = [path.stem for path in sorted((root / "figures").glob("*_table*.json"))]
    names += [f"trained_{path.parent.name}" for path in sorted((root / "trained").glob("*/table.json"))]
    tables = {name: kept_table(name) for name in names}
    return {name: numbers for name, numbers in tables.items() if "table" in numbers}


def kept_table(name: str) -> dict:
    run = name.removeprefix("trained_")
    path = project_root() / "figures" / f"{name}.json" if run == name else trained_folder(run) / "table.json"
    return read_numbers(path, "table", ())


def _texts() -> dict[str, str]:
    return {file: (project_root() / file).read_text(encoding="utf-8") for file in shown_in()}


def _place(name: str) -> re.Pattern:
    begin, end = _BLOCK.format(re.escape(name), "|").split("|\n")
    return re.compile(f"{begin}(?:.*?\n)??{end}", re.DOTALL)  # also an empty one


def _rendered(text: str, tables: dict[str, dict]) -> str:
    """A text with every table that has a place in it."""
    for name, numbers in tables.items():
        block = _BLOCK.format(name, markdown(numbers))
        text = _place(name).sub(lambda _, block=block: block, text, count=1)
    return text
