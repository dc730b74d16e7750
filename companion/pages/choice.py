"""The model and the documents that a page shows, which its parameters choose."""

import time
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from IPython.display import Markdown

from companion.pages.report import CorpusReport, corpus_report
from companion.pages.runs import train_or_load, unseen_papers
from lib.data.batch import make_batch
from lib.data.corpus import Corpus, load_corpus
from lib.data.documents import Document
from lib.data.prepared import PreparedCorpus
from lib.decoding.run import Run
from lib.papers import open_run, paper, resolve, title_of
from lib.papers.paper import Setup
from lib.system.errors import InputError
from lib.training.folder import read_config

DOCUMENTS = 50  # of the test split that a trained run reads
LEAST_READ = 20_000  # documents in training: about a tenth of what the shipped models have read


@dataclass(frozen=True)
class Choice:
    """A page's model and documents: the shipped run, a run of the reader's own, or one that is
    trained here."""

    setup: Setup
    corpus: Corpus
    documents: list[Document]  # of the test split
    folder: Path | None  # of the trained run; None: the page trains one
    is_shipped: bool  # whether that is the run that comes with the project
    on_sample: bool  # whether the shipped run reads the corpus that the page's text describes

    def open(self, output: str = "", progress: bool = False) -> Run:
        """Open the run; or train it on the corpus, after a notice of how long that takes."""
        if self.folder:
            return open_run(self.folder)
        prepared = self.setup.prepare(self.corpus, progress=progress)
        model = self.setup.build(prepared)
        print(training_notice(self.setup, model, prepared))
        return open_run(train_or_load(self.setup, model, prepared, output, progress).folder)

    @property
    def _described(self) -> str:
        model = "the shipped model" if self.is_shipped else f"the run in `{self.folder}`"
        if not self.folder:
            model = (
                f"a model that is trained here (preset {self.setup.preset}, {self.setup.variant})"
            )
        return f"{model} on {len(self.documents)} test documents of `{self.corpus_name}`"

    @property
    def corpus_name(self) -> str:
        return Path(self.corpus.name).name

    @property
    def banner(self) -> Markdown | None:
        """The first output of a page whose parameters are set: what its report is about."""
        if self.on_sample:
            return None
        return Markdown(
            f"> **[Your corpus](#Your-corpus) is about {self._described}.** The rest of the page "
            "is the lesson: it is about the shipped model and its sample, whatever the parameters "
            "are."
        )

    def report(self, run: Run) -> CorpusReport:
        """Let the run summarize the documents, and report on it. The report's page, scores and
        summaries go to a folder that is named after run and corpus."""
        name = f"{run.folder.resolve().name}-{self.corpus_name}"
        return corpus_report(run, title_of(run), self.documents, self.corpus_name, name)


def choose(
    name: str,
    dataset: str,
    preset: str,
    variant: str,
    steps: int,
    seed: int,
    run: str,
    documents: int = DOCUMENTS,
    corpora: tuple[str, str] = ("pmc-sample", "aclsum"),
) -> Choice:
    """Find what a page's parameters choose.

    With a preset, a variant that is not the paper's own, or steps, a model is trained on the
    dataset. Otherwise a trained run reads the dataset's test documents: `run`, or the shipped one.

    corpora: what the shipped run reads and what a model is trained on, if there is no dataset.

    Raises InputError where `run` and what is to be trained are both given, and for a run of another
    paper.
    """
    sample, demo = corpora
    usual = paper(name).usual
    trains = bool(preset or steps or variant != usual)
    if run and trains:
        raise InputError(
            "run opens a model that is trained; leave out preset, variant and steps, or leave out "
            "run"
        )
    if trains:
        setup = resolve(name, preset or "demo", variant, steps=steps or None, seed=seed)
        corpus = load_corpus(dataset or demo, errors="skip")
        few = min(documents, setup.documents or documents)
        return Choice(setup, corpus, unseen_papers(corpus, few), None, False, False)
    folder = Path(run) if run else paper(name).shipped
    config = read_config(folder)
    if config["paper"] != name:
        raise InputError(
            f"{folder} holds a model of another paper: use notebooks/{config['paper']}.ipynb for it"
        )
    setup = resolve(name, config["preset"], config["variant"], seed=seed)
    corpus = load_corpus(dataset or (config["corpus"] if run else sample), errors="skip")
    return Choice(
        setup,
        corpus,
        unseen_papers(corpus, documents),
        folder,
        not run,
        not (dataset or run or seed),
    )


def training_notice(setup: Setup, model: Any, prepared: PreparedCorpus) -> str:
    """Estimate how long training takes here, from the time of one step; warn if it is too short for
    good sentences."""
    train, size = prepared["train"], setup.train.batch_size
    batch = make_batch(train[:size], len(prepared.vocabulary))
    with torch.random.fork_rng():
        tried = deepcopy(model).train()
        for _ in range(2):  # the first compiles
            started = time.perf_counter()
            tried.loss(batch)["loss"].backward()
            seconds = time.perf_counter() - started
    steps = setup.train.steps or setup.train.epochs * -(-len(train) // size)
    text = (
        f"Training: {steps:,} steps on {len(train):,} documents, about "
        f"{1 + steps * seconds // 60:.0f} minutes "
        "here."
    )
    if steps * size < LEAST_READ:
        text += (
            f" The model reads {steps * size:,} documents, counting repetitions. Fewer than "
            f"{LEAST_READ:,} are too few for sentences that make sense."
        )
    return text
