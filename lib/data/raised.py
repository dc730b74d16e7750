"""Raised and lowered signs, and citations, in a line of text."""

import re

CITED = "\ufdd0"  # replaces a citation
_NUMBERS = re.compile(r"\[?\d{1,3}(?:[,;–-]\d{1,3})*\]?|[a*†‡§]")

_SIGNS = {"°", "º", "®", "TM", "st", "nd", "rd", "th"}


def script(kind: str, text: str, before: str, after: str = "") -> str:
    """Write a raised or lowered text in a line: x^2, x_i and e^(x+1), but H2O, Na+, 2nd and 14C as
    in print."""
    space = " " * text[-1:].isspace()
    text = re.sub(r"\s", "", re.sub(r"^\s*[−–‒⁻\u00ad]|−", "-", text))
    last, at_a_word = (
        before.rstrip()[-1:] or " ",
        before[-1:].isalnum() or before[-1:] in tuple(")]}"),
    )
    is_isotope = kind == "sup" and after[:1].isupper() and text[:1].isdigit() and not last.isdigit()
    if is_isotope and (not at_a_word or last in "δΔ∆"):
        return text
    if (
        kind == "sup"
        and _NUMBERS.fullmatch(text)
        and (last in ".,;:!?" or re.search(r"[a-z]{4}$", before))
    ):
        return CITED  # a citation without a reference
    if kind == "sup" and text == "o" and after[:1] in ("C", "F"):
        return "°"
    is_charge = re.fullmatch(r"[-+*]|\d[-+]", text) and last.isalpha() and not after[:1].isalpha()
    # H2O
    is_formula = text.isdigit() and (last.isalpha() or last in ")]") and not after[:1].isdigit()
    if (is_charge or text in _SIGNS if kind == "sup" else is_formula) or not text.strip(
        CITED + ",;-–"
    ):
        return text + space
    is_group = not re.fullmatch(r"[-+]?\w+[-+]?|\(.*\)", text)
    return ("^" if kind == "sup" else "_") + (f"({text})" if is_group else text) + space


def without_citations(text: str) -> str:
    """Return a text in one line, without the places of citations and what joins them."""
    text = " ".join(text.split())
    list_of = rf"{CITED}(?:(?:[\s,;–-]|and)*{CITED})*"
    # "[1, 2]" and "(see 3)"
    text = re.sub(rf"\s*[\[(](?:see|cf\.|[ei]\.[ge]\.|[\s,])*{list_of}[\])]", CITED, text)
    text = re.sub(rf"(?<=\.)\s*{list_of}\.", "", text)  # "et al. [5]."
    text = re.sub(rf"\s*{list_of}(?=(\w)?)", lambda gone: " " if gone[1] else "", text)
    return re.sub(r"\s+([,.;:!?])", r"\1", text)
