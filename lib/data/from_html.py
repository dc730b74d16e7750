"""The running text of an HTML page, by Beautiful Soup and pandoc (the extra `files`).

What belongs to the text follows from elements, roles, and the words in names of classes. Libraries
that guess it from the density of words (trafilatura, readability) lose short sections of papers and
of documentation.
"""

import re
from collections.abc import Iterable

from lib.data.from_pandoc import pandoc_text
from lib.data.texts import BETWEEN_LINKS, MENUS, Text

_INVISIBLE = (
    "title, script, style, template, noscript, svg, head, iframe, object, canvas, rp, "
    ".katex-html, "  # a formula that is there twice
    "[style*='mso-list:ignore' i]"  # the sign or number of an item in Word
)
_HIDDEN = "[hidden], [aria-hidden=true], [style*='display:none'], [style*='display: none']"
_BESIDE = (
    "nav, aside, form, button:not(:is(h2, h3, h4, h5, h6) > button), select, dialog, "
    "[role=navigation], [role=dialog], "
    "[role=complementary], footer:not(blockquote footer), "
    "#header, #footer, .site-header, .site-footer, "
    # of Wikipedia and Sphinx
    ".mw-editsection, .navbox, .infobox, .hatnote, #toc, #coordinates, .headerlink, "
    # of Medium
    "[data-testid^=authorName], [data-testid=storyReadTime], [data-testid=storyPublishDate]"
)
_NOTE_MARKS = (
    "a[role=doc-noteref], a[class*=footnote], a[href^='#']:has(> sup:only-child), "
    "a[href^='#']:has(> .MsoFootnoteReference), sup > a[href^='#']"
)
_NOTE_WORDS = 150  # of a note that has a mark, at most
_TITLE = "h1, p.title, p.MsoTitle"  # of Google's documents, and of Word's
# Words in the names of elements, by the kind of what they hold.
_KINDS = {
    "banners about cookies": {"cookie", "cookies", "consent", "gdpr"},
    "boxes over the text": {"modal", "popup", "lightbox"},
    "comments": {"comment", "comments", "commentlist", "disqus", "respond"},
    "bylines and dates": {
        *("byline", "dateline", "author", "authors", "contributors", "timestamp", "meta", "ameta"),
        *("published", "pubdate", "readtime", "vcard"),
    },
    "captions": {"caption", "figcaption"},
    MENUS: {"footer", "printfooter", "noprint", "catlinks"},
    "rubrics": {"rubric", "kicker", "eyebrow"},
    "footnotes": {"footnote", "footnotes", "endnotes"},
    "references": {"reflist", "references", "bibliography", "ref-list"},
    "related articles, adverts and the like": {
        *("ad", "ads", "adslot", "advert", "advertisement", "sponsored", "promo", "outbrain"),
        *("share", "sharing", "sharedaddy", "social", "newsletter", "subscribe", "subscription"),
        *("signup", "related", "relatedposts", "recirc", "recirculation", "recommended", "popular"),
        *("trending", "pullquote", "pull-quote", "breadcrumb", "breadcrumbs", "sidebar"),
        *("masthead", "paywall", "pagination", "tags", "toc"),
    },
}
_KIND_OF = {word: kind for kind, words in _KINDS.items() for word in words}
# an element within a line belongs to its text
_NAMED = "div, p, ul, ol, dl, section, article, header, footer, h2, h3, h4, figure, li, blockquote"
_NO_NAME = re.compile(r"(?:tag|category|has|no|is|with|hide)[-_]|.*[:/\[]")
_WORD = re.compile(r"pull-quote|ref-list|[A-Z]?[a-z]+")
_READ_MORE = re.compile(
    r"(?:(?:(?:read|see) (?:more|also|next)|also read|related|more)\b"
    r"|(?:(?:previous|next)(?: \w+)?|messages sorted by)(?=:)):?",  # of a list of mails
    re.IGNORECASE,
)
_CODE = re.compile("^(?:highlight|code|src)")
_SENTENCE = re.compile(r"(?:\w+[^\w.!?]+){3,}\w+[.!?]|[。！？]")
_BLOCKS = ["div", "p", "ul", "ol", "li", "table", "tr", "td", "section", "center"]
_HEADINGS = ["h1", "h2", "h3", "h4", "h5", "h6"]
_NOTES = ["li", "p", "dd", "td", "div", "span"]
_DATED = ["p", "li", "td", "dd", "blockquote"]  # a date in them belongs to the text
_MANY_WORDS = 150  # longer parts may hold the page
_LEAST_WORDS = 100  # of a page whose longer parts are set aside


