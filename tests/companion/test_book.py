"""The book has every page, and once built (`make book`) shows all of it without a network."""

import importlib
import re
import runpy
from collections import Counter
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from bs4 import BeautifulSoup

from lib.system.files import project_root

ROOT = project_root()
SITE = ROOT / "companion" / "site" / "_build" / "html"


def contents():
    """Files of the book's contents, without suffix."""
    toc = yaml.safe_load((ROOT / "companion" / "site" / "_toc.yml").read_text(encoding="utf-8"))
    return [
        toc["root"],
        *(chapter["file"] for part in toc["parts"] for chapter in part["chapters"]),
    ]


def test_the_contents_name_every_page_once():
    named = Counter(contents())
    pages = [f"notebooks/{path.stem}" for path in (ROOT / "notebooks").glob("*.ipynb")]
    # exam.md is for teachers only
    texts = {*ROOT.glob("trained/*/README.md"), *ROOT.glob("docs/**/*.md")} - {
        ROOT / "docs" / "exam.md"
    }
    texts = [path.relative_to(ROOT).with_suffix("").as_posix() for path in texts]
    assert named == Counter(["README", "papers", "CONTRIBUTING", *texts, *pages])


def test_numbers_in_the_text_lead_to_their_equations():
    nodes = pytest.importorskip(
        "docutils.nodes", reason="docutils is not installed: make workflow, or make book"
    )
    document = importlib.import_module("docutils.utils").new_document("page")
    document += nodes.math_block("", r"a\tag{1}\qquad b\tag{S2}")
    document += nodes.title("", "The gate (1)")
    document += nodes.paragraph("", "As (1), (S2) and (3) say")
    document[-1] += nodes.literal("", "f(1)")
    runpy.run_path(str(ROOT / "companion" / "site" / "references.py"))["link_equations"](document)
    equation, title, paragraph = document.children
    assert equation["ids"] == ["equation-1", "equation-s2"]
    links = [(link.astext(), link["refid"]) for link in document.findall(nodes.reference)]
    assert links == [("(1)", "equation-1"), ("(S2)", "equation-s2")]
    assert paragraph.astext() == "As (1), (S2) and (3) sayf(1)" and title.astext() == "The gate (1)"


def named_by_styles(text):
    """What `url()` and `@import` name."""
    return re.findall(r"url\(\s*['\"]?([^'\")\s]+)", text) + re.findall(
        r"@import\s+['\"]([^'\"]+)", text
    )


def loaded_by(text):
    """What a browser fetches by itself to show a page: scripts, style sheets, pictures, frames."""
    tree = BeautifulSoup(text, "html.parser")
    styles = " ".join(
        [*(e.get_text() for e in tree("style")), *(e["style"] for e in tree(style=True))]
    )
    found = [
        e[name] for name in ("src", "srcset", "poster", "data") for e in tree(attrs={name: True})
    ]
    found += [e["href"] for e in tree("link", rel=["stylesheet", "icon", "preload"])]
    found += [e.get("href") or e["xlink:href"] for e in tree("image")]
    return found + named_by_styles(styles)


@pytest.fixture(scope="module")
def built():
    """{file: text} of the site's pages."""
    if not (SITE / "README.html").exists():
        pytest.skip("the book has not been built: make book")
    found = {
        path: path.read_text(encoding="utf-8")
        for path in SITE.rglob("*.html")
        if "_static" not in path.parts
    }
    assert {f"{name}.html" for name in contents()} <= {
        path.relative_to(SITE).as_posix() for path in found
    }
    return found


def test_the_built_book_loads_its_own_files_alone(built):
    loads = [(path, load) for path, text in built.items() for load in loaded_by(text)]
    sheets = list((SITE / "_static").rglob("*.css"))
    loads += [
        (path, load)
        for path in sheets
        for load in named_by_styles(path.read_text(encoding="utf-8"))
    ]
    assert any(load.endswith(".js") for _, load in loads) and any(
        ".png" in load for _, load in loads
    )
    for path, load in loads:
        parts = urlsplit(load)
        if parts.scheme == "data" or not parts.path:  # written out in the page; a part of it
            continue
        assert not parts.scheme and not parts.netloc, f"{path.relative_to(SITE)} loads {load}"
        assert (path.parent / unquote(parts.path)).exists(), (
            f"{path.relative_to(SITE)} loads {load}"
        )


def test_the_built_book_has_its_mathematics_and_its_search(built):
    for path, text in built.items():
        assert "\\begin{split}" not in text, f"{path.relative_to(SITE)}: an equation was rewritten"
        assert (
            path.parent.name == "live" or 'class="math' not in text or "tex-svg-full.js" in text
        ), path
    assert (SITE / "_static" / "tex-svg-full.js").stat().st_size > 10**6
    linked = {
        load for text in built.values() for load in re.findall(r'href="#(equation-[^"]+)"', text)
    }
    assert len(linked) > 20
    index = (SITE / "searchindex.js").read_text(encoding="utf-8")
    assert all(f'"{name}"' in index for name in contents())
