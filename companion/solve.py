"""Train small models on a synthetic task whose answer is known, with several seeds, and print what they got right.

    python -m companion.solve --list
    python -m companion.solve memory
    python -m companion.solve memory "memory alone, both, plain gate" --seeds 0 1 --output memory.json

A row of the table is one model; a cell has the value of each seed. What --output already holds is not trained again,
so that a long task can be stopped and goes on.
"""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from companion.results.text import markdown_table
from companion.stored import open_store
from companion.tasks import tasks
from companion.tasks.task import by_row
from lib.system.command_line import command_parser, plain_errors
from lib.system.errors import one_of


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser("companion.solve", __doc__)
    parser.add_argument("task", nargs="?", help="the name of a task")
    parser.add_argument("rows", nargs="*", help="names of rows; by default all")
    parser.add_argument("--seeds", type=int, nargs="+", help="by default those of the task")
    parser.add_argument("--output", type=Path, help="a JSON file for the numbers")
    parser.add_argument("--list", action="store_true", help="the tasks and their rows")
    args = parser.parse_args(arguments)
    with plain_errors():
        if args.list or not args.task:
            for name, task in tasks().items():
                print(f"{name}: {task.what}", *task.rows, sep="\n    ")
        else:
            print(_solve(args))


def _solve(args: Namespace) -> str:
    known = tasks()
    task = known[one_of(args.task, known, "task")]
    rows = {name: task.rows[one_of(name, task.rows, "row")] for name in args.rows or task.rows}
    store = open_store(args.output, "results of a task", {"task": args.task})
    table = by_row(store.results(rows, args.seeds or task.seeds, list(task.rows)))
    names = list(dict.fromkeys(name for measures in table.values() for name in measures))
    return markdown_table(
        ["row", *names], [[row, *(_cell(of_row.get(name, [])) for name in names)] for row, of_row in table.items()]
    )


def _cell(values: list) -> str:
    return " / ".join(f"{value:.4g}" if isinstance(value, float) else str(value) for value in values)


if __name__ == "__main__":
    main()