def html_text(page: str) -> Text:
    """Read headings and paragraphs of a page, of its `main`, or of an `article` that has most of
    the words; set the rest aside."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(page, "html.parser")
    heading = _root(soup).select_one(_TITLE) or soup.find("h1") or soup.title or soup.new_tag("p")
    for link in heading(class_="headerlink"):
        link.decompose()
    title = " ".join(heading.get_text(" ").split())
    rubrics = [link.parent for link in heading.find_all_previous("a") if _is_rubric(link)]
    heading.decompose()
    for element in soup.select(_INVISIBLE):
        if not element.find(["main", "article"]):
            element.decompose()
    beside = Text()
    beside.leave_out("headings", title)
    _set_aside(filter(_is_hidden, soup.select(_HIDDEN)), "hidden text", beside)
    _set_aside(soup.select(_BESIDE), MENUS, beside)
    _set_aside(filter(_is_menu, soup(_BLOCKS)), MENUS, beside)
    _set_aside(rubrics, "rubrics", beside)
    for link in soup("a"):
        if getattr(link.previous_sibling, "name", None) == "a":  # drawn as buttons side by side
            link.insert_before(" ")
    _set_aside(soup("rt"), "readings of characters", beside)
    _set_aside(_notes(soup), "footnotes", beside)
    for mark in soup.select(f"{_NOTE_MARKS}, sup.reference"):  # and the pages behind Wikipedia's
        mark.decompose()
    _set_aside_by_names(soup, beside)
    root = _root(soup)
    if root.name not in ("main", "article"):
        _set_aside(root(["header", "footer"]), MENUS, beside)
    for element in root("pre"):
        if not element.find("code") and not element.find_parent(class_=_CODE):
            _break_lines(soup, element)
    text = root.extract()
    if root is not soup:
        beside.leave_out(MENUS, soup.get_text(" "))
    found = pandoc_text(str(text).encode(), "html", "HTML", title)
    found.set_aside += beside.set_aside
    return found


def _root(soup):
    """Return `main` or the body, or an article in it that is the only one or has most words."""
    root = soup.find("main") or soup.body or soup
    articles = root("article")
    longest = max(articles, key=_count, default=root)
    is_only = len(articles) == 1 and root.name != "main"
    return longest if is_only or 2 * _count(longest) > _count(root) else root


def _is_hidden(element) -> bool:
    """Return whether a hidden element is no text. A closed panel, which a click opens, is text."""
    is_panel = element.get("aria-hidden") == "true" and bool(
        _SENTENCE.search(element.get_text(" "))
    )
    return not is_panel and not element.find(["main", "article"])


def _is_menu(element) -> bool:
    """Return whether a block holds nothing but links, several or below "See also", of which none is
    a sentence. Links behind a colon are a list."""
    if element.decomposed:
        return False
    # Most blocks have words of their own, near their begin: the rest of them is not looked at.
    others = (text for text in element.strings if not text.find_parent("a"))
    if any(BETWEEN_LINKS.sub("", text) for text in others):
        return False
    texts = list(filter(None, (link.get_text(" ").strip() for link in element("a"))))
    if not texts or element.find(_HEADINGS) or any(text[-1] in ".!?" for text in texts):
        return False
    before = (element.find_previous(string=re.compile(r"\S")) or "").strip()
    return bool(_READ_MORE.fullmatch(before)) or (len(texts) > 1 and before[-1:] != ":")


def _is_rubric(link) -> bool:
    """Return whether a link above the title is alone in its block."""
    words = link.get_text(" ").split()
    return link.parent.name in _BLOCKS and link.parent.get_text(" ").split() == words


def _count(element) -> int:
    return len(element.get_text(" ").split())


def _set_aside(elements: Iterable, kind: str, beside: Text) -> None:
    for element in elements:
        if not element.decomposed:  # together with an element around it
            beside.leave_out(kind, element.get_text(" "))
            element.decompose()


def _notes(soup) -> list:
    """Return the notes to which marks in the text before them lead."""
    notes = []
    for mark in soup.select(_NOTE_MARKS):
        name = str(mark.get("href", ""))[1:]
        target = mark.find_next(attrs={"id": name}) or mark.find_next("a", attrs={"name": name})
        note = target and (target.find_parent(["li", "p", "dd", "td"]) or target)
        if note and name and note.name in _NOTES and _count(note) <= _NOTE_WORDS:
            notes.append(note)
    return notes


def _set_aside_by_names(soup, beside: Text) -> None:
    """Set parts aside whose names say what they hold, unless nearly all of the page is in them."""
    parts: dict[str, list] = {kind: [] for kind in _KINDS}
    words = _count(soup)
    for element in soup.select(_NAMED):
        kind = _kind(element)
        if not kind or element.find("main"):
            continue
        count = _count(element)
        is_page = count > _MANY_WORDS and 2 * count > words and kind != "comments"
        if not is_page:
            parts[kind].append(element)
    for element in soup(["address", "time"]):
        if not element.find_parent(_DATED):
            parts["bylines and dates"].append(element)
    for element in soup(["p", "li"]):
        if not element.a or not _READ_MORE.match(element.get_text(" ").strip()):
            continue
        others = "".join(text for text in element.strings if not text.find_parent("a")).strip()
        if _READ_MORE.fullmatch(others) or (not others and element.name == "p"):
            parts["related articles, adverts and the like"].append(element)
    for kind, elements in parts.items():
        outer = {id(element) for element in elements}
        elements = [
            element
            for element in elements
            if not element.decomposed and not outer & set(map(id, element.parents))
        ]
        inside = sum(map(_count, elements))
        left = _count(soup) - inside
        if left >= _LEAST_WORDS or (left and inside <= _MANY_WORDS):
            _set_aside(elements, kind, beside)


def _kind(element) -> str:
    """Return what the names of an element say that it holds, or an empty string."""
    names = list(element.get("class", []))
    # the `id` of a section is made from its heading
    if element.name in ("div", "ol", "ul") and "section" not in names:
        names.append(element.get("id", ""))
    names += [element.get("data-component", ""), element.get("data-testid", "")]
    named = [name for name in names if not _NO_NAME.match(name)]
    words = [word.lower() for name in named for word in _WORD.findall(name)]
    kind = next((_KIND_OF[word] for word in words if word in _KIND_OF), "")
    return "" if element.name == "article" and kind != "comments" else kind


def _break_lines(soup, element) -> None:
    """Make the lines of preformatted text the lines of a paragraph."""
    lines = element.get_text().split("\n")
    element.name = "p"
    element.clear()
    for line in lines:
        element.append(line)
        element.append(soup.new_tag("br"))
