"""The papers' result tables, made of scores: intervals, comparisons, and the published rows beside.

    python -m companion.make_tables table mem2mem_table2 --corpus aclsum --output T.json hred=a/scores.json ...
    python -m companion.make_tables table mem2mem_table2 --corpus aclsum --output U.json --add-to T.scores.json.gz ...
    python -m companion.make_tables page read_again_table4 --figure runs/figures/read_again_seconds.json --output T.json
    python -m companion.make_tables support --output T.json Mem2Mem=runs/scores/mem2mem/scores.json ...
    python -m companion.make_tables keep T.json          # into figures/, and docs or a card
    python -m companion.make_tables render               # docs and the cards again, from kept tables

`companion/workflow/Snakefile` makes the runs and the scores (`lib.evaluation.scores`) and calls these. Beside a table stands what
it was made of (`lib.evaluation.scores`). Numbers: `companion.results.numbers`; to be read: `companion.results.text`; in the
project's texts: `companion.results.kept`.
"""

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from companion.results.kept import keep, render
from companion.results.numbers import ANY_TABLE, REFERENCES, make_table, page_table, support_table
from companion.results.text import markdown
from lib.evaluation.measures import MEASURES
from lib.evaluation.scores import SCORES, read_table_scores, row_parts, write_table_scores
from lib.papers import page_table_named, table_named
from lib.papers.tables import DECODINGS, Row, Table
from lib.system.command_line import command_parser, plain_errors
from lib.system.errors import InputError, did_you_mean
from lib.system.files import check_keys, check_replaces, read_numbers, write_json, write_whole


