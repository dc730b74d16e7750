"""Bets and predictions that are placed on a page."""

from pathlib import Path

import pytest

from companion.claims.verdicts import chosen_claims
from companion.pages import bets
from companion.pages.bets import CANNOT_TELL, FAILS, HOLDS, Bets, Outcomes, right_bet
from companion.pages.shown import Prediction
from tests.tools.browser import needs_browser, open_page

CHOSEN = "transfer", "reads-memory"


@pytest.mark.parametrize(
    ("verdict", "right"),
    [
        ("one seed: with trigram blocking, confirmed, smaller than the paper's", HOLDS),
        ("confirmed in a synthetic task only", HOLDS),
        ("two seeds: no effect as large as the paper's; confirmed in a synthetic task", FAILS),
        ("no effect that counts", FAILS),
        ("with trigram blocking, opposite", FAILS),
        ("explained by a control: as long at random", FAILS),
        ("cannot tell; confirmed in a synthetic task", CANNOT_TELL),
        ("not learned here", CANNOT_TELL),
        ("not tested", CANNOT_TELL),
    ],
)
def test_which_bet_a_verdict_makes_right(verdict, right, monkeypatch):
    monkeypatch.setattr(bets, "verdict", lambda claim: verdict)
    assert right_bet(*chosen_claims("mem2mem", CHOSEN[:1])) == right


def written(folder: Path) -> Path:
    """A page with two bets, what became of them, and a prediction."""
    asked = Prediction("Is it?", ["yes", "no"], "It is.")
    parts = [Bets("mem2mem", CHOSEN), Outcomes("mem2mem", CHOSEN), asked]
    body = "".join(part._repr_html_() for part in parts)
    head = '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Bets</title><main>'
    page = folder / "bets.html"
    page.write_text(f"{head}<h1>Bets</h1>{body}</main></html>", encoding="utf-8")
    return page


@needs_browser
def test_a_bet_is_kept_and_shown_beside_the_right_one(tmp_path):
    shown = "[...document.querySelectorAll('[data-bet]')].map(own => own.textContent)"
    with open_page(written(tmp_path)) as tab:
        assert tab.run(shown) == ["no bet", "no bet"]
        tab.page.get_by_label(FAILS).nth(1).check()
        assert tab.run(shown) == ["no bet", FAILS]
        tab.page.reload()
        assert tab.run(shown) == ["no bet", FAILS]
        tab.page.get_by_label(HOLDS).nth(1).check()
        assert tab.run(shown) == ["no bet", HOLDS]
        tab.check_keyboard()
        assert not tab.complaints


@needs_browser
def test_a_choice_opens_the_answer(tmp_path):
    with open_page(written(tmp_path)) as tab:
        assert not tab.run("document.querySelector('details').open")
        tab.page.get_by_label("no", exact=True).check()
        assert tab.run("document.querySelector('details').open")
        tab.check_looks()
        assert not tab.complaints
