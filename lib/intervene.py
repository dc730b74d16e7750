"""Change a part of a trained run, or of what it reads, and measure how the probability of the texts
changes.

    python -m lib.intervene trained/mem2mem --dataset pmc-sample
    python -m lib.intervene trained/mem2mem "another memory" "slots averaged" --dataset pmc-sample
    python -m lib.intervene trained/windowed --dataset pmc-sample --of summaries --output c.json
    python -m lib.intervene trained/mem2mem --attention --dataset pmc-sample --of summaries

Each change has a row: the log-probability in nats a word, and its difference from the unchanged
model, with the 95% interval of a paired bootstrap over documents. If the interval includes 0, no
effect of the part was found. Without names, every change is made for which the model has the parts
(`lib.models.changes` explains them). After some changes a word can no longer be copied. Then only
words of the vocabulary are scored, with and without the change. So compare the differences of rows,
not their log-probabilities.

--attention measures instead how well attention ranks the sentences or paragraphs that a text
depends on: how well its ranks agree with those of the effect of erasing each, and with those of the
gradient.

Several GPUs share the documents, with the same result:

    torchrun --standalone --nproc-per-node 4 -m lib.intervene trained/mem2mem --dataset pmc-sample
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import arg

import lib
from lib.system.command_line import Grouped, RunFolder, run_command
from lib.system.errors import InputError, one_of
from lib.system.files import check_replaces, write_json

if TYPE_CHECKING:  # a command imports PyTorch when it begins, so that --help is fast
    from lib.data.documents import Document
    from lib.decoding.run import Run


@dataclass(frozen=True)
class DocumentOptions:
    """The documents that are measured, and where the numbers go.

    Attributes:
        dataset: a corpus; its test documents are read.
        documents: how many of them, from the first.
        output: a JSON file for the numbers, also of each document.
        device: cpu or cuda; by default the GPU if there is one.
    """

    dataset: str
    documents: int = 50
    output: Path | None = None
    device: str | None = None


def measure(
    run: RunFolder,
    changes: Annotated[tuple[str, ...], arg(metavar="[CHANGE ...]")] = (),
    /,
    *,
    documents: Grouped[DocumentOptions],
    of: Literal["references", "summaries"] = "references",
    attention: bool = False,
) -> None:
    """Print a table of changes.

    Args:
        run: the folder of a run.
        changes: their names; by default all that the model's parts allow.
        of: the texts whose probability is measured: the authors', or the run's own summaries.
        attention: rank agreement of attention, erasure and gradient.
    """
    from lib.data.vocabulary import SLIDE_SYMBOL
    from lib.evaluation.interventions import agreements, changes_of, intervene
    from lib.models.summarizer import Summarizer
    from lib.system.devices import processes

    with processes() as process:
        opened, texts = read(run, documents)
        if not isinstance(opened.model, Summarizer):
            raise InputError(f"{run}: a model that chooses sentences gives no text a probability")
        slides = SLIDE_SYMBOL in opened.options.symbols and opened.config["model"].get("window")
        if of == "references" and slides:
            raise InputError(
                f"{run}: references do not say where the window moves: ask for --of summaries"
            )
        if attention:
            head = "| one measure | the other | rank agreement |"
            rows = agreements(opened, texts, of, process)
        else:
            known = changes_of(opened.model)
            chosen = {name: known[one_of(name, known, "change")] for name in changes or known}
            head = "| change | | nats a word | difference |"
            rows = intervene(opened, texts, chosen, of, process)
        write_rows(run, documents, head, rows, len(texts), of, is_first=process.rank == 0)


def read(run: Path, options: DocumentOptions) -> tuple[Run, list[Document]]:
    """Open the run and read the documents that a command asks for."""
    from lib.data.corpora import load_corpus, unseen

    if options.documents < 2:
        raise InputError(f"--documents must be at least 2, not {options.documents}")
    if options.output:
        check_replaces(options.output, "interventions", ("run", "changes"))
    opened = lib.load(run, device=options.device)
    corpus = load_corpus(options.dataset)
    return opened, unseen(corpus, "test", [opened.config["corpus"]], options.documents)


def write_rows(
    run: Path,
    options: DocumentOptions,
    head: str,
    made: Iterable[dict],
    documents: int,
    of: str = "references",
    is_first: bool = True,
) -> None:
    """Print a table row by row, and write all that is in the rows to the file that is asked for.

    is_first: whether this is the first of several processes, which writes what all have made.
    """
    rows = []
    for row in made:
        if not is_first:
            continue
        if not rows:  # not before an error
            print(f"{head}\n|{' --- |' * (head.count('|') - 1)}")
        mean = f" {row['mean']:.3f} |" if "difference" in row else ""
        print(f"| {row['change']} | {row['what']} |{mean} {row['text']} |", flush=True)
        rows.append(row)
    if options.output and is_first:
        about = {"run": str(run), "corpus": Path(options.dataset).name, "of": of}
        write_json(options.output, {**about, "documents": documents, "changes": rows})


main = partial(run_command, "lib.intervene", __doc__, measure)

if __name__ == "__main__":
    main()
