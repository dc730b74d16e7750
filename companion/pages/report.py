"""The section *Your corpus* of a page: `lib.evaluation.report`, and the files that it leaves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import pandas as pd

from lib.data.documents import Document
from lib.decoding.run import Run
from lib.evaluation.report import Report, Summaries, report_of
from lib.evaluation.scores import about, score_systems
from lib.evaluation.summaries import write_summaries
from lib.page.report_page import REPORT_STYLE, report_html, write_report
from lib.system.files import project_root, work_folder, write_json


@dataclass(frozen=True)
class CorpusReport:
    """A report as the result of a cell: whole, but for the texts of documents in between, which its
    page has."""

    report: Report
    folder: Path

    @property
    def files(self) -> str:
        inside = self.folder.is_relative_to(project_root())
        folder = self.folder.relative_to(project_root()) if inside else self.folder
        return (
            f"{folder}/report.html has the texts of all documents and can sort them. "
            "scores.json and summaries.jsonl are beside it."
        )

    def _repr_html_(self) -> str:
        title = f"<p><b>{escape(self.report.title)}</b></p>"
        body = title + report_html(self.report, all_texts=False) + f"<p>{escape(self.files)}</p>"
        return f'<div class="report"><style>{REPORT_STYLE}</style>{body}</div>'

    def __repr__(self) -> str:
        report = self.report
        tables = (report.scores, report.differences, report.missing)
        shown = [pd.DataFrame.from_dict(table, orient="index").to_string() for table in tables]
        facts = [f"{name}: {text}" for name, text in report.facts.items()]
        lines = [report.title, *report.expectation, *facts, *shown, report.remark, self.files]
        return "\n".join(lines)


def corpus_report(
    run: Run,
    model: str,
    documents: Sequence[Document],
    corpus: str,
    name: str,
    others: Mapping[str, Summaries] | None = None,
    written: Summaries | None = None,
) -> CorpusReport:
    """Summarize documents of a corpus with a run, and report on it.

    Args:
        model: its name for people.
        name: of the folder of the report, under runs/reports.
        others: summaries of other systems, by name.
        written: the run's summaries, if they have been made.
    """
    if written is None:
        written = [summary.sentences for summary in run.summarize(documents)]
    report = report_of(run, model, documents, written, corpus, "test", others)
    folder = work_folder() / "reports" / name
    write_report(folder / "report.html", report)
    write_summaries(folder / "summaries.jsonl", documents, written, corpus, run)
    systems = {"summaries": written, "reference": [document.summary for document in documents]}
    parts = score_systems(systems, documents, run.options)
    write_json(folder / "scores.json", {**about(run, corpus, documents, "test"), "parts": parts})
    return CorpusReport(report, folder)
