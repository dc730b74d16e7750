"""The commands that a text or a docstring tells its reader to type: programs and options exist, and
those of the README run to their end."""

import ast
import importlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import wraps
from pathlib import Path

import pytest

from lib import train
from lib.papers import PAPERS, resolve
from lib.system.command_line import run_command
from lib.system.files import project_root

ROOT = project_root()
BIN = Path(sys.executable).parent
TEXTS = [
    path
    for pattern in ("*.md", "docs/**/*.md", "trained/*/*.md", "tests/gpu/*.md")
    for path in sorted(ROOT.glob(pattern))
    if path.name != "CHANGELOG.md"
]
FENCED = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:[A-Z_]+=\S+ )*(?:python3?|make|papermill|torchrun) .")
COMMENT = re.compile(r"""("[^"]*"|'[^']*')|(?:^|\s)#.*""")  # but not in quotes
ENDS = re.compile(r" (?:\.\.\.|&&|\||>|<).*")  # one command of a line, without what is left out


def lines_of(block: str) -> Iterator[str]:
    """Each command of a block in one line, without comments."""
    for line in block.replace("\\\n", " ").splitlines():
        if COMMAND.match(line := " ".join(COMMENT.sub(lambda found: found[1] or "", line).split())):
            yield line


def commands_of(text: str) -> Iterator[str]:
    """The lines of shell blocks, and commands in backticks."""
    for language, block in FENCED.findall(text):
        yield from lines_of(block) if language == "sh" else ()
    for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", FENCED.sub("", text)):
        yield from lines_of(" ".join(span.split()))


def documented() -> list[str]:
    """Every command, once: of the texts, and of the docstrings of modules."""
    found = [command for path in TEXTS for command in commands_of(path.read_text(encoding="utf-8"))]
    for folder in ("lib", "companion", "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            found += [*lines_of(docstring), *commands_of(docstring)]
    return list(dict.fromkeys(found))


COMMANDS = documented()
MODULE = re.compile(r"-m ((?:lib|companion|tests)(?:\.\w+)*)(.*)")


class Parsed(Exception):
    """The command line has been understood."""


def unrun(function):
    """A function of the same arguments, which is not run."""

    @wraps(function)
    def called(*_, **__):
        raise Parsed

    return called


@pytest.mark.parametrize("command", [c for c in COMMANDS if MODULE.search(c)])
def test_a_module_of_a_command_knows_its_options(command):
    name, rest = MODULE.search(command).groups()
    arguments = shlex.split(ENDS.sub("", rest))
    package = (ROOT / name.replace(".", "/")).is_dir()
    module = importlib.import_module(f"{name}.__main__" if package else name)
    if name == "lib.train":
        if arguments[:1] and arguments[0] in PAPERS and "--help" not in arguments:
            train.parse(arguments)
        return
    if name.startswith("tests.") or not arguments or re.search(r" \.\.\.|\[", command):
        return  # arguments that are left out
    *about, called = module.main.args  # of `run_command`
    unrun_commands = (
        {name: unrun(f) for name, f in called.items()}
        if isinstance(called, dict)
        else unrun(called)
    )
    with pytest.raises((Parsed, SystemExit)) as stopped:
        run_command(*about, unrun_commands, arguments)
    assert stopped.type is Parsed or not stopped.value.code, command


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("make ")])
def test_a_target_of_make_exists(command):
    targets = re.findall(
        r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {word for word in command.split()[1:] if "=" not in word} <= set(targets)


@pytest.mark.parametrize(
    "command", [c for c in COMMANDS if "papermill notebooks/" in c and "PAGE" not in c]
)
def test_a_page_has_the_parameters_of_a_command(command):
    page = re.search(r"notebooks/(\w+)\.ipynb", command)[1]
    words = shlex.split(command)
    given = {words[i + 1]: words[i + 2] for i, word in enumerate(words) if word == "-p"}
    source = (ROOT / "notebooks" / f"{page}.py").read_text(encoding="utf-8")
    cell = re.search(r'tags=\["parameters"\]\n(.*?)\n\n', source, re.DOTALL)[1]
    assert set(given) <= set(re.findall(r"^(\w+):", cell, re.MULTILINE))
    if page in PAPERS:
        resolve(page, given.get("preset", "demo"), given.get("variant"))


PYTHON = [
    (p.name, b)
    for p in TEXTS
    for kind, b in FENCED.findall(p.read_text("utf-8"))
    if kind == "python"
]


@pytest.mark.parametrize("block", [pytest.param(block, id=name) for name, block in PYTHON])
def test_python_of_a_text_imports_what_exists(block):
    for node in ast.walk(ast.parse(block)):
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module)
            assert all(hasattr(module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            assert [importlib.import_module(alias.name) for alias in node.names]


@pytest.mark.long
@pytest.mark.parametrize(
    "command",
    [
        "python -m lib.train mem2mem --preset demo --output runs/demo",
        "python -m lib.summarize trained/mem2mem paper.md --html paper.html",
        "python -m lib.score run trained/windowed --dataset pmc-sample --documents 1 --output "
        "runs/scores.json",
        "python -m lib.intervene trained/read_again --dataset pmc-sample --documents 2",
        "python -m companion.live trained/mem2mem live.html",
        "python -m companion.train_task read_twice --seeds 0 --output runs/task.json",
    ],
)
def test_a_command_runs_to_its_end(command, tmp_path):
    """In a folder of its own, with the shipped runs."""
    (tmp_path / "trained").symlink_to(ROOT / "trained")
    shutil.copy(ROOT / "README.md", tmp_path / "paper.md")
    text = command.replace("python", str(BIN / "python"), 1)
    done = subprocess.run(
        shlex.split(text), cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    if output := re.search(r"(?:--output|--html) (\S+)|(live\.html)", command):
        assert (tmp_path / (output[1] or output[2])).exists()


def test_commands_are_found_in_a_text():
    text = (
        "Run `make  x`:\n\n```sh\n# a remark\nA=1 papermill a.ipynb \\\n  -p x 'y # z'  # "
        "why\n```\n"
    )
    assert list(commands_of(text)) == ["A=1 papermill a.ipynb -p x 'y # z'", "make x"]
