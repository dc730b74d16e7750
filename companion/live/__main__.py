"""Write a page in which a trained model writes in a browser, without a network.

    python -m companion.live trained/mem2mem live.html
    python -m companion.live trained/mem2mem live.html paper.md notes.txt
    python -m companion.live towns towns.html
    python -m companion.live training training.html
    python -m companion.live side_by_side side_by_side.html

The model is the run of Mem2Mem, of windowed attention or of Read-Again; `towns` are the two shipped
models of the hierarchical transformer's synthetic task. The page offers the given texts, or some of
the project's own, and takes what a reader pastes. For each word it shows the numbers of every
equation; the model and the text can be changed. In `training` a reader trains the two small models
of Start here. `side_by_side` shows two pages of its folder, mem2mem.html, windowed.html or
read_again.html, with the same text.
"""

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import lib
from companion.live.page import OWN_PAGES, LivePaper, sample_papers, write_live_page
from companion.pages.dispatches import made_up_dispatches
from lib.decoding.run import Run
from lib.summarize import check_page, model_name, read_texts
from lib.system.command_line import run_command
from lib.system.errors import InputError


def write(run: Path, page: Path, files: tuple[Path, ...] = (), /) -> None:
    """Write a page.

    Args:
        run: the folder of a run, which lib.train wrote, or towns, training or side_by_side.
        page: the HTML file to write.
        files: texts that the page offers, as lib.summarize takes them.
    """
    check_page("PAGE", page, files)
    if own := OWN_PAGES.get(str(run)):
        if files:
            raise InputError(f"{run}: this page takes no texts")
        own(page)
    else:
        opened = lib.load(run, device="cpu")
        write_live_page(page, opened, model_name(opened), _papers(opened, files))
    print(f"{page}: open it in a browser", file=sys.stderr)


def _papers(run: Run, files: tuple[Path, ...]) -> list[LivePaper]:
    """Read the texts that a page offers, or take some of the project's own."""
    if named := list(read_texts(files)) if files else []:
        documents = run.documents([text for _, text in named], [name for name, _ in named])
        return [
            LivePaper(replace(d, title=d.title or name)) for d, (name, _) in zip(documents, named)
        ]
    if run.config["paper"] != "read_again":
        return sample_papers()
    return [
        LivePaper(document, "made up, with invented names") for document in made_up_dispatches()
    ]


main = partial(run_command, "companion.live", __doc__, write)

if __name__ == "__main__":
    main()
