"""People judge summaries: blinded forms to fill in, and their judgements in numbers.

    python -m companion.human sheet runs/rating --documents 20 HT=ht.jsonl FT=ft.jsonl
    python -m companion.human scores runs/rating        # when people have sent their forms back

`sheet` draws documents and writes `form.html`, one file for a browser: ratings from 1 to 5 by the
criteria of Mem2Mem's Table 5, and which of three summaries is best and which worst by
informativeness, fluency and succinctness (Liu and Lapata 2019, section 5), beside reference and
document. Several people save forms under their names (`form-anna.csv`), and their files come back
into the folder.

Summaries are JSON lines of {id, summary}, of any system; at least one file has references and
documents, as those that `lib.score run` writes. Only `key.json` has the system of each summary.
`scores` gives means with intervals, Krippendorff's alpha, an analysis of variance and Tukey's test.
"""

from functools import partial
from pathlib import Path

from companion.command import split_labels
from companion.human.ratings import report
from companion.human.sheets import write_sheets
from lib.evaluation.summaries import read_summaries
from lib.system.command_line import run_command
from lib.system.errors import InputError


def sheet(folder: Path, systems: tuple[str, ...], /, *, documents: int = 20, seed: int = 0) -> None:
    """Draw documents and write a blinded form.

    Args:
        systems: LABEL=FILE, summaries as JSON lines.
        documents: how many are drawn (the papers: 20).
    """
    files = split_labels(systems)
    if len(dict(files)) < len(files):
        raise InputError("each system has a label of its own")
    write_sheets(folder, {label: read_summaries(file) for label, file in files}, documents, seed)
    print(f"{folder}: give people form.html; key.json has the systems")


def scores(folder: Path, /) -> None:
    """Read the saved forms."""
    print(report(folder))


main = partial(run_command, "companion.human", __doc__, {"sheet": sheet, "scores": scores})

if __name__ == "__main__":
    main()
