"""Runs and other systems on a corpus of the reader's, beside the shipped models."""

import json

import pytest

from companion.pages import comparison, report
from companion.pages.comparison import Systems, open_systems
from companion.pages.report import corpus_report
from lib.data.documents import to_document
from lib.papers import open_run
from lib.system.errors import InputError
from lib.system.files import project_root

MEM2MEM = project_root() / "trained" / "mem2mem"
TEXT = "We read the text {}. Many cells grow in the dark. The cells of mice grow slowly there."
RECORDS = [
    {"id": f"d{n}", "text": TEXT.format(n), "summary": f"Cells grow in text {n}."} for n in range(3)
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = "".join(json.dumps(record) + "\n" for record in RECORDS)
    for split in ("train", "val", "test"):
        (tmp_path / "cells" / f"{split}.jsonl").parent.mkdir(exist_ok=True)
        (tmp_path / "cells" / f"{split}.jsonl").write_text(lines, encoding="utf-8")
    return tmp_path


def test_runs_and_files_of_summaries_are_opened(folder):
    (folder / "theirs.txt").write_text("One.\nTwo.\nThree.\n", encoding="utf-8")
    opened = open_systems("cells", f"{MEM2MEM} theirs.txt", documents=3)
    assert opened is not None and opened.files == {"theirs.txt": [["One."], ["Two."], ["Three."]]}
    assert {"Mem2Mem", "Windowed", "HT + copying", "mem2mem (Mem2Mem)"} == {*opened.runs}
    assert "compares Mem2Mem, Windowed" in opened.banner.data
    assert open_systems("", "", documents=3) is None
    with pytest.raises(InputError, match="give dataset, too"):
        open_systems("", "theirs.txt", documents=3)
    (folder / "theirs.txt").write_text("One.\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"theirs\.txt"):
        open_systems("cells", "theirs.txt", documents=3)


class Writer:
    """Stands for a run that has written; `options` cut texts into words."""

    def __init__(self, *summaries):
        self.summaries = summaries
        self.options = open_run(MEM2MEM).options

    def summarize(self, documents):
        return [type("Summary", (), {"sentences": [text]}) for text in self.summaries]


def test_the_report_is_about_the_best_run(monkeypatch):
    """At the references' length: a long summary that begins with the reference is no worse."""
    documents = [to_document(record) for record in RECORDS]
    right = [f"cells grow in text {n} . and so on and on and on" for n in range(3)]
    runs = {"wrong": Writer(*["dogs bark"] * 3), "long": Writer(*right)}
    seen = {}
    monkeypatch.setattr(comparison, "corpus_report", lambda *a, **k: seen.update(given=a, **k))
    Systems("cells", documents, runs, {"file": [["x"]] * 3}).report()  # type: ignore[arg-type]
    assert seen["given"][1] == "long" and seen["written"] == [[text] for text in right]
    assert seen["others"] == {"wrong": [["dogs bark"]] * 3, "file": [["x"]] * 3}


def test_the_files_of_a_report_are_of_its_run_and_corpus(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "work_folder", lambda: tmp_path)
    documents = [to_document(record) for record in RECORDS]
    run = open_run(MEM2MEM)
    written = [["cells grow in text 1 ."]] * 3
    shown = corpus_report(run, "Mem2Mem", documents, "cells", "mem2mem-cells", written=written)
    files = {path.name for path in (tmp_path / "reports" / "mem2mem-cells").iterdir()}
    assert files == {"report.html", "scores.json", "summaries.jsonl"}
    html = shown._repr_html_()
    assert "Mem2Mem on 3 test documents of cells" in html and html.count("<details") == 3
    assert "3 documents are too few for an interval" in repr(shown)
