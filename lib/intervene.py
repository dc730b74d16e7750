"""Change a part of a trained run, or of what it reads, and see what that does to the probability of the texts.

    python -m lib.intervene trained/mem2mem --dataset pmc-sample
    python -m lib.intervene trained/mem2mem "another memory" "slots averaged" --dataset pmc-sample --documents 48
    python -m lib.intervene trained/windowed --dataset pmc-sample --of summaries --output changes.json
    python -m lib.intervene trained/mem2mem --attention --dataset pmc-sample --of summaries
    python -m lib.intervene trained/mem2mem --memory --dataset pmc-sample
    python -m lib.intervene trained/read_again --hidden-words --dataset docstrings

One row a change: log-probability in nats a word, and by how much the change moves it, with the 95% interval of a
paired bootstrap over documents. Where the interval holds 0 it is not seen that the part does anything. Without names
of changes all that the model has the parts for are made. They are explained in `lib.evaluation.interventions`. With
changes after which a word could not be copied any more, only words of the vocabulary count, before the change too: so
the log-probabilities of two rows are not always of the same words, and the differences are what to compare.

--attention asks instead whether attention says which sentences or paragraphs a text rests on: how far its ranks agree
with those by erasing each, and by the gradient (`lib.evaluation.importance`).

--memory asks how much of the memory that Mem2Mem's encoder hands over is left while the references are read, and on
which sentences its heads are (`lib.evaluation.slots`).

--hidden-words asks whether the embedding that Read-Again makes of a word's context is near the word's own: words that
it knows are hidden from its encoder, one at a time (`lib.evaluation.hidden_words`).

Several GPUs share the documents, and give what one would:

    torchrun --standalone --nproc-per-node 4 -m lib.intervene trained/mem2mem --dataset pmc-sample
"""

from argparse import Namespace
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import lib
from lib.data.batch import EncodedDocument
from lib.data.corpora import load_corpus, unseen
from lib.data.documents import Document
from lib.data.vocabulary import EOS, SLIDE_SYMBOL, UNK
from lib.decoding.run import Run
from lib.decoding.search import by_length, written
from lib.evaluation.bootstrap import interval, paired_bootstrap
from lib.evaluation.hidden_words import MEASURES as NEARER
from lib.evaluation.hidden_words import nearer_shares
from lib.evaluation.importance import MEASURES, batch_alone, rank_agreement
from lib.evaluation.interventions import NOTHING, Change, changes_of, log_probs
from lib.evaluation.slots import slots_after, strongest_weights, usual_places
from lib.models.mem2mem import Mem2Mem
from lib.models.read_again import ReadAgain
from lib.models.summarizer import Summarizer
from lib.system.command_line import command_parser, plain_errors
from lib.system.errors import InputError, one_of
from lib.system.files import check_replaces, write_json
from lib.training.devices import ALONE, Process, processes


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser("lib.intervene", __doc__)
    parser.add_argument("run", type=Path, help="the folder of a run")
    parser.add_argument("changes", nargs="*", help="names of changes; by default all that the model has parts for")
    parser.add_argument("--dataset", required=True, help="a corpus; its test documents are read")
    parser.add_argument("--documents", type=int, default=50, help="the first so many (50)")
    parser.add_argument(
        "--of", choices=("references", "summaries"), default="references",
        help="the texts whose probability is measured: the authors', or what the run writes of each document",
    )  # fmt: skip
    parser.add_argument("--attention", action="store_true", help="rank agreement of attention, erasure and gradient")
    parser.add_argument("--memory", action="store_true", help="what is left of the memory, and where its heads are")
    parser.add_argument("--hidden-words", action="store_true", help="how near embeddings from context are")
    parser.add_argument("--output", type=Path, help="a JSON file for the numbers, of each document too")
    parser.add_argument("--device", help="cpu or cuda; by default the GPU where there is one")
    args = parser.parse_args(arguments)
    with plain_errors(), processes() as process:
        _intervene(args, process)


