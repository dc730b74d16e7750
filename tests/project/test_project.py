"""The form of the project: its packages, its pages and its texts."""

import ast
import json
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import TopologicalSorter

import jupytext.cli
import pytest
import yaml

from companion.results.places import shown_in
from lib.data.corpus import load_corpus
from lib.data.documents import SPLITS
from lib.data.releases import anthology_year
from lib.papers import PAPERS
from lib.system.files import project_root
from tests.project.test_locks import normal, pins
from tests.tools.minutes import PARTS, minutes_of

ROOT = project_root()
PAGES = sorted((ROOT / "notebooks").glob("*.py"))
# Each folder of `lib` imports from itself and from those before it. The commands are the files of
# `lib` itself.
ORDER = (
    "system",
    "data",
    "layers",
    "models",
    "decoding",
    "training",
    "evaluation",
    "papers",
    "page",
    "commands",
)


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def project():
    return tomllib.loads(text_of("pyproject.toml"))["project"]


@cache
def modules(folder):
    return {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


# ---------------------------------------------------------------------------------
# packages


def imported(tree):
    """The modules that a file imports, by their whole names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are written out"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize(
    ("folder", "others"),
    [
        ("lib", {"companion", "notebooks", "tests"}),
        ("companion", {"notebooks", "tests"}),
        ("notebooks", {"tests"}),
    ],
)
def test_imports_run_from_companion_to_lib_only(folder, others):
    for path, tree in modules(folder).items():
        assert not others & {name.split(".")[0] for name in imported(tree)}, path


@pytest.mark.parametrize("folder", ["lib", "companion"])
def test_there_is_no_import_circle(folder):
    trees = {name_of(path): tree for path, tree in modules(folder).items()}
    found = {
        name: {other for other in imported(tree) if other in trees} - {name}
        for name, tree in trees.items()
    }
    for name, others in found.items():  # `from lib.papers import mem2mem` is of that module only
        found[name] = {
            one for one in others if not any(other.startswith(f"{one}.") for other in others)
        }
    found.pop("lib", None)  # `lib.load` imports inside the function
    TopologicalSorter(found).prepare()


def name_of(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def place_of(module):
    """Return the place of a module of `lib` in `ORDER`."""
    folder = module.split(".")[1:2]
    return ORDER.index(folder[0] if folder and (ROOT / "lib" / folder[0]).is_dir() else "commands")


def against_the_order(module, tree, known):
    """Yield the modules that a module of `lib` imports although their folder comes after its own.

    Imports inside a function count as well; `import lib` does not, since every import of a module
    of `lib` runs it first. Of `from lib.papers import mem2mem`, the module that is
    imported last counts: `lib.papers.mem2mem`.
    """
    found = {name for name in imported(tree) if name in known and name != "lib"}
    for name in found:
        whole = not any(other.startswith(f"{name}.") for other in found)
        if whole and place_of(name) > place_of(module):
            yield name


def test_each_folder_of_lib_imports_from_itself_and_from_those_before_it():
    trees = {name_of(path): tree for path, tree in modules("lib").items()}
    assert {name.split(".")[1] for name in trees if name.count(".") > 1} == {*ORDER} - {"commands"}
    found = [
        (name, other)
        for name, tree in trees.items()
        for other in against_the_order(name, tree, trees)
    ]
    assert found == [], "move the function that is needed, or pass it as an argument"


def test_make_quick_tests_every_model_and_layer():
    """A file of `QUICK` imports each module of `lib.models` and `lib.layers`, by itself or through
    one of them."""
    listed = re.search(r"^QUICK := (.*)$", text_of("Makefile"), re.MULTILINE)[1].split()
    quick = [
        tree
        for path, tree in modules("tests").items()
        if any(path.is_relative_to(ROOT / name) for name in listed)
    ]
    trees = {name_of(path): tree for path, tree in modules("lib").items()}
    wanted = {
        name: tree for name, tree in trees.items() if re.match(r"lib\.(models|layers)\.", name)
    }
    found, waiting = set(), {name for tree in quick for name in imported(tree)} & wanted.keys()
    while waiting:
        found |= waiting
        waiting = {
            name for one in waiting for name in imported(wanted[one])
        } & wanted.keys() - found
    assert sorted(wanted.keys() - found) == [], "add the file of its tests to QUICK in the Makefile"


def test_importing_lib_costs_nothing():
    code = "import sys, lib; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


# What training Mem2Mem on a folder of records does without: other papers' models, formats of texts,
# releases of corpora, the search.
NOT_FOR_TRAINING = re.compile(
    r"lib\.(?:models\.(?!mem2mem|hred|seq2seq|summarizer|state|changes|memory_changes)"
    r"|papers\.(?!mem2mem$|mem2mem\.(?:sections|variants)|paper)"
    r"|data\.(?:from_\w+|files|jats|markdown|office|pages|plain_text|releases)"
    r"|decoding\.(?!config)|evaluation\.|page\.)"
)


def test_training_imports_what_it_needs(tmp_path):
    """The presets, the corpus and the loop of a paper load no other paper's model, and no format
    that the corpus does not have."""
    record = '{"sections": [["A text."]], "abstract_text": ["Short."]}\n'
    for name in ("train", "val", "test"):
        (tmp_path / f"{name}.jsonl").write_text(record, encoding="utf-8")
    code = (
        "import sys, lib.train, lib.training.loop\n"
        "from lib.papers import resolve\n"
        "setup = resolve('mem2mem', 'demo')\n"
        f"setup.open_corpus({str(tmp_path)!r}, progress=False)\n"
        "print(*(name for name in sys.modules if name.startswith('lib.')))"
    )
    environment = {**os.environ, "COMPANION_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=environment,
    )
    loaded = done.stdout.split()
    assert "lib.models.mem2mem" in loaded and "lib.data.batch" in loaded
    assert [name for name in loaded if NOT_FOR_TRAINING.match(name)] == []


def test_environment_has_what_pyproject_needs_in_the_tested_versions():
    *conda, pip = yaml.safe_load(text_of("environment.yml"))["dependencies"]
    renamed = {"pytorch": "torch", "matplotlib-base": "matplotlib"}
    listed = dict(
        re.match(r"([\w.-]+)([^;]*)", d).groups() for d in [*conda, *pip["pip"]] if d != "-e ."
    )
    environment = {normal(renamed.get(name, name)): version for name, version in listed.items()}
    assert f">{environment.pop('python')}" == project()["requires-python"] and "-e ." in pip["pip"]
    assert {environment.pop(name) for name in ("pip", "spacy-model-en-core-web-sm")} == {""}
    extras = project()["optional-dependencies"]
    needs = [need for extra in ("pages", "dev", "files", "entities") for need in extras[extra]]
    bounds = dict(
        re.match(r"([\w.-]+)([^;]*)", need).groups()
        for need in [*project()["dependencies"], *needs]
    )
    tested = {name: f"=={version}" for name, version in pins().items()}
    assert environment == {
        normal(name): tested.get(normal(name), bound) for name, bound in bounds.items()
    }


def test_nothing_is_pickled_and_every_text_is_utf8():
    for folder in ("lib", "companion"):
        for path in modules(folder):
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"\bpickle\.|import pickle|torch\.save\(", text), path
            assert all(
                "weights_only=True" in load for load in re.findall(r"torch\.load\(.*", text)
            ), path
            assert not re.search(r"\.read_text\(\)", text), path


def test_no_path_of_a_machine_in_what_is_committed():
    files = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=ROOT)
    if files.returncode:
        pytest.skip("not a git checkout")
    pattern = re.compile("/(?:" + "|".join(("home", "root", "work", "Users")) + r")/\w")
    for path in (ROOT / name for name in files.stdout.split()):
        if path.suffix not in (".png", ".gz", ".safetensors", ".model") and path.exists():
            assert not pattern.search(path.read_text(encoding="utf-8")), path


# ---------------------------------------------------------------------------------
# pages


@cache
def notebook(page):
    return json.loads(page.with_suffix(".ipynb").read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_page_is_its_source_executed(page, tmp_path):
    jupytext.cli.jupytext(
        [
            "--to",
            "py:percent",
            "--output",
            str(tmp_path / page.name),
            str(page.with_suffix(".ipynb")),
        ]
    )
    assert (tmp_path / page.name).read_text("utf-8") == page.read_text("utf-8"), (
        "run: make notebooks"
    )
    cells = [c for c in notebook(page)["cells"] if c["cell_type"] == "code"]
    assert [c["execution_count"] for c in cells] == list(range(1, len(cells) + 1)), (
        "run: make notebooks"
    )
    assert not [o for c in cells for o in c["outputs"] if o["output_type"] == "error"]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_page_is_plain_python_with_literal_parameters(page):
    cells = [c for c in notebook(page)["cells"] if c["cell_type"] == "code"]
    tags = [c["metadata"].get("tags", []) for c in cells]
    assert tags.count(["parameters"]) == 1
    assert all(tag in ([], ["parameters"], ["hide-input"], ["remove-input"]) for tag in tags), (
        "nothing is skipped"
    )
    for cell in cells:
        assert not re.search(r"^\s*[%!]", "".join(cell["source"]), re.MULTILINE), (
            "no magics: nbval passes bad ones"
        )
    source = "".join(cells[tags.index(["parameters"])]["source"])
    for statement, line in zip(ast.parse(source).body, source.splitlines()):
        assert isinstance(statement, ast.AnnAssign) and isinstance(statement.value, ast.Constant)
        assert "# " in line, "papermill --help-notebook shows the comment"


def runs_of_words(text, length=8):
    words = re.findall(r"[^\W\d]+", text.lower())
    return {tuple(words[i : i + length]) for i in range(len(words) - length + 1)}


def test_no_page_shows_a_paper_of_the_anthology_from_before_2016():
    """Their licence does not allow it."""
    cells = [cell for page in PAGES for cell in notebook(page)["cells"]]
    shown = [
        "".join(o.get("data", {}).get("text/plain", ""))
        for c in cells
        for o in c.get("outputs", [])
    ]
    shown = set().union(*map(runs_of_words, shown))
    for split in SPLITS:
        for paper in load_corpus("aclsum").split(split):
            if anthology_year(paper.id) < 2016:
                assert (
                    not runs_of_words(" ".join([paper.title, *paper.summary, *paper.sentences]))
                    & shown
                ), paper.id


# ---------------------------------------------------------------------------------
# texts


@pytest.mark.parametrize("name", [*shown_in(), "CONTRIBUTING.md"])
def test_tables_and_links_of_a_text(name):
    """Every row of a table has the columns of its head; every picture and file that is linked is
    there."""
    text = text_of(name)
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in table.splitlines()]
        assert set("".join(rows[1])) <= set("- :") and {len(row) for row in rows} == {
            len(rows[0])
        }, table
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert ((ROOT / name).parent / link).exists(), link


def section_names(text):
    """The names by which links lead to the sections of a text, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    "name", [*shown_in(), "CONTRIBUTING.md", *(f"notebooks/{page.name}" for page in PAGES)]
)
def test_a_link_to_a_section_of_a_text_finds_it(name):
    for file, section in re.findall(r"\]\(([^)#:\s]*\.md)#([^)\s]+)\)", text_of(name)):
        target = (ROOT / name).parent / file
        assert section in section_names(target.read_text(encoding="utf-8")), f"{file}#{section}"


