"""The papers' result tables, made of scores: intervals, comparisons, and the published rows beside.

    python -m companion.make_tables table mem2mem_table2 --corpus aclsum --output T.json hred=a/scores.json ...
    python -m companion.make_tables table mem2mem_table2 --corpus aclsum --output U.json --add-to T.scores.json.gz ...
    python -m companion.make_tables page read_again_table4 --figure read_again_seconds.json --output T.json
    python -m companion.make_tables support --output T.json Mem2Mem=runs/scores/mem2mem/scores.json ...
    python -m companion.make_tables keep T.json          # into figures/, and docs or a card
    python -m companion.make_tables again NAME           # a kept table from its kept scores
    python -m companion.make_tables render               # the project's texts again, from kept tables and claims

`workflow/Snakefile` makes the runs and the scores (`lib.evaluation.scores`) and calls these. The scores of
a table are written beside it. Numbers: `companion.results.numbers`; as text: `companion.results.text`; in
the project's texts: `companion.results.places`.
"""

import shlex
from argparse import Namespace
from pathlib import Path

from companion.results.kept import SCORES, kept_table, read_table_scores, write_table_scores
from companion.results.numbers import REFERENCES, make_table, page_table, support_table
from companion.results.places import keep, render
from companion.results.tables import TABLES
from companion.results.text import markdown
from lib.system.command_line import command_parser, plain_errors
from lib.system.errors import InputError, one_of
from lib.system.files import project_root, read_numbers, write_json, write_whole


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
        command.add_argument("--output", required=True, type=Path, help="NAME.json; NAME.md and scores go beside it")
    keep_command = commands.add_parser("keep", help="put tables into figures/, and docs or a card")
    keep_command.add_argument("tables", nargs="+", type=Path)
    keep_command.add_argument("--size", default="", metavar="NAME", help="kept as TABLE_CORPUS_NAME")
    again = commands.add_parser("again", help="make kept tables again from their kept scores")
    again.add_argument("tables", nargs="+", metavar="NAME", help="as in figures/NAME.json")
    commands.add_parser("render", help="write kept tables and claims into the texts again")
    args = parser.parse_args(arguments)
    with plain_errors():
        globals()[f"_{args.command}"](args)


def _table(args: Namespace) -> None:
    table = TABLES[one_of(args.name, TABLES, "table")]
    rows = {row.label: row for row in table.rows_for(args.corpus) if row.part}
    scored = read_table_scores(args.add_to) if args.add_to else {}
    for label, path in map(_labelled, args.scores):
        row = rows[one_of(label, rows, f"row of {args.name} on {args.corpus}")]
        needed = ("seed", "steps", "parameters", "made_with") if row.is_run else ()
        scores = _read_scores(path, row.part, needed)
        of_row = scored.setdefault(label, [])
        if any(other.get("seed") == scores.get("seed") for other in of_row):
            raise InputError(f"{path}: there are scores of {label} with this seed already")
        of_row.append(scores)
    numbers = make_table(args.name, scored, args.corpus, args.preset, args.made_by)
    _write_table(args.output, numbers)
    write_table_scores(args.output.with_suffix(SCORES), table, scored)


def _labelled(argument: str) -> tuple[str, Path]:
    label, _, path = argument.rpartition("=")
    if not label:
        raise InputError(f"{argument!r}: scores are LABEL=FILE")
    return label, Path(path)


def _read_scores(path: Path, part: str, needed: tuple[str, ...] = ()) -> dict:
    scores = read_numbers(path, "scores", ("ids", "parts", "split", "training documents", *needed))
    if part not in scores["parts"]:
        raise InputError(f"{path}: no scores of {part!r}, of which the row is made: score it again with lib.score")
    return scores


def _page(args: Namespace) -> None:
    figure = read_numbers(args.figure, "figure of lines", ("panels",))
    _write_table(args.output, page_table(args.name, figure, args.preset))


def _support(args: Namespace) -> None:
    scored = {label: _read_scores(path, "summaries", ("corpus",)) for label, path in map(_labelled, args.scores)}
    if REFERENCES in scored or len(scored) < len(args.scores):
        raise InputError(f"each system has a label of its own, which is not {REFERENCES!r}")
    command = shlex.join(["python", "-m", "companion.make_tables", "support", "--output", str(args.output)])
    given = " ".join(f'"{argument}"' if " " in argument else argument for argument in args.scores)
    corpus = next(iter(scored.values()))["corpus"]
    _write_table(args.output, support_table(scored, corpus, f"{command} {given}"))


def _write_table(path: Path, numbers: dict) -> None:
    text = markdown(numbers)
    write_json(path, numbers)
    write_whole(path.with_suffix(".md"), text + "\n")
    print(text)


def _keep(args: Namespace) -> None:
    for path in args.tables:
        print(keep(path, args.size))


def _again(args: Namespace) -> None:
    for name in args.tables:
        old = kept_table(name)
        scored = read_table_scores(project_root() / "figures" / "scores" / f"{name}{SCORES}")
        write_json(
            project_root() / "figures" / f"{name}.json",
            make_table(old["table"], scored, old["corpus"], old["preset"], old["command"]),
        )
    render()


def _render(args: Namespace) -> None:
    print(*render(), sep="\n")


if __name__ == "__main__":
    main()
