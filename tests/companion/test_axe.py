"""Everybody can use the pages, as far as axe-core can tell: the forms, the book. Live pages and the
summary page have their tests in `test_live_pages` and `test_summary_page`."""

import json

import pytest

from companion.human.__main__ import main
from tests.companion.test_book import SITE, contents
from tests.tools.browser import AT_REST, needs_browser, open_page

pytestmark = needs_browser
THEMES = ("light", "dark")


@pytest.mark.parametrize("theme", THEMES)
def test_small_pages(tmp_path, theme):
    rows = [
        {"id": i, "title": i, "summary": "It ends.", "reference": "It ends.", "source": ["All."]}
        for i in "xy"
    ]
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    folder = tmp_path / "rating"
    main(
        [
            "sheet",
            str(folder),
            "--documents",
            "2",
            *(f"{name}={tmp_path / name}.jsonl" for name in "ab"),
        ]
    )
    with open_page(folder / "form.html", theme) as tab:
        tab.check_looks()


def test_a_page_with_faults_has_violations(tmp_path):
    page = tmp_path / "page.html"
    faults = "<input><p style='color: #eee'>faint</p>"
    page.write_text(
        f"<html lang=en><title>T</title><main><h1>T</h1>{faults}</main>", encoding="utf-8"
    )
    with open_page(page) as tab:
        assert sorted({rule for rule, *_ in tab.violations()}) == ["color-contrast", "label"]


@pytest.mark.long
@pytest.mark.skipif(not SITE.exists(), reason="the book is not built: make book")
@pytest.mark.parametrize("theme", THEMES)
def test_the_book(theme):
    with open_page(SITE / "README.html", theme) as tab:
        for name in (*contents(), "search"):
            tab.open(SITE / f"{name}.html")
            tab.run(
                "document.documentElement.dataset.theme = document.documentElement.dataset.mode = "
                f"{theme!r}"
            )
            tab.run(AT_REST)
            assert tab.violations() == [], name