def _intervene(args: Namespace, process: Process) -> None:
    if args.documents < 2:
        raise InputError(f"--documents must be at least 2, not {args.documents}")
    if args.output:
        check_replaces(args.output, "interventions", ("run", "changes"))
    asked = [f"--{name}" for name in ("attention", "memory", "hidden-words") if vars(args)[name.replace("-", "_")]]
    asked += [f"changes ({', '.join(args.changes)})"] if args.changes else []
    if len(asked) > 1:
        raise InputError(f"{', or '.join(asked)}: not both")
    run = lib.load(args.run, device=args.device)
    _check(run, args)
    known = changes_of(run.model)
    changes = {name: known[one_of(name, known, "change")] for name in args.changes or known}
    documents = unseen(load_corpus(args.dataset), "test", [run.config["corpus"]], args.documents)
    if args.attention:
        made, (head, line) = agreements(run, documents, args.of, process), AGREEMENT
    elif args.memory:
        made, (head, line) = memory(run, documents), MEMORY
    elif args.hidden_words:
        made, (head, line) = hidden_words(run, documents, process), HIDDEN
    else:
        made, (head, line) = intervene(run, documents, changes, args.of, process), CHANGE
    if process.rank:  # the first process writes what all have made
        deque(made, 0)
        return
    rows = []
    for row in made:
        if not rows:  # not before an error
            print(f"{head}\n|{' --- |' * (head.count('|') - 1)}")
        print(line.format(**row), flush=True)
        rows.append(row)
    if args.output:
        about = {"run": str(args.run), "corpus": Path(args.dataset).name, "of": args.of, "documents": len(documents)}
        write_json(args.output, {**about, "changes": rows})


CHANGE = "| change | | nats a word | difference |", "| {change} | {what} | {mean:.3f} | {text} |"
HIDDEN = "| embedding | | rows of Y that are nearer than the word's own, percent |", "| {change} | {what} | {text} |"
MEMORY = "| memory | | |", "| {change} | {what} | {text} |"
AGREEMENT = "| one measure | the other | rank agreement |", "| {change} | {what} | {text} |"

WORDS = (5, 50)  # of a reference, after which what is left of the memory is measured


def _check(run: Run, args: Namespace) -> None:
    if not isinstance(run.model, Summarizer):
        raise InputError(f"{args.run}: a model that chooses sentences gives no text a probability")
    if args.of == "references" and SLIDE_SYMBOL in run.options.symbols and run.config["model"].get("window"):
        raise InputError(f"{args.run}: references do not say where the window moves: ask for --of summaries")


def intervene(
    run: Run, documents: Sequence[Document], changes: dict[str, Change], of: str = "references",
    process: Process = ALONE,
) -> Iterator[dict]:  # fmt: skip
    """A row of each change: mean log-probability in nats a word, what it differs by from the same texts without the
    change with its paired interval, and the values of all documents."""
    encoded, values_of = run.encode(documents), partial(log_probs, run.model, process=process)
    texts = _written(run, encoded, process) if of == "summaries" else encoded
    own = {only: values_of(texts, only_known=only) for only in sorted({c.only_known for c in changes.values()})}
    for name, change in changes.items():
        read = texts
        if change.text:
            read = run.encode([change.text(document) for document in documents])
            read = [_with_target(d, text.target, len(run.vocabulary)) for d, text in zip(read, texts)]
        values = own[change.only_known] if change is NOTHING else values_of(read, change)
        seen = paired_bootstrap(own[change.only_known], values)
        yield {
            "change": name, "what": change.what, "mean": float(values.mean()), "difference": seen.mean,
            "low": seen.low, "high": seen.high, "p": seen.p, "text": seen.text(3),
            "values": np.round(values, 5).tolist(),
        }  # fmt: skip


def agreements(
    run: Run, documents: Sequence[Document], of: str = "references", process: Process = ALONE
) -> Iterator[dict]:
    """A row of each pair of MEASURES: the mean over documents of the rank agreement of the importance of units, with
    its interval, and the values of all documents. A document of one unit has no ranks and is left out."""
    encoded = run.encode(documents)
    texts = _written(run, encoded, process) if of == "summaries" else encoded
    texts = [text for text in texts if len(text.sentence_lengths) > 1]
    if not texts:
        raise InputError("no document has two sentences or paragraphs: there is nothing to rank")
    ranked = {
        name: process.gather(measure(run.model, text) for text in process.share(texts))
        for name, measure in MEASURES.items()
    }
    for first, second in combinations(MEASURES, 2):
        values = np.array([rank_agreement(*pair) for pair in zip(ranked[first], ranked[second])])
        yield _mean_row(first, second, values)