@pytest.mark.parametrize("name", [*shown_in(), "CONTRIBUTING.md"])
def test_every_module_and_function_that_a_text_names_is_there(name):
    for dotted in set(re.findall(r"`((?:lib|companion)(?:\.\w+)+)`", text_of(name))):
        assert pkgutil.resolve_name(dotted), dotted


def test_the_readme_gives_the_minutes_of_the_pages():
    readme = text_of("README.md")
    for page in PAGES:
        (said,) = re.findall(
            rf"\(notebooks/{page.stem}\.ipynb\) \| .*\? \| (\d*) ?\| (\d*) ?\| (\d*) ?\|", readme
        )
        counted = minutes_of(notebook(page))
        for minutes, part in zip(said, PARTS, strict=True):
            assert abs(counted[part] - int(minutes or 0)) <= 3, (page.stem, part, counted[part])


def test_the_citation_and_the_changelog_have_this_version():
    citation = yaml.safe_load(text_of("CITATION.cff"))
    assert all(citation[key] == project()[key] for key in ("version", "license", "authors"))
    cited = [
        re.fullmatch(r"https://arxiv\.org/abs/(\d+\.\d+)", paper["url"])[1]
        for paper in citation["references"]
    ]
    assert cited == re.findall(r"^\* .*\[arXiv:(\d+\.\d+)\]", text_of("README.md"), re.MULTILINE)
    assert len(cited) == len(PAPERS) and f"\n## {project()['version']} - " in text_of(
        "CHANGELOG.md"
    )
    check = yaml.safe_load(text_of("codecheck.yml"))
    assert (check["paper"]["title"], check["paper"]["authors"]) == (
        citation["title"],
        citation["authors"],
    )
    assert [made["file"] for made in check["manifest"] if not (ROOT / made["file"]).is_file()] == []


