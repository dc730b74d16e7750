"""Split text into sentences by rule, without a model.

`_MARK` finds each place where a sentence may end. `_ends_sentence` decides from the previous word
and the text behind it, within a window of fixed size, so that the time grows linearly with the
text.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from lib.data.characters import join_lines
from lib.data.line_heads import heads, is_apart, is_head

_WINDOW = 48  # characters to inspect before and behind a mark


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Abbreviations that do not end a sentence. In each list, one with a capital counts only with it:
# "Fa. Klein", but not "due anni fa."
_ABBREVIATIONS = _words(
    """Avda Civ Crim Dña Dª Fa Hrsg Srta Sres Sta Sto Ud Uds
    asst atty avv blz cpl dhr dipl dipl.-ing dx einschl exkl geb geom hx ing inkl mevr pvt rx
    sgt sres srta supt ul verh zzgl акад доц напр пл проф
    a.k.a adm app approx appx art bzw ca capt cf ch chap cmdr cor def diff dott dr dra e.g ed eds
    eg eq eqn eqns eqs esp evtl ex exmo fig figs gen ggf gov hon i.e ie incl lemma lit lt m maj
    डॉ प्रो श्री श्रीमती सुश्री कु पं स्व ড ডা মো শ্রী
    messrs mlle mme mr mrs ms mt mts n° nos nr núm op p p.ej par para pat pkt pop pp prof prop ref
    refs rep rev s.d s.e sec sect sen sig sog sra ssp subsp supp suppl tab tabs tel thm v var
    vgl viz vol vols vs w.r.t wrt z.b ae др см рис табл стр ee ул т.е"""
)
# Abbreviations that end a sentence if the next word looks like the start of one.
_MAY_END = _words(
    """Cal Fri Mon Thu Thur Thurs Tue Tues Wed Gem im pt им св ст
    abs al apr assoc aug av ave avg blvd bros cit co col corp cv dec dept est ext feb ft inc jan
    jr jul jun labs llc ltd max med min mio misc mrd no nov nt oct resp sep sept sp spp sr st temp
    univ usw wt г"""
)
_ETC = _words("etc т.д т.п")  # ends a sentence before any capital
# Abbreviations that end no sentence before a number; elsewhere some of them are words.
_BEFORE_NUMBERS = _words("abb anm aufl bd blz cap kap mwst pag reg rn str pág zif ziff кв п пп")
_NUMBER = re.compile(r"\d|[IVXLC]+\b")
_NUMBER_SIGN = re.compile(r"N\.?[º°]\s?\d")  # "ord. Nº 916", "Res. N° 12"
_BEFORE_ABBREVIATION = re.compile(r"[A-Z]\w*\.")  # "Fed. R. Civ. P.", but not "the Fed. Rates"
# "MM. Leroy et Blanc" (messieurs), but not "patients with MM. The"
_BEFORE_MESSIEURS = _words("avec à de et par que") | {""}
# Words that begin sentences and are no names.
_STARTERS = _words(
    """a after all also although an and any are as at because before both but by can despite during
    did do does each few finally first for from further furthermore had has have he hence her here
    his how however i if in instead is it its later many meanwhile moreover most my nevertheless no
    nobody none not nothing of on one only or other others our recently second several she
    should since so some such that the their then there therefore these they this those thus to
    today two under until was we were what when where which while who why with without would
    you your es er sie wir das die der ein eine il la les un une el она он они это в на мы"""
)
# In a text without capitals, words that may as well go on with a sentence after a unit or an
# abbreviation begin none.
_LOWER_STARTERS = _STARTERS - _words(
    """after and any are as at because before both but by can during each first for from had has
    have if in instead is later like most no nor not of on one only or other others since so some
    such than that to today under until was were when where which while who why with without
    would es er la le"""
)
# Words before a letter that is a label ("vitamin C.") and not an initial.
_LABELS = _words(
    "appendix chromosome class donor factor figure grade group hepatitis influenza kappa plan "
    "section type vitamin"
)
_INITIAL = re.compile(r"\W*[^\W\d_]\.")
_SHORT_WORD = re.compile(r"[OEYÉÀ] [a-zà-ÿ]")  # "S.A. O capital", in Portuguese
_SUBJECT = re.compile(
    r"[A-Z][\w'-]+ (?:is|are|was|were|has|had|have|will|would|can|could|may|did|does)\b"
)
_DOTTED = re.compile(r"(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2}")  # Ph.D, a.m, i.v
_GERMAN_MONTH = re.compile("Januar|Februar|März|Mai |Juni|Juli|Oktober|Dezember")  # "am 2. Januar"
# "der 17. Versuch", "vom 1. FC"
_BEFORE_ORDINALS = _words("am beim das dem den der des im vom zum zur")
_UNIT = re.compile(r"[a-z]|ft|in|pct|lbs?|oz|hrs?|yrs?|[kmn]g|[mck]m|ml|min")
# of "5 ft. 2 in."; and "5 F. Supp. 2d 12", where F. is no unit
_SMALLER = re.compile(r"\d+ (?:in|oz|lbs?|min)\b|Supp\b")
# "(9th Cir. 2011)", "(D. Or. 1998)", "Bell Atl. Corp."
_OF_CITED_CASE = re.compile(
    r"(?:[A-Z][a-z]{1,5}\. )?(?:1[5-9]|20)\d\d\)|(?:Corp|Co|Inc|Ltd|Bros)\."
)
_NUMBERED_INITIAL = re.compile(r"\d{1,2}(?:\.\d{1,2})* [A-Z]")  # "2.1 L. Green asked why"
_TITLE = re.compile(r"(?:Mr|Mrs|Ms|Dr|Prof)\. ")
_AT_A_TIME = re.compile(r"(?:At|By|Around|About|After|Before|Until|Since|From) \d\S*$")
_MODULES = _words("collections dataclasses matplotlib multiprocessing subprocess tensorflow")

_MARK = re.compile(
    r"""(?P<mark>[.?!؟۔।॥։።។။…。！？｡]+)
        # “ opens a quotation in Chinese, and closes one in German
        (?P<close>(?:["'”’)\]»«」』）_]|“(?<![。！？｡]“)(?<![。！？｡]”“)|\s»
            |[ ]?[\U0001F300-\U0001FAFF]|[ ][:;]-?[)D](?=\s))*)
        (?:  # references, and not the numbers of paragraphs ([0007]):
             # [7], [1][2], [note 1], (Ann, 2003), end.³ and end.4,5
            (?:,?\s?(?:
                \[(?:(?!0\d)\d+(?:\s?[,;–-]\s?\d+)*|\^?\w|note\s\d+|citation\sneeded)\](?::\d+)?
                |\([A-Z][^()\d]{1,60}\d{4}\w?\)
            ))+(?=\s+[^a-z])
            |[¹²³⁰-⁹]+|(?<=[^\W\d_]\.)\d{1,3}(?:(?:,[ ]?|[–-])\d{1,3})*(?=\s+[A-Z])
        )?
        (?P<space>\s*+)(?=\S)""",
    re.VERBOSE,
)
_CLOSING = re.compile("[\"'”’»]")
# Who speaks, behind a quotation: '"Who is there?" Anna asked.'
_SPEAKER = re.compile(
    r"(?:(?:[A-Z][\w'’-]*|Mr\.|Mrs\.|Ms\.|Dr\.|Prof\.) ){1,3}"
    r"(?:said|says|asked|asks|answered|replied|cried|called|exclaimed|shouted|yelled|whispered"
    r"|muttered|murmured|repeated|added|began|continued|demanded|wondered)\b"
)
_QUOTES = re.compile(r"[\"'“”‘’()\[\]«»]")
_OPENING = re.compile(r"[\"'“‘„«»‹¿¡「『(\[$£€¥#@~§+−–—•⁃_-]*\s?(?P<first>[^\W_]|<[a-z])")
# Names that begin with a small letter (p53, mRNA, β-actin, k-means, n = 12), and the letters of a
# list (b. c.).
_SMALL_NAME = re.compile(
    r"[a-z]{1,5}[A-Z\d]|[α-ω]-?\w|[a-z][-/]\w|[a-z] ?[=<>≤≥]|\(?[a-z]{1,3}[.)] [A-Z]"
)
_ITEM = re.compile(
    r"(?:(?:Act|Book|Chapter|Lecture|Lesson|Part|Scene|Step|Unit"
    r"|Cap[ií]tulo|Chapitre|Kapitel|Teil)\s)?"
    r"[•⁃▪◦‣●*§–-]?\s*[(\[]?(?:\d{1,3}(?:\.\d{1,3})*|[a-zQA]|[ivx]{1,4}|[IVX]{1,4})\s?"
)
# The items of a list in one line: "1. Open the lid 2. Add the salt".
_ITEMS = re.compile(
    r"(?<!\S)(?P<bullet>[•⁃▪◦‣●]\s?)?"
    r"(?:(?P<number>\d{1,3})(?P<close>\.\)|[.)])\s+(?=\S)|(?P<letter>[a-z])(?P<end>[.)])\s+(?=[A-Z]))"
)
_WITHIN = re.compile(r"[.?!…][\"'”’)\]]*(?:\[[\d, –-]+\])?\s+\S|[。！？]")  # a stop within a line
_BEGIN = re.compile(r"(?:^\W*|[.?!…][\"'”’)]?\s+)([^\W\d_])")
# In tokenised text: what goes on with a sentence, and "https : / / web . eecs".
_GOES_ON = re.compile(r"[.,;:?!…)\]}\"'”’]|(?:com|org|net|edu)\b|(?:19|20)\d\d[a-z]?\s?\. ")
_ADDRESS = re.compile(r"(?:/ / |www \. )(?:[\w-]+ [.-] )*[\w-]+ $|www $")

_BLANK_LINE = re.compile(r"\n\s*\n")
_LINE_END = re.compile(r'[.?!…:;。！？।"”)]$')
_WORD = re.compile(r"\w+")
_CAPITAL_WORD = re.compile(r"[A-Z][a-z]*[\s,]")
_STOPS_BEFORE_ANY = frozenset("।॥։።។။。！？｡")  # whether a capital follows or not
_GOES_ON_AFTER_STOP = frozenset("と、，”’」』）")
_SOURCE = re.compile(r"\([^()]{1,40}\)[.,;]")  # behind a quotation
_BEFORE_DIGITS = re.compile(r"[A-Za-z]+\d+|to|of|and|at|by|is|from|with|or")
_SPACED_LETTER = re.compile(r"\w \. ")  # of "i . i . d ."
_SPACED_LETTERS = re.compile(r"(?:\b\w \. )+\w $")
_THREE_DOTS = re.compile(r"\.\s\.\s\.\s$")
_LIKE_INITIALS = re.compile(r"[^\W\d_]-[^\W\d_]|u\.[ks](?:\.a)?|st|cv")


def split_sentences(text: str) -> list[str]:
    """Split plain text into sentences.

    A sentence ends at a mark before a capital, a digit or a letter without case (before any letter
    if the text has no capitals), unless the previous word is an abbreviation or an initial. A blank
    line ends a sentence. Joining the result by spaces gives the text back, up to white space.
    """
    return [
        sentence
        for unit in _units(text)
        for a, b in sentence_spans(unit)
        if (sentence := unit[a:b].strip())
    ]


def group_words(words: Sequence[str]) -> list[list[int]]:
    """Group the indices of words by sentence, for words that spaces join to a text."""
    starts = [0, *accumulate(len(word) + 1 for word in words)]
    groups = (
        range(bisect_left(starts, a), bisect_left(starts, b))
        for a, b in sentence_spans(" ".join(words))
    )
    return [list(group) for group in groups if group]


def _units(text: str) -> Iterator[str]:
    """Yield each turn, each item and each other paragraph in one line; or the lines of a paragraph
    that is no prose, such as an address."""
    for paragraph in _BLANK_LINE.split(text):
        lines = [line for line in map(str.strip, paragraph.splitlines()) if line]
        if len(lines) < 2:
            yield from lines
            continue
        group: list[str] = []
        kind = ""
        width = max(map(len, lines))
        for before, line, begins in zip(["", *lines], lines, heads(lines)):
            if begins or (kind == "item" and is_apart(before, line, width)):
                yield from _joined(group, kind)
                group, kind = [], begins
            if begins == "turn" and is_head(line):
                yield line
            else:
                group.append(line)
        yield from _joined(group, kind)


def _joined(lines: list[str], kind: str) -> Iterator[str]:
    """Yield lines as one if they are an item or prose, otherwise one by one.

    In prose a line ends in a mark, a mark is within a line, or half of the lines begin small. Of
    other lines, those that begin small, or follow a comma, go on with the previous one.
    """
    is_small = [line[0].islower() for line in lines[1:]]
    has_case = any(line[0].isupper() for line in lines[:1])
    if (
        kind == "item"
        or any(_LINE_END.search(line) or _WITHIN.search(line) for line in lines)
        or (has_case and 2 * sum(is_small) >= len(is_small) > 0)
    ):
        yield join_lines(lines)
        return
    unit: list[str] = []
    for line in lines:
        goes_on = bool(unit) and (unit[-1].endswith(",") or (has_case and line[0].islower()))
        if unit and not goes_on:
            yield join_lines(unit)
            unit = []
        unit.append(line)
    if unit:
        yield join_lines(unit)


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each sentence in a text without line ends, the space after it
    included."""
    start = 0
    has_case = any(match[1].isupper() for match in _BEGIN.finditer(text))
    items = _items(text)
    for match in _MARK.finditer(text):
        while items and items[0] <= match.start():
            if (item := items.pop(0)) > start:
                yield start, item
                start = item
        if _ends_sentence(match, text, start, has_case):
            yield start, match.end()
            start = match.end()
    for item in items:
        if item > start:
            yield start, item
            start = item
    yield start, len(text)


