"""Compare runs and other systems on a corpus of the reader's: the report of the page *compare*."""

from dataclasses import dataclass
from pathlib import Path

from IPython.display import Markdown

import lib
from companion.pages.report import CorpusReport, corpus_report
from companion.pages.runs import unseen_papers
from companion.results.tables import TRAINED
from lib.data.corpus import load_corpus
from lib.data.documents import Document
from lib.decoding.run import Run
from lib.evaluation.comparison import reference_lengths
from lib.evaluation.report import Summaries, scores_of
from lib.evaluation.summaries import read_summary_sentences
from lib.papers import paper
from lib.system.errors import InputError
from lib.system.files import trained_folder


@dataclass(frozen=True)
class Systems:
    """Runs, and summaries of other systems, for the same documents of a corpus."""

    corpus: str
    documents: list[Document]
    runs: dict[str, Run]
    files: dict[str, Summaries]

    @property
    def banner(self) -> Markdown:
        names = ", ".join([*self.runs, *self.files])
        return Markdown(
            f"> **[Your corpus](#Your-corpus) compares {names} on {len(self.documents)} test "
            f"documents of `{self.corpus}`.** The rest of the page is the lesson: it is about the "
            "shipped models and their sample, whatever the parameters are."
        )

    def report(self) -> CorpusReport:
        """Report on the run that scores highest at the references' length; the others are beside
        it."""
        written = {}
        for name, run in self.runs.items():
            written[name] = [summary.sentences for summary in run.summarize(self.documents)]
        lengths = reference_lengths(self.documents)

        def score(name: str) -> float:
            options = self.runs[name].options
            return scores_of(written[name], self.documents, lengths, options).rouge[:, 0].mean()

        best = max(written, key=score)
        others = {name: texts for name, texts in written.items() if name != best} | self.files
        return corpus_report(
            self.runs[best],
            best,
            self.documents,
            self.corpus,
            name=f"compare-{self.corpus}",
            others=others,
            written=written[best],
        )


def open_systems(dataset: str, systems: str, documents: int) -> Systems | None:
    """Open what the page's parameters name; None where there is neither a corpus nor a system.

    The shipped models of papers are compared, not the one that writes headlines.

    systems: folders of runs and files of summaries, between spaces.
    Raises InputError where there is a system but no corpus, and for what cannot be read.
    """
    if not dataset:
        if systems:
            raise InputError("systems are compared on a corpus: give dataset, too")
        return None
    corpus = load_corpus(dataset, errors="skip")
    texts = unseen_papers(corpus, documents)
    shipped = [folder for folder, of in TRAINED.items() if of.cut]
    runs = {TRAINED[folder].title: lib.load(trained_folder(folder)) for folder in shipped}
    files: dict[str, Summaries] = {}
    for name in systems.split():
        if Path(name).is_dir():
            run = lib.load(name)
            runs[f"{Path(name).name} ({paper(run.config['paper']).title})"] = run
            continue
        by_id = read_summary_sentences(name, [document.id for document in texts])
        if missing := [document.id for document in texts if document.id not in by_id]:
            raise InputError(
                f"{name}: no summary of {len(missing)} of {len(texts)} test documents, such as "
                f"{missing[0]!r}. Set documents, or add them"
            )
        files[Path(name).name] = [by_id[document.id] for document in texts]
    return Systems(Path(corpus.name).name, texts, runs, files)
