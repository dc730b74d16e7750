"""Pages can be read and used by everybody as far as axe-core can see: the forms, the summary page, the book. The page
in which a model writes has its test in `test_live`."""

import json

import pytest

from companion.human.__main__ import main
from lib.decoding.summary_page import write_page
from tests.test_book import SITE, contents
from tests.test_summary_page import clusters, memory, windowed
from tests.tools.axe import needs_axe, themed, violations
from tests.tools.devtools import Browser

THEMES = ("light", "dark")
pytestmark = needs_axe


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
    """A folder with the form of ratings, and that of answers."""
    folder = tmp_path_factory.mktemp("forms")
    for name in "ab":
        rows = [
            {
                "id": i,
                "title": f"On {i}",
                "summary": f"{name} of {i}",
                "reference": "It ends.",
                "source": ["All."],
            }
            for i in ("one", "two")
        ]
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    systems = [f"{name}={folder / name}.jsonl" for name in "ab"]
    main(["sheet", str(folder / "rating"), "--documents", "2", *systems])
    questions = folder / "rating" / "questions.csv"
    questions.write_text("document,question,answer\none,What ends?,It\n", encoding="utf-8")
    main(["answers", str(folder / "rating")])
    return folder / "rating"


@pytest.mark.parametrize("theme", THEMES)
def test_small_pages(forms, tmp_path, theme):
    """As they open, with every fold open."""
    summaries = write_page(tmp_path / "summaries.html", "Mem2Mem", [memory(), windowed(), clusters()])
    with Browser(summaries, theme=theme) as tab:
        for page in (summaries, forms / "form.html", forms / "answers.html"):
            tab.open(page)
            tab.run("for (const fold of document.querySelectorAll('details')) fold.open = true")
            for width in (1300, 400):
                tab.resize(width, 900)
                assert violations(tab) == [], (page.name, width)


def test_a_page_with_faults_has_violations(tmp_path):
    page = tmp_path / "page.html"
    faults = "<input><p style='color: #eee'>faint</p>"
    page.write_text(f"<html lang=en><title>T</title><main><h1>T</h1>{faults}</main>", encoding="utf-8")
    with Browser(page) as tab:
        assert sorted({rule for rule, *_ in violations(tab)}) == ["color-contrast", "label"]


@pytest.mark.long
@pytest.mark.skipif(not SITE.exists(), reason="the book is not built: make book")
@pytest.mark.parametrize("theme", THEMES)
def test_the_book(theme):
    with Browser(SITE / "README.html", theme=theme) as tab:
        for name in (*contents(), "search"):
            tab.open(SITE / f"{name}.html")
            themed(tab, theme)
            assert violations(tab) == [], name
