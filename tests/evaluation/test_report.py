"""The report on a run that has summarized the documents of a corpus, and its page."""

from dataclasses import replace

import numpy as np
import pytest

import lib
from lib.data.corpus import load_corpus
from lib.data.documents import to_document
from lib.decoding.field import Field
from lib.evaluation.baselines import lexrank
from lib.evaluation.report import AT_EQUAL, LEAD, LEXRANK, ORACLE, marks_of, report_of
from lib.evaluation.rouge import count_words, rouge
from lib.evaluation.scores import cut
from lib.evaluation.support import Names, SourceText
from lib.page.report_page import report_html, write_report
from lib.summarize import remarks
from lib.system.files import trained_folder
from tests.tools.browser import needs_browser, open_page

MODEL = "Mem2Mem"


@pytest.fixture(scope="module")
def run():
    return lib.load(trained_folder("mem2mem"))


@pytest.fixture(scope="module")
def documents():
    return list(load_corpus("aclsum").split("test", 11))


@pytest.fixture(scope="module")
def written(documents):
    """Summaries that are easy to tell apart: the first sentences, as many as the number says."""
    return [document.sentences[: 1 + i % 3] for i, document in enumerate(documents)]


@pytest.fixture(scope="module")
def report(run, documents, written):
    return report_of(run, MODEL, documents, written, "aclsum", "test")


def test_every_system_is_cut_to_the_reference(run, documents, report):
    references = [document.summary for document in documents]
    expected = []
    for document in documents:
        words = count_words(document.summary)
        chosen = lexrank(document.sentences, words, all_letters=False)
        expected.append(cut(chosen, words, run.options))
    scores = np.array(rouge(expected, references))[:, 0]
    by_name = {document.name: document.scores[LEXRANK] for document in report.documents}
    found = [by_name[document.title or document.id] for document in documents]
    assert np.allclose(found, scores, atol=0.001) and len({*found}) == 11
    assert report.scores[LEXRANK]["R-1"].startswith(f"{scores.mean():.2f} [")
    assert set(report.scores) == {MODEL, LEXRANK, LEAD, ORACLE}


def test_a_shorter_summary_is_compared_at_its_own_length(report):
    """The summaries are the beginning of the text, so Lead is as good as they are at equal
    length."""
    assert report.differences[LEAD][AT_EQUAL].startswith("+0.00")
    assert not report.differences[LEAD]["R-1, cut to the reference"].startswith("+0.00")


def test_documents_from_the_best_to_the_worst(report):
    scores = [document.scores[MODEL] for document in report.documents]
    assert scores == sorted(scores, reverse=True)
    assert report.shown == {0: "best", 5: "middle", 10: "worst"}
    assert replace(report, documents=report.documents[:1]).shown == {0: "best"}


def test_what_is_not_in_the_text_is_marked_and_counted(report):
    text = SourceText(["The trial in Lyon had 12 patients."])
    names = Names(["They met in Lyon.", "They met in Basel."])
    sentence = "In Basel 13 patients of Lyon slept."
    assert marks_of(sentence, text, names) == [
        ("In ", ""), ("Basel", "name"), (" ", ""), ("13", "number"), (" patients ", ""),
        ("of", "word"), (" Lyon ", ""), ("slept", "word"), (".", ""),
    ]  # fmt: skip
    assert report.missing[LEXRANK]["numbers not in the text"].startswith("0 of ")


def test_another_field_is_said(run, documents, written, report):
    """Papers on computational linguistics, and a model of biomedical ones."""
    assert report.expectation[0].startswith("11 of 11 texts are unlike the biomedical papers")
    assert "Expect nothing of these summaries, whatever their scores." in report.expectation
    any_text = Field("papers", {}, least=-1, warned=0.0, missed=1.0)
    tried = replace(run, config=run.config)
    tried.field = any_text
    others = report_of(tried, MODEL, documents, written, "aclsum", "test").expectation
    assert others[0].startswith("0 of 11 texts") and not any("nothing" in said for said in others)


def test_the_warnings_are_those_of_a_single_text(run, documents, written):
    """Of `lib.summarize`, about each text by itself."""
    short = to_document({"id": "x", "text": "Tides rise.", "summary": "They rise."})
    texts = [*documents[:2], short, *load_corpus("pmc-sample").split("test", 2)]
    summaries = replace(run, decode=replace(run.decode, beam=1)).summarize(texts)
    said = [" ".join(remarks(run, summary, {})) for summary in summaries]
    told = report_of(run, MODEL, texts, [["x"]] * 5, "papers", "test").expectation
    unlike, fewer = sum("is unlike" in line for line in said), sum("fewer" in line for line in said)
    assert (unlike, fewer) == (3, 1)
    assert told[0].startswith("3 of 5 texts are unlike")
    assert any(line.startswith("1 of 5 texts are shorter than") for line in told)


def test_few_documents_have_no_interval(run, documents, written):
    small = report_of(run, MODEL, documents[:3], written[:3], "aclsum", "test")
    assert "no interval: 3 documents" in small.remark
    assert small.expectation[-1].startswith("The model minus LexRank, at equal length: ")


def test_texts_are_no_markup(run, documents, written):
    document = replace(documents[0], title="<b>Bold</b>")
    page = report_html(report_of(run, "<i>", [document], [["a <dig> b"]], "aclsum", "test"))
    assert "&lt;b&gt;Bold" in page and "<b>Bold" not in page and "<i>" not in page


@needs_browser
def test_the_page_sorts_and_breaks_no_rule(report, tmp_path):
    with open_page(write_report(tmp_path / "report.html", report)) as tab:
        assert tab.run("document.querySelectorAll('details[open]').length") == 3
        tab.page.click("thead th:nth-child(3) button")
        heads = "document.querySelectorAll('.documents tbody tr:first-child')"
        rows = f"[...{heads}].map(row => row.cells[{{}}].textContent)"
        scores = sorted((document.scores[LEXRANK] for document in report.documents), reverse=True)
        assert tab.run(rows.format(2)) == [f"{score:.1f}" for score in scores]
        tab.page.click("thead th:nth-child(1) button")
        names = [name.lower() for name in tab.run(rows.format(0))]
        assert names == sorted(names)
        tab.check_looks()
        tab.check_keyboard()
        assert not tab.complaints
