"""The book has every page, and once built (`make book`) shows all of it without a network."""

import doctest
import importlib
import re
import runpy
from collections import Counter
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from bs4 import BeautifulSoup

from companion.site.docstrings import NEEDS_TRITON, modules_of, to_restructured
from lib.system.files import project_root
from tests.project.test_project import ORDER

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
    chapters = [f"docs/reference/{chapter}" for chapter in ORDER]
    assert named == Counter(["README", "papers", "CONTRIBUTING", *texts, *pages, *chapters])


# ---------------------------------------------------------------------------------
# the reference


def test_every_module_of_the_library_has_a_place_in_the_reference():
    assert [name for name in contents() if name.startswith("docs/reference/")] == [
        f"docs/reference/{chapter}" for chapter in ORDER
    ]
    for chapter in ORDER:
        text = (ROOT / "docs" / "reference" / f"{chapter}.rst").read_text(encoding="utf-8")
        assert text.splitlines()[-1] == f".. library:: {chapter}"
    listed = [name for chapter in ORDER for name in modules_of(chapter)]
    # an empty file and what `python -m lib` runs have nothing to show
    modules = [
        path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        for path in (ROOT / "lib").rglob("*.py")
        if path.stat().st_size and path.stem != "__main__"
    ]
    modules = [name.removesuffix(".__init__") for name in modules]
    assert Counter(listed) == Counter({*modules} - NEEDS_TRITON)


@pytest.mark.parametrize(
    "docstring, restructured",
    [
        ("Sum `x`s of `a.B`.", r"Sum :py:obj:`x`\ s of :py:obj:`a.B`."),
        ("Run `python -m lib`.", "Run ``python -m lib``."),
        ("$a_t =\n\\alpha$ (7)", r":math:`a_t = \alpha` (7)"),
        ("(state, *inputs), |x| and x_", r"(state, \*inputs), \|x\| and x\_"),
        ("Two:\n\n* one\n* other", "Two:\n\n* one\n* other"),
        ("Call\n\n    f(*x)\n\nas", "Call\n\n.. code-block:: text\n\n    f(*x)\n\nas"),
        ("Args:\n    x: of `f`.", "Args:\n    x: of :py:obj:`f`."),
        (">>> f(*x)\n'`x`'", ">>> f(*x)\n'`x`'"),
    ],
)
def test_a_docstring_as_restructured_text(docstring, restructured):
    assert "\n".join(to_restructured(docstring.split("\n"))) == restructured


MODULES = [name for chapter in ORDER for name in modules_of(chapter)]


def test_examples_in_docstrings():
    tried = 0
    for name in MODULES:
        path = importlib.util.find_spec(name).origin
        with open(path, encoding="utf-8") as file:
            if ">>>" in file.read():
                failed, attempted = doctest.testmod(importlib.import_module(name))
                assert not failed, f"the output above: {name}"
                tried += attempted
    assert tried >= 6


NAMES = [
    ("commands", "lib.load"),
    ("decoding", "lib.decoding.run.Run.summarize"),
    ("models", "lib.models.mem2mem.Mem2Mem"),
    ("layers", "lib.layers.memory.memory_scan"),
    ("data", "lib.data.documents.to_document"),
    ("training", "lib.training.loop.train"),
    ("evaluation", "lib.evaluation.bootstrap.paired_bootstrap"),
    ("papers", "lib.papers.paper.Paper"),
    ("system", "lib.system.errors.InputError"),
    ("page", "lib.page.summary_page"),
]


def test_the_built_reference_has_names_and_equations(built):
    pages = {chapter: built[SITE / "docs" / "reference" / f"{chapter}.html"] for chapter in ORDER}
    for chapter, name in NAMES:
        assert f'id="{name}"' in pages[chapter] or f'id="module-{name}"' in pages[chapter], name
    attention = BeautifulSoup(pages["layers"], "lxml").find(
        id="lib.layers.attention.CoverageAttention"
    )
    assert r"cov_t = \sum_{t'<t}\alpha_{t'}" in attention.parent.find(class_="math").text
    for chapter, text in pages.items():
        shown = BeautifulSoup(text, "lxml").find("article").text
        assert "$" not in shown, f"{chapter}: an equation is not translated"


# ---------------------------------------------------------------------------------
# numbers, and what the site loads


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
