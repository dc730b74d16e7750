"""What README and papers.md name is there: modules, functions, methods, commands; and the README's Python runs."""

import importlib.util
import inspect
import json
import pkgutil
import re
from collections import Counter

import pytest

import lib
from lib.make_tables import shown_in
from lib.papers import PAPERS
from lib.storage import project_root

TEXTS = [project_root() / name for name in shown_in()]
MODULES = [name for _, name, _ in pkgutil.walk_packages(lib.__path__, "lib.") if not name.endswith("__main__")]


def named(text):
    """Words in backticks that begin with lib. or with a capitalised name and a dot."""
    return sorted({w.rstrip(".") for w in re.findall(r"`(lib\.[\w.]+|[A-Z]\w+\.\w+)`", text)} - {"README.md"})


@pytest.fixture(scope="module")
def classes():
    found = {}
    for name in MODULES:
        module = importlib.import_module(name)
        found |= {key: module for key, value in vars(module).items() if isinstance(value, type)}
    return found


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: str(p.relative_to(project_root())))
def test_every_name_is_there(path, classes):
    names = named(path.read_text(encoding="utf-8"))
    assert names or path.parent != project_root()
    for name in names:
        first, *rest = name.split(".")
        if first == "lib":
            place = lib
            while rest and f"{place.__name__}.{rest[0]}" in MODULES:
                place = importlib.import_module(f"{place.__name__}.{rest.pop(0)}")
        else:
            assert first in classes, f"{path.name} names {name}, and lib has no class {first}"
            place = getattr(classes[first], first)
        for part in rest:
            made = isinstance(place, type) and f"self.{part} = " in inspect.getsource(place)  # by __init__
            assert made or hasattr(place, part), f"{path.name} names {name}, which is not there"
            place = getattr(place, part, None)


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: str(p.relative_to(project_root())))
def test_every_command_is_there(path):
    for module in set(re.findall(r"python -m (lib\.\w+|tests\.\w+)", path.read_text(encoding="utf-8"))):
        assert importlib.util.find_spec(module), module


def decimals(text):
    return Counter(map(float, re.findall(r"\d+\.\d+", text)))


@pytest.mark.parametrize("name", PAPERS)
def test_tables_written_by_hand_have_the_pages_numbers(name):
    """All numbers of a table of papers.md that no command writes stand in one output of the committed page."""
    parts = re.split("^## ", (project_root() / "papers.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    (paper,) = (part for part in parts if f"notebooks/{name}.ipynb" in part and "### Measured here" in part)
    measured = re.search("### Measured here(.*?)###", paper, re.DOTALL)[1]
    by_hand = re.sub("<!-- table .*?<!-- end -->", "", measured, flags=re.DOTALL)
    tables = [decimals(table) for table in re.findall(r"(?:^\|.*\n)+", by_hand, re.MULTILINE)]
    page = json.loads((project_root() / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))
    outputs = [out.get("data", {}).get("text/plain", "") for cell in page["cells"] for out in cell.get("outputs", [])]
    shown = [decimals("".join(text)) for text in outputs]
    assert tables
    for table in tables:
        best = max(shown, key=lambda found: (found & table).total())
        assert table <= best, f"the page has no output with {sorted(table - best)}"


def test_the_python_of_the_readme_trains_and_summarizes(tmp_path, monkeypatch, capsys):
    text = (project_root() / "README.md").read_text(encoding="utf-8")
    use, make = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(make, {})
    exec(use.replace("trained/", f"{project_root()}/trained/"), namespace := {})
    assert namespace["summary"].attention["words"].ndim == 2
    assert capsys.readouterr().out.strip()
