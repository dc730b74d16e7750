"""Bets on claims that can be placed on a page, and what became of them. The browser keeps a choice;
nothing leaves it."""

from dataclasses import dataclass
from html import escape

from markdown_it import MarkdownIt

from companion.claims.text import bets_rows
from companion.claims.verdicts import Claim, chosen_claims, verdict

RULE = (
    "A bet on holds is right where the verdict is confirmed; on fails, where there is no effect as "
    "large as the paper's or none that counts, the opposite effect, or a control that explains "
    "it; on cannot tell otherwise."
)
ANSWERS = HOLDS, FAILS, CANNOT_TELL = "holds", "fails", "cannot tell"

# Keep the choice of a button where that is allowed, and show it where its outcome stands.
_CHOOSE = (
    "try { localStorage.setItem(this.name, this.value) } catch {} "
    "const bet = this; document.querySelectorAll('[data-bet]').forEach(out => { "
    "if (out.dataset.bet === bet.name) out.textContent = bet.value })"
)
_SHOW = """
for (const out of document.querySelectorAll("[data-bet]")) {
  try { out.textContent = localStorage.getItem(out.dataset.bet) ?? out.textContent } catch {}
}
"""


def right_bet(claim: Claim) -> str:
    """Return the bet that a claim's verdict makes right."""
    said = verdict(claim).partition(";")[0]  # what else is known stands behind it
    if "confirmed" in said:
        return HOLDS
    failed = ("no effect", "opposite", "explained by a control")
    return FAILS if any(words in said for words in failed) else CANNOT_TELL


def _key(paper: str, claim: Claim) -> str:
    return f"bet on {paper}: {claim.id}"


@dataclass(frozen=True)
class Bets:
    """Claims of a paper by their ids, each with three buttons."""

    paper: str
    ids: tuple[str, ...]

    def _repr_html_(self) -> str:
        inline = MarkdownIt().renderInline
        lines = []
        for claim, row in zip(chosen_claims(self.paper, self.ids), bets_rows(self.paper, self.ids)):
            cells = "".join(f'<td style="text-align: left">{inline(cell)}</td>' for cell in row)
            key = escape(_key(self.paper, claim))
            buttons = "".join(
                f'<label style="white-space: nowrap"><input type="radio" name="{key}" '
                f'value="{answer}" onchange="{escape(_CHOOSE)}"> {answer}</label> '
                for answer in ANSWERS
            )
            lines.append(f'<tr>{cells}<td style="text-align: left">{buttons}</td></tr>')
        heads = ("bet", "claim", "in the paper", "your bet")
        head = "".join(f'<th style="text-align: left">{name}</th>' for name in heads)
        return f'<table class="dataframe"><tr>{head}</tr>{"".join(lines)}</table>'

    def __repr__(self) -> str:
        return "\n".join(". ".join(row) for row in bets_rows(self.paper, self.ids))


@dataclass(frozen=True)
class Outcomes:
    """What became of bets: the reader's own beside the right one."""

    paper: str
    ids: tuple[str, ...]

    def _repr_html_(self) -> str:
        lines = []
        for number, claim in enumerate(chosen_claims(self.paper, self.ids), start=1):
            key = escape(_key(self.paper, claim))
            own = f'you: <b data-bet="{key}">no bet</b>'
            lines.append(f"<li value={number}>right: <b>{right_bet(claim)}</b>; {own}</li>")
        return f"<p>{RULE}</p><ol>{''.join(lines)}</ol><script>{_SHOW}</script>"

    def __repr__(self) -> str:
        rights = map(right_bet, chosen_claims(self.paper, self.ids))
        numbered = ", ".join(f"{n}. {right}" for n, right in enumerate(rights, start=1))
        return f"{RULE} Right: {numbered}"
