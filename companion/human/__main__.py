"""People judge summaries: blinded forms to fill in, and their judgements in numbers.

    python -m companion.human sheet runs/rating --documents 20 HT=ht.jsonl FT=ft.jsonl Lead=lead.jsonl
    python -m companion.human answers runs/rating       # when questions.csv is filled in
    python -m companion.human scores runs/rating        # when people have sent their saved forms back

`sheet` draws documents and writes `form.html`, one file for a browser: ratings from 1 to 5 by the criteria of
Mem2Mem's Table 5, and which of three summaries is best and which worst by informativeness, fluency and succinctness
(Liu and Lapata 2019, section 5), beside reference and document. `questions.csv` is for questions about each
reference, written by a person; `answers` puts each beside one system's summary (`answers.html`), for people who have
not seen the reference. Several people save forms under their names (`form-anna.csv`), and their files come back into
the folder.

Summaries are JSON lines of {id, summary}, of any system; at least one file has references and documents, as those
that `lib.score run` writes. Only `key.json` has the system of each summary. `scores` gives means with intervals,
Krippendorff's alpha, an analysis of variance and Tukey's test.
"""

from companion.human.ratings import report
from companion.human.sheets import write_answers, write_sheets
from lib.evaluation.summaries import read_summaries
from lib.system.command_line import command_parser, plain_errors
from lib.system.errors import InputError


def main(arguments: list[str] | None = None) -> None:
    parser = command_parser("companion.human", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    sheet = commands.add_parser("sheet", help="draw documents and write a blinded form")
    sheet.add_argument("folder")
    sheet.add_argument("systems", nargs="+", metavar="NAME=FILE", help="summaries as JSON lines")
    sheet.add_argument("--documents", type=int, default=20, help="how many are drawn (the papers: 20)")
    sheet.add_argument("--seed", type=int, default=0)
    commands.add_parser("answers", help="put the questions beside the summaries").add_argument("folder")
    commands.add_parser("scores", help="read the saved forms").add_argument("folder")
    args = parser.parse_args(arguments)
    with plain_errors():
        if args.command == "sheet":
            write_sheets(args.folder, _read_systems(args.systems), args.documents, args.seed)
            print(f"{args.folder}: give people form.html; write questions.csv for answers; key.json has the systems")
        elif args.command == "answers":
            count = write_answers(args.folder)
            print(f"{args.folder}: answers.html, {count} questions to answer from the summaries")
        else:
            print(report(args.folder))


def _read_systems(arguments: list[str]) -> dict[str, dict[str, dict]]:
    systems = {}
    for argument in arguments:
        name, _, path = argument.partition("=")
        if not path or name in systems:
            raise InputError(f"{argument!r}: a system is NAME=FILE, each with a name of its own")
        systems[name] = read_summaries(path)
    return systems


if __name__ == "__main__":
    main()
