"""The project's own rules: one list of needs, pages in step with their sources, names defined once."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from itertools import chain, pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from jupytext.cli import jupytext
from pygments.lexers import PythonLexer
from pygments.token import Token

from companion.results.kept import shown_in
from conftest import LONGEST, pytest_collection_modifyitems
from lib.data.corpora import anthology_year, load_corpus
from lib.data.documents import SPLITS
from lib.papers import PAPERS
from lib.system.files import project_root

ROOT = project_root()
PAGES = sorted((ROOT / "notebooks").glob("*.py"))
MODULES = {
    "ipython": "IPython",
    "beautifulsoup4": "bs4",
    "pdfminer.six": "pdfminer",
    "python-docx": "docx",
}  # of packages whose modules are written otherwise
CONDA_NAMES = {"pytorch": "torch", "matplotlib-base": "matplotlib", "huggingface_hub": "huggingface-hub"}


@cache
def notebook(page):
    return json.loads(page.with_suffix(".ipynb").read_text(encoding="utf-8"))


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def needs(*extras):
    """{name: bound} of what is needed, and of what some extras need."""
    lists = [project()["dependencies"], *(project()["optional-dependencies"][extra] for extra in extras)]
    return dict(re.match(r"([a-zA-Z0-9.-]+)(.*)", need).groups() for found in lists for need in found)


def test_environment_and_pyproject_need_the_same():
    *conda, pip = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    named = [re.match(r"([a-zA-Z0-9_.-]+)(.*)", d).groups() for d in [*conda, *pip["pip"]] if d != "-e ."]
    environment = dict(named)
    assert len(environment) == len(named), "each once"
    environment = {CONDA_NAMES.get(name, name): bound for name, bound in environment.items()}
    assert environment.pop("python") == project()["requires-python"]
    environment.pop("pip")
    assert "spacy-model-en_core_web_sm" in environment, "conda has the model, PyPI has not"
    environment.pop("spacy-model-en_core_web_sm")
    assert environment == needs("pages", "dev", "files", "entities")
    assert "-e ." in pip["pip"]


def test_every_need_is_pinned():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in lines if "==" in line}
    assert set(needs("pages", "dev", "files", "book", "class")) <= pinned


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_page_is_its_source_executed(page, tmp_path):
    """Built from the .py without looking at file times, run from top to bottom, without an error."""
    jupytext(["--to", "py:percent", "--output", str(tmp_path / page.name), str(page.with_suffix(".ipynb"))])
    assert (tmp_path / page.name).read_text(encoding="utf-8") == page.read_text(encoding="utf-8"), (
        "run: make notebooks"
    )
    cells = [c for c in notebook(page)["cells"] if c["cell_type"] == "code"]
    assert [c["execution_count"] for c in cells] == list(range(1, len(cells) + 1)), "run: make notebooks"
    assert not [o for c in cells for o in c["outputs"] if o["output_type"] == "error"]


FOLDED = (["hide-input"], ["remove-input"])  # code that the book folds, or leaves out: checks, imports, pictures


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_page_is_plain_python_with_literal_parameters(page):
    cells = [c for c in notebook(page)["cells"] if c["cell_type"] == "code"]
    tags = [c["metadata"].get("tags", []) for c in cells]
    others = [t for t in tags if t and t != ["parameters"]]
    assert tags.count(["parameters"]) == 1 and all(t in FOLDED for t in others), "nothing injected or skipped"
    for cell in cells:
        assert not re.search(r"^\s*[%!]", "".join(cell["source"]), re.MULTILINE), "no magics: nbval passes bad ones"
        assert cell["source"][0].strip(), "JupyterLab shows the first line of a folded cell"
    source = "".join(cells[tags.index(["parameters"])]["source"])
    for statement, line in zip(ast.parse(source).body, source.splitlines()):
        assert isinstance(statement, ast.AnnAssign)
        assert isinstance(statement.value, ast.Constant)
        assert "# " in line, "papermill --help-notebook shows the comment"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_code_of_a_page_is_seen_at_a_glance(page):
    """Cells that are not folded: 20 lines of 88 columns."""
    for cell in re.split(r"^(?=# %%)", page.read_text(encoding="utf-8"), flags=re.MULTILINE):
        mark, _, code = cell.partition("\n")
        if mark.startswith("# %%") and "[markdown]" not in mark and not re.search("hide-input|remove-input", mark):
            shown = code.strip("\n").splitlines()
            assert len(shown) <= 20 and max(map(len, shown), default=0) <= 88, code


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_headings_have_no_mathematics(page):
    """JupyterLab's table of contents shows the dollars."""
    texts = ["".join(c["source"]) for c in notebook(page)["cells"] if c["cell_type"] == "markdown"]
    assert not re.findall(r"^#+ .*\$.*", "\n".join(texts), re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_pseudo_code_has_the_colours_of_python(page):
    """The book is not built with code that its highlighter cannot read."""
    for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        assert not [text for kind, text in PythonLexer().get_tokens(code) if kind is Token.Error], code


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_every_picture_of_a_page_is_described(page):
    """Pictures come from `figures.show`, `picture` and `show_model`, which describe them; and the page as it was
    executed has no other."""
    source = page.read_text(encoding="utf-8")
    for call in (r"plt\.", r"\bdraw\(", r"\.savefig\(", r"_ = \w+_maps\(", r"imshow"):
        assert not re.search(call, source), f"{page.name}: {call} draws a picture without a description"
    outputs = [o for c in notebook(page)["cells"] for o in c.get("outputs", [])]
    for output in outputs:
        data = output.get("data", {})
        assert not {"image/png", "image/svg+xml", "image/jpeg"} & set(data), "run: make notebooks"
        for image in re.findall(r"<img\b[^>]*>", "".join(data.get("text/html", ""))):
            assert re.search(r' alt="[^"]{20,}"', image), image[-200:]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_figures_of_a_page_are_numbered_in_order(page):
    html = "".join(
        "".join(o.get("data", {}).get("text/html", "")) for c in notebook(page)["cells"] for o in c.get("outputs", [])
    )
    numbers = [int(n) for n in re.findall(r"<figcaption[^>]*><b>Figure (\d+)\.</b> \S", html)]
    assert numbers == list(range(1, len(numbers) + 1)), "run: make notebooks"
    assert numbers or "figures.show" not in page.read_text("utf-8"), "run: make notebooks"


def test_the_longest_files_of_tests_come_first():
    known = {path.name for pattern in ("notebooks/*.ipynb", "tests/test_*.py") for path in ROOT.glob(pattern)}
    names = ("test_a.py", *reversed(LONGEST), "test_b.py")
    items = [SimpleNamespace(path=Path(name)) for name in names for _ in range(2)]
    pytest_collection_modifyitems(items)
    assert known >= set(LONGEST)
    assert [item.path.name for item in items[::2]] == [*LONGEST, "test_a.py", "test_b.py"]


def test_the_readme_is_a_door():
    """It is short, and has every page with the minutes that the page itself says."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 1000
    for page in PAGES:
        (minutes,) = re.findall(rf"\(notebooks/{page.stem}\.ipynb\) \| .* \|(?: (\d+))? \|", text)
        parts = re.search(r"\| minutes \|\n(.*?)\n\n", page.read_text(encoding="utf-8"), re.DOTALL)
        said = re.findall(r" (\d+) \|$", parts[1], re.MULTILINE) if parts else []
        assert sum(map(int, said)) == int(minutes or 0), page.stem


def test_the_readme_gives_the_verdicts_of_papers_md():
    """As often at most; the five verdicts are defined there."""
    given, said = (
        Counter(re.findall(rf"\| ({'|'.join(VERDICTS)}) \|", (ROOT / name).read_text(encoding="utf-8")))
        for name in ("README.md", "papers.md")
    )
    assert set(given) == set(said) and given <= said and 12 <= given.total() <= 16


@cache
def modules(folder):
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted((ROOT / folder).rglob("*.py"))}


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_every_import_of_lib_is_a_need():
    for folder, extras in (("lib", ["entities", "files", "pages"]), ("notebooks", ["entities", "pages"])):
        named = {MODULES.get(need, need.replace("-", "_")) for need in needs(*extras)}
        found = {m.split(".")[0] for tree in modules(folder).values() for m in imported(tree)}
        named |= {"triton"}  # which PyTorch for CUDA brings
        assert found - named - set(sys.stdlib_module_names) == {"lib"}, folder


def test_only_figures_need_what_pages_need():
    """`pip install .` is enough for all else."""
    named, pages = ({MODULES.get(n, n.replace("-", "_")) for n in needs(*extras)} for extras in ([], ["pages"]))
    for path, tree in modules("lib").items():
        if {m.split(".")[0] for m in imported(tree)} & (pages - named):
            assert (ROOT / "lib" / "pages") in path.parents, path


def test_drawing_needs_no_models():
    code = "import sys; sys.modules['torch'] = None; import companion.pages.figures"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_lib_imports_neither_pages_nor_tests():
    for path, tree in modules("lib").items():
        assert not [m for m in imported(tree) if m.split(".")[0] in ("notebooks", "tests", "conftest")], path
    for path, tree in modules("notebooks").items():
        assert not [m for m in imported(tree) if m.split(".")[0] in ("notebooks", "tests")], path


def test_training_needs_few_packages():
    """The loop of training, the models, the papers and the use of a run need eight packages, the command one more."""
    few = {"torch", "numpy", "scipy", "safetensors", "sentencepiece", "filelock", "tqdm", "tyro", "numba"}
    every = {need.replace("-", "_") for need in needs("pages", "dev", "entities", "tables")}
    assert few <= every
    missing = sorted({*every, "IPython", "yaml"} - few - {"pyyaml"})
    models = [f"lib.models.{path.stem}" for path in (ROOT / "lib" / "models").glob("*.py") if path.stem != "__init__"]
    needed = ", ".join(["lib.train", "lib.papers", "lib.data.corpora", *models])
    code = f"import sys; sys.modules.update(dict.fromkeys({missing})); import {needed}"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


# each room imports from those before it; a file of `lib` itself is a command
ROOMS = (
    "system",
    "data",
    "layers",
    "models",
    "evaluation",
    "runs",
    "papers",
    "tasks",
    "exercises",
    "results",
    "pages",
)
BESIDE = {"human": "runs"}  # rooms that stand on the same floor as another


def imports_of_lib():
    """{module: the modules of lib that it imports, anywhere in its file}."""
    trees = {".".join(path.relative_to(ROOT).with_suffix("").parts): t for path, t in modules("lib").items()}
    trees = {name.removesuffix(".__init__"): tree for name, tree in trees.items()}
    found = {}
    for name, tree in trees.items():
        named = list(imported(tree))
        for node in (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)):
            assert node.level == 0, f"{name}: imports are written out"
            named += [f"{node.module}.{alias.name}" for alias in node.names]
        whole = {m for m in named if m in trees}
        # `from lib.papers import mem2mem` is of that module alone
        found[name] = {m for m in whole if not any(other.startswith(f"{m}.") for other in whole)} - {name}
    return found


def test_no_import_circle_in_lib():
    TopologicalSorter(imports_of_lib()).prepare()


def test_a_module_imports_from_its_own_room_or_lower_ones():
    def floor(name):
        _, _, room = name.partition(".")
        room = room.partition(".")[0]
        return ROOMS.index(BESIDE.get(room, room)) if (ROOT / "lib" / room).is_dir() else len(ROOMS)

    found = imports_of_lib()
    assert found.pop("lib") == {"lib.papers"}, "inside `load`"
    for name, others in found.items():
        above = [other for other in others - {"lib"} if floor(other) > floor(name)]
        assert not above, f"{name} imports {above}"
        assert "lib" not in others or floor(name) >= ROOMS.index("pages"), f"{name} opens runs"


def test_a_file_of_lib_is_a_command():
    for path in (ROOT / "lib").glob("*.py"):
        assert path.stem == "__init__" or '__name__ == "__main__"' in path.read_text(encoding="utf-8"), path
    folders = {path.name for path in (ROOT / "lib").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == {*ROOMS, *BESIDE}


def test_lib_imports_papers_only_to_open_a_run():
    """`import lib` costs nothing."""
    body = ast.parse((ROOT / "lib" / "__init__.py").read_text(encoding="utf-8")).body
    names = [node.module for node in body if isinstance(node, ast.ImportFrom)]
    assert names == ["pathlib"] and not [node for node in body if isinstance(node, ast.Import)]


def test_a_papers_name_stands_in_its_own_files():
    """Elsewhere papers are taken from `PAPERS`, so that a fifth one is in all that is made of them. Texts for readers
    (docstrings, comments, the cells of a page) may name them."""
    name = re.compile(rf"\b({'|'.join(PAPERS)})\b")
    own = {ROOT / "lib" / "papers", ROOT / "lib" / "exercises", ROOT / "lib" / "pages" / "pictures"}
    files = [path for path in modules("lib") if not own & {*path.parents}]
    for path in (*files, ROOT / "notebooks" / "compare.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                node.value.value = ""  # a text for readers
        words = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        words += [n.id for n in ast.walk(tree) if isinstance(n, ast.Name)]
        words += [m for m in imported(tree) if m.startswith("lib.papers.")]
        words += [
            alias.name
            for n in ast.walk(tree)
            if isinstance(n, ast.ImportFrom) and n.module == "lib.papers"
            for alias in n.names
        ]
        assert [word for word in words if name.search(word)] == [], path
    assert not name.search((ROOT / "companion" / "workflow" / "Snakefile").read_text(encoding="utf-8"))


def test_a_name_is_defined_once():
    """Public functions and classes, across the library and the pages."""
    names = Counter()
    pages = {path: tree for path, tree in modules("lib").items() if path.parent.name != "exercises"}
    for tree in [*pages.values(), *modules("notebooks").values()]:
        names.update(
            node.name
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
            and not node.name.startswith("_")
            and node.name != "main"
        )
    assert [name for name, count in names.items() if count > 1] == []


def of_no_encoding(tree):
    """Lines of calls that read or write a text in the encoding of the system."""
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        binary = len(node.args) > 1 and isinstance(node.args[1], ast.Constant) and "b" in str(node.args[1].value)
        unsaid = {
            "read_text": not node.args,
            "write_text": len(node.args) < 2,
            "open": isinstance(node.func, ast.Name) and not binary,
        }
        if unsaid.get(name) and not any(word.arg == "encoding" for word in node.keywords):
            yield node.lineno


def test_every_text_is_read_and_written_as_utf8():
    """Ruff asks for the encoding only where it can tell that something is a path."""
    wrong = 'path.read_text()\n(a / "b").write_text("x")\nopen(path)\nopen(path, "w")'
    right = 'path.read_text("utf-8")\na.write_text("x", encoding="utf-8")\nopen(path, "rb")\nbook.open(path)'
    assert [*of_no_encoding(ast.parse(wrong))] == [1, 2, 3, 4] and not [*of_no_encoding(ast.parse(right))]
    for folder in ("lib", "companion", "tests", "notebooks"):
        found = {path.name: [*of_no_encoding(tree)] for path, tree in modules(folder).items()}
        assert not any(found.values()), {name: lines for name, lines in found.items() if lines}


def test_no_pickle():
    for path, tree in modules("lib").items():
        assert "pickle" not in set(imported(tree)), path
        assert "torch.save(" not in path.read_text(encoding="utf-8"), path
        loads = re.findall(
            r"torch\.load\(.*", path.read_text(encoding="utf-8")
        )  # other people's files, as plain data alone
        assert all("weights_only=True" in load for load in loads), path


def test_no_path_of_a_machine_in_what_is_committed():
    files = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=ROOT)
    if files.returncode:
        pytest.skip("not a git checkout")
    pattern = re.compile("/(?:" + "|".join(("home", "root", "work", "Users")) + r")/\w")
    for name in files.stdout.split():
        path = ROOT / name
        if path.suffix in (".png", ".gz", ".safetensors", ".model") or not path.exists():
            continue
        assert not pattern.search(path.read_text(encoding="utf-8")), name


def test_the_makefile_helps():
    text = subprocess.run(["make", "help"], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    for target in ("run", "test", "lab", "notebooks", "figures", "workflow", "book", "class", "slides", "lint"):
        assert f"make {target} " in text


def test_jupyterlab_serves_all_that_pages_link_to():
    """A server of the pages' folder alone says nothing where a reader follows a link to docs."""
    install = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    for text in ((ROOT / "Makefile").read_text(encoding="utf-8"), install):
        assert re.findall(r"jupyter lab (.*?\.ipynb)", text) == ["--notebook-dir=. notebooks/start_here.ipynb"]
    tags = {tag for page in PAGES for cell in notebook(page)["cells"] for tag in cell["metadata"].get("tags", [])}
    assert set(re.findall(r"remove_input_tags=(\S+)", install)) == tags - {"parameters"}


@pytest.mark.parametrize("name", [*shown_in(), "docs/teaching.md"])
def test_tables_and_links_of_a_text(name):
    """Every row of a table has the columns of its head; every picture and file that is linked is there."""
    text = (ROOT / name).read_text(encoding="utf-8")
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert tables
    for table in tables:
        rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in table.splitlines()]
        assert set("".join(rows[1])) <= set("- :") and {len(row) for row in rows} == {len(rows[0])}, table
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert ((ROOT / name).parent / link).exists(), link


