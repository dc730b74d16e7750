"""What the texts that show tables name is there: modules, functions, methods, commands."""

import importlib.util
import inspect
import pkgutil
import re

import pytest

import lib
from companion.results.kept import shown_in
from lib.system.files import project_root

TEXTS = [project_root() / name for name in shown_in()]
MODULES = [name for _, name, _ in pkgutil.walk_packages(lib.__path__, "lib.") if not name.endswith("__main__")]


def named(text):
    """Words in backticks that begin with lib. or with a capitalised name and a dot, but name no file."""
    words = set(re.findall(r"`(lib\.[\w.]+|[A-Z]\w+\.\w+)`", text))
    return sorted(word.rstrip(".") for word in words if not (project_root() / word).exists())


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
    assert names or path.name != "papers.md"
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
