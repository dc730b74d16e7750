"""Sentences of a text."""

import re

# Words before a full stop that does not end a sentence.
_ABBREVIATIONS = frozenset(
    """al approx appx art assoc ca cf ch chap col corp dept diff dr e.g ed eds eg eq eqn eqns eqs esp est et etc fig
    figs gen hon i.e ie inc incl jr lemma lit ltd max messrs min misc mr mrs ms mt no nos nr nt p par pp prof prop ref
    refs rep resp rev sec sect sen sr st subsp suppl tab tabs thm univ v var viz vol vols vs w.r.t wrt
    jan feb mar apr jun jul aug sep sept oct nov dec""".split()  # noqa: SIM905
)
# Those of them that end a sentence as well, when what follows looks like a new one.
_MAY_END = frozenset({"etc", "al", "no", "inc", "corp", "ltd", "jr", "sr"})

_CANDIDATE = re.compile(
    r"""[.?!؟۔।]
        (?P<close>["'”’)\]]*)
        (?P<space>\s++)
        (?=(?P<next>\S+))""",
    re.VERBOSE,
)
_BEFORE_A_WORD = frozenset("\"'”’)]")  # as white space is
_OPENING = re.compile(r"[\"'“‘(\[]*(?:(?P<first>[^\W_])|@|<[a-z])")
_STARTERS = frozenset(
    """The This These Those There That It In We Our For However Thus To As At On By A An If When While Although Since
    Such Here They Moreover Furthermore Finally First Second""".split()  # noqa: SIM905
)


def split_sentences(text: str) -> list[str]:
    """Split plain text into sentences, by rule: no model, no download.

    A sentence ends at `.`, `?` or `!` (and their like in Arabic and Devanagari) before white space and a digit or a
    letter that is not in lower case (any letter, where the text was lower-cased), unless the word before is a known
    abbreviation or an initial. In text that is already tokenised (` . `) the mark ends the sentence whatever follows.
    Joining the result by spaces gives the text back, up to white space.
    """
    sentences, start, cased = [], 0, text != text.lower()
    for match in _CANDIDATE.finditer(text):
        if _ends_sentence(match, text, cased, start):
            sentences.append(text[start : match.start("space")].strip())
            start = match.end("space")
    sentences.append(text[start:].strip())
    return [s for s in sentences if s]


def _ends_sentence(match: re.Match, text: str, cased: bool, start: int) -> bool:
    """Whether a mark ends the sentence that began at `start`."""
    place, following = match.start(), match["next"]
    begin, mark = place, text[place]
    while begin > start and text[begin - 1] not in _BEFORE_A_WORD and not text[begin - 1].isspace():
        begin -= 1
    word = text[begin:place].lstrip("(['\"“‘")
    before = text[max(0, place - 24) : place]
    tokenised = not word and before[-1:].isspace()
    if tokenised:  # "et al . ( 2003 )": the word and the mark are apart
        words = before.split()
        word = words[-1] if words else ""
        if not word or word[-1] in ".?!;" or following[0] in ".,;:?!)\"'”’":
            return False  # ". . ." and a closing quote that stands alone
        if cased and following[0].islower():
            return False
        if word.isdigit() and len(words) > 1 and words[-2] in {".", ";", ":"}:
            return False  # "; 2 . the second item"
    elif not _opens(following, cased):
        return False
    if mark != ".":
        return True
    if word.lower() in _ABBREVIATIONS:
        return word.lower() in _MAY_END and following in _STARTERS
    if re.fullmatch(r"(?:\w+\.)*[^\W\d]", word) or ("." in word.strip(".") and word.replace(".", "").isalpha()):
        return following in _STARTERS  # an initial, U.S., i.i.d.
    return True


def _opens(word: str, cased: bool) -> bool:
    """Whether a word may begin a sentence: letters that have no case may."""
    opening = _OPENING.match(word)
    return bool(opening) and not (cased and (opening["first"] or "").islower())
