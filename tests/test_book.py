"""The book has every page, and once built (`make book`) shows all of it without a network."""

import importlib
import re
import runpy
import shutil
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import jupytext
import pytest
import yaml

from lib.system.files import project_root

ROOT = project_root()
SITE = ROOT / "companion" / "site" / "_build" / "html"


def contents():
    """Files of the book's contents, without suffix."""
    toc = yaml.safe_load((ROOT / "companion" / "site" / "_toc.yml").read_text(encoding="utf-8"))
    return [toc["root"], *(chapter["file"] for part in toc["parts"] for chapter in part["chapters"])]


def test_the_contents_name_every_page_once():
    named = Counter(contents())
    pages = [f"notebooks/{path.stem}" for path in (ROOT / "notebooks").glob("*.ipynb")]
    cards = [path.relative_to(ROOT).with_suffix("").as_posix() for path in (ROOT / "trained").glob("*/README.md")]
    docs = [path.relative_to(ROOT).with_suffix("").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert named == Counter(["README", "papers", "teaching", *docs, *pages, *cards])


def test_the_contents_name_files_that_are_there():
    for name in contents():
        assert [suffix for suffix in (".md", ".ipynb") if (ROOT / f"{name}{suffix}").exists()], name


def test_numbers_in_the_text_lead_to_their_equations():
    nodes = pytest.importorskip("docutils.nodes", reason="docutils is not installed: make workflow, or make book")
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


@pytest.fixture
def published(tmp_path):
    """README and pages of a project that was published, and published again elsewhere."""
    (tmp_path / "notebooks").mkdir()
    for path in (ROOT / "README.md", *(ROOT / "notebooks").glob("*.py")):
        shutil.copy(path, tmp_path / path.relative_to(ROOT))
    publish = runpy.run_path(str(ROOT / "companion" / "site" / "publish.py"))["publish"]
    for name in ("first/home", "some-body/long.texts"):
        publish(name, tmp_path)
    with pytest.raises(ValueError, match=r"'https://github\.com/a/b' is not owner/name"):
        publish("https://github.com/a/b", tmp_path)
    return tmp_path


def colab_cell(page):
    (cell,) = [c for c in jupytext.read(page).cells if "google.colab" in c.source]
    return cell


def test_where_the_project_is_published_stands_in_readme_and_pages(published):
    readme = (published / "README.md").read_text(encoding="utf-8")
    assert readme.count("some-body/long.texts") == 2 and "first/home" not in readme
    for page in (published / "notebooks").glob("*.py"):
        before, after = (jupytext.read(path).cells for path in (ROOT / "notebooks" / page.name, page))
        cell = colab_cell(page)
        number = [c.source for c in after].index(cell.source)
        assert after[number + 1].metadata["tags"] == ["parameters"], "it comes before anything is imported"
        assert "github.com/some-body/long.texts project" in cell.source and cell.metadata["tags"] == ["hide-input"]
        ours = [c.source for c in before if "google.colab" not in c.source]
        assert [c.source for c in after if c is not after[number]] == ours, "nothing else changes"


@pytest.mark.parametrize(("on_colab", "already_there"), [(False, False), (True, False), (True, True)])
def test_a_page_on_colab_fetches_its_project_once(published, tmp_path, monkeypatch, on_colab, already_there):
    commands = []
    monkeypatch.setattr(subprocess, "run", lambda command, check: commands.append(command))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    if on_colab:
        monkeypatch.setitem(sys.modules, "google.colab", sys)
    if already_there:
        (tmp_path / "project").mkdir()
    exec(colab_cell(published / "notebooks" / "mem2mem.py").source, {})
    fetched = on_colab and not already_there
    assert [c[:2] for c in commands] == ([["git", "clone"], [sys.executable, "-m"]] if fetched else [])
    assert (sys.path[0] == str(tmp_path / "project")) == on_colab


def named_by_styles(text):
    """What `url()` and `@import` name."""
    return re.findall(r"url\(\s*['\"]?([^'\")\s]+)", text) + re.findall(r"@import\s+['\"]([^'\"]+)", text)


FOLLOWED = {"index", "search", "next", "prev", "author", "canonical"}  # links for readers, not for the page


class Loads(HTMLParser):
    """What a browser fetches by itself to show a page: scripts, style sheets, pictures, frames."""

    def __init__(self, text):
        super().__init__()
        self.found = named_by_styles(" ".join(re.findall(r"<style.*?</style>|style=\"[^\"]*\"", text, re.DOTALL)))
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.found += [values[name] for name in ("src", "srcset", "poster", "data") if values.get(name)]
        if tag == "link" and values.get("rel") not in FOLLOWED:
            self.found.append(values["href"])
        if tag == "image":  # of a drawing
            self.found += [values[name] for name in ("href", "xlink:href") if values.get(name)]


@pytest.fixture(scope="module")
def built():
    """{file: text} of the site's pages."""
    if not (SITE / "README.html").exists():
        pytest.skip("the book has not been built: make book")
    found = {path: path.read_text(encoding="utf-8") for path in SITE.rglob("*.html") if "_static" not in path.parts}
    assert {f"{name}.html" for name in contents()} <= {path.relative_to(SITE).as_posix() for path in found}
    return found


def test_the_built_book_loads_its_own_files_alone(built):
    loads = [(path, load) for path, text in built.items() for load in Loads(text).found]
    sheets = list((SITE / "_static").rglob("*.css"))
    loads += [(path, load) for path in sheets for load in named_by_styles(path.read_text(encoding="utf-8"))]
    assert any(load.endswith(".js") for _, load in loads) and any(".png" in load for _, load in loads)
    for path, load in loads:
        parts = urlsplit(load)
        if parts.scheme == "data" or not parts.path:  # written out in the page; a part of it
            continue
        assert not parts.scheme and not parts.netloc, f"{path.relative_to(SITE)} loads {load}"
        assert (path.parent / unquote(parts.path)).exists(), f"{path.relative_to(SITE)} loads {load}"


def test_the_built_book_has_its_mathematics_and_its_search(built):
    for path, text in built.items():
        assert "\\begin{split}" not in text, f"{path.relative_to(SITE)}: an equation was rewritten"
        assert 'class="math' not in text or "tex-svg-full.js" in text, path
    assert (SITE / "_static" / "tex-svg-full.js").stat().st_size > 10**6
    linked = {load for text in built.values() for load in re.findall(r'href="#(equation-[^"]+)"', text)}
    assert len(linked) > 20
    index = (SITE / "searchindex.js").read_text(encoding="utf-8")
    assert all(f'"{name}"' in index for name in contents())