def _items(text: str) -> list[int]:
    """Return where the items of a list begin, in a text that begins with the first one.

    Their numbers or letters rise by one, and the signs around them are the same.
    """
    first = _ITEMS.match(text)
    if not first:
        return []
    begins, last = [], first
    for item in _ITEMS.finditer(text, first.end()):
        if _rank(item) == _rank(last) + 1 and _style(item) == _style(last):
            begins.append(item.start())
            last = item
    return begins


def _rank(item: re.Match) -> int:
    return int(item["number"]) if item["number"] else ord(item["letter"])


def _style(item: re.Match) -> tuple[bool, str, str]:
    return bool(item["bullet"]), item["close"], item["end"]


def _ends_sentence(match: re.Match, text: str, start: int, has_case: bool) -> bool:
    """Return whether a mark ends the sentence that begins at `start`."""
    before = text[max(start, match.start() - _WINDOW) : match.start()]
    behind = text[match.end() : match.end() + _WINDOW]
    *earlier, token = before.split() or [""]
    word = _QUOTES.split(token)[-1]
    if match["mark"][0] in _STOPS_BEFORE_ANY:
        return behind[0] not in _GOES_ON_AFTER_STOP
    if not match["space"]:  # "burned.Two years", but not "numpy.load" or "collections.Counter"
        if not word or word[-1] == "%" or match["close"] or match["mark"] in "?!":
            return bool(_CAPITAL_WORD.match(behind))
        return (
            len(word) > 2
            and word.islower()
            and word.isalpha()
            and (begins_sentence(behind, has_case=True) or _is_no_module(word, behind))
        )
    if before[-1:].isspace():  # tokenised text, "et al . ( 2003 )": the word and the mark are apart
        if (
            not token
            or (token[-1] in ".?!;" and not _is_last_dot(before, behind))
            or _GOES_ON.match(behind)
            or (has_case and behind[0].islower())
        ):
            return False
        if match["mark"] == "…" or _ADDRESS.search(before):
            return False
        if behind[0].isdigit() and _BEFORE_DIGITS.fullmatch(word):
            return False  # "up to . 5" and "v2 . 0"
        if letters := _SPACED_LETTERS.search(before):
            word = letters[0].replace(" ", "")  # "i . e ."
    else:
        opening = _OPENING.match(behind)
        if not opening or (
            has_case and opening["first"].islower() and not _SMALL_NAME.match(behind)
        ):
            return False
    if match["close"] and _SOURCE.match(behind):
        return False  # '..." (Hale 12).'
    if match["mark"] != "." and _CLOSING.search(match["close"]) and _SPEAKER.match(behind):
        return _first_word(behind).lower() in _STARTERS - {"i"}
    if match["mark"] != "." or not word:
        return True
    if word.lower() in ("a.m", "p.m") and _TITLE.match(behind):
        return not _AT_A_TIME.search(" ".join(earlier))
    if len(before) < 20 and _ITEM.fullmatch(before):
        return False  # the number of a section or of an item in a list
    if len(before) < 10 and _NUMBERED_INITIAL.fullmatch(before):
        return begins_sentence(behind, has_case)
    return _ends_after(
        word, earlier[-1].lower() if earlier else "", behind, has_case, before[-1:].isspace()
    )


