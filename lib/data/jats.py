"""Articles in JATS, the XML of journals: titles, abstracts, sections in paragraphs.

Raised and lowered signs are written in a line so that no number or name becomes another (`_raised`, `_lowered`).
"""

import gzip
import re
import zlib
from collections.abc import Iterator
from io import BytesIO
from itertools import pairwise
from xml.etree import ElementTree

from lib.system.errors import InputError

# what stands beside the text: floats, boxes, notes
_APART = {
    "table-wrap", "fig", "fig-group", "table-wrap-group", "floats-group", "boxed-text", "supplementary-material",
    "fn", "fn-group",
}  # fmt: skip
# what is no running text: these, lists of references, labels, addresses
_LEFT_OUT = {
    *_APART, "media", "graphic", "chem-struct-wrap", "ref-list", "label", "tex-math", "annotation", "object-id",
    "inline-graphic", "index-term", "back", "email",
}  # fmt: skip
# what stands by itself: words before and after it are others, with white space in the XML or without
_BLOCKS = {
    "p", "list", "list-item", "def-list", "def-item", "term", "def", "title", "break", "disp-quote", "attrib", "sec",
    "verse-group", "verse-line", "statement", "speech", "speaker", "preformat", "table-wrap", "fig", "fig-group",
    "table-wrap-group", "boxed-text",
}  # fmt: skip
_FORMULAS = {"disp-formula", "inline-formula", "disp-formula-group", "math"}
# types of an abstract that is the article's own
_ABSTRACTS = {"", "abstract", "structured", "unstructured", "normal", "main", "executive-summary"}
# what a section or an abstract has as a paragraph
_PARAGRAPHS = {"p", "list", "disp-quote", "def-list", "verse-group", "statement", "speech", "preformat"}
# what holds paragraphs or no text at all: what else stands beside paragraphs is text without one
_CONTAINERS = {"sec", "abstract", "body", "title", *_LEFT_OUT, *_FORMULAS}


