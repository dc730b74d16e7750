"""Train small models on a made-up task whose answer is known, with several seeds, and print what they got right.

    python -m companion.solve --list
    python -m companion.solve memory
    python -m companion.solve memory "memory alone, both, plain gate" --seeds 0 1 --output memory.json

A row of the table is one model; a cell has the value of each seed. What --output already holds is not trained again,
so that a long task can be stopped and goes on.
"""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from companion.tasks import tasks
from companion.tasks.task import Task, by_row
from lib.system.command_line import command_parser, plain_errors
from lib.system.errors import InputError, one_of
from lib.system.files import check_replaces, read_numbers, write_json

NEEDED = ("task", "results")


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
            _solve(args)


def _solve(args: Namespace) -> None:
    known = tasks()
    task = known[one_of(args.task, known, "task")]
    rows = [one_of(name, task.rows, "row") for name in args.rows] or list(task.rows)
    if args.output:
        check_replaces(args.output, "results of a task", NEEDED)
    results = _earlier(args)
    solved = {(result["row"], result["seed"]) for result in results}
    for row in rows:
        for seed in args.seeds or task.seeds:
            if (row, seed) not in solved:
                results.append({"row": row, "seed": seed, **task.rows[row](seed)})
                if args.output:
                    write_json(args.output, {"task": args.task, "results": _in_order(results, task)})
    print(_table(_in_order(results, task)))


def _earlier(args: Namespace) -> list[dict]:
    if not (args.output and args.output.exists()):
        return []
    numbers = read_numbers(args.output, "results of a task", NEEDED)
    if numbers["task"] != args.task:
        raise InputError(f"{args.output} has results of {numbers['task']!r}, not of {args.task!r}: name another file")
    return numbers["results"]


def _in_order(results: list[dict], task: Task) -> list[dict]:
    order = list(task.rows)
    return sorted(results, key=lambda r: (order.index(r["row"]) if r["row"] in order else len(order), r["seed"]))


def _table(results: list[dict]) -> str:
    table = by_row(results)
    names = list(dict.fromkeys(name for measures in table.values() for name in measures))
    lines = [["row", *names], *([row, *(_cell(m.get(name, [])) for name in names)] for row, m in table.items())]
    lines.insert(1, ["---"] * (len(names) + 1))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(values: list) -> str:
    return " / ".join(f"{value:.4g}" if isinstance(value, float) else str(value) for value in values)


if __name__ == "__main__":
    main()
