"""Sentences of a text, by rule: no model, no download.

`_ends` asks of every mark that may end a sentence what stands before and behind it; the tables say which words are
which kind. Every look is at a window of fixed size, so that the time grows with the text.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

_WINDOW = 48  # characters that are looked at before and behind a mark


def _table(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Abbreviations: none of these ends a sentence, ...
_ABBREVIATIONS = _table(
    """a.k.a abb adm app approx appx art bd bzgl bzw ca capt cf ch chap cmdr cor d.w.z def diff dott dr dra e.g ed eds
    eg eq eqn eqns eqs esp evtl ex exmo fig figs fr ft gen ggf gov hon hr hrsg i.e ie incl inkl lemma lit lt m maj
    messrs mlle mme mr mrs ms mt mts n° nos nr núm o.a op p p.ej par para pág pop pp pres prof prop pt pv ref refs rep
    rev s.d s.e sec sect sen sgt sig sog sra ssp st subsp supp suppl tab tabs tel thm v var vgl viz vol vols vs w.r.t
    wrt z.b ae др см рис табл стр ee им ул проф акад напр т.е"""
)
# ... these do when a word follows that begins sentences, ...
_MAY_END = _table(
    """al apr assoc aug av bros cit co col corp cv dec dept est ext feb inc jan jr jul jun llc ltd mar max med min
    misc no nov nt oct resp sep sept sp spp sr sra st temp ud uds univ wt г гг"""
)
_BEFORE_NAMES = _table("al cv st")  # the verb that follows may be of a name
# ... and behind these, which end phrases, a capital is enough, where it is not of a name.
_BEFORE_NO_NAME = _table("etc usw ecc enz др д п")
_COUNTRIES = _table("u.s u.k u.n e.u u.s.a u.s.s.r")
_TIMES = _table("a.m p.m")
_UNITS = _table("ft in lb lbs oz hr hrs yr yrs kg mg mm cm km ml ha bn")
_DEGREES = _table("ph.d m.d b.sc m.sc d.phil b.c a.d b.c.e c.e d.c i.v i.p s.c")
_OFTEN_END = (
    _BEFORE_NO_NAME | _COUNTRIES | _TIMES | _UNITS | _DEGREES | _table("bros co corp inc jr llc ltd spp mio mrd")
)

# Capitals behind them that go on with a name, a title or a time, ...
_PARTS_OF_NAMES = _table(
    """Army Congress Constitution Court Department Government House Navy Senate Supreme Treasury Chairman Director
    President Candidate Program Student Students Thesis BST CET EDT EST GMT PST UTC Monday Tuesday Wednesday Thursday
    Friday Saturday Sunday"""
)
# ... words that go on in titles, and those that do unless a comma shows that they begin a sentence.
_GO_ON = _table("And Or Of But Would Could Has Had Have Is Are Was Were Which Must Will Should Not")
_LINKS = _table("About Because During From Later Now Over Under Up With Where")
_TITLES = _table("Mr Mrs Ms Dr Prof")
_VERB = "(?:also )?(?:is|are|was|were|has|had|have|will|would|can|could|may|might|said|says)"
_WITH_VERB = re.compile(rf"[A-Z][\w'-]+ {_VERB}\b")
_PLURAL = re.compile(r"[A-Z][\w'-]+[^\Ws]s [a-z]")
_NAMED_SUBJECT = re.compile(rf"[A-Z]\S* (?:[a-z]|[A-Z]\S* {_VERB}\b)")
_LINK_BEGINS = re.compile(
    r"(?:About|Because|During|From|Now|Over|Under|Up|With|Where|Later)(?:,| (?:\d+|the|these|this|our|all|an?)\b.*,)"
)
_COMPANY_FORM = re.compile(r"(?:Bros|Co|Corp|Inc|LLC|Ltd)\b(?!-)")
_PLACES = _table("in from to across outside within throughout into")
_NUMBERS = _table("One Two Three Four Five Six Seven Eight Nine Ten")
# Words that begin sentences and are no names.
_STARTERS = _table(
    """The This These Those There That It In We Our For However Thus To As At On By A An If When While Although Since
    Such Here They Moreover Furthermore Finally First Second He She You I His Her Its Their My Your Who What Why How
    Where Which Whose Did Do Does Is Are Was Were Has Have Had Can Could Should Would Shall Must And But Or Nor Yet So
    Then Now After Before During With Without From Of Under Over Into Between Among Because Until Unless Despite Both
    Each Every Some Any All Most Many Few Several Nobody Nothing None No Not Only Also Another Other Others One Two
    Three Four Five Six Seven Eight Nine Ten Therefore Hence Instead Meanwhile Once Today Yesterday Tomorrow Later
    Recently Further Additionally Our Ours Us Nevertheless Overall Es Er Sie Wir Ich Das Die Der Dann Ein Eine Nach Il
    Elle Nous Le La Les Un Une El Ella Los Las Она Он Они Это В На Мы"""
)
# The same in text without capitals, where those that stand within sentences as often say nothing.
_LOWER_STARTERS = _table(
    """a all also although an both each few finally furthermore hence he her however his if instead it its many
    meanwhile moreover most nevertheless nobody none our recently several she since some such that the their there
    therefore these they this those thus we when while"""
)
# Words before a letter that is a label and not a name's initial, and words before that are no label.
_LABELS = _table(
    """appendix annex category chromosome class exhibit factor figure grade group hepatitis influenza kappa
    option panel
    part phase plan section stage table type vitamin"""
)
_NOT_LABELS = _table(
    """about according after and as at because before but by de der for from how if in is of on or said saw
    says see than
    that the then thank to und van von was when where who with met via et y author authors colleague
    colleagues president professor chemist versus against between genus species"""
)
_OPEN_WORDS = _table("a an our its their am im nach das den dem des mit für auf aus bei zu zur zum le la les du en")
_VERBS_AND_PEOPLE = re.compile(r"(?:ed|ing|[eo]r|ist|ian|man|woman)s?$")
_LETTERS = re.compile(r"[^\W\d_]|(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2}|[^\W\d_]-[^\W\d_]|[A-Z]\.-[A-Z]")
_GERMAN_ARTICLES = _table("am der das dem den des im vom zum zur beim ein eine einem einer eines jeder jede seit")

_DOMAINS = _table("com org net gov edu io github")
_MODULES = _table("torch numpy pandas collections scipy sklearn matplotlib tensorflow keras sys decimal pathlib")
_NAMES_WITH_MARKS = _table(
    "yahoo jeopardy kahoot joomla yum oklahoma panic guess which"
)  # names with a mark of their own
_SPEECH = re.compile(
    r"(?!All|Few|Many|Most|Nobody|None|Others|Some)(?:[^\W\d_]+\s+){1,3}?"
    r"(?:said|asked|shouted|replied|cried|says|asks|answered|whispered|called|wrote|added)\b"
)
_MONTHS_AND_NOUNS = re.compile(
    r"(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|Jahrhundert|januar|maj|juni)"
)
_NAMED = re.compile(
    r"[a-z]{1,5}[A-Z\d]\w*|[α-ω]-?\w+|[a-z][-/]\w+|v\.\d|[a-z] ?[=<>≤≥]|(?:van|von|de|der) (?:der |den )?[A-Z]"
)

_CITATION = r"\[\d+(?:\s?[,;–-]\s?\d+)*\]|\([A-Z][^()\d]{1,60}\d{4}[a-z]?\)"
_CANDIDATE = re.compile(
    rf"""(?P<marks>[.?!؟۔।॥…։。！？｡]+)
         (?P<close>(?:["'”’“‘)\]»«」』）]|[\s\u00a0\u202f]»
             |[ ]?[\U0001F300-\U0001FAFF\u2600-\u27BF]|[ ][:;]-?[)(DP](?=\s))*)
         (?P<cited>(?:\s?(?:{_CITATION})(?=\s+[^a-z])|[¹²³⁰-⁹]+
             |(?<=[^\W\d_]\.)\d{{1,3}}(?:(?:,[ ]?|[–-])\d{{1,3}})*(?=\s+[A-Z])
             |(?<=["”])\d{{1,3}}(?=\s+[A-Z]))?)
         (?P<space>\s*)
         (?=(?P<next>\S{{1,{_WINDOW}}}))""",
    re.VERBOSE,
)
_ALWAYS = frozenset("।॥。！？｡")
_ENDED = re.compile(r"[.?!؟۔।॥…։。！？｡:;][\"'”’)\]»」]*(?:\[[\d, ]+\])?\s*$")
_OPENING = re.compile(r"[\"'“‘„«»‹¿¡「『(\[$£€¥#@~§+−–—-]*(?:(?P<first>[^\W_])|<[a-z])")
_MARKER = re.compile(
    r"""(?<!\S)(?P<bullet>[•⁃▪◦‣●*–-](?:\s|(?=\d)))?
        (?P<open>[(\[]?)(?P<number>\d{1,3}|[a-z]|[ivx]{2,5}|[IVX]{1,5})(?P<close>\.\)|[.)\]])(?=\s+\S)
      | (?<!\S)(?P<only>[•⁃▪◦‣●])(?=\s+\S)""",
    re.VERBOSE,
)
_SECTION_NUMBER = re.compile(r"\d{1,3}(?:\.\d{1,3})*")
_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")
_BEFORE_A_WORD = frozenset("\"'“”‘’()[]«»")  # as white space is
_YEAR = re.compile(r"(?:19|20)\d\d[a-z]?\s?\.\s+\S")
_AT_A_TIME = re.compile(r"(?:At|By|Around|About|After|Before|Until|Since|From)\s\S+$")


def split_sentences(text: str) -> list[str]:
    """Split plain text into sentences.

    A sentence ends at a mark that a capital, a digit or a letter without case follows (any letter, where the text has
    no capitals at its sentences' starts), unless the word before is an abbreviation or an initial. Numbers of a list
    begin sentences; citations and closing quotes belong to the sentence before. A line end is a space in text that is
    wrapped, and ends a sentence where each line is one. In text that is already tokenised (` . `) a mark ends the
    sentence whatever follows. Joining the result by spaces gives the text back, up to white space.
    """
    return [part[a:b] for part in _lines(text) for a, b in _spans(part)]


def group_words(words: Sequence[str]) -> list[list[int]]:
    """Places of the words of each sentence, for words of which a text is made by setting them apart by spaces."""
    text, groups, place, at = " ".join(words), [], 0, 0
    for _, end in _spans(text):
        group = []
        while place < len(words) and at < end:
            group.append(place)
            at += len(words[place]) + 1
            place += 1
        groups.append(group)
    return [group for group in groups if group]


# ------------------------------------------------------------------------------------------------------------ lines


def _lines(text: str) -> Iterator[str]:
    """Stretches of text that end with a sentence, in one line each: paragraphs, or lines where each is a unit."""
    lines = text.splitlines()
    if len(lines) < 2:
        yield text
        return
    block: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            block.append(line.strip())
        elif block:
            yield from _joined(block)
            block = []


def _joined(lines: list[str]) -> Iterator[str]:
    """Lines of a paragraph, those joined of which one goes on in the next."""
    marked = any(_ENDED.search(line[-_WINDOW:]) for line in lines)
    inner = [(a, b) for a, b in pairwise(lines) if not _ENDED.search(a[-_WINDOW:])]
    lower = sum(b[0].islower() for _, b in inner)
    caseless = marked and inner and not any(c.isupper() or c.islower() for c in "".join(lines))
    wrapped = bool(caseless) or (marked and 4 * lower >= len(inner) > 0)
    whole = lines[0]
    for last, line in pairwise(lines):
        open_end = last[-1] in ",-(" or last.split()[-1].lower() in _NOT_LABELS | _OPEN_WORDS or _abbreviated(last)
        goes_on = wrapped or open_end or (marked and line[0].islower() and not _ENDED.search(last[-_WINDOW:]))
        if goes_on and not _starts_item(line):
            whole += ("" if whole[-1] > "\u2e80" and line[0] > "\u2e80" else " ") + line
        else:
            yield whole
            whole = line
    yield whole


def _abbreviated(line: str) -> bool:
    return line.endswith(".") and line.split()[-1][:-1].lower().lstrip("(") in _ABBREVIATIONS


def _starts_item(line: str) -> bool:
    return bool(re.match(r"[•⁃▪◦‣●*–-]\s", line) or _MARKER.match(line))


# --------------------------------------------------------------------------------------------------------- sentences


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Begin and end of each sentence of a text without line ends."""
    start, cased = 0, _is_cased(text)
    for end, following in _places(text, cased):
        if end <= start:
            continue
        if span := _stripped(text, start, end):
            yield span
        start = following
    if span := _stripped(text, start, len(text)):
        yield span


def _stripped(text: str, start: int, end: int) -> tuple[int, int] | None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else None


def _is_cased(text: str) -> bool:
    """Whether sentences begin with capitals: not in text without any, nor where none stands behind a mark."""
    if text == text.lower():
        return False
    first = next((c for c in text[:_WINDOW] if c.isalpha()), "A")
    return not first.islower() or bool(re.search(r"[.?!…] ?[\"'”’)]?\s*[A-Z]|[^\W\d_]\.[A-Z]", text))


def _places(text: str, cased: bool) -> Iterator[tuple[int, int]]:
    """Where sentences end, and where the next ones begin."""
    items = _items(text)
    start = 0
    numbers = dict(items)
    matches: list[tuple[int, re.Match | None]] = [(m.start(), m) for m in _CANDIDATE.finditer(text)]
    matches += [(begin, None) for begin, _ in items if begin]
    for place, match in sorted(matches, key=lambda pair: pair[0]):
        if place < start:
            continue
        if match is None:
            if place > start:
                yield place, place
                start = place
        elif place < numbers.get(start, start):
            continue
        elif _ends(match, text, cased, start):
            item = next((b for b in range(match.end("close"), match.end("space")) if b in numbers), None)
            end, start = (match.end("cited"), match.end("space")) if item is None else (item, item)
            yield end, start


def _items(text: str) -> list[tuple[int, int]]:
    """Where the items of a list begin and their numbers end; the list begins the text, or behind a mark."""
    if not _MARKER.match(text, len(text) - len(text.lstrip())):
        return []
    chain: list[tuple[int, int]] = []
    expected: set[tuple] = set()
    for marker in _MARKER.finditer(text):
        before = text[max(0, marker.start() - _WINDOW) : marker.start()].rstrip()
        style, number = _style(marker)
        begins = not before or before[-1] in ".?!"
        if ((style, number) in expected and (begins or _breaks(before, style, text[marker.end() :][:2]))) or (
            begins and not before and number in {"", "1", "a", "i", "I", *map(str, range(2, 1000))}
        ):
            chain.append(marker.span())
        else:
            continue
        expected = {(style, following) for following in _following(number)}
    return chain


def _style(marker: re.Match) -> tuple[str, str]:
    if marker["only"]:
        return marker["only"], ""
    return f"{(marker['bullet'] or '').strip()}{marker['open']}{marker['close']}", marker["number"]


def _breaks(before: str, style: str, following: str) -> bool:
    """Whether a number in the midst of words can be of an item: not in "Table 3."."""
    last = before.split()[-1]
    if style == ".":
        return last.isalpha() and last.islower() and last not in _NOT_LABELS | _LABELS and following.strip().isupper()
    return last[-1] not in ",:;=" and last not in {"and", "or"}


def _following(number: str) -> set[str]:
    if number.isdigit():
        return {str(int(number) + 1)}
    if number.isupper():
        return {following.upper() for following in _following(number.lower())}
    after = {chr(ord(number) + 1)} if len(number) == 1 else {""} if not number else set()
    if number in _ROMAN[:-1]:
        after.add(_ROMAN[_ROMAN.index(number) + 1])
    return after


@dataclass(frozen=True)
class _Mark:
    """A mark that may end a sentence, and what stands around it."""

    match: re.Match
    word: str  # what ends in the mark
    words: list[str]  # those before it in the same sentence, within the window
    behind: str  # the text from the next word on, within the window
    cased: bool  # whether sentences begin with capitals

    @property
    def following(self) -> str:
        """The next word, with the marks around it."""
        return self.match["next"]

    @cached_property
    def bare(self) -> str:
        """The next word without the marks around it."""
        return re.split(r"\W", self.following.lstrip("\"'“‘(["), maxsplit=1)[0]

    @cached_property
    def low(self) -> str:
        """The word before, in lower case."""
        return self.word.lower()

    @property
    def last(self) -> str:
        """The word before the one that ends in the mark; empty at a sentence's begin."""
        return self.words[-1] if self.words else ""

    @cached_property
    def starts(self) -> bool:
        """Whether the next word is one that begins sentences and is no name."""
        return self.bare in _STARTERS or (not self.cased and self.bare in _LOWER_STARTERS)


def _ends(match: re.Match, text: str, cased: bool, start: int) -> bool:
    """Whether a mark ends the sentence that began at `start`."""
    place, marks = match.start(), match["marks"]
    if marks[0] in _ALWAYS:
        return match["next"][0] not in "と、，"
    behind = text[match.end("space") : match.end("space") + _WINDOW]
    if _YEAR.match(behind):
        return False  # "Weller and Brandt . 2017 . On moss ."
    begin = _word_begin(text, place, start)
    words = text[max(start, begin - _WINDOW) : begin].split()
    mark = _Mark(match, text[begin:place], words, behind, cased)
    if not match["space"]:
        return _ends_without_space(mark)
    if not mark.word and text[place - 1 : place].isspace():
        return _ends_tokenised(text[max(start, place - _WINDOW) : place].split(), match, behind, cased)
    if "." not in marks or len(marks) > 1:
        return _ends_at_mark(mark)
    if not (_opens(mark, mark.low) or mark.following == ".") or not (mark.word or mark.words):
        return False
    return next((answer for rule in _STOP_RULES if (answer := rule(mark)) is not None), True)


def _word_begin(text: str, place: int, start: int) -> int:
    """Where the word begins that ends at a place, behind white space, quotes and brackets."""
    begin, first = place, max(start, place - _WINDOW)
    while begin > first and not text[begin - 1].isspace() and text[begin - 1] not in _BEFORE_A_WORD:
        begin -= 1
    return begin


def _opens(mark: _Mark, before: str = "") -> bool:
    """Whether the next word may begin a sentence: letters that have no case may, and names that begin small."""
    opening = _OPENING.match(mark.following)
    if not opening:
        return False
    if mark.following[0] == "#" or not (mark.cased and (opening["first"] or "").islower()):
        return True
    known = before in _ABBREVIATIONS | _MAY_END or (not before[-1:].isdigit() and (len(before) < 3 or "." in before))
    return not known and (mark.following in {"pH", "mRNA"} or bool(_NAMED.match(mark.behind)))


def _ends_without_space(mark: _Mark) -> bool:
    """ "burned.Two years", and not "numpy.load" or "Node.js"."""
    word, match = mark.word, mark.match
    if match["cited"] or re.search(r"[./@:=_\\]", word) or not re.match(r"[A-Z][a-z]*[\s,]", mark.behind):
        return False
    if not word or match["close"] or word[-1] == "%" or match["marks"][0] in "?!":
        return True
    return len(word) > 2 and word.isalpha() and word.islower() and word not in _ABBREVIATIONS | _MODULES


def _ends_at_mark(mark: _Mark) -> bool:
    """At a question or exclamation mark, or an ellipsis."""
    marks, close = mark.match["marks"], mark.match["close"]
    if close.startswith("]") or not _opens(mark):
        return False
    if marks[-1] in "?!" and any(quote in close for quote in "\"'”’»") and _SPEECH.match(mark.behind):
        return False
    if mark.low in _NAMES_WITH_MARKS and marks in "?!":
        return mark.following in _STARTERS - {"At", "In"} or (mark.low == "yahoo" and marks == "?")
    return True


# ------------------------------------------------------------------------------------------------- tokenised text


def _ends_tokenised(words: list[str], match: re.Match, behind: str, cased: bool) -> bool:
    """Where the word and the mark are apart: "et al . ( 2003 )"."""
    following, word = match["next"], words[-1] if words else ""
    if not word or word[-1] in ".?!;" or following[0] in ".,;:?!)]}\"'”’":
        return words[-3:] == [".", ".", "."] and following[0].isupper()  # ". . . ." ends a sentence, ". . ." does not
    if cased and following[0].islower():
        return False
    if match["marks"] != ".":
        return match["marks"][0] != "…" and word.lower() not in _NAMES_WITH_MARKS
    if word.isdigit() and len(word) < 4 and (len(words) == 1 or words[-2] in {".", ";", ":"}):
        return False  # "; 2 . the second item"
    starts = following in _STARTERS or (not cased and following in _LOWER_STARTERS)
    if len(word) == 1 and word.isalpha():
        dotted = ".".join(_dotted(words))
        if dotted in _ABBREVIATIONS or (behind[1:3] == " ." and following.isalpha()):
            return False
        return starts or (len(words) > 1 and words[-2] in _LABELS)
    if word.lower() in _ABBREVIATIONS or _in_an_address(words, following) or _in_a_number(word, following):
        return False
    return starts or (word == "etc" and following.isalpha()) or word.lower() not in (_MAY_END | _OFTEN_END) - _UNITS


def _in_an_address(words: list[str], following: str) -> bool:
    """ "http : / / data . example . org"."""
    address = "".join(words).rpartition("//")[2] if "/" in words else ""
    parts = words[-1:] == ["www"] or following in _DOMAINS
    return parts or bool(re.fullmatch(r"[\w./-]+", address) and "//" in "".join(words))


def _in_a_number(word: str, following: str) -> bool:
    """ "at . 5 %" and "protein2 . 2"."""
    named = word[-1].isdigit() and not word[0].isdigit()
    return following[0].isdigit() and (named or word in _NOT_LABELS)


def _dotted(words: list[str]) -> list[str]:
    """Letters at the end of words that stops set apart: u, s of "the u . s"."""
    letters = [words[-1]]
    for stop, letter in zip(words[-2::-2], words[-3::-2]):
        if stop != "." or len(letter) > 2:
            break
        letters.insert(0, letter)
    return letters


# --------------------------------------------------------------------------------------- a full stop behind a word
# Rules say whether the stop ends a sentence, or None where they do not apply. The first that says something counts.


def _before_an_ellipsis(mark: _Mark) -> bool | None:
    return bool(re.match(r"\. \. \. [A-Z]", mark.behind)) if mark.following == "." else None


def _before_company_form(mark: _Mark) -> bool | None:
    """ "Hill Jr. Co" and "Barn (U.K.) Ltd"."""
    return False if _COMPANY_FORM.match(mark.following) else None


def _before_a_closing_mark(mark: _Mark) -> bool | None:
    if not mark.match["close"]:
        return None
    if re.match(r"\([^()]{1,40}\)[.,;]", mark.behind):
        return False  # "..." (Hale 12).
    if "." in mark.low and mark.following[0].isdigit():
        return False
    return mark.low not in _ABBREVIATIONS or mark.starts


def _behind_a_number(mark: _Mark) -> bool | None:
    """Numbers of sections and items, and German ordinals."""
    if not mark.words and _SECTION_NUMBER.fullmatch(mark.word) and len(mark.word) < 4:
        return False
    if not mark.word.isdigit() or len(mark.word) > 3:
        return None
    item = len(mark.word) < 3 and mark.last[-1:] in {":", ";"}
    ordinal = mark.last.lower() in _GERMAN_ARTICLES and mark.bare not in _STARTERS
    return False if item or ordinal or _MONTHS_AND_NOUNS.match(mark.following) else None


def _behind_a_unit(mark: _Mark) -> bool | None:
    unit = mark.low in _UNITS or (len(mark.word) == 1 and mark.word.islower())
    return not mark.following.startswith("(") if unit and mark.last[-1:].isdigit() else None


def _behind_no(mark: _Mark) -> bool | None:
    """ "No. 3" and "No. Three", and "Did it grow? No. We tried again."."""
    if mark.low != "no":
        return None
    return not mark.words or not (re.match(r"[A-Z]*\d", mark.bare) or mark.bare in _NUMBERS)


def _behind_an_initial(mark: _Mark) -> bool | None:
    """Whether a letter is a label ("vitamin C."), and not a name's initial."""
    if len(mark.word) != 1 or not mark.word.isupper():
        return None
    low = mark.last.lower().strip("(\"'")
    if not mark.last or mark.last.endswith("."):
        return mark.starts
    if low in _LABELS:
        return True
    if mark.last[-1].isdigit():
        return mark.starts or not re.match(r"\d|[A-Z]\S* [A-Z]", mark.behind)  # not "110 N. Elm Road"
    if mark.word == "I" and low in {"and", "than", "as"}:
        return mark.starts
    if re.match(r"[A-Z]\.|[A-Z]\w+ (?:and|&) [A-Z]", mark.behind):
        return False
    if not mark.starts and re.match(r"[A-Z]\w+ [A-Z]", mark.behind):
        return False  # "named J. Anna Hill"
    label = (
        mark.last.islower() and mark.last.isalpha() and low not in _NOT_LABELS and not _VERBS_AND_PEOPLE.search(low)
    )
    return mark.starts or label


def _behind_a_time(mark: _Mark) -> bool | None:
    """ "At 8 a.m. Anna left", and "He left at 8 a.m. Anna slept"."""
    if mark.low not in _TIMES:
        return None
    if _AT_A_TIME.fullmatch(" ".join(mark.words)) or re.match(r"\w+ time\b", mark.behind):
        return False
    return _after_a_phrase(mark)


def _behind_a_country(mark: _Mark) -> bool | None:
    """Behind U.S. most capitals are of names and titles, so that more than a capital must say that a sentence begins:
    a comma behind its adverbial, or a verb behind a subject of one word."""
    if mark.low not in _COUNTRIES:
        return None
    if mark.bare in _LINKS:
        return bool(_LINK_BEGINS.match(mark.behind))
    if mark.starts or mark.bare in _TITLES:
        return _after_a_phrase(mark)
    placed = mark.last == "the" and mark.words[-2:-1] and mark.words[-2].lower() in _PLACES
    subject = _PLURAL.match(mark.behind) or _WITH_VERB.match(mark.behind)
    return bool(placed and subject) and mark.bare not in _PARTS_OF_NAMES


def _behind_a_phrase(mark: _Mark) -> bool | None:
    return _after_a_phrase(mark) if mark.low in _OFTEN_END and mark.low not in _UNITS else None


def _after_a_phrase(mark: _Mark) -> bool:
    """After words that end phrases, such as etc. and Inc."""
    if mark.following[0] in "([" or mark.following[0].isdigit():
        return False
    if "." in mark.low and (mark.bare in _GO_ON or not mark.words):
        return False
    if mark.starts or mark.low in _BEFORE_NO_NAME or mark.bare in _TITLES or mark.following[0] in '"“':
        return True
    return bool(_NAMED_SUBJECT.match(mark.behind)) and mark.bare not in _PARTS_OF_NAMES


def _behind_an_abbreviation(mark: _Mark) -> bool | None:
    if mark.low in _ABBREVIATIONS:
        return mark.starts and len(mark.word) > 1 and mark.word.isupper()  # "the MR. It"
    if mark.low in _MAY_END:
        subject = mark.low not in _BEFORE_NAMES and _WITH_VERB.match(mark.behind)
        return mark.starts or bool(subject)
    return None


def _behind_letters(mark: _Mark) -> bool | None:
    """ "i.i.d.", "J.-P." and a small letter."""
    if not _LETTERS.fullmatch(mark.word):
        return None
    subject = mark.word.islower() and _WITH_VERB.match(mark.behind)
    return bool(subject) or (mark.starts and mark.bare not in _GO_ON)


_STOP_RULES: tuple[Callable[[_Mark], bool | None], ...] = (
    _before_an_ellipsis,
    _before_company_form,
    _before_a_closing_mark,
    _behind_a_number,
    _behind_a_unit,
    _behind_no,
    _behind_an_initial,
    _behind_a_time,
    _behind_a_country,
    _behind_a_phrase,
    _behind_an_abbreviation,
    _behind_letters,
)
