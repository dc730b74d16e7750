"""The records of the papers' claims, and the verdicts that follow from their effects."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from companion.claims.effects import Effect, Setting, effect_of, has_learned, size_of
from companion.results.kept import stored_numbers
from lib.system.errors import one_of

LARGE = 2 / 3  # a training is as large as the largest if it has this share of its size
CLUSTERS = ("scisummnet_mds",)  # corpora whose texts are several documents
EXPLAINED = 0.5  # a control explains an effect if it has this share of it


@dataclass(frozen=True)
class Claim:
    """A claim of a paper. `deciding` says which of its settings gives the verdict."""

    id: str
    claim: str
    place: str  # in the paper
    unit: str  # of every effect
    docs: str  # a section in docs/papers
    published: float | None = None  # the paper's effect
    # the smallest effect that counts where the paper has no number
    counts: float | None = None
    # the commits that first held this number, and a result of the same measure
    counts_since: datetime | None = None
    result_since: datetime | None = None
    shows: str = ""  # what the paper has instead of a number
    settings: tuple[Setting, ...] = ()
    controls: tuple[Setting, ...] = ()
    readme: bool = False
    # a plain sentence for the paper's card in papers.md, and the verdict it was written for
    card: str = ""
    card_of: str = ""
    note: str = ""
    # whether the paper claims it of texts that are several documents
    several_documents: bool = False
    paper: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        needs_result = bool(self.settings) and self.result_since is None
        if self.counts is not None and (self.counts_since is None or needs_result):
            raise ValueError(
                f"claim {self.id}: a smallest effect that counts needs the dates counts_since and "
                "result_since of the commits that first held it and a result of its measure"
            )

    @property
    def expected(self) -> float | None:
        """The effect that an interval includes or excludes: the paper's, or the smallest one that
        counts."""
        return self.counts if self.published is None else self.published

    @property
    def chosen(self) -> str:
        """When the smallest effect that counts was chosen, by the dates of commits: "before",
        "together with" or "after" a first result; empty without such a number."""
        if self.counts_since is None:
            return ""
        if self.result_since is None or self.counts_since < self.result_since:
            return "before"
        return "together with" if self.counts_since == self.result_since else "after"


def records_of(paper: str) -> dict[str, Any]:
    """Read a paper's `claims` and `sources` (command and minutes of stored results); a new one may
    have no file."""
    path = Path(__file__).with_name(f"{paper}.toml")
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


@cache
def claims_of(paper: str) -> tuple[Claim, ...]:
    """Read the claims of a paper."""
    records = records_of(paper)
    of_paper = {"paper": paper, "several_documents": records.get("several_documents", False)}
    rows = [of_paper | row for row in records.get("claims", [])]
    return TypeAdapter(tuple[Claim, ...]).validate_python(rows)


def chosen_claims(paper: str, ids: Sequence[str]) -> list[Claim]:
    """Return the claims of a paper that have these ids, in their order."""
    known = {claim.id: claim for claim in claims_of(paper)}
    return [known[one_of(name, known, "claim")] for name in ids]


def deciding(claim: Claim) -> Setting | None:
    """Choose the setting that gives the verdict, by a rule that does not see the effects.

    Of comparisons of trained rows, those whose systems have learned (`has_learned`); of these the
    paper's kind of input, then the largest trainings, then the paper's decoding; the first one that
    is listed. None where no system has learned. Other claims rest on their first setting.
    """
    first = claim.settings[0]
    if not first.is_of_table:
        return first
    chosen = [s for s in claim.settings if s.is_of_table and s.column == first.column]
    chosen = list(filter(has_learned, chosen))
    if not chosen:
        return None
    if claim.several_documents:
        chosen = list(filter(_is_of_several_documents, chosen)) or chosen
    largest = max(map(size_of, chosen))
    chosen = [setting for setting in chosen if size_of(setting) >= LARGE * largest]
    return next((setting for setting in chosen if not setting.is_ours), chosen[0])


def shown_setting(claim: Claim) -> Setting:
    """Return the setting whose effect is shown first: the deciding one, where there is one."""
    return deciding(claim) or claim.settings[0]


def _is_of_several_documents(setting: Setting) -> bool:
    return stored_numbers(setting.source).get("corpus") in CLUSTERS


def verdict(claim: Claim) -> str:
    """Determine the verdict on a claim from the stored results (docs/claims.md explains the
    verdicts)."""
    if not claim.settings:
        return "not tested"
    decisive = deciding(claim)
    others = [setting for setting in claim.settings if setting != decisive]
    elsewhere = "; confirmed in a synthetic task" if _confirmed_elsewhere(others) else ""
    if decisive and decisive.synthetic:
        elsewhere = ""
    if decisive is None:
        return f"not learned here{elsewhere}"
    found = effect_of(decisive)
    said = _judge(claim, found)
    if said in ("confirmed", "confirmed, smaller than the paper's", "opposite"):
        if explanation := _explanation(claim.controls, found):
            said = f"explained by a control: {explanation}"
        elif decisive.synthetic and said != "opposite":
            return "confirmed in a synthetic task only"
    else:
        said += elsewhere
    blocking = "with trigram blocking, " if "blocking" in decisive.label else ""
    return {1: "one seed: ", 2: "two seeds: "}.get(found.seeds, "") + blocking + said


def _judge(claim: Claim, found: Effect) -> str:
    counts = claim.counts or 0
    if -counts < found.low and found.high < counts:
        return "no effect that counts"
    if found.low > 0 and found.mean >= counts:
        smaller = claim.published is not None and found.high < claim.published
        return "confirmed, smaller than the paper's" if smaller else "confirmed"
    if found.high < 0:
        return "opposite"
    excluded = claim.published is not None and found.high < claim.published
    return "no effect as large as the paper's" if excluded else "cannot tell"


def _explanation(controls: Sequence[Setting], found: Effect) -> str:
    """Name the first control that has most of the effect, or that leaves little of it."""
    for control in controls:
        share = effect_of(control).mean / found.mean
        if (1 - share if control.remains else share) >= EXPLAINED:
            return control.label
    return ""


def _confirmed_elsewhere(settings: Sequence[Setting]) -> bool:
    synthetic = [effect_of(setting) for setting in settings if setting.synthetic]
    return bool(synthetic) and all(found.low > 0 and found.seeds >= 3 for found in synthetic)