@pytest.mark.parametrize(
    ("name", "licence"),
    [
        ("lib/train.py", "Apache-2.0"),
        ("notebooks/mem2mem.ipynb", "Apache-2.0 AND CC-BY-4.0"),
        ("lib/data/pmc_sample/test.jsonl.gz", "LicenseRef-PMC-Sample"),
        ("lib/data/docstrings_sample/test.jsonl.gz", "BSD-3-Clause AND MIT"),
        ("trained/mem2mem/best.safetensors", "LicenseRef-Research-And-Teaching"),
        ("trained/mem2mem/vocabulary.txt", "LicenseRef-Research-And-Teaching"),
        (
            "trained/hierarchical_transformer_copying/pieces.model",
            "LicenseRef-Research-And-Teaching",
        ),
    ],
)
def test_licences_are_those_of_the_readme(name, licence):
    """The last entry of REUSE.toml that names a file counts; * is of one folder, ** of all
    below."""
    assert (ROOT / name).exists()
    found = ""
    for entry in tomllib.loads(text_of("REUSE.toml"))["annotations"]:
        paths = entry["path"] if isinstance(entry["path"], list) else [entry["path"]]
        patterns = [
            re.escape(path).replace(r"\*\*", ".*").replace(r"\*", "[^/]*") for path in paths
        ]
        if any(re.fullmatch(pattern, name) for pattern in patterns):
            found = entry["SPDX-License-Identifier"]
    assert found == licence
    assert all(
        (ROOT / "LICENSES" / f"{part}.txt").is_file()
        for part in licence.split(" AND ")
        if part != "CC-BY-4.0"
    )
