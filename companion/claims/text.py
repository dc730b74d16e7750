"""The claims as tables of the project's texts and pages, and a small picture of each."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from companion.claims.effects import Effect, Setting, effect_of, has_learned
from companion.claims.verdicts import (
    Claim,
    chosen_claims,
    claims_of,
    records_of,
    shown_setting,
    verdict,
)
from companion.results.kept import stored_numbers
from companion.results.text import markdown_table
from lib.papers import PAPERS
from lib.system.files import project_root, write_whole

PICTURES = "figures/claims"
UP = "../"  # from docs and notebooks, which show tables of claims, to the project's folder
WIDTH, HEIGHT, MARGIN = 150, 24, 6
_STYLE = (
    "<style>.ink{stroke:#333;fill:#333}.paper{fill:#c2410c}.band{fill:#ddd}"
    "@media(prefers-color-scheme:dark){.ink{stroke:#ddd;fill:#ddd}.paper{fill:#fb923c}.band{fill:#555}}</style>"
)


def claims_texts() -> dict[str, str]:
    """Write all tables of claims and of what they rest on: {name of a place in the texts:
    Markdown}."""
    names = {f"claims_{paper}": claims_table(paper) for paper in PAPERS}
    names |= {f"card_{paper}": card_verdicts(paper) for paper in PAPERS}
    return names | {
        "claims_readme": readme_table(),
        "claims_sources": sources_table(),
        "claims_smallest": smallest_effects(),
    }


def card_verdicts(paper: str) -> str:
    """Write the verdicts of a paper's card in papers.md as a list: a plain sentence each, our
    effect, the paper's, and a link to the table of claims."""
    section = PAPERS[paper].title.lower().replace(" ", "-")
    lines = []
    for claim in (claim for claim in claims_of(paper) if claim.card):
        effect = f"{_effect(claim, shown_setting(claim))} {claim.unit}"
        if claim.published is not None:
            effect += f"; in the paper {_published(claim)}"
        link = f"[{verdict(claim)}](docs/claims.md#{section})"
        lines.append(f"* **{claim.card}.** {effect}. Verdict: {link}.")
    return "\n".join(lines)


def claims_table(paper: str) -> str:
    """Write the table of a paper's claims for docs/claims.md."""
    head = (
        "claim",
        "verdict",
        "the paper",
        "here",
        "could have seen",
        "other settings, controls, notes",
    )
    return markdown_table(head, map(_row, claims_of(paper)))