def main(arguments: list[str] | None = None) -> None:
    parser = command_parser("companion.make_tables", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    table = commands.add_parser("table", help="a table of a paper from scores")
    table.add_argument("name")
    table.add_argument("scores", nargs="+", metavar="LABEL=FILE", help="one for each row and seed")
    table.add_argument("--add-to", type=Path, metavar=f"T{SCORES}", help="scores of a table: one with these")
    table.add_argument("--corpus", required=True)
    table.add_argument("--made-by", default="", help="the command that makes the table, for the record")
    page = commands.add_parser("page", help="a table of a paper from a page's figure")
    page.add_argument("name")
    page.add_argument("--figure", required=True, type=Path, help="the figure's numbers")
    support = commands.add_parser("support", help="what is not in the text, of any systems and the references")
    support.add_argument("scores", nargs="+", metavar="LABEL=FILE", help="one for each system")
    for command in (table, page):
        command.add_argument("--preset", default="demo")
    for command in (table, page, support):
        command.add_argument(
            "--output", required=True, type=Path, help="NAME.json; NAME.md stands beside it, and its scores"
        )
    keep_command = commands.add_parser("keep", help="put tables into figures/, and docs or a card")
    keep_command.add_argument("tables", nargs="+", type=Path)
    keep_command.add_argument(
        "--size", default="", metavar="NAME", help="kept as TABLE_CORPUS_NAME, beside TABLE_CORPUS"
    )
    commands.add_parser("render", help="write the kept tables into docs and the cards again")
    args = parser.parse_args(arguments)
    with plain_errors():
        {"table": _table, "page": _page, "support": _support, "keep": _keep, "render": _render}[args.command](args)


def _table(args: Namespace) -> None:
    _check_output(args.output)
    table, scored = table_named(args.name)[1], {}
    for argument, label, path, scores in _given_scores(args):
        row = _placed(argument, label, table, args)
        scores = read_numbers(path, "scores", ()) if scores is None else scores
        _check_scores(scores, path, table, row, first=not scored)
        every = scored.setdefault(label, [])
        if any(s.get("seed") == scores.get("seed") for s in every):
            seed = f" with seed {scores['seed']}" if row.run else ""
            raise InputError(f"{argument!r}: there are scores of {label}{seed} already")
        every.append(scores)
    numbers = make_table(args.name, scored, args.corpus, args.preset, args.made_by)
    _write_table(args.output, numbers)
    write_table_scores(args.output.with_suffix(SCORES), table, scored)


def _given_scores(args: Namespace) -> Iterator[tuple[str, str, Path, dict | None]]:
    """The scores that were given: how, their row's label, their file, and they themselves where they have been
    read."""
    for label, every in (read_table_scores(args.add_to) if args.add_to else {}).items():
        yield from ((f"{label}={args.add_to}", label, args.add_to, scores) for scores in every)
    for argument in args.scores:
        label, _, path = argument.rpartition("=")
        yield argument, label, Path(path), None


def _placed(argument: str, label: str, table: Table, args: Namespace) -> Row:
    """The row of a label. Raises ValueError where the table has none for scores on this corpus."""
    labels = [row.label for row in table.rows]
    if label not in labels:
        raise InputError(f"{argument!r}: scores are LABEL=FILE, and {label!r} is no row{did_you_mean(label, labels)}")
    placed = {row.label: row for row in table.rows_for(args.corpus) if row.part}
    if label not in placed:
        rows = ", ".join(placed)
        raise InputError(f"{argument!r}: {args.name} has no place for it on {args.corpus}. Its rows there: {rows}")
    return placed[label]


def _page(args: Namespace) -> None:
    _check_output(args.output)
    figure = _read_lines(args.figure, max(map(len, page_table_named(args.name)[1].published.values()), default=0))
    _write_table(args.output, page_table(args.name, figure, args.preset))


def _support(args: Namespace) -> None:
    _check_output(args.output)
    scored = {}
    for argument in args.scores:
        label, _, path = argument.rpartition("=")
        if not label or label in (*scored, REFERENCES):
            raise InputError(f"{argument!r}: scores are LABEL=FILE, each label once and not {REFERENCES!r}")
        scored[label] = read_numbers(Path(path), "scores", ("ids", "parts", "corpus", "split", "training documents"))
        for part in ("summaries", "reference"):
            if part not in scored[label]["parts"]:
                raise InputError(f"{path}: no scores of {part!r}, which the table needs: score it again")
            _check_measure(scored[label]["parts"][part], "support", f"{path}, part {part!r}")
    given = " ".join(f'"{argument}"' if " " in argument else argument for argument in args.scores)
    command = f"python -m companion.make_tables support --output {args.output} {given}"
    _write_table(args.output, support_table(scored, next(iter(scored.values()))["corpus"], command))


def _check_scores(scores: dict, path: Path, table: Table, row: Row, first: bool) -> None:
    """Raise ValueError unless a row of a table can be made of the scores; the `first` ones say on what."""
    setting = ("split", "training documents") if first else ()
    of_run = ("seed", "steps", "parameters", "made_with") if row.run else ()
    check_keys(scores, path, "scores", ("ids", "parts", *setting, *of_run))
    if not isinstance(scores["parts"], dict) or row.part not in scores["parts"]:
        raise InputError(f"{path}: no scores of {row.part!r}, which the row {row.label!r} is made of")
    both = row_parts(row, table) & DECODINGS.keys() & scores["parts"].keys()
    if both and scores.get("decoding") not in DECODINGS:
        raise InputError(f"{path}: scores of {' and '.join(both)}, and 'decoding' does not say what the others are")
    for part in (row.part, *both):
        _check_part(scores["parts"][part], table, f"{path}, part {part!r}")


def _check_part(part: Any, table: Table, where: str) -> None:
    """Raise ValueError unless a table's columns can be made of one system's scores."""
    for measure in (table.measure, *(["repetition"] if table.decodings else [])):
        _check_measure(part, measure, where)


def _check_measure(part: Any, measure: str, where: str) -> None:
    """Raise ValueError unless a measure can be had of one system's scores."""
    try:
        _ = float(part["words"]), MEASURES[measure].numbers(part)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        raise InputError(f"{where}: not what lib.score writes for a table of {measure}") from None


def _read_lines(path: Path, least: int) -> dict:
    """A figure of lines over the same places, as many as are published or more. Raises ValueError for another one."""
    figure = read_numbers(path, "figure of lines", ("panels",))
    try:
        series = figure["panels"][0]["series"].values()
        lines = [list(map(float, axis)) for places, values in series for axis in (places, values)]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        lines = []
    if len({len(numbers) for numbers in lines}) != 1:
        raise InputError(f"{path}: no figure of lines: its first panel has no series of [places, values] each")
    if len(lines[0]) < least:
        raise InputError(f"{path}: lines of {len(lines[0])} places, where {least} are published")
    return figure


def _check_output(path: Path) -> None:
    """Raise ValueError or OSError where a table or what stands beside it cannot be written."""
    check_replaces(path, "table", ANY_TABLE, path.with_suffix(".md"), path.with_suffix(SCORES))


def _write_table(path: Path, numbers: dict) -> None:
    text = markdown(numbers)
    write_json(path, numbers)  # first: what stands beside no table is not ours (`check_replaces`)
    write_whole(path.with_suffix(".md"), text + "\n")
    print(text)


def _keep(args: Namespace) -> None:
    for path in args.tables:
        print(keep(path, args.size))


def _render(args: Namespace) -> None:
    print(*render(), sep="\n")


if __name__ == "__main__":
    main()