def points_of_deviations(text):
    """The first cells of the tables under the heading "Deviations", which a page need not have."""
    section = re.search(r"^#+ (?:\d+\. )?Deviations$(.*?)(?=^#+ |\Z)", text, re.MULTILINE | re.DOTALL)
    rows = [line.split("|")[1].strip() for line in section[1].splitlines() if line.startswith("|")] if section else []
    return [row for row in rows if row != "point" and set(row) - set("- :")]


def runs_of_words(text, length=8):
    words = re.findall(r"[^\W\d]+", text.lower())
    return {tuple(words[i : i + length]) for i in range(len(words) - length + 1)}


def test_no_page_shows_a_paper_of_the_anthology_from_before_2016():
    """Their licence does not allow it."""
    cells = [cell for page in PAGES for cell in notebook(page)["cells"]]
    shown = ["".join(o.get("data", {}).get("text/plain", "")) for c in cells for o in c.get("outputs", [])]
    shown = set().union(*map(runs_of_words, shown))
    found = {True: set(), False: set()}  # by whether a paper may be quoted
    for split in SPLITS:
        for paper in load_corpus("aclsum").split(split):
            text = " ".join([paper.title, *paper.summary, *paper.sentences])
            if runs_of_words(text) & shown:
                found[anthology_year(paper.id) >= 2016].add(paper.id)
    assert found[True] and not found[False]