def bets_rows(paper: str, chosen: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return some of a paper's claims, by their ids, as bets: number, claim, the effect in the
    paper."""
    rows = []
    for number, claim in enumerate(chosen_claims(paper, chosen), start=1):
        shown = claim.shows if claim.published is None else f"{_published(claim)} {claim.unit}"
        if claim.published is None and claim.counts is not None:
            shown += f"; here {claim.counts:g} {claim.unit} would count"
        rows.append((f"{number}", claim.claim, shown))
    return rows


def evidence_table(paper: str, *chosen: str) -> str:
    """Write what became of these bets, for a page: the paper's effect, our interval with its
    picture, the verdict."""
    rows = []
    for number, claim in enumerate(chosen_claims(paper, chosen), start=1):
        here = _row(claim)[3]
        rows.append((f"{number}", claim.claim, _published(claim), here, verdict(claim)))
    return markdown_table(("bet", "claim", "the paper", "here", "verdict"), rows)


def readme_table() -> str:
    """Write the claims of README: verdict, the paper's effect and ours."""
    rows = []
    for paper, about in PAPERS.items():
        for claim in (claim for claim in claims_of(paper) if claim.readme):
            name = f"[{about.title}](docs/papers/{paper}.md)"
            here = (
                f"{_effect(claim, shown_setting(claim))} {claim.unit.replace('R-1', '')}"
                if claim.settings
                else ""
            )
            rows.append((name, claim.claim, verdict(claim), _published(claim), here.strip()))
    return markdown_table(("paper", "claim", "verdict", "the paper", "here"), rows)


def smallest_effects() -> str:
    """Write how many of the smallest effects that count were chosen before, with and after a first
    result."""
    chosen = Counter(claim.chosen for paper in PAPERS for claim in claims_of(paper) if claim.chosen)
    return (
        f"* *Counts*: where the paper has no number, we chose the smallest effect that counts, for "
        f"{chosen.total()} claims. By the dates of commits, {chosen['after']} of these numbers were "
        f"chosen after a first result of the same measure, {chosen['together with']} together with "
        f"it and {chosen['before']} before it."
    )


def sources_table() -> str:
    """Write each stored result that claims rest on: its command and minutes, and the first effect
    to expect of it."""
    rows = {}
    for paper in PAPERS:
        sources = records_of(paper).get("sources", {})
        for claim in claims_of(paper):
            for setting in (*claim.settings, *claim.controls):
                made = stored_numbers(setting.source) | sources.get(setting.source, {})
                minutes = (
                    f"{60 * made['hours']:.0f}" if "hours" in made else made.get("minutes", "")
                )
                cells = (
                    f"`{made['command']}`",
                    minutes,
                    f"{claim.claim}: {setting.label}",
                    _effect(claim, setting),
                )
                # otherwise the label names it
                unit = "" if re.search("%|nats", setting.label) else claim.unit
                rows.setdefault(setting.source, (f"`{setting.source}`", *cells, unit))
    return markdown_table(
        ("stored result", "command", "minutes", "claim: setting", "effect", "unit"), rows.values()
    )


def _row(claim: Claim) -> tuple[str, ...]:
    text = f"{claim.claim} ([{claim.place}]({UP}docs/papers/{claim.docs}))"
    if not claim.settings:
        return text, verdict(claim), _published(claim), "", "", claim.note
    shown = shown_setting(claim)
    smallest = effect_of(shown).smallest_seen
    picture = f"![{_description(claim)}]({UP}{PICTURES}/{claim.paper}-{claim.id}.svg)"
    others = [_other(claim, setting) for setting in claim.settings if setting != shown]
    others += [
        f"{'left' if c.remains else 'control'}, {c.label}: {_effect(claim, c)}"
        for c in claim.controls
    ]
    return (
        text,
        verdict(claim),
        _published(claim),
        f"{picture} {_effect(claim, shown)} {claim.unit}, {shown.label}",
        "" if smallest is None else _number(smallest, claim.unit),
        "; ".join(filter(None, [*others, claim.note])),
    )


def _other(claim: Claim, setting: Setting) -> str:
    below = "" if has_learned(setting) else " (no better than the first words)"
    return f"{setting.label}: {_effect(claim, setting)}{below}"


def _published(claim: Claim) -> str:
    if claim.published is not None:
        return f"{claim.published:+g}"
    if claim.counts is None:
        return claim.shows
    chosen = "" if claim.chosen == "before" else f", chosen {claim.chosen} a first result"
    return f"{claim.shows}; {claim.counts:g} counts{chosen}"


def _effect(claim: Claim, setting: Setting) -> str:
    found = effect_of(setting)
    mean, low, high = (
        _number(value, claim.unit, sign="+") for value in (found.mean, found.low, found.high)
    )
    return mean if low == high else f"{mean} [{low}, {high}]"


def _number(value: float, unit: str, sign: str = "") -> str:
    return f"{value:{sign}.{3 if 'nats' in unit else 2}f}"


def _description(claim: Claim) -> str:
    expected = "" if claim.expected is None else f"{claim.expected:g}"
    name = "the smallest effect that counts" if claim.published is None else "the paper's effect"
    return f"{_effect(claim, shown_setting(claim))}{expected and f'; {name}: {expected}'}"


def pictures() -> Mapping[str, str]:
    """Draw each claim with a result: {file of the project: SVG}.

    An axis with a line at 0, our interval, the paper's effect (or the smallest that counts) as a
    diamond, and a grey band of effects that are too small to be seen.
    """
    return {
        f"{PICTURES}/{paper}-{claim.id}.svg": _picture(claim, effect_of(shown_setting(claim)))
        for paper in PAPERS
        for claim in claims_of(paper)
        if claim.settings
    }


def _picture(claim: Claim, found: Effect) -> str:
    smallest, expected = found.smallest_seen or 0, claim.expected
    values = [
        0,
        found.low,
        found.high,
        -smallest,
        smallest,
        *([] if expected is None else [expected]),
    ]
    left, scale = min(values), (WIDTH - 2 * MARGIN) / ((max(values) - min(values)) or 1)
    middle = HEIGHT / 2

    def x(value: float) -> str:
        return f"{MARGIN + (value - left) * scale:.1f}"

    parts = [
        f'<rect class="band" x="{x(-smallest)}" y="3" width="{2 * smallest * scale:.1f}" height="{HEIGHT - 6}"/>',
        f'<path class="ink" d="M{x(0)} 1V{HEIGHT - 1}" stroke-dasharray="2 2"/>',
        f'<path class="ink" d="M{x(found.low)} {middle}H{x(found.high)}" stroke-width="2"/>',
        f'<circle class="ink" cx="{x(found.mean)}" cy="{middle}" r="3"/>',
    ]
    if expected is not None:
        parts.append(f'<path class="paper" d="M{x(expected)} {middle - 5}l5 5l-5 5l-5-5z"/>')
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    title = (
        f"<title>{claim.claim.replace('&', '&amp;').replace('<', '&lt;')}: "
        f"{_description(claim)}</title>"
    )
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>{title}{_STYLE}{"".join(parts)}</svg>\n'


def draw_claims() -> None:
    """Write the picture of every claim into the project's figures, and remove those of claims that
    are gone."""
    drawn = pictures()
    for old in (project_root() / PICTURES).glob("*.svg"):
        if old.relative_to(project_root()).as_posix() not in drawn:
            old.unlink()
    for file, svg in drawn.items():
        write_whole(project_root() / file, svg)
