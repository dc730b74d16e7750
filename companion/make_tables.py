"""The papers' result tables, made of scores: intervals, comparisons, and the published rows beside.

    python -m companion.make_tables table mem2mem_table2 --corpus aclsum --output T.json \\
        hred=a/scores.json ...
    python -m companion.make_tables table mem2mem_table2 --corpus aclsum --output U.json \\
        --add-to T.scores.json.gz ...
    python -m companion.make_tables page read_again_table4 --figure F.json --output T.json
    python -m companion.make_tables support --output T.json Mem2Mem=scores.json ...
    python -m companion.make_tables keep T.json          # into figures/, and docs or a card
    python -m companion.make_tables again NAME           # a kept table from its kept scores
    python -m companion.make_tables first-words data     # what a table has to beat to count
    python -m companion.make_tables render               # the project's texts again

`workflow/Snakefile` makes the runs and the scores (`lib.evaluation.scores`) and calls these. The
scores of a table are written beside it. Numbers: `companion.results.numbers`; as text:
`companion.results.text`; in the project's texts: `companion.results.places`.
"""

import shlex
from functools import partial
from pathlib import Path

from companion.command import split_labels
from companion.results import places
from companion.results.first_words import measure_first_words
from companion.results.kept import SCORES, read_table_scores, stored_numbers, write_table_scores
from companion.results.numbers import REFERENCES, make_table, page_table, support_table
from companion.results.tables import TABLES
from companion.results.text import markdown
from lib.system.command_line import run_command
from lib.system.errors import InputError, one_of
from lib.system.files import project_root, read_numbers, write_json, write_whole


def table(
    name: str,
    scores: tuple[str, ...],
    /,
    *,
    corpus: str,
    output: Path,
    preset: str = "demo",
    add_to: Path | None = None,
    made_by: str = "",
) -> None:
    """Make a table of a paper from scores.

    Args:
        scores: LABEL=FILE, one for each row and seed.
        output: NAME.json; NAME.md and the scores go beside it.
        add_to: T.scores.json.gz, the scores of a table: one with these.
        made_by: the command that makes the table, for the record.
    """
    described = TABLES[one_of(name, TABLES, "table")]
    rows = {row.label: row for row in described.rows_for(corpus) if row.part}
    scored = read_table_scores(add_to) if add_to else {}
    for label, path in split_labels(scores):
        row = rows[one_of(label, rows, f"row of {name} on {corpus}")]
        needed = ("seed", "steps", "parameters", "made_with") if row.is_run else ()
        found = _read_scores(path, row.part, needed)
        of_row = scored.setdefault(label, [])
        if any(other.get("seed") == found.get("seed") for other in of_row):
            raise InputError(f"{path}: there are scores of {label} with this seed already")
        of_row.append(found)
    _write_table(output, make_table(name, scored, corpus, preset, made_by))
    write_table_scores(output.with_suffix(SCORES), described, scored)


def _read_scores(path: Path, part: str, needed: tuple[str, ...] = ()) -> dict:
    scores = read_numbers(path, "scores", ("ids", "parts", "split", "training documents", *needed))
    if part not in scores["parts"]:
        raise InputError(
            f"{path}: no scores of {part!r}, of which the row is made: score it again with "
            "lib.score"
        )
    return scores


def page(name: str, /, *, figure: Path, output: Path, preset: str = "demo") -> None:
    """Make a table of a paper from a page's figure.

    Args:
        figure: the figure's numbers.
        output: NAME.json; NAME.md goes beside it.
    """
    numbers = read_numbers(figure, "figure of lines", ("panels",))
    _write_table(output, page_table(name, numbers, preset))


def support(scores: tuple[str, ...], /, *, output: Path) -> None:
    """Make a table of what is not in the text, of any systems and the references.

    Args:
        scores: LABEL=FILE, one for each system.
        output: NAME.json; NAME.md goes beside it.
    """
    scored = {
        label: _read_scores(path, "summaries", ("corpus",)) for label, path in split_labels(scores)
    }
    if REFERENCES in scored or len(scored) < len(scores):
        raise InputError(f"each system has a label of its own, which is not {REFERENCES!r}")
    command = shlex.join(
        ["python", "-m", "companion.make_tables", "support", "--output", str(output)]
    )
    given = " ".join(f'"{argument}"' if " " in argument else argument for argument in scores)
    corpus = next(iter(scored.values()))["corpus"]
    _write_table(output, support_table(scored, corpus, f"{command} {given}"))


def _write_table(path: Path, numbers: dict) -> None:
    text = markdown(numbers)
    write_json(path, numbers)
    write_whole(path.with_suffix(".md"), text + "\n")
    print(text)


def keep(tables: tuple[Path, ...], /, *, size: str = "") -> None:
    """Put tables into figures/, and docs or a card.

    Args:
        size: kept as TABLE_CORPUS_SIZE.
    """
    for path in tables:
        print(places.keep(path, size))


def again(names: tuple[str, ...], /) -> None:
    """Make kept tables again from their kept scores.

    Args:
        names: as in figures/NAME.json.
    """
    figures = project_root() / "figures"
    for name in names:
        old, scored = (
            stored_numbers(name),
            read_table_scores(figures / "scores" / f"{name}{SCORES}"),
        )
        made = make_table(old["table"], scored, old["corpus"], old["preset"], old["command"])
        write_json(figures / f"{name}.json", made)
    places.render()


def first_words(data: Path, /) -> None:
    """Score the first words of the texts that kept tables are of, as many as their rows write.

    Args:
        data: a folder that holds the corpora, each in a folder of its name.
    """
    print(measure_first_words(data))


def render() -> None:
    """Write kept tables and claims into the texts again."""
    print(*places.render(), sep="\n")


COMMANDS = {
    "table": table,
    "page": page,
    "support": support,
    "keep": keep,
    "again": again,
    "first-words": first_words,
    "render": render,
}
main = partial(run_command, "companion.make_tables", __doc__, COMMANDS)

if __name__ == "__main__":
    main()
