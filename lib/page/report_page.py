"""A report as one self-contained HTML page, and its parts for pages that show it themselves."""

from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path

from lib.evaluation.report import LEXRANK, Report, ReportedDocument
from lib.page.html_page import html_page
from lib.system.files import write_whole

REPORT_STYLE = """
  .report .wide { overflow-x: auto; }
  .report table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
  .report :is(th, td) { padding: .25rem .8rem .25rem 0; text-align: right; vertical-align: top; }
  .report th { font-weight: normal; }
  .report :is(th[scope=row], th:first-child) { text-align: left; min-width: 12rem; }
  .report .texts td { text-align: left; padding-bottom: .8rem; white-space: normal; }
  .report .columns { display: grid; gap: 1rem 2rem; padding-top: .5rem;
    grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); }
  .report .facts td { text-align: left; white-space: normal; }
  .report h3 { margin: 0; }
  .report :is(.remark, h3, small, .documents thead) { font-size: .88rem; }
  .report small { border: 1px solid; border-radius: 3px; padding: 0 .3rem; }
  .report mark { color: inherit; background: rgb(190 20 75 / .2);
    box-shadow: inset 0 -2px rgb(190 20 75); }
  .report mark.word { background: none; }
"""


def write_report(path: str | Path, report: Report) -> Path:
    """Write the page. It loads nothing, so it opens from a file; without scripts it cannot sort."""
    template = Path(__file__).with_name("report_page.html")
    page = html_page(
        template, {}, BODY=report_html(report), STYLE=REPORT_STYLE, TITLE=escape(report.title)
    )
    return write_whole(path, page)


def report_html(report: Report, all_texts: bool = True) -> str:
    """Write a report as HTML without scripts.

    all_texts: also of the documents that are not opened at first.
    """
    facts = "".join(
        f"<tr><th scope='row'>{escape(name)}</th><td>{escape(text)}</td></tr>"
        for name, text in report.facts.items()
    )
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in report.expectation)
    (model, *_) = report.scores
    differences = {f"{model} - {name}": row for name, row in report.differences.items()}
    return "\n".join(
        [
            f"<section><h2>What to expect</h2>{sentences}",
            f"<table class='facts'>{facts}</table></section>",
            "<section><h2>Scores at equal length</h2>",
            _table(report.scores),
            f"<p class='remark'>{escape(report.remark)}</p>",
            _table(differences),
            "</section><section><h2>What is not in the text</h2>",
            _table(report.missing),
            "<p class='remark'>Only spellings are compared: a number that the text has for "
            "something else counts as right.</p></section>",
            "<section><h2>Every document</h2>",
            _documents(report, model, all_texts),
            "</section>",
        ]
    )


def _table(rows: Mapping[str, Mapping[str, str]]) -> str:
    columns = list(next(iter(rows.values()), {}))
    head = "".join(f"<th scope='col'>{escape(column)}</th>" for column in columns)
    lines = [f"<tr><td></td>{head}</tr>"]
    for name, row in rows.items():
        cells = "".join(f"<td>{escape(row[column])}</td>" for column in columns)
        lines.append(f"<tr><th scope='row'>{escape(name)}</th>{cells}</tr>")
    return f"<div class='wide'><table>{''.join(lines)}</table></div>"


def _documents(report: Report, model: str, all_texts: bool) -> str:
    columns = [f"R-1, {model}", "R-1, LexRank", "words of the text", "of the reference"]
    columns += ["of the summary", "numbers and names not in the text"]
    head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in ["document", *columns])
    shown = report.shown
    bodies = []
    for number, document in enumerate(report.documents):
        place = shown.get(number, "")
        texts = _texts(document, bool(place)) if all_texts or place else ""
        bodies.append(f"<tbody>{_numbers(document, model, place)}{texts}</tbody>")
    table = f"<table class='documents'><thead><tr>{head}</tr></thead>{''.join(bodies)}</table>"
    return f"<div class='wide'>{table}</div>"


def _numbers(document: ReportedDocument, model: str, place: str) -> str:
    numbers = [f"{document.scores[name]:.1f}" for name in (model, LEXRANK)]
    numbers += [f"{document.lengths[what]:,}" for what in ("text", "reference", "summary")]
    numbers.append(str(document.missing))
    cells = "".join(f"<td>{number}</td>" for number in numbers)
    tag = f" <small>{place}</small>" if place else ""
    return f"<tr><th scope='row'>{escape(document.name)}{tag}</th>{cells}</tr>"


def _texts(document: ReportedDocument, opened: bool) -> str:
    summary = "".join(f"<p>{_marked(sentence)}</p>" for sentence in document.summary)
    texts = {
        "Reference": _paragraphs(document.reference),
        "Summary": summary or "<p><i>empty</i></p>",
        "LexRank": _paragraphs(document.lexrank),
    }
    columns = "".join(f"<div><h3>{name}</h3>{text}</div>" for name, text in texts.items())
    fold = f"<summary>Read it</summary><div class='columns'>{columns}</div>"
    return (
        f"<tr class='texts'><td colspan='7'><details{' open' * opened}>{fold}</details></td></tr>"
    )


def _paragraphs(sentences: Iterable[str]) -> str:
    return "".join(f"<p dir='auto'>{escape(sentence)}</p>" for sentence in sentences)


def _marked(sentence: Iterable[tuple[str, str]]) -> str:
    parts = []
    for text, kind in sentence:
        marked = f"<mark class='{kind}' title='{kind} not in the text'>{escape(text)}</mark>"
        parts.append(marked if kind else escape(text))
    return "".join(parts)
