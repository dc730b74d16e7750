"""The papers' claims: effects from stored results, verdicts by rule, tables and pictures."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from companion.claims import effects, text, verdicts
from companion.claims.effects import (
    PLAIN,
    Effect,
    Setting,
    effect_of,
    has_learned,
    seed_counts,
)
from companion.claims.text import (
    bets_rows,
    card_verdicts,
    claims_table,
    evidence_table,
    pictures,
    smallest_effects,
)
from companion.claims.verdicts import Claim, claims_of, deciding, verdict
from companion.results.tables import TABLES
from lib.papers import PAPERS
from lib.system.errors import InputError
from lib.system.files import project_root

CLAIM = Claim(
    "c", "A beats B", "Table 1", "R-1", "x.md", published=1.0, settings=(Setting("plain", "real"),)
)
NOON, HOUR = datetime(2026, 11, 27, 12, tzinfo=UTC), timedelta(hours=1)
PICTURED = replace(
    CLAIM,
    published=None,
    counts=0.5,
    counts_since=NOON,
    result_since=NOON + HOUR,
    shows="a picture",
)
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
        verdicts, "effect_of", lambda setting: Effect(*effects[setting.source], seeds)
    )
    assert verdict(claim) == expected


@pytest.mark.parametrize(
    ("result_since", "chosen"),
    [
        (NOON + HOUR, ""),
        (NOON, ", chosen together with a first result"),
        (NOON - HOUR, ", chosen after a first result"),
    ],
)
def test_a_table_shows_a_smallest_effect_that_was_chosen_after_a_result(
    monkeypatch, result_since, chosen
):
    claim = replace(PICTURED, settings=(), result_since=result_since)
    monkeypatch.setattr(text, "claims_of", lambda paper: (claim,))
    assert f"| a picture; 0.5 counts{chosen} |" in claims_table("mem2mem")
    found = re.findall(r"\d+", smallest_effects())
    ways = (", chosen after a first result", ", chosen together with a first result", "")
    numbers = [len(PAPERS), *(len(PAPERS) * (chosen == way) for way in ways)]
    assert found == [f"{number}" for number in numbers]


@pytest.mark.parametrize("missing", ["counts_since", "result_since"])
def test_a_smallest_effect_that_counts_has_dates(missing):
    with pytest.raises(ValueError, match=f"claim c: .*{missing}"):
        replace(PICTURED, **{missing: None})
    assert not replace(PICTURED, counts=None, counts_since=None, result_since=None).chosen


# ---------------------------------------------------------------------------------
# intervals and the deciding setting, on tables that are made up


def made_table(by_seed, documents=200, corpus="papers", spread=1.0, size=1):
    """A table of rows {label: R-1 of each seed}, with the pairs that follow each other. The
    variance of documents is `spread`; the bootstrap's has the drawn part of the trainings'."""
    rows = [
        {
            "label": label,
            "seeds": list(range(len(values))),
            "by seed": {"R-1": list(values)},
            "scores": {"R-1": {"mean": float(np.mean(values))}},
            "words": 50,
            "steps": 100,
            "parameters": 1_000 * size,
        }
        for label, values in by_seed.items()
    ]
    pairs = []
    for first, second in zip(by_seed, [*by_seed][1:]):
        drawn = [np.var(by_seed[label], ddof=len(by_seed[label]) > 1) for label in (first, second)]
        counts = [len(by_seed[label]) for label in (first, second)]
        of_trainings = sum(v * (n - 1) / n**2 for v, n in zip(drawn, counts) if n > 1)
        half = 1.96 * np.sqrt(spread + of_trainings)
        mean = np.mean(by_seed[second]) - np.mean(by_seed[first])
        found = {"mean": mean, "low": mean - half, "high": mean + half}
        pairs.append({"first": first, "second": second, "R-1": found})
    return {"rows": rows, "pairs": pairs, "documents": documents, "corpus": corpus}


@pytest.fixture
def tables(monkeypatch):
    """Put made-up tables in the place of the stored ones, and their floors: {name: numbers}."""
    made, floors = {}, {}
    for module in (effects, verdicts):
        monkeypatch.setattr(module, "stored_numbers", made.__getitem__)
    monkeypatch.setattr(effects, "first_words_of", lambda name: floors.get(name, {}))
    effect_of.cache_clear()
    yield made, floors
    effect_of.cache_clear()


def test_an_interval_holds_the_whole_variance_between_trainings(tables):
    """Three trainings a row: variance 1 a row and 0 of documents give t on 4 degrees of freedom."""
    made, _ = tables
    made["a_table"] = made_table({"A": [9, 10, 11], "B": [19, 20, 21]}, spread=0.0)
    found = effect_of(Setting("", "a_table", "A", "B"))
    assert found.mean == 10 and found.freedom == pytest.approx(4)
    assert found.high - found.mean == pytest.approx(2.7764 * np.sqrt(2 / 3), rel=1e-4)
    one_seed = made_table({"A": [10], "B": [20]}, spread=4.0)
    made["b_table"] = one_seed
    found = effect_of(Setting("", "b_table", "A", "B"))
    assert found.freedom == 199 and found.high == pytest.approx(20 + 2 * 1.972 - 10, abs=0.01)


def test_trainings_of_one_seed_are_paired_where_the_seed_counts(tables):
    made, _ = tables
    shared = np.array([0.0, 5.0, 9.0])
    noise = np.random.default_rng(0).normal(0, 0.1, (4, 3))
    rows = {label: shared + level + e for label, level, e in zip("ABCD", (1, 2, 3, 4), noise)}
    made["a_table"] = made_table(rows, spread=0.0)
    assert seed_counts(made["a_table"], False, "R-1")
    paired = effect_of(Setting("", "a_table", "A", "B"))
    assert paired.freedom == pytest.approx(2) and 0.5 < paired.low < paired.high < 1.5
    made["b_table"] = made_table(
        {f"{label}{PLAIN}": row for label, row in rows.items()}, spread=0.0
    )
    assert not seed_counts(made["b_table"], False, "R-1"), "of the same decoding only"
    unrelated = np.random.default_rng(1).normal(0, 3, (4, 3))
    assert not seed_counts(made_table(dict(zip("ABCD", unrelated))), False, "R-1")
    # a pair that the table does not compare: the documents' part is that of the other pairs
    made["c_table"] = made_table(rows, spread=4.0)
    half = effect_of(Setting("", "c_table", "A", "C")).high - 2
    assert half == pytest.approx(effect_of(Setting("", "c_table", "A", "B")).high - 1, abs=0.3)


def test_a_table_without_an_effect_is_rarely_judged_to_have_one(tables):
    """Three trainings a row that differ by chance: in 3% to 7% of tables the interval excludes 0;
    here, for chance of the trial itself, 2% to 8%."""
    made, _ = tables
    random, excluded = np.random.default_rng(5), 0
    for number in range(600):
        noise = random.normal(0, 0.3)  # of the documents
        first, second = random.normal(30, 0.6, 3), random.normal(30, 0.6, 3) + noise
        made[f"{number}_table"] = made_table({"A": first, "B": second}, spread=0.09)
        found = effect_of(Setting("", f"{number}_table", "A", "B"))
        excluded += found.low > 0 or found.high < 0
    assert 0.02 < excluded / 600 < 0.08


def floors_at(value, *labels):
    return {label: {"R-1": value, "words": 50} for label in labels}


def test_the_deciding_setting_follows_the_rule(tables):
    """Learned, then the paper's kind of input, then size, then the paper's search."""
    made, floors = tables
    both = {"A": [30.0], "B": [31.0], f"A{PLAIN}": [20.0], f"B{PLAIN}": [21.0]}
    for name, how in {
        "small_table": {},
        "large_table": {"size": 4},
        "clusters_table": {"corpus": "scisummnet_mds"},
    }.items():
        made[name] = made_table(both, **how)
        floors[name] = floors_at(10.0, *both)
    plain = {
        n: Setting(f"{n}, plain", f"{n}_table", f"A{PLAIN}", f"B{PLAIN}")
        for n in ("small", "large", "clusters")
    }
    blocking = Setting("large, trigram blocking", "large_table", "A", "B")
    settings = (plain["small"], plain["clusters"], blocking, plain["large"])
    claim = replace(CLAIM, settings=settings)
    assert deciding(claim) == plain["large"], "the largest, with the paper's search"
    assert deciding(replace(claim, several_documents=True)) == plain["clusters"]
    floors["large_table"] = floors_at(25.0, *both)
    assert deciding(claim) == blocking, "plain beam search is below the first words"
    assert not has_learned(plain["large"]) and has_learned(blocking)
    for name in floors:
        floors[name] = floors_at(40.0, *both)
    assert deciding(claim) is None and verdict(claim) == "not learned here"


def test_a_comparison_with_what_is_not_trained_has_no_floor(tables):
    made, floors = tables
    made["a_table"] = made_table({"Lead": [40.0], "B": [20.0]})
    del made["a_table"]["rows"][0]["seeds"]
    floors["a_table"] = floors_at(30.0, "B")
    assert has_learned(Setting("", "a_table", "Lead", "B"))


def test_no_verdict_rests_on_systems_below_the_floor():
    for claim in (claim for paper in PAPERS for claim in claims_of(paper) if claim.settings):
        decisive = deciding(claim)
        assert decisive is None or has_learned(decisive)


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
    assert f'evidence_table("{paper}"' in page and f'Bets("{paper}"' in page
    for file in pictures():
        if file.startswith(f"figures/claims/{paper}-"):
            assert f"../{file}" in claims_table(paper)


def test_a_page_shows_some_claims_as_bets_and_what_became_of_them():
    chosen = ("transfer", "heads-lead")
    evidence = evidence_table("mem2mem", *chosen).splitlines()
    known = {claim.id: claim for claim in claims_of("mem2mem")}
    for number, (name, row) in enumerate(zip(chosen, bets_rows("mem2mem", chosen)), start=1):
        claim = known[name]
        assert row == (f"{number}", claim.claim, f"{claim.published:+g} R-1")
        assert f"../figures/claims/mem2mem-{name}.svg" in evidence[1 + number]
        assert evidence[1 + number].endswith(f"| {verdict(claim)} |")
    with pytest.raises(InputError, match="transfers"):
        bets_rows("mem2mem", ["transfers"])


# ---------------------------------------------------------------------------------
# the cards of papers.md


@pytest.mark.parametrize("paper", PAPERS)
def test_the_sentences_of_a_card_were_written_for_the_verdicts_of_today(paper):
    on_card = [claim for claim in claims_of(paper) if claim.card]
    assert len(on_card) == 3
    for claim in on_card:
        assert verdict(claim) == claim.card_of, (
            f"companion/claims/{paper}.toml, {claim.id}: the verdict is now {verdict(claim)!r}, "
            f"so rewrite the sentence {claim.card!r}, and then put this verdict into `card_of`"
        )


def test_a_card_shows_sentence_effects_and_verdict_of_a_claim():
    known = {claim.id: claim for claim in claims_of("windowed")}
    chosen = known["more-text"], known["any-length"]
    both, ours_only = card_verdicts("windowed").splitlines()[::2]
    for bullet, claim in zip((both, ours_only), chosen, strict=True):
        mean = effect_of(verdicts.shown_setting(claim)).mean
        assert bullet.startswith(f"* **{claim.card}.** {mean:+.2f} [")
        assert bullet.endswith(f" Verdict: [{verdict(claim)}](docs/claims.md#windowed).")
    assert f"] R-1; in the paper {chosen[0].published:+g}." in both
    assert "in the paper" not in ours_only, "the article has no number"


@pytest.mark.parametrize("paper", PAPERS)
def test_a_card_shows_rows_of_the_papers_tables(paper):
    text = (project_root() / "papers.md").read_text(encoding="utf-8")
    (card,) = [part for part in text.split("\n## ") if f"docs/papers/{paper}.md" in part]
    published = {
        " / ".join(f"{score:.2f}" for score in scores)
        for table in TABLES.values()
        if table.paper == paper
        for row in table.rows
        for scores in row.published.values()
    }
    shown = re.findall(r"\| (\d+\.\d+ / \d+\.\d+ / \d+\.\d+) \|", card)
    assert len(shown) >= 3 and set(shown) <= published
