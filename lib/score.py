"""Score a trained run, or systems that need no training, on a corpus.

    python -m lib.score run runs/x --dataset aclsum
    python -m lib.score run trained/windowed --dataset pmc-sample --decode slide=median
    python -m lib.score baselines mem2mem --preset demo --dataset aclsum --output baselines.json
    python -m lib.score summaries theirs.jsonl --dataset aclsum --output theirs.json
    python -m lib.score compare runs/x runs/y lexrank theirs.jsonl --dataset aclsum

Tables are made from the scores (`companion.make_tables`). A run's summaries are written beside
them: beside scores-200.json in summaries-200.jsonl, beside x.json in x.summaries.jsonl. `summary`
has the model's own words, which are scored; `readable` is for people to judge (`companion.human`).
`summaries` scores such a file of any system.

Besides ROUGE, scores show what of a summary is not in its text (`lib.evaluation.support`): numbers,
names, words and word pairs. They also show how many sentences are taken from one source sentence.
The references have a row of their own.

Several GPUs share the documents, with the same result:

    torchrun --standalone --nproc-per-node 4 -m lib.score run runs/x --dataset aclsum
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import arg

import lib
from lib.system.command_line import Count, Grouped, Repeated, RunFolder, run_command
from lib.system.errors import InputError, one_of
from lib.system.files import (
    check_replaces,
    check_writable,
    trained_folder,
    work_folder,
    write_json,
    write_whole,
)
from lib.system.settings import field_names

if TYPE_CHECKING:  # a command imports PyTorch when it begins, so that --help is fast
    from lib.data.documents import Document
    from lib.data.options import Options
    from lib.decoding.config import DecodeConfig


BASELINES = ("lexrank", "lead")  # systems that `compare` takes by name


@dataclass(frozen=True)
class CorpusOptions:
    """The documents that are scored.

    Attributes:
        dataset: a corpus name or a folder.
        limit: documents of each split, at most; as in training.
        errors: what happens at a malformed record.
        test: take the test documents of another corpus.
        split: the split whose documents are scored.
        documents: score only the first documents, this many.
    """

    dataset: str
    limit: Count | None = None
    errors: Literal["raise", "skip"] = "raise"
    test: str = ""
    split: Literal["val", "test"] = "test"
    documents: Count | None = None

    @property
    def scored(self) -> str:
        """The corpus of the scored documents."""
        return self.test if self.test and self.split == "test" else self.dataset


@dataclass(frozen=True)
class WritingOptions:
    """How summaries are written and cut.

    Attributes:
        min_length: the smallest number of words of a summary; by default the run's.
        max_length: the largest number of words.
        beam: width of the search.
        decode: NAME=VALUE, another setting of the run's own decoding, as block_ngrams=0.
        scaled: OPTION=FACTOR, read more than in training.
        as_long_as_references: cut each summary to the words of its reference, as the code of
            windowed attention does.
        numbers: replace # by the text's numbers (Rush et al. 2015).
        batch_size: documents in a batch.
        device: cpu or cuda; by default the GPU if there is one.
    """

    min_length: int | None = None
    max_length: Count | None = None
    beam: Count | None = None
    decode: Repeated[tuple[str, ...]] = ()
    scaled: Repeated[tuple[str, ...]] = ()
    as_long_as_references: bool = False
    numbers: bool = False
    batch_size: Count = 16
    device: str | None = None


# ---------------------------------------------------------------------------------
# commands


def score_run(
    folder: RunFolder,
    /,
    *,
    corpus: Grouped[CorpusOptions],
    writing: Grouped[WritingOptions],
    output: Path | None = None,
    html: Path | None = None,
) -> None:
    """Write summaries with a run and score them.

    Args:
        folder: the folder of a run.
        output: the file of scores; by default scores.json beside the run, or in runs/scores/NAME
            for trained/NAME.
        html: a page with a report on the corpus: what to expect, scores of equally long summaries,
            and every document with its summary.
    """
    from lib.data.corpus import check_unpublished, unseen
    from lib.evaluation import scores
    from lib.evaluation.report import report_of
    from lib.evaluation.summaries import write_summaries
    from lib.page.report_page import write_report
    from lib.papers import title_of
    from lib.papers.paper import corpus_for
    from lib.system.devices import processes

    with processes() as process:
        output = output or _folder_of_scores(folder) / "scores.json"
        check_replaces(output, "scores", ("ids", "parts"))
        beside = _summaries_beside(output)
        check_writable(beside)
        check_unpublished(beside, corpus.scored)
        if html:
            check_writable(html)
            check_unpublished(html, corpus.scored)
        run = lib.load(folder, device=writing.device)
        encoder = replace(run.encoder, options=_scaled(run.options, writing.scaled))
        decode = _decoding(folder, run.decode, writing)
        run = replace(run, encoder=encoder, decode=decode)
        limits = [n for n in (corpus.documents, corpus.limit) if n is not None]
        if not limits and Path(corpus.scored).resolve() == Path(run.config["corpus"]).resolve():
            # as many as there were in training
            limits = [n for n in [run.config["documents"].get(corpus.split)] if n]
        texts = corpus_for(corpus.dataset, corpus.errors, corpus.test)
        learned = [run.config["corpus"]]
        documents = unseen(texts, corpus.split, learned, min(limits, default=None))
        name = Path(corpus.scored).name
        how = writing.batch_size, writing.numbers, process, writing.as_long_as_references
        found, summaries = scores.score_run(run, documents, corpus.split, name, *how)
        if process.rank:
            return
        write_summaries(beside, documents, summaries, name, run)
        _write(output, found)
        if html:
            report = report_of(run, title_of(run), documents, summaries, name, corpus.split)
            print(f"The report: {write_report(html, report)}")


def score_summaries(
    file: Annotated[Path, arg(metavar="FILE")], /, *, corpus: Grouped[CorpusOptions], output: Path
) -> None:
    """Score the summaries of any system.

    Args:
        file: a summary a line (.txt) in the order of the documents, JSON lines or CSV of id and
            summary, one JSON list or {id: text}, or what lib.summarize --json writes.
        output: the file of scores.
    """
    from lib.evaluation.scores import score_systems, setting
    from lib.evaluation.summaries import read_summary_sentences
    from lib.papers.paper import corpus_for

    check_replaces(output, "scores", ("ids", "parts"))
    texts = corpus_for(corpus.dataset, corpus.errors, corpus.test)
    split = list(texts.split(corpus.split, corpus.limit))
    by_id = read_summary_sentences(file, [d.id for d in split[: corpus.documents]])
    # with --documents, a file may have summaries of more
    if corpus.documents is None and (unknown := by_id.keys() - {d.id for d in split}):
        raise InputError(
            f"{file}: {Path(corpus.scored).name} has no {corpus.split} document {min(unknown)!r}; "
            f"its first one is {split[0].id!r}"
        )
    documents = _with_summaries(file, by_id, split)[: corpus.documents]
    systems = {
        "summaries": [by_id[d.id] for d in documents],
        "reference": [d.summary for d in documents],
    }
    found = {
        "model": file.stem,
        **setting(Path(corpus.scored).name, documents, corpus.split),
        "parts": score_systems(systems, documents),
    }
    _write(output, found)


def _with_summaries(
    file: str | Path, by_id: dict[str, list[str]], documents: Sequence[Document]
) -> list[Document]:
    """Choose the documents that a file has summaries of; standard error counts the others."""
    chosen = [document for document in documents if document.id in by_id]
    missing = [document.id for document in documents if document.id not in by_id]
    if not chosen:
        raise InputError(
            f"{file}: no summary of a document that is scored: it has {min(by_id)!r}, and the "
            f"documents have {missing[:1]}"
        )
    if missing:
        shown = ", ".join(missing[:3]) + ", ..." * (len(missing) > 3)
        print(
            f"{file}: no summary of {len(missing)} of {len(documents)} documents ({shown}): "
            f"scores are of the other {len(chosen)}",
            file=sys.stderr,
        )
    return chosen


def compare_systems(
    systems: Annotated[tuple[str, ...], arg(metavar="SYSTEM [SYSTEM ...]")],
    /,
    *,
    corpus: Grouped[CorpusOptions],
    output: Path | None = None,
    device: str | None = None,
) -> None:
    """Compare systems on the same documents: paired differences with 95% intervals.

    Args:
        systems: folders of runs, files of summaries (as `summaries` takes them), lexrank or lead.
        output: a JSON file for the numbers.
        device: cpu or cuda; by default the GPU if there is one.
    """
    from lib.data.corpus import unseen
    from lib.evaluation.comparison import baseline_summaries, compare
    from lib.evaluation.summaries import read_summary_sentences
    from lib.papers.paper import corpus_for

    if len(systems) < 2 or len({*systems}) < len(systems):
        raise InputError("give two systems or more, each once: runs, files, lexrank or lead")
    if output:
        check_replaces(output, "comparison", ("systems", "documents"))
    runs = {name: lib.load(name, device=device) for name in systems if Path(name).is_dir()}
    texts = corpus_for(corpus.dataset, corpus.errors, corpus.test)
    learned = [run.config["corpus"] for run in runs.values()]
    documents = unseen(texts, corpus.split, learned, corpus.limit)[: corpus.documents]
    ids = [document.id for document in documents]
    files = {
        name: read_summary_sentences(name, ids)
        for name in systems
        if name not in runs and name not in BASELINES
    }
    for name, by_id in files.items():
        documents = _with_summaries(name, by_id, documents)
    written: dict[str, Any] = {}
    for name in systems:
        if name in runs:
            found = runs[name].summarize(documents)
            written[name] = [summary.sentences for summary in found]
        elif name in files:
            written[name] = [files[name][document.id] for document in documents]
        else:
            written[name] = baseline_summaries(name, documents)
    compared = compare(written, documents)
    print(comparison_text(compared, len(documents), Path(corpus.scored).name, corpus.split))
    if output:
        about = {"corpus": Path(corpus.scored).name, "split": corpus.split, "systems": systems}
        write_json(output, {**about, "documents": [d.id for d in documents], **compared})


def comparison_text(compared: dict, count: int, corpus: str, split: str) -> str:
    """Write a comparison as tables."""
    import pandas as pd

    from lib.evaluation.bootstrap import no_interval

    remark = no_interval(count) or "95% intervals"
    lines = [f"{count} {split} documents of {corpus}; {remark}. ROUGE (F1); words: mean length"]
    for way, found in compared.items():
        rows = {name: _shortened(row) for name, row in found["systems"].items()}
        pairs = {
            f"{pair['second']} - {pair['first']}": _shortened(pair["difference"])
            for pair in found["pairs"]
        }
        lines += [f"Summaries {way}", pd.DataFrame(rows).T.to_string()]
        lines += ["Differences", pd.DataFrame(pairs).T.to_string()]
    return "\n\n".join(lines)


def score_baselines(
    paper: Annotated[str, arg(metavar="PAPER")],
    /,
    *,
    corpus: Grouped[CorpusOptions],
    output: Path,
    preset: str = "demo",
) -> None:
    """Score systems that are not trained.

    Args:
        paper: whose baselines they are: mem2mem, windowed, read_again or hierarchical_transformer.
        preset: of the paper; its preprocessing is used.
        output: the file of scores.
    """
    from lib.data.corpus import learned_from
    from lib.evaluation.scores import score_systems, setting
    from lib.papers import resolve
    from lib.papers.paper import corpus_for, imported

    check_replaces(output, "scores", ("ids", "parts"))
    setup = resolve(paper, preset)
    prepared = setup.open_corpus(
        corpus.dataset, corpus.errors, corpus.limit, corpus.test, progress=False
    )
    texts = corpus_for(corpus.dataset, corpus.errors, corpus.test)
    # runs leave these documents out as well
    seen = learned_from(texts, corpus.split, [corpus.dataset])
    unseen = (d for d in prepared[corpus.split] if d.id not in seen)
    encoded = list(islice(unseen, corpus.documents))
    ids = {d.id for d in encoded}
    by_id = {d.id: d for d in texts.split(corpus.split) if d.id in ids}
    documents = [by_id[d.id] for d in encoded]
    systems = imported(setup.paper.baselines)(documents, encoded, prepared)
    systems["reference"] = [document.summary for document in documents]
    name = Path(corpus.scored).name
    found = {
        "model": setup.paper.name,
        "variant": setup.variant,
        **setting(name, documents, corpus.split, len(prepared["train"])),
        "parts": score_systems(systems, documents, prepared.options),
    }
    _write(output, found)


def _write(output: Path, scores: dict) -> None:
    write_whole(output, json.dumps(scores, ensure_ascii=False) + "\n")
    print(f"{tables(scores)}\n\nAll scores: {output}")


ROWS = {  # what the rows of the tables are
    "summaries": "what the system wrote",
    "plain beam search": "the same run without trigram blocking",
    "trigram blocking": "the same run, no three words twice",
    "extracts": "the sentences that the run chooses or attends to",
    "lead": "the first sentences, as many as references have",
    "lead-3": "the first 3 sentences",
    "lead-10": "the first 10 sentences",
    "lexrank": "the most central sentences, as many words as references have",
    "oracle": "the sentences with the highest ROUGE",
    "oracle-10": "the same, 10 sentences",
    "labelled": "the sentences that are most like the reference's",
    "reference": "the authors' summaries",
}


def tables(scores: dict) -> str:
    """Write the scores of each system: ROUGE, lengths, and what its summaries have and their texts
    do not."""
    import pandas as pd

    from lib.evaluation.bootstrap import no_interval
    from lib.evaluation.measures import SUPPORT
    from lib.evaluation.scores import intervals

    count, letters = len(scores["ids"]), scores.get("letters", "ASCII letters")
    parts = scores["parts"]
    rouge: dict[str, dict[str, str]] = {}
    support: dict[str, dict[str, str]] = {}
    for name, part in parts.items():
        rouge[name] = {column: _short(cell) for column, cell in intervals("rouge", part).items()}
        rouge[name]["words"] = f"{part['words']:.0f}"
        shares = intervals("support", part)
        for kind, column in SUPPORT.items():
            written = sum(number for _, number in part["support"][kind])
            shown = f"{_short(shares[column])} of {written:,}" if written else "none written"
            support.setdefault(name, {})[kind] = shown
    rows = "; ".join(f"{name}: {ROWS[name]}" for name in parts if name in ROWS)
    lines = [
        f"{count} {scores['split']} documents of {scores['corpus']}; "
        f"{no_interval(count) or '95% intervals'}",
        f"ROUGE (F1) of words of {letters}. R-Lsum: ROUGE-L, sentence by sentence. "
        "words: mean length",
        pd.DataFrame(rouge).T.to_string(),
        "What the text does not have, in percent of all that are written. "
        "pairs: of words; carried: sentences that one sentence of the text carries",
        pd.DataFrame(support).T.to_string(),
        f"Rows. {rows}",
    ]
    return "\n\n".join(lines)


def _shortened(row: dict) -> dict:
    return {column: _short(cell) for column, cell in row.items()}


def _short(cell: object) -> str:
    """Write an interval without the reason why there is none, which the head of the tables has."""
    return str(cell).partition(" (")[0]


# ---------------------------------------------------------------------------------
# files and settings


def _folder_of_scores(run: Path) -> Path:
    """Return the folder of a run's scores: its own, except for those in `trained/`, whose files are
    the project's."""
    run = run.resolve()
    return work_folder() / "scores" / run.name if run == trained_folder(run.name).resolve() else run


