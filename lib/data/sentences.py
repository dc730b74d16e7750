"""Sentences of a text, by rule: no model, no download.

`_ends` asks of every mark that may end a sentence what stands before and behind it; the tables say which words are
which kind. Every look is at a window of fixed size, so that the time grows with the text.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

_WINDOW = 48  # characters that are looked at before and behind a mark


def _table(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Abbreviations: none of these ends a sentence, ...
_ABBREVIATIONS = _table(
    """adm app approx appx art bd bzgl bzw ca capt cf ch chap cmdr cor def diff dott dr dra a.k.a e.g ed eds
    eg eq eqn eqns
    eqs esp evtl ex exmo fig figs fr ft gen ggf gov hon hr hrsg i.e ie incl inkl lemma lit lt m maj messrs mlle mme
    mr mrs ms mt mts n° nos nr núm op p par para pág pp pres prof prop pt ref refs rep rev s.d s.e sec sect
    sen sgt sig
    sog sra st pv ssp ae subsp supp suppl tab tabs tel thm v var vgl viz vol vols vs z.b w.r.t wrt abb d.w.z
    o.a p.ej др см рис
    табл стр ee им ул проф акад напр т.е"""
)
# ... and these do when what follows begins like a new sentence; a capital is enough for those that end phrases.
_MAY_END = _table(
    """al assoc av col corp dept est ext inc jr sr ltd co bros llc max mar min misc nt resp sp spp temp univ
    wt jan feb
    apr jun jul aug sep sept oct nov dec no st sr sra г гг ud uds cit"""
)
_OFTEN_END = _table("""etc usw ecc enz др д п jr inc ltd co corp bros spp ft in lb lbs oz hr hrs yr yrs kg mg
    mm cm km ml
    ha bn mio mrd a.m p.m u.s u.k u.n e.u u.s.a u.s.s.r ph.d m.d b.c a.d b.c.e c.e d.c b.sc m.sc b.a m.a i.v i.p s.c
    d.phil""")
_WITH_NAMES = _OFTEN_END - _table("etc usw ecc enz др д п")  # names may follow, and then a capital says little
_IN_HEADLINES = _table("And Or But Would Could Has Had Is Are Was Under Which Must Will Should")
_PLACES = _table("in from to across outside within throughout into")
_UNITS = _table("ft in lb lbs oz hr hrs yr yrs kg mg mm cm km ml ha bn")
_COMPANIES = _table("bros co corp inc llc ltd")
# What follows them as part of the same name or time.
_GOES_ON = _table(
    """Government Army Navy Air Congress Senate House Supreme Department Dept President Treasury Food Environmental
    Census District Court Constitution Patent Geological National Federal Forces Marine Coast Securities Attorney
    Secretary State States Customs Fish Forest Bureau Agency Centers Public Postal Open Parliament Embassy Virgin
    Eastern Pacific Central Mountain Greenwich GMT UTC EST EDT CET CEST PST PDT BST Monday Tuesday Wednesday Thursday
    Friday Saturday Sunday Chairman Chairwoman President Chief Director Vice CEO CFO Executive Spokesman Spokeswoman
    Dollar Dollars Dlrs Dlr Economic Economy Market Markets Officials Official Attorneys Dollar's
    Domestic Financial Trade Treasuries Banks Bank Mines Chancellor Money Raid Thesis Program Programme
    Student Students Candidate Degree"""
)
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
_LOWER_STARTERS = _table(
    "the this these those there it we our he she they however his her its their a an nobody none"
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
_PEOPLE = re.compile(r"(?:[eo]r|ist|ian|man|woman)s?$")
_LONG_DOTTED = re.compile(r"(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2}")  # U.S, i.i.d, Ph.D

_DOMAINS = _table("com org net gov edu io github")
_MODULES = _table("torch numpy pandas collections scipy sklearn matplotlib tensorflow keras sys decimal pathlib")
_NAMES_WITH_MARKS = _table(
    "yahoo jeopardy kahoot joomla yum oklahoma panic guess which"
)  # names with a mark of their own
_SPEECH = re.compile(
    r"(?:[^\W\d_]+\s+){1,3}?(?:said|asked|shouted|replied|cried|says|asks|answered|whispered|called|wrote|added)\b"
)
_MONTHS_AND_NOUNS = re.compile(
    r"(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|Jahrhundert|januar|maj|juni)"
)
_ORDINAL = re.compile(r"\b(?:[ADIVdivb]?(?:er|ie|as|em|en|es|m|om|um|ur|im|eim|is|ab)|den|seit|beim)\s+\d{1,3}$")
_NAMED = re.compile(r"[a-z]{1,5}[A-Z\d]\w*|[α-ω]-?\w+|[a-z]-\w+|(?:van|von|de|der) (?:der |den )?[A-Z]")

_CITATION = r"\[\d+(?:\s?[,;–-]\s?\d+)*\]|\([A-Z][^()\d]{1,60}\d{4}[a-z]?\)"
_CANDIDATE = re.compile(
    rf"""(?P<marks>[.?!؟۔।॥…։。！？｡]+)
         (?P<close>(?:["'”’“‘)\]»«」』）]|[\s\u00a0\u202f]»
             |[ ]?[\U0001F300-\U0001FAFF\u2600-\u27BF]|[ ][:;]-?[)(DP](?=\s))*)
         (?P<cited>(?:\s?(?:{_CITATION})|[¹²³⁰-⁹]+|(?<=[^\W\d_]\.)\d{{1,3}}(?:[,–-]\d{{1,3}})*(?=\s+[A-Z])
             |(?<=["”])\d{{1,3}}(?=\s+[A-Z]))?)
         (?P<space>\s*)
         (?=(?P<next>\S{{1,{_WINDOW}}}))""",
    re.VERBOSE,
)
_IDEOGRAPHIC = frozenset("。！？｡")
_ALWAYS = frozenset("।॥。！？｡")
_ENDED = re.compile(r"[.?!؟۔।॥…։。！？｡:;][\"'”’)\]»」]*(?:\[[\d, ]+\])?\s*$")
_OPENING = re.compile(r"[\"'“‘„«»‹¿¡「『(\[$£€¥#@~§+−–—-]*(?:(?P<first>[^\W_])|<[a-z])")
_MARKER = re.compile(
    r"""(?<!\S)(?P<bullet>[•⁃▪◦‣●*–-](?:\s|(?=\d)))?
        (?P<open>[(\[]?)(?P<number>\d{1,3}|[a-z]|[ivx]{2,5})(?P<close>\.\)|[.)\]])(?=\s+\S)
      | (?<!\S)(?P<only>[•⁃▪◦‣●])(?=\s+\S)""",
    re.VERBOSE,
)
_SECTION_NUMBER = re.compile(r"\d{1,3}(?:\.\d{1,3})*")
_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")
_BEFORE_A_WORD = frozenset("\"'“”‘’()[]«»")  # as white space is
_YEAR = re.compile(r"(?:19|20)\d\d[a-z]?\s?\.\s+\S")
_TIME = re.compile(r"(?:At|By|Around|About|After|Before|Until|Since|From)\s\S+$")


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
    chain: list[tuple[int, int]] = []
    expected: set[tuple] = set()
    for marker in _MARKER.finditer(text):
        before = text[max(0, marker.start() - _WINDOW) : marker.start()].rstrip()
        style, number = _style(marker)
        begins = not before or before[-1] in ".?!"
        if ((style, number) in expected and (begins or _breaks(before, style, text[marker.end() :][:2]))) or (
            begins and not before and number in {"", "1", "a", "i", *map(str, range(2, 1000))}
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
    after = {chr(ord(number) + 1)} if len(number) == 1 else {""} if not number else set()
    if number in _ROMAN[:-1]:
        after.add(_ROMAN[_ROMAN.index(number) + 1])
    return after


def _ends(match: re.Match, text: str, cased: bool, start: int) -> bool:
    """Whether a mark ends the sentence that began at `start`."""
    place, following, marks = match.start(), match["next"], match["marks"]
    begin = place
    while (
        begin > max(start, place - _WINDOW)
        and text[begin - 1] not in _BEFORE_A_WORD
        and not text[begin - 1].isspace()
    ):
        begin -= 1
    word = text[begin:place]
    if marks[0] in _ALWAYS:
        return following[0] not in "と、，"
    behind = text[match.end("space") : match.end("space") + _WINDOW]
    if _YEAR.match(behind):
        return False  # "Weller and Brandt. 2017. On moss."
    if not match["space"]:
        return _ends_without_space(match, word, behind)
    before = text[max(start, place - _WINDOW) : place]
    if not word and before[-1:].isspace():
        return _ends_tokenised(before.split(), match, behind, cased)
    if "." not in marks or len(marks) > 1 or marks == "…":
        return _ends_at_mark(match, word, behind, cased)
    if not _opens(following, behind, cased, word) and following != ".":
        return False
    if not before.strip():
        return False
    sentence = text[max(start, begin - _WINDOW) : begin]
    return _ends_at_stop(word, sentence.split(), match, behind, cased, sentence)


def _ends_without_space(match: re.Match, word: str, behind: str) -> bool:
    """ "burned.Two years", and not "numpy.load" or "Node.js"."""
    new = re.match(r"([A-Z][a-z]*)(?=[\s,])", behind)
    if not new or re.search(r"[./@:=_\\]", word) or match["cited"]:
        return False
    if not word or match["close"] or word[-1] == "%" or match["marks"][0] in "?!":
        return True
    return len(word) > 2 and word.isalpha() and word.islower() and word not in _ABBREVIATIONS | _MODULES


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
        label = len(words) > 1 and words[-2] in _LABELS
        return starts or label
    if word.lower() in _ABBREVIATIONS:
        return False
    if following in _DOMAINS or word == "www" or (re.fullmatch(r"v\d+", word) and following.isdigit()):
        return False
    return starts if word.lower() in (_MAY_END | _OFTEN_END) - _UNITS else True


def _dotted(words: list[str]) -> list[str]:
    """Letters at the end of words that stops set apart: u, s of "the u . s"."""
    letters = [words[-1]]
    for stop, letter in zip(words[-2::-2], words[-3::-2]):
        if stop != "." or len(letter) > 2:
            break
        letters.insert(0, letter)
    return letters


def _ends_at_mark(match: re.Match, word: str, behind: str, cased: bool) -> bool:
    """At a question or exclamation mark, or an ellipsis."""
    if match["close"].startswith("]") or not _opens(match["next"], behind, cased, ""):
        return False
    if any(quote in match["close"] for quote in "\"'”’»") and match["marks"][-1] in "?!" and _SPEECH.match(behind):
        return False
    if word.lower() in _NAMES_WITH_MARKS and match["marks"] in "?!":
        return match["next"] in _STARTERS - {"At", "In"} or (word.lower() in {"yahoo"} and match["marks"] == "?")
    return True


def _ends_at_stop(word: str, words: list[str], match: re.Match, behind: str, cased: bool, sentence: str) -> bool:
    """At a single full stop that may be an abbreviation's; words: those before it."""
    following = match["next"]
    bare = re.split(r"\W", following.lstrip("\"'“‘(["), maxsplit=1)[0]
    starts = bare in _STARTERS or (not cased and bare in _LOWER_STARTERS)
    low, last = word.lower(), words[-1] if words else ""
    if following == ".":
        return bool(re.match(r"\. \. \. [A-Z]", behind))  # a full stop before an ellipsis
    if match["close"]:
        if re.match(r"\([^()]{1,40}\)[.,;]", behind):
            return False  # "..." (Hale 12).
        return low not in _ABBREVIATIONS or starts
    if match["cited"].strip():
        return low not in _ABBREVIATIONS and low not in _MAY_END
    if not words and (_SECTION_NUMBER.fullmatch(word) and len(word) < 4):
        return False  # the number of a section or of an item
    if word.isdigit() and len(word) < 3 and last[-1:] in {":", ";"}:
        return False
    if word.isdigit() and len(word) < 4 and (_MONTHS_AND_NOUNS.match(following) or _is_ordinal(last, bare)):
        return False
    if low in _UNITS and last and last[-1].isdigit():
        return not following.startswith("(")
    if low in _COMPANIES and following.startswith("("):
        return False
    if low == "no":
        return not words or not following[0].isdigit()
    if low == "st" and last[:1].isupper():
        return starts
    if len(word) == 1 and word.isupper():
        return _ends_at_initial(word, words, bare, starts, behind)
    if low in _OFTEN_END and low not in _UNITS:
        placed = bool(words) and words[-1 - (last == "the")] in _PLACES if len(words) > 1 else False
        return _ends_often(low, bare, starts, match, behind, sentence, placed)
    if low in _ABBREVIATIONS:
        return False
    if low in _MAY_END:
        return starts or bool(re.match(r"[A-Z][a-z]+ (?:was|were|is|are|has|had|have)\b", behind) and low != "al")
    if (
        (len(word) == 1 and word.isalpha())
        or _LONG_DOTTED.fullmatch(word)
        or re.fullmatch(r"[^\W\d_]-[^\W\d_]|[A-Z]\.-[A-Z]", word)
    ):
        return starts
    return True


def _is_ordinal(last: str, bare: str) -> bool:
    """ "der 2. Versuch": in German a noun has a capital."""
    articles = _table("am der die das dem den des im vom zum zur beim ein eine einem einer eines jeder jede seit")
    return last.lower() in articles and bare not in _STARTERS and last != "die"


def _ends_often(low: str, bare: str, starts: bool, match: re.Match, behind: str, sentence: str, placed: bool) -> bool:
    """After words that end phrases; placed: a preposition stands before "the U.S."."""
    if match["next"][0] in "([" or match["next"][0].isdigit():
        return False
    if low in {"a.m", "p.m"} and _TIME.fullmatch(sentence.strip()):
        return False
    if low[:2] == "u." and bare in _IN_HEADLINES:
        return False
    if starts or low not in _WITH_NAMES or bare in {"Mr", "Mrs", "Ms", "Dr", "Prof"}:
        return True
    return bool(re.match(r"[A-Z][a-zà-ÿ]+ [a-z]", behind)) and bare not in _GOES_ON and (low[:2] != "u." or placed)


def _ends_at_initial(word: str, words: list[str], bare: str, starts: bool, behind: str) -> bool:
    """Whether a letter is a label ("vitamin C."), and not a name's initial."""
    last = words[-1] if words else ""
    low = last.lower().strip("(\"'")
    if not last or last.endswith("."):
        return starts
    if low in _LABELS or (last[-1].isdigit() and not behind[:1].isdigit()):
        return True
    if word == "I" and low in {"and", "than", "as"}:
        return starts
    if re.match(r"[A-Z]\.|[A-Z][a-z]+ (?:and|&) [A-Z]", behind):
        return False
    labelled = last.islower() and last.isalpha() and low not in _NOT_LABELS and not _PEOPLE.search(low)
    return word.isupper() and (starts or labelled)


def _opens(word: str, behind: str, cased: bool, before: str) -> bool:
    """Whether a word may begin a sentence: letters that have no case may, and names that begin small."""
    opening = _OPENING.match(word)
    if not opening:
        return False
    if word[0] == "#" or not (cased and (opening["first"] or "").islower()):
        return True
    low = before.lower()
    known = low in _ABBREVIATIONS or low in _MAY_END or len(before) < 3 or "." in before
    named = word in {"pH", "mRNA"} or bool(_NAMED.match(behind))
    return named and not known
