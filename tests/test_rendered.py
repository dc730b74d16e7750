"""The book as a browser shows it: nothing is wider than its column, nothing as faint as what is behind it."""

import pandas as pd
import pytest

from companion.pages.shown import table_html
from lib.system.files import project_root
from tests.test_book import SITE, contents
from tests.tools.devtools import Browser, chromium
from tests.tools.rendered import problems

PAGES = [f"{name}.html" for name in contents()]

pytestmark = [
    pytest.mark.skipif(not SITE.exists(), reason="the book is not built: make book"),
    pytest.mark.skipif(not chromium(), reason="Chromium is not installed"),
    pytest.mark.long,
]


@pytest.mark.parametrize(("width", "theme"), [(1300, "light"), (1100, "dark")])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_its_column_and_can_be_read(page, width, theme):
    assert problems(SITE / page, width, theme) == []


@pytest.mark.parametrize("page", PAGES)
def test_what_is_wider_than_a_phone_scrolls(page):
    found = problems(SITE / page, 400)
    assert [problem for problem in found if problem["kind"] == "faint" or not problem["scrolls"]] == []


def test_what_is_too_wide_and_too_faint_is_found(tmp_path):
    """On a page with one fault of each kind."""
    page = tmp_path / "page.html"
    wide, faint = "<table><td style='min-width: 2000px'>wide</table>", "<p style='color: #eee'>faint</p>"
    page.write_text(
        f"<html><head></head><body><article class='bd-article'><p>fine</p>{wide}{faint}</article></body></html>",
        encoding="utf-8",
    )
    assert [(p["kind"], p["text"]) for p in problems(page)] == [("wide", "wide"), ("faint", "faint")]


def test_numbers_end_where_their_heads_end(tmp_path):
    """Texts begin at the left."""
    style = (project_root() / "companion" / "site" / "static" / "book.css").read_text(encoding="utf-8")
    page, table = tmp_path / "page.html", table_html(pd.DataFrame({"a": ["1.5 [1, 2]", "text"]}))
    page.write_text(f"<style>{style}</style><div class='cell_output'>{table}</div>", encoding="utf-8")
    with Browser(page) as tab:
        cells = "[...document.querySelectorAll('td')].map(cell => getComputedStyle(cell).textAlign)"
        assert tab.run(cells) == ["right", "left"]