def test_papers_md_is_one_page():
    """What stands behind its verdicts has a text for each paper."""
    text = (ROOT / "papers.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 2600
    linked = {link.partition("#")[0] for link in re.findall(r"\]\((docs/[^)]+)\)", text)}
    assert linked == {name for name in shown_in() if name.startswith("docs/papers/")} | {"docs/reproduce.md"}


VERDICTS = {"holds", "suggested", "not seen", "contradicted", "not tested"}


def test_every_claim_has_a_verdict():
    """One of five; it holds or is contradicted by several seeds alone. Its evidence is of a kind that is named."""
    rows = re.findall(r"^\| (?!claim|-)(.*) \|$", (ROOT / "papers.md").read_text(encoding="utf-8"), re.MULTILINE)
    claims = [[cell.strip() for cell in row.split("|")] for row in rows]
    assert len(claims) > 40 and {claim[1] for claim in claims} == VERDICTS
    for claim in claims:
        assert claim[1] not in ("holds", "contradicted") or re.search(r": [3-9]", claim[4]), claim
        assert re.match(r"(?:table|toy task|intervention): \S|none\b", claim[4]), claim


@pytest.mark.parametrize("name", PAPERS)
def test_a_pages_deviations_stand_in_its_papers_text(name):
    """By the name of the point, each once in either; the page has those that its numbers need."""
    there, here = (
        points_of_deviations((ROOT / path).read_text(encoding="utf-8"))
        for path in (f"docs/papers/{name}.md", f"notebooks/{name}.py")
    )
    assert len(set(there)) == len(there) >= 15 and len(set(here)) == len(here)
    assert set(here) <= set(there)


def numbers_in(value):
    """Every number of a JSON file, those in its texts too."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        for part in value:
            yield from numbers_in(part)
    elif isinstance(value, int | float):
        yield float(value)
    elif isinstance(value, str):
        yield from (float(n.replace(",", "")) for n in NUMBER.findall(value))


NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*\d(?:\.\d+)?(?!\w)|(?<![\w.,])\d\.\d+(?!\w)")


def kept_numbers():
    """Of tables and figures, but for those with a number for every word or step, and what the executed pages show."""
    crowds = ("attention_maps", "maximum_attention", "loss_curves")
    for path in [*(ROOT / "figures").glob("*.json"), *(ROOT / "trained").glob("*/*.json")]:
        made = json.loads(path.read_text(encoding="utf-8"))
        if made.get("plot") not in crowds:
            yield from numbers_in(made)
    for output in (o for page in PAGES for c in notebook(page)["cells"] for o in c.get("outputs", [])):
        shown = output.get("text", ""), output.get("data", {}).get("text/plain", "")
        yield from numbers_in(["".join(text) for text in shown])


def published_numbers():
    for row in (row for of in PAPERS.values() for table in of.tables.values() for row in table.rows):
        yield from (float(number) for numbers in row.published.values() for number in numbers)
        yield from (float(size) for _, size in (row.run.vocabulary if row.run else ()))


def measured(text):
    """What a text in docs/papers says of results, without kept tables and parts that are published alone."""
    of = re.search(r"^## Findings$(.*)^## Equation", text, re.MULTILINE | re.DOTALL)
    rest = r"<!-- table.*?<!-- end -->|^### [^\n]*ublished.*?(?=^##|\Z)"
    return re.sub(rest, "", of[1] if of else text, flags=re.MULTILINE | re.DOTALL)


def test_measured_numbers_are_kept():
    """A number of four digits or more in a paper's text is published or stands, so rounded, in a kept file."""
    kept = np.sort(np.fromiter(chain(kept_numbers(), published_numbers()), float))
    texts = [measured(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "docs" / "papers").glob("*.md"))]
    assert len(texts) == 5
    prose = re.sub(r"`[^`]*`|\]\([^)]*\)", "", "".join(texts))
    found = {n for n in NUMBER.findall(prose) if sum(map(str.isdigit, n)) >= 4}
    assert len(found) > 50
    for number in found:
        value, half = float(number.replace(",", "")), 0.5 * 10.0 ** -len(number.partition(".")[2])
        near = kept[np.searchsorted(kept, value - 1.001 * half) :][:1]
        assert near.size and near[0] <= value + 1.001 * half, number


