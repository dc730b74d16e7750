"""The papers' claims: effects from stored results, verdicts by rule, tables and pictures."""

from dataclasses import replace

import pytest

from companion.claims import records
from companion.claims.records import Claim, Effect, Setting, claims_of, effect_of, verdict
from companion.claims.text import bets_table, claims_table, evidence_table, pictures
from lib.papers import PAPERS
from lib.system.errors import InputError
from lib.system.files import project_root

CLAIM = Claim(
    "c", "A beats B", "Table 1", "R-1", "x.md", published=1.0, settings=(Setting("plain", "real"),)
)
PICTURED = replace(CLAIM, published=None, counts=0.5, shows="a picture")
TOY = replace(CLAIM, settings=(Setting("toy", "toy", synthetic=True),))
BOTH = replace(CLAIM, settings=(*CLAIM.settings, *TOY.settings))
BLOCKING = replace(CLAIM, settings=(Setting("blocking", "real"),))
CHANCE = (Setting("chance", "control"),)
AS_LONG = (Setting("as long", "control", remains=True),)


@pytest.mark.parametrize(
    ("claim", "real", "seeds", "other", "expected"),
    [
        (replace(CLAIM, settings=()), None, 3, None, "not tested"),
        (CLAIM, (1.2, 0.2, 2.2), 3, None, "confirmed"),
        (CLAIM, (0.5, 0.2, 0.8), 3, None, "confirmed, smaller than the paper's"),
        (CLAIM, (1.2, 0.2, 2.2), 1, None, "one seed: confirmed"),
        (CLAIM, (-1.2, -2.2, -0.2), 2, None, "two seeds: opposite"),
        (CLAIM, (0.1, -0.5, 0.7), 3, None, "no effect as large as the paper's"),
        (CLAIM, (0.5, -0.5, 1.5), 3, None, "cannot tell"),
        (replace(CLAIM, published=-0.3), (0.5, -0.5, 1.5), 3, None, "cannot tell"),
        (PICTURED, (0.2, 0.1, 0.3), 3, None, "no effect that counts"),
        (PICTURED, (-0.2, -0.3, -0.1), 3, None, "no effect that counts"),
        (PICTURED, (0.4, 0.1, 0.7), 3, None, "cannot tell"),
        (PICTURED, (0.6, 0.1, 1.1), 3, None, "confirmed"),
        (
            replace(CLAIM, controls=CHANCE),
            (1.2, 0.2, 2.2),
            3,
            (0.7, 0, 1),
            "explained by a control: chance",
        ),
        (replace(CLAIM, controls=CHANCE), (1.2, 0.2, 2.2), 3, (0.5, 0, 1), "confirmed"),
        (
            replace(CLAIM, controls=AS_LONG),
            (1.2, 0.2, 2.2),
            3,
            (0.5, 0, 1),
            "explained by a control: as long",
        ),
        (replace(CLAIM, controls=AS_LONG), (-1.2, -2.2, -0.2), 3, (-0.9, -1, 0), "opposite"),
        (
            replace(CLAIM, controls=AS_LONG),
            (-1.2, -2.2, -0.2),
            3,
            (-0.5, -1, 0),
            "explained by a control: as long",
        ),
        (TOY, (1.2, 0.2, 2.2), 3, (1, 0.5, 2), "confirmed in a synthetic task only"),
        (BOTH, (0, -1, 2), 3, (1, 0.5, 2), "cannot tell; confirmed in a synthetic task"),
        (BOTH, (0, -1, 2), 3, (1, -0.5, 2), "cannot tell"),
        (BLOCKING, (1.2, 0.2, 2), 3, None, "with trigram blocking, confirmed"),
    ],
)
def test_a_verdict_follows_from_intervals_and_controls(
    monkeypatch, claim, real, seeds, other, expected
):
    effects = {"real": real, "toy": other, "control": other}
    monkeypatch.setattr(
        records, "effect_of", lambda setting: Effect(*effects[setting.source], seeds)
    )
    assert verdict(claim) == expected


@pytest.mark.parametrize("paper", PAPERS)
def test_every_claim_has_a_result_and_an_effect_to_compare_it_with(paper):
    claims = claims_of(paper)
    assert len({claim.id for claim in claims}) == len(claims)
    for claim in claims:
        effects = [effect_of(setting) for setting in (*claim.settings, *claim.controls)]
        assert all(found.low <= found.mean <= found.high for found in effects), claim.id
        assert claim.published is not None or claim.counts is not None or not claim.settings, (
            claim.id
        )
        assert (project_root() / "docs" / "papers" / claim.docs.partition("#")[0]).is_file(), (
            claim.id
        )


def test_an_effect_is_read_from_a_table_a_study_and_a_task():
    table = Setting("", "windowed_table_sumpubmed", "CD_I", "CD_II")
    found = effect_of(table)
    assert (found.seeds, found.is_range) == (3, False)
    turned = effect_of(replace(table, first="CD_II", second="CD_I"))
    assert (turned.mean, turned.low, turned.high) == (-found.mean, -found.high, -found.low)
    change = effect_of(Setting("", "interventions_mem2mem", effect="never written", scale=-1))
    assert change.seeds == 1 and 1 < change.low < change.mean < change.high
    task = Setting(
        "",
        "task_memory",
        second="memory alone, both, never written",
        column="nll, another",
        minus="nll",
    )
    assert effect_of(task).is_range and effect_of(task).seeds == 5 and effect_of(task).low > 6
    for wrong in (
        replace(table, first="CD_III"),
        Setting("", "interventions_mem2mem", effect="nobody"),
    ):
        with pytest.raises(InputError, match=r"CD_III|nobody"):
            effect_of(wrong)


def test_every_claim_with_a_result_has_a_picture_as_drawn():
    """As `python -m companion.make_tables render` draws them."""
    drawn = pictures()
    assert {
        f"figures/claims/{path.name}" for path in (project_root() / "figures/claims").iterdir()
    } == set(drawn)
    for file, svg in drawn.items():
        assert (project_root() / file).read_text(encoding="utf-8") == svg, "run: make figures"


@pytest.mark.parametrize("paper", PAPERS)
def test_a_page_shows_the_claims_of_its_paper(paper):
    page = (project_root() / "notebooks" / f"{paper}.py").read_text(encoding="utf-8")
    assert f'_table("{paper}"' in page
    for file in pictures():
        if file.startswith(f"figures/claims/{paper}-"):
            assert f"../{file}" in claims_table(paper, up="../")


def test_a_page_shows_some_claims_as_bets_and_what_became_of_them():
    chosen = ("transfer", "heads-lead")
    bets, evidence = (
        bets_table("mem2mem", *chosen).splitlines(),
        evidence_table("mem2mem", *chosen).splitlines(),
    )
    known = {claim.id: claim for claim in claims_of("mem2mem")}
    for number, name in enumerate(chosen, start=1):
        assert bets[1 + number].startswith(
            f"| {number} | {known[name].claim} | {known[name].published:+g} R-1"
        )
        assert f"../figures/claims/mem2mem-{name}.svg" in evidence[1 + number]
        assert evidence[1 + number].endswith(f"| {verdict(known[name])} |")
    with pytest.raises(InputError, match="transfers"):
        bets_table("mem2mem", "transfers")