def _summaries_beside(scores: Path) -> Path:
    """Return the file of a run's summaries beside that of its scores."""
    if "scores" in scores.stem:
        return scores.with_name(f"{scores.stem.replace('scores', 'summaries')}.jsonl")
    return scores.with_name(f"{scores.stem}.summaries.jsonl")


def _decoding(folder: Path, own: DecodeConfig, writing: WritingOptions) -> DecodeConfig:
    """Return a run's decoding with the settings that a command replaces."""
    changes: dict[str, Any] = {}
    for pair in writing.decode:
        name, is_pair, value = pair.partition("=")
        if not is_pair:
            raise InputError(f"--decode {pair}: give NAME=VALUE, as block_ngrams=0")
        known = sorted(field_names(type(own)))
        one_of(name, known, f"--decode setting of {folder}")
        try:
            changes[name] = json.loads(value)  # a number, true, false or null
        except ValueError:
            changes[name] = value
    for name in ("min_length", "max_length", "beam"):
        if (value := getattr(writing, name)) is not None:
            changes[name] = value
    return replace(own, **changes)


def _scaled(options: Options, pairs: Iterable[str]) -> Options:
    """Multiply options by factors, given as OPTION=FACTOR."""
    changes = {}
    for name, _, factor in (pair.partition("=") for pair in pairs):
        value = getattr(options, name, None)
        if not isinstance(value, int) or not re.fullmatch(r"\d+(\.\d+|/[1-9]\d*)?", factor):
            raise InputError(
                f"--scaled {name}={factor}: give a number of {type(options).__name__} and 2 or 5/3"
            )
        changes[name] = round(value * Fraction(factor))
    return replace(options, **changes)


COMMANDS = {
    "run": score_run,
    "summaries": score_summaries,
    "baselines": score_baselines,
    "compare": compare_systems,
}
main = partial(run_command, "lib.score", __doc__, COMMANDS)

if __name__ == "__main__":
    main()