def decimals(text):
    return Counter(map(float, re.findall(r"\d+\.\d+", text)))


@pytest.mark.parametrize("name", PAPERS)
def test_tables_written_by_hand_have_the_pages_numbers(name):
    """All numbers of a table of a paper's text that no command writes stand in one output of the committed page.
    Those of the named sections are held against files elsewhere."""
    by_hand = measured((ROOT / "docs" / "papers" / f"{name}.md").read_text(encoding="utf-8"))
    elsewhere = r"^### (?:The synthetic task|Made-up tasks|The memory at size small)$.*?(?=^###? |\Z)"
    by_hand = re.sub(elsewhere, "", by_hand, flags=re.MULTILINE | re.DOTALL)
    tables = [decimals(table) for table in re.findall(r"(?:^\|.*\n)+", by_hand, re.MULTILINE)]
    cells = notebook(ROOT / "notebooks" / name)["cells"]
    outputs = [out.get("data", {}).get("text/plain", "") for cell in cells for out in cell.get("outputs", [])]
    shown = [decimals("".join(text)) for text in outputs]
    assert tables or name in ("read_again", "mem2mem")
    for table in tables:
        best = max(shown, key=lambda found: (found & table).total())
        assert table <= best, f"the page has no output with {sorted(table - best)}"


@pytest.mark.parametrize(
    ("page", "parameters", "message"),
    [
        ("mem2mem", ("datset", "arxiv"), "unknown parameter 'datset', did you mean 'dataset'?"),
        ("mem2mem", ("dataset", "arxiv"), "asked the Hugging Face Hub for ccdv/arxiv-summarization"),
    ],
)
def test_a_wrong_parameter_stops_the_page(page, parameters, message, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    command = [sys.executable, "-m", "papermill", "--no-progress-bar", str(ROOT / "notebooks" / f"{page}.ipynb")]
    result = subprocess.run(
        [*command, str(tmp_path / "out.ipynb"), "-p", *parameters], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 1
    assert message in result.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_text_ends_with_a_heading_before_a_function(page):
    """Jupytext takes the heading for a comment and counts other empty lines before the function than the source has:
    JupyterLab then refuses a page that is newer than its source."""
    cells = notebook(page)["cells"]
    for text, code in pairwise(cells):
        if text["cell_type"] == "markdown" and code["cell_type"] == "code":
            defines = "".join(code["source"]).startswith(("def ", "class ", "@"))
            assert not (defines and text["source"][-1].startswith("#")), text["source"][-1]