def memory(run: Run, documents: Sequence[Document]) -> Iterator[dict]:
    """A row each of what is left of the memory after WORDS of the reference, of a head's weight on its strongest
    sentence (means over documents and slots, with intervals, and the values of all documents), and of how often that
    sentence stands at the head's usual place. Documents with shorter references are left out."""
    model = run.model
    if not isinstance(model, Mem2Mem) or not model.extracts:
        raise InputError(f"{run.folder}: only Mem2Mem has a memory that its encoder hands over")
    pairs = [
        (document, text) for document, text in zip(documents, run.encode(documents)) if len(text.target) > WORDS[-1]
    ]
    if not pairs:
        raise InputError(f"no document has a reference of {WORDS[-1]} words")
    alone = [batch_alone(model, text) for _, text in pairs]
    left = np.stack([slots_after(model, batch, WORDS)["left"] for batch in alone])  # [documents, WORDS]
    weights = [strongest_weights(model, batch).mean().item() for batch in alone]
    for words, values in zip(WORDS, left.T):
        yield _mean_row(f"left after {words} words", "share of what was handed over", values)
    yield _mean_row("strongest sentence", "weight of a head on it", np.array(weights))
    places = usual_places(run.model, run.encoder, [document for document, _ in pairs])["papers"].to_numpy()
    yield {
        "change": "usual place", "what": "documents in which a head's strongest sentence is there, mean over heads",
        "mean": float(places.mean()), "text": f"{places.mean():.2f}", "values": places.round(5).tolist(),
    }  # fmt: skip


def hidden_words(run: Run, documents: Sequence[Document], process: Process = ALONE) -> Iterator[dict]:
    """A row of each measure of `lib.evaluation.hidden_words`: the mean over documents of the share of rows that are
    nearer, in percent, with its interval, the number of words, and the values of all documents. Documents in which
    fewer than two words can be hidden are left out."""
    if not isinstance(run.model, ReadAgain):
        raise InputError(f"{run.config['paper']} has no embeddings from context: only Read-Again has")
    own = process.share(run.encode(documents))
    shares = process.gather(nearer_shares(run.model, document) for document in own)
    shares = [of for of in shares if of.shape[1]]
    if not shares:
        raise InputError("no document has two words that can be hidden")
    for i, (name, what) in enumerate(NEARER.items()):
        values = 100 * np.array([of[i].mean() for of in shares])
        yield _mean_row(name, what, values, 3, words=sum(of.shape[1] for of in shares))


def _mean_row(name: str, what: str, values: np.ndarray, digits: int = 5, **more: Any) -> dict:
    """A row of the mean of a measure over documents, with its interval and their values."""
    mean = interval(values)
    return {
        "change": name, "what": what, "mean": mean.mean, "low": mean.low, "high": mean.high, "text": str(mean),
        **more, "values": np.round(values, digits).tolist(),
    }  # fmt: skip


def _written(run: Run, documents: Sequence[EncodedDocument], process: Process) -> list[EncodedDocument]:
    """Documents whose reference is what the run writes of them."""
    write = partial(written, run.model, config=run.decode, process=process)
    best = by_length(write, run.model, documents, run.vocabulary)
    targets = [np.array([*hypothesis.ids, EOS], dtype=np.int32) for hypothesis in best]
    return [replace(document, target=target) for document, target in zip(documents, targets)]


def _with_target(document: EncodedDocument, target: np.ndarray, size: int) -> EncodedDocument:
    """A document with the reference of another reading of it, whose copy ids are other words here: they are [UNK]."""
    return replace(document, target=np.where(target < size, target, UNK).astype(np.int32))


if __name__ == "__main__":
    main()