def jats_articles(data: bytes, name: str = "") -> Iterator[dict]:
    """The articles of a file, compressed by gzip or not: one, or all of a `pmc-articleset` or an answer of OAI-PMH.

    name: of an article without PMC number and DOI; the second such file's article is `NAME-2`.
    Raises InputError: damaged gzip data, no XML, no article in it.
    """
    number = 0
    try:
        data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
        for _, element in ElementTree.iterparse(BytesIO(data)):
            if _local(element.tag) == "article":
                number += 1
                yield jats_article(element, name if number == 1 else f"{name}-{number}")
                element.clear()
    except ElementTree.ParseError as error:
        raise InputError(f"not XML: {error}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"damaged gzip data ({error})") from None
    if not number:
        raise InputError("no <article> in it, as JATS has them: save it as text, Markdown or HTML")


def jats_article(article: ElementTree.Element, name: str = "") -> dict:
    """Id (PMC number, DOI or `name`), title, sections and abstract in paragraphs; `beside`: what else the body has.

    article: an element `article`; its names lose their namespaces. Its `sub-article` and `response` are others.
    """
    for element in article.iter():
        element.tag = _local(element.tag)
    _mark_raised(article)
    ids = {i.get("pub-id-type"): (i.text or "").strip() for i in article.iterfind("front/article-meta/article-id")}
    number = ids.get("pmc") or ids.get("pmcid") or ids.get("pmcaid")
    title = article.find("front/article-meta/title-group/article-title")
    sections = list(_sections(article.find("body"), ""))
    return {
        "id": f"PMC{number.removeprefix('PMC')}" if number else ids.get("doi") or name,
        "title": "" if title is None else _text(title),
        "section_names": [heading for heading, _ in sections],
        "sections": [paragraphs for _, paragraphs in sections],
        "abstract_text": _abstract(article),
        "beside": list(_beside(article.find("body"))),
    }


def _local(tag) -> str:
    """A name without its namespace; empty for a comment or an instruction."""
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _abstract(article: ElementTree.Element) -> list[str]:
    """Paragraphs of the first abstract proper that has any: not of a graphical one, a short one, or highlights."""
    for abstract in article.iterfind("front/article-meta/abstract"):
        if abstract.get("abstract-type", "") in _ABSTRACTS and (paragraphs := list(_paragraphs(abstract))):
            return paragraphs
    return []


def _paragraphs(part: ElementTree.Element) -> Iterator[str]:
    """Paragraphs at any depth, but for those within another, as the items of its lists have them."""
    for block in _blocks(part):
        if block.tag in ("p", "loose"):
            if text := _text(block):
                yield text
        elif block.tag not in ("title", "label"):
            yield from _paragraphs(block)


def _blocks(part: ElementTree.Element) -> Iterator[ElementTree.Element]:
    """Children that are blocks, and between them what has no paragraph of its own, as an element `loose`."""
    loose = ElementTree.Element("loose")
    loose.text = part.text
    for child in part:
        if child.tag in _BLOCKS or child.tag in _CONTAINERS:
            yield loose
            yield child
            loose = ElementTree.Element("loose")
            loose.text = child.tail
        else:
            loose.append(child)
    yield loose


def _sections(part: ElementTree.Element | None, heading: str) -> Iterator[tuple[str, list[str]]]:
    """Each section's own paragraphs, then those of its sub-sections; statements on authors, data and funding are left
    out."""
    if part is None:
        return
    if _STATEMENT.fullmatch(heading):
        return
    own: list[str] = []
    for block in _blocks(part):
        if block.tag in _FORMULAS and own:  # between two paragraphs
            own[-1] += " @formula"
        elif block.tag in (*_PARAGRAPHS, "loose") and (text := _text(block)):
            own.append(text)
    if own:
        yield heading, own
    for section in part.iterfind("sec"):
        title = section.find("title")
        yield from _sections(section, heading if title is None else _NUMBERED.sub("", _text(title)))


def _beside(part: ElementTree.Element | None) -> Iterator[str]:
    """Texts of figures, tables, boxes, notes and statements, of which there is nothing in the sections."""
    for child in [] if part is None else part:
        title = child.find("title") if child.tag == "sec" else None
        if child.tag in _APART or (title is not None and _STATEMENT.fullmatch(_text(title))):
            yield " ".join(" ".join(child.itertext()).split())
        else:
            yield from _beside(child)


_NUMBERED = re.compile(r"^(?:\d+\.)+\d*\s+(?=\S)")  # "2.1. Methods"; "20 strains" begins with a word
# statements beside the text, which most journals have behind it
_STATEMENT = re.compile(
    r"(?:authors?[’']? contributions?|credit authorship contribution|data (?:availability|accessibility|deposition)|"
    r"availability of (?:supporting )?data(?: and materials?)?|(?:declaration of )?(?:conflicts?|competing|"
    r"declaration) ?(?:of )?interests?|disclosures?|funding|financial support|acknowledge?ments?|"
    r"(?:electronic )?supplement(?:ary|al) (?:materials?|information|data))(?: statements?)?[.:]?",
    re.IGNORECASE,
)


# ------------------------------------------------------------------------------------------------- a text in a line

# stand in a text until it is whole: characters that are none in Unicode
_GONE = "\ufdd0"  # here was a citation or the number of a note
_GLUE = "\ufdd1"  # no space before it

_CITATIONS = re.compile(rf"{_GONE}(?:(?:[\s,;–—−‐-]|\band\b|&)*{_GONE})+")
_LEADS = r"(?:(?:see(?: also)?|e\.g\.|i\.e\.|cf\.|(?:for review|reviewed) ?(?:in|see)?|refs?\.?|references?)[\s,:]*)*"
_WITHIN = re.compile(rf"\s*[\[(]\s*{_LEADS}{_GONE}[\s,;]*[\])]", re.IGNORECASE)
_FIRST = re.compile(rf"(?<=[\[(])\s*{_GONE}[\s,;]*")
_LAST = re.compile(rf"[\s,;]*{_GONE}\s*(?=[\])])")
_BETWEEN = re.compile(rf"[,;]\s*{_GONE}\s*(?=[.,;:])|(?<=\.)\s*{_GONE}\s*\.(?!\.)")


def _text(element: ElementTree.Element) -> str:
    """The running text of an element in one line."""
    pieces: list[str] = []
    _add(element, pieces)
    text = " ".join("".join(pieces).split())
    if _GONE in text:
        text = _without_citations(text)
    text = re.sub(rf"\s*{_GLUE}", "", text)
    text = re.sub(r"(\d)° ([CF])\b", r"\1 °\2", text)
    text = re.sub(r"(?<=[(\[]) (?=@formula)|(?<=@formula) (?=[)\]])", "", text)
    return re.sub(r"\s+([,.;:!?])", r"\1", text)


def _without_citations(text: str) -> str:
    """A text without the places of citations, their commas and brackets."""
    text = _CITATIONS.sub(_GONE, text)
    text = _WITHIN.sub(_GONE, text)
    text = _CITATIONS.sub(_GONE, text)
    for pattern in (_WITHIN, _FIRST, _LAST, _BETWEEN):
        text = pattern.sub("", text)
    text = re.sub(rf"\s*{_GONE}(?=([^\W\d_])?)", lambda gone: " " if gone[1] else "", text)
    return text.strip()


def _add(element: ElementTree.Element, pieces: list[str]) -> None:
    pieces.append(element.text or "")
    children = _in_line(element)
    for place, child in enumerate(children):
        apart = " " if child.tag in _BLOCKS else ""
        pieces.append(apart)
        if child.tag in _FORMULAS and (formula := _simple_formula(child)) is not None:
            _add(formula, pieces)
        elif child.tag in _FORMULAS:
            pieces.append(" @formula ")
        elif child.tag in ("sup", "sub"):
            inner: list[str] = []
            _add(child, inner)
            write = _raised if child.tag == "sup" else _lowered
            before = "".join(pieces[-8:])[-40:]
            citation = child.get("citation", "")
            content = "".join(inner)
            pieces.append(write(content, before, _after(children, place), citation) + " " * content[-1:].isspace())
        elif _is_reference(child):
            pieces.append(_GONE)
        elif child.tag and child.tag not in _LEFT_OUT:
            _add(child, pieces)
        pieces.append(apart + (child.tail or ""))


_LONGEST_FORMULA = 15  # characters of one that is read as text
_MATH = {"math", "semantics", "mrow", "mstyle", "mpadded", "mi", "mn", "mo", "mtext", "mspace"}
_SCRIPTS = {"msub": ("sub",), "msup": ("sup",), "msubsup": ("sub", "sup")}
_ACCENTS = {"˙": "\u0307", ".": "\u0307", "¯": "\u0304", "‾": "\u0304", "-": "\u0304", "^": "\u0302", "~": "\u0303"}
_RELATIONS = set("=≠<>≤≥≈∼×")
_NO_TEXT = re.compile(r"[∑∏∫√∮⋃⋂\n]")


def _simple_formula(formula: ElementTree.Element) -> ElementTree.Element | None:
    """A short formula in a line, as V̇O2 and NH4+, with `sup` and `sub` for its scripts; None for any other."""
    math = formula if formula.tag == "math" else formula.find(".//math")
    if formula.tag not in ("math", "inline-formula") or math is None:
        return None
    line = ElementTree.Element("line")
    simple = _add_math(math, line)
    signs = "".join("".join(line.itertext()).split())
    return line if simple and 0 < len(signs) <= _LONGEST_FORMULA and not _NO_TEXT.search(signs) else None


def _add_math(element: ElementTree.Element, line: ElementTree.Element) -> bool:
    """Add MathML to a line; whether all of it can stand in one."""
    children = [child for child in element if child.tag not in ("annotation", "annotation-xml", "")]
    if element.tag in _MATH:
        text = re.sub("[\u2061-\u2064\u200b]", "", " ".join((element.text or "").split()))
        _append(line, f" {text} " if element.tag == "mo" and text in _RELATIONS else text)
        return all(_add_math(child, line) for child in children)
    if element.tag == "mover" and len(children) == 2:
        accent = _ACCENTS.get("".join(children[1].itertext()).strip().replace("−", "-"))
        base = "".join(children[0].itertext()).strip()
        _append(line, f"{base}{accent}")
        return accent is not None and len(base) == 1
    scripts = _SCRIPTS.get(element.tag, ())
    if not scripts or len(children) != 1 + len(scripts):
        return False
    simple = _add_math(children[0], line)
    for name, child in zip(scripts, children[1:]):
        simple = _add_math(child, ElementTree.SubElement(line, name, citation="never")) and simple
    return simple


def _append(line: ElementTree.Element, text: str) -> None:
    if len(line):
        line[-1].tail = (line[-1].tail or "") + text
    else:
        line.text = (line.text or "") + text


def _in_line(element: ElementTree.Element) -> list[ElementTree.Element]:
    """Children, an index before the power that stands above it: SO4^2- has them in either order."""
    children = list(element)
    for i, (first, second) in enumerate(pairwise(children)):
        before = (element.text if i == 0 else children[i - 1].tail) or ""
        letters = before[-1:].isalnum() or before[-1:] in (")", "]") or (not before and i > 0)
        if (first.tag, second.tag) == ("sup", "sub") and not (first.tail or "").strip() and letters:
            lowered, raised = ElementTree.Element("sub", second.attrib), ElementTree.Element("sup", first.attrib)
            for new, old in ((lowered, second), (raised, first)):
                new.text, new[:] = old.text, old[:]
            raised.tail = second.tail
            children[i : i + 2] = lowered, raised
    return children


def _after(children: list[ElementTree.Element], place: int) -> str:
    """The first signs behind a child; none behind an index that a power follows."""
    text = children[place].tail or ""
    if not text and children[place].tag == "sub" and [c.tag for c in children[place + 1 : place + 2]] == ["sup"]:
        return ""
    for sibling in children[place + 1 :]:
        if len(text) > 10:
            break
        text += ("" if _cites(sibling) else "".join(sibling.itertext())) + (sibling.tail or "")
    return text


def _cites(element: ElementTree.Element) -> bool:
    """Whether an element is a citation, or raises one."""
    return _is_reference(element) or any(map(_is_reference, element))


_NUMBERS = re.compile(r"\W*(?:[A-Za-z]?\d+[a-z]?\W*)*")
_YEAR = re.compile(r"\W*(?:(?:1[6-9]|20)\d\d[a-z]?\W*)+")


def _is_reference(element: ElementTree.Element) -> bool:
    """Whether an element is a citation by number, or the mark of a note; citations by name and year are words."""
    if element.tag != "xref":
        return False
    kind, text = element.get("ref-type"), "".join(element.itertext())
    if kind in ("fn", "table-fn", "author-notes", "corresp", "aff"):
        return not re.search(r"[^\W\d_]{3}", text)
    return kind in ("bibr", "ref") and bool(_NUMBERS.fullmatch(text)) and not _YEAR.fullmatch(text)


def _mark_raised(article: ElementTree.Element) -> None:
    """In an article that raises its citations, a raised number without a reference may be one as well."""
    raised = list(article.iter("sup"))
    if any(sup.find("xref[@ref-type='bibr']") is not None for sup in raised):
        for sup in raised:
            if not len(sup) and (sup.text or "").strip().isdigit():
                sup.set("citation", "maybe")


# ----------------------------------------------------------------------------------- raised and lowered in a line

_DEGREES = {"°", "º", "˚", "∘", "◦", "o", "ο"}
_ORDINALS = {"st", "nd", "rd", "th"}
_SIGNS = re.compile(r"[-+±/•·∙*∗⋆′″'®™©℠]+")
_OPENS = ("", *"([{/–-=<>~")  # behind which there is nothing to be a power of
_CHARGE = re.compile(r"\d{1,2}[-+]")
_LIST = re.compile(r"\d{1,3}[a-z]?(?:[,;–-]\d{1,3}[a-z]?)*")
_NOTE = re.compile(r"[a-z]|[*∗†‡§¶#‖]+")
_ELEMENT = re.compile(r"\d*(?!A\b)[A-Z][a-z]?(?![a-z])")
_NUMBER = re.compile(r"(?<![\w^.])(\d+(?:[.,]\d+)?)\s*$")
_WORD = re.compile(r"(?:^|\W)([^\W\d_]*[^\W\d_A-Z]{4,})\s*$")
_LENGTHS = re.compile(r"(?:\w*met(?:er|re)s?|inch(?:es)?|feet|foot|miles?|yards?|pixels?|voxels?|seconds?|units?)")
_SIMPLE = re.compile(r"[-+]?[∆△]*[^\W_]+(?:[.,]\d+)?")


def _raised(content: str, before: str, after: str, citation: str = "") -> str:
    """What is raised: 10^5, ha^-1, b1^2, SO4^2-, e^(x+1); as it is where it reads the same, as in Ca2+, 14C and 2nd.

    A power would be another number if it were joined to what it is a power of, so `^` stands before it, always.
    Citations and marks of notes go.

    before, after: what stands around it.
    citation: "maybe" where a number behind a number may be one, "never" in a formula.
    """
    mark, content = (_GONE if _GONE in content else ""), _plain(content.replace(_GONE, ""))
    if (mark or before.endswith(_GONE)) and (
        not content.strip(" ,;–-()[]") or _LIST.fullmatch(content.strip(" ,;–-"))
    ):
        return _GONE
    if not content:
        return ""
    if content in _DEGREES or (content == "0" and _is_degree(before, after)):
        return f"{_GLUE}°" if re.search(r"\d\s+$", before) and not re.match("[CF]", after) else "°"
    if re.fullmatch("[o°º˚] ?[CF]", content):
        return f" °{content[-1]}"
    if (content in _ORDINALS and before[-1:].isdigit()) or content == "TM":
        return {"TM": "™"}.get(content, content)
    if citation != "never" and _is_citation(content, before, after, citation == "maybe"):
        return _GONE
    if (
        before.rstrip()[-1:] in _OPENS
        or _is_isotope(content, before, after)
        or _reads_the_same(content, before, after)
    ):
        return content + mark
    return f"{_GLUE}^{_grouped(content, after)}{mark}"


def _reads_the_same(content: str, before: str, after: str) -> bool:
    """Whether signs are joined to what is before them: Na+, CO2-, F*, Ca2+; not before a letter or a number."""
    if re.fullmatch("[-+±]+", content) or (_CHARGE.fullmatch(content) and re.search("[A-Z][a-z]?$", before)):
        return not after[:1].isalnum() or before[-1:].isspace()
    return bool(_SIGNS.fullmatch(content))


def _lowered(content: str, before: str, after: str, citation: str = "") -> str:
    """What is lowered: H2O, log10 and (NH4)2 as they are; RF2_150, t_s and x_(i+1), which would read as others."""
    mark, content = (_GONE if _GONE in content else ""), _plain(content.replace(_GONE, ""))
    last = before.rstrip()[-1:]
    if not content or not last or (before[-1:] in " ([,;/–-" and not last.isalnum()):
        return content + mark
    digits = content[0].isdigit() and re.fullmatch(r"[\w.,:/]+", content)
    if digits and (last.isalpha() or last in ")]}’'′”•") and not after[:1].isdigit():
        return f"{_GLUE}{content}{mark}"
    return f"{_GLUE}_{_grouped(content, after)}{mark}"


def _plain(content: str) -> str:
    """With the sign of ASCII for minus, and without spaces behind a sign."""
    content = " ".join(content.split()).replace("−", "-")
    content = re.sub("^[–—‐‑‒－﹣⁻\u00ad](?=\\s*[^\\W_]|$)", "-", content)
    content = re.sub(r"^(\d) ?([-+–])$", lambda charge: charge[1] + charge[2].replace("–", "-"), content)
    return re.sub(r"^([\[(]?[-+]) (?=\S)", r"\1", content)


def _grouped(content: str, after: str) -> str:
    """In brackets unless it is one number or name that ends where it ends in print."""
    if re.fullmatch(r"\([^()]*\)|\[[^\[\]]*\]", content):
        return content
    ends = not after[:1].isdigit() and (not after[:1].isalpha() or content[-1].isdigit())
    if _SIGNS.fullmatch(content) or (ends and (_SIMPLE.fullmatch(content) or _CHARGE.fullmatch(content))):
        return content
    return f"({content})"


def _is_degree(before: str, after: str) -> bool:
    """Whether a raised 0 is a degree sign: behind a number, and before C or F, unless it is a power of 10 or 2."""
    number = _NUMBER.search(before)
    if not number:
        return False
    return bool(re.match(r"\s*(?:[CF]\b|[NSEW]\b|\d+(?:\.\d+)?\s*['′’])", after)) or number[1] not in ("10", "2")


def _is_isotope(content: str, before: str, after: str) -> bool:
    """As in 14C, 99mTc and δ15N."""
    free = (not before[-1:].isalnum() and before[-1:] not in ")]}%") or before[-1:] in "δΔ∆"
    number = re.fullmatch(r"\d{1,3}m?", content) and not re.search(r"(?<![\w.])10\s*$", before)
    return bool(number and free and _ELEMENT.match(after))


def _is_citation(content: str, before: str, after: str, maybe: bool) -> bool:
    """Whether what is raised without a reference is a citation or the mark of a note: numbers behind a word's or a
    sentence's end, where no power stands."""
    if re.fullmatch(r"\[\d[\d\s,;–-]*\]", content):
        return True
    if not before.strip() and re.match(r"\s*[^\W\d_]{3}", after):  # a note's own mark
        return bool(_LIST.fullmatch(content) or _NOTE.fullmatch(content))
    if _is_isotope(content, before, after):
        return False
    squeezed, last = re.sub(r"\s", "", content), before.rstrip()[-1:]
    if re.search(r"[^\W\d_]$", before) and (word := _WORD.search(before)):
        return bool(_LIST.fullmatch(squeezed) or _NOTE.fullmatch(squeezed)) and not (
            squeezed in ("2", "3") and _LENGTHS.fullmatch(word[1])
        )
    if not _LIST.fullmatch(squeezed):
        return bool(re.fullmatch("[†‡§¶#‖]+", squeezed))
    if last in tuple('.,;:!?”"%') or (last.isalpha() and before[-1:].isspace() and len(before.split()[-1]) > 2):
        return True
    if not squeezed.isdigit():
        return last in (")", "]", "’") or bool(re.search(r"[^\W\d_]{3}\s*$", before))
    number = _NUMBER.search(before)
    return maybe and (last == ")" or (number is not None and number[1] not in ("10", "2")))
