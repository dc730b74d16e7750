"""Write a page in which a trained model writes in a browser, without a network.

    python -m companion.live trained/mem2mem live.html
    python -m companion.live trained/mem2mem live.html paper.md notes.txt
    python -m companion.live towns towns.html

The model is the run of Mem2Mem, of windowed attention or of Read-Again; `towns` are the two shipped models of the
hierarchical transformer's synthetic task. The page offers the given texts, or some of the project's own, and takes
what a reader pastes. For each word it shows the numbers of every equation; the model and the text can be changed.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import lib
from companion.live.page import LivePaper, sample_papers, write_live_page, write_towns_page
from companion.pages.dispatches import made_up_dispatches
from lib.decoding.run import Run
from lib.summarize import check_page, model_name, read_texts
from lib.system.command_line import command_parser, plain_errors
from lib.system.errors import InputError


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser("companion.live", __doc__)
    parser.add_argument("run", type=Path, help="the folder of a run, which lib.train wrote, or towns")
    parser.add_argument("page", type=Path, help="the HTML file to write")
    parser.add_argument("files", nargs="*", type=Path, help="texts that the page offers, as lib.summarize takes them")
    args = parser.parse_args(arguments)
    with plain_errors():
        check_page("PAGE", args.page, args.files)
        if str(args.run) == "towns":
            if args.files:
                raise InputError("towns: this page takes no texts")
            page = write_towns_page(args.page)
        else:
            run = lib.load(args.run, device="cpu")
            named = list(read_texts(args.files)) if args.files else []
            documents = run.documents([text for _, text in named], [name for name, _ in named])
            papers = [LivePaper(replace(d, title=d.title or name)) for d, (name, _) in zip(documents, named)]
            page = write_live_page(args.page, run, model_name(run), papers or _offered(run))
        print(f"{page}: open it in a browser", file=sys.stderr)


def _offered(run: Run) -> list[LivePaper]:
    """Texts that a page offers by itself."""
    if run.config["paper"] != "read_again":
        return sample_papers()
    return [LivePaper(document, "made up, with invented names") for document in made_up_dispatches()]


if __name__ == "__main__":
    main()
