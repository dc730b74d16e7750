"""People judge summaries: blinded sheets to fill in, and what they say in numbers.

    python -m companion.human sheet runs/rating --documents 20 HT=ht.jsonl FT=ft.jsonl Lead=lead.jsonl
    python -m companion.human answers runs/rating       # when questions.csv is filled in
    python -m companion.human scores runs/rating        # when people have filled in what they were given

`sheet` draws documents and writes `form.html`, one file for a browser: ratings from 1 to 5 by the criteria of
Mem2Mem's Table 5, and which of three summaries is best and which worst by informativeness, fluency and succinctness
(Liu and Lapata 2019, section 5), beside reference and document; each summary is shown once. The same as CSV:
`ratings.csv` and `best_worst.csv`, with the texts in `documents`. `questions.csv` is for questions about each
reference, written by a person; `answers` puts each beside one system's summary, for people who have not seen the
reference (`answers.html`, `answers.csv`): `mark` says 1 for a right answer, 0.5 for a partly right one, 0 otherwise.
Several people save forms under their names (`form-anna.csv`), or fill in copies of the sheets (`ratings-anna.csv`).
Summaries are JSON lines of {id, summary}, as of any system; one file at least has references and documents, as those
that `lib.score run` writes. Which summary is whose stands in `key.json` alone. `scores` gives means with intervals,
Krippendorff's alpha, an analysis of variance and Tukey's test.
"""

from argparse import Namespace
from collections import Counter
from pathlib import Path

from companion.human.sheets import CRITERIA, RatingError, write_answers, write_sheets
from lib.evaluation.summaries import read_summaries
from lib.system.command_line import command_parser, plain_errors


def main(arguments: list[str] | None = None) -> None:
    parser = command_parser("companion.human", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    sheet = commands.add_parser("sheet", help="draw documents and write blinded sheets")
    sheet.add_argument("folder")
    sheet.add_argument("systems", nargs="+", metavar="NAME=FILE", help="summaries as JSON lines")
    sheet.add_argument("--documents", type=int, default=20, help="how many are drawn (the papers: 20)")
    sheet.add_argument("--seed", type=int, default=0)
    sheet.add_argument("--criteria", nargs="*", metavar="NAME", help=f"in place of {', '.join(CRITERIA)}")
    commands.add_parser("answers", help="put the questions beside the summaries").add_argument("folder")
    commands.add_parser("scores", help="read everything back").add_argument("folder")
    args = parser.parse_args(arguments)
    with plain_errors():
        {"sheet": _sheet, "answers": _answers, "scores": _scores}[args.command](args)


def _sheet(args: Namespace) -> None:
    pairs = [pair.partition("=") for pair in args.systems]
    if unnamed := [name for name, equals, _ in pairs if not equals]:
        raise RatingError(f"{unnamed[0]!r}: a system is given as NAME=FILE")
    criteria = CRITERIA if args.criteria is None else {name: CRITERIA.get(name, "") for name in args.criteria}
    if twice := [name for name, count in Counter(name for name, _, _ in pairs).items() if count > 1]:
        raise RatingError(f"two systems are named {twice[0]!r}")
    systems = {name: read_summaries(path) for name, _, path in pairs}
    write_sheets(args.folder, systems, args.documents, args.seed, criteria)
    print(
        f"{args.folder}: open form.html, or fill in ratings.csv and best_worst.csv; write questions.csv for answers"
    )
    print("key.json says whose summaries they are")
    if not (Path(args.folder) / "documents").exists():
        print("the files hold no texts of documents: informativeness can be judged by the reference alone")


def _answers(args: Namespace) -> None:
    count = write_answers(args.folder)
    print(f"{args.folder}: answers.html and answers.csv, {count} questions to answer from the summaries alone")


def _scores(args: Namespace) -> None:
    from companion.human.ratings import report  # here, because pandas and SciPy take two seconds to start

    print(report(args.folder))


if __name__ == "__main__":
    main()
