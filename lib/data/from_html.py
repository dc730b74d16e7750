"""The running text of an HTML page, by Beautiful Soup and pandoc (the extra `files`)."""

from lib.data.from_pandoc import pandoc_text
from lib.data.texts import Text

_INVISIBLE = (
    "title, script, style, template, noscript, svg, head, iframe, object, canvas, "
    "[hidden], [aria-hidden=true], [style*='display:none'], [style*='display: none']"
)
_BESIDE = (
    "nav, aside, form, button, select, dialog, [role=navigation], [role=dialog], "
    # of Wikipedia and of arXiv's pages
    ".mw-editsection, .navbox, .infobox, .reflist, #toc, .ltx_authors, .ltx_bibliography"
)
_BANNER = "[id*=cookie i], [class*=cookie i], [id*=consent i], [class*=consent i]"
_BANNER_WORDS = 150  # at most; a longer part holds the page


def html_text(page: str) -> Text:
    """Read headings and paragraphs of a page, or of its only `main` or `article`; set the rest
    aside."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(page, "html.parser")
    articles = soup.find_all("article")
    root = soup.find("main") or (articles[0] if len(articles) == 1 else soup.body or soup)
    heading = root.find("h1") or soup.find("h1") or soup.title or soup.new_tag("p")
    title = " ".join(heading.get_text(" ").split())
    heading.decompose()
    beside = []
    for element in soup.select(_INVISIBLE):
        if element is not root:
            element.decompose()
    is_whole = root.name not in ("main", "article")
    parts = root.select(f"{_BESIDE}, header, footer" if is_whole else _BESIDE)
    for element in root.select(_BANNER):
        if len(element.get_text().split()) <= _BANNER_WORDS:
            parts.append(element)
    for element in parts:
        if element.decomposed:  # together with an element around it
            continue
        beside.append(element.get_text(" "))
        element.decompose()
    for element in root("pre"):
        if not element.find("code"):
            _break_lines(soup, element)
    text = root.extract()
    beside.append(soup.get_text(" "))
    found = pandoc_text(str(text).encode(), "html", "HTML", title)
    found.leave_out("headings", title)
    found.leave_out("menus and other parts beside the text", " ".join(beside))
    return found


def _break_lines(soup, element) -> None:
    """Make the lines of preformatted text the lines of a paragraph."""
    lines = element.get_text().split("\n")
    element.name = "p"
    element.clear()
    for line in lines:
        element.append(line)
        element.append(soup.new_tag("br"))
