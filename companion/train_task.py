"""Train small models on a synthetic task whose answer is known, with several seeds, and print what
they got right.

    python -m companion.train_task --list
    python -m companion.train_task memory
    python -m companion.train_task memory "memory alone, both, plain gate" --seeds 0 1 \\
        --output memory.json

A row of the table is one model; a cell has the value of each seed. A task that was stopped
continues: results that --output has already are not trained again.
"""

from functools import partial
from pathlib import Path

from companion.results.text import markdown_table
from companion.stored import open_store
from companion.tasks import tasks
from companion.tasks.task import by_row
from lib.system.command_line import run_command
from lib.system.errors import one_of


def train_task(
    task: str = "",
    rows: tuple[str, ...] = (),
    /,
    *,
    seeds: tuple[int, ...] = (),
    output: Path | None = None,
    list: bool = False,
) -> None:
    """Print the table of a task.

    Args:
        task: its name.
        rows: names of rows; by default all.
        seeds: by default those of the task.
        output: a JSON file for the numbers.
        list: print the tasks and their rows.
    """
    known = tasks()
    if list or not task:
        for name, listed in known.items():
            print(f"{name}: {listed.what}", *listed.rows, sep="\n    ")
        return
    chosen = known[one_of(task, known, "task")]
    functions = {
        name: chosen.rows[one_of(name, chosen.rows, "row")] for name in rows or chosen.rows
    }
    store = open_store(output, "results of a task", {"task": task})
    table = by_row(store.results(functions, seeds or chosen.seeds, [*chosen.rows]))
    names = dict.fromkeys(name for measures in table.values() for name in measures)
    cells = [
        [row, *(_cell(measures.get(name, [])) for name in names)] for row, measures in table.items()
    ]
    print(markdown_table(["row", *names], cells))


def _cell(values: list) -> str:
    return " / ".join(
        f"{value:.4g}" if isinstance(value, float) else str(value) for value in values
    )


main = partial(run_command, "companion.train_task", __doc__, train_task)

if __name__ == "__main__":
    main()