def _ends_after(word: str, previous: str, behind: str, has_case: bool, is_apart: bool) -> bool:
    """Return whether a full stop after a word ends the sentence. is_apart: a space is before the
    stop."""
    low = word.lower()
    is_etc = low in _ETC or f"{previous}{low}" in _ETC
    is_letter = len(word) == 1 and word.isalpha()
    if {low, word} & _ABBREVIATIONS and not (is_letter and word.isupper()):
        return False
    if word[0].isupper() and _OF_CITED_CASE.match(behind):
        return False
    if word == "Fed" and _BEFORE_ABBREVIATION.match(behind):
        return False
    if word == "MM" and previous in _BEFORE_MESSIEURS:
        return False
    if len(word) < 5 and _NUMBER_SIGN.match(behind):
        return False
    is_before_number = low in _BEFORE_NUMBERS or (low.endswith("str") and len(low) > 5)
    if is_before_number and _NUMBER.match(behind):
        return False
    is_amount = bool(previous[-1:].isdigit() and (_UNIT.fullmatch(low) or _DOTTED.fullmatch(low)))
    may_end = bool({low, word} & _MAY_END) or bool(_DOTTED.fullmatch(word))
    if (is_etc or ((is_amount or may_end) and not is_apart)) and not has_case:
        return _first_word(behind) in _LOWER_STARTERS
    if word.isdigit() and _GERMAN_MONTH.match(behind):
        return False
    if word.isdigit() and len(word) < 4 and previous in _BEFORE_ORDINALS:
        return begins_sentence(behind, has_case)
    if is_etc:
        return behind[0].isalpha()
    if previous[-1:].isdigit() and _UNIT.fullmatch(low):
        return behind[0] != "(" and not _SMALLER.match(behind)
    if is_letter and _SPACED_LETTER.match(behind):
        return False  # "i . i . d ."
    if is_letter or _LIKE_INITIALS.fullmatch(low):
        return previous in _LABELS or begins_sentence(behind, has_case)
    if may_end:
        return begins_sentence(behind, has_case) or bool(_SUBJECT.match(behind))
    return True


def _is_last_dot(before: str, behind: str) -> bool:
    """Return whether a full stop follows three dots that are set apart: ". . . . The next"."""
    return bool(_THREE_DOTS.search(before)) and behind[0].isupper()


def _is_no_module(word: str, behind: str) -> bool:
    """Return whether a long word and the next one, which no space separates, are not of a program:
    "summarization.Technologies", and not "threading.Lock"."""
    is_word = len(word) > 9 and word not in _MODULES
    return is_word and bool(_CAPITAL_WORD.match(behind))


def _first_word(text: str) -> str:
    found = _WORD.search(text)
    return found[0] if found else ""


def begins_sentence(text: str, has_case: bool = True) -> bool:
    """Return whether a text begins with a word that begins sentences and is no name."""
    if _INITIAL.match(text):  # "A. A. Milne"
        return False
    word = _first_word(text)
    is_known = word.lower() in _STARTERS and (word.istitle() or not has_case)
    return is_known or bool(_SHORT_WORD.match(text))
