"""Every command that a text of the project or a docstring of `lib` tells its reader to type is run by bash, in a copy
of the checkout, without a network.

A command is taken from the text as it stands there. `SMALL` makes it small where it would take days; `GIVEN` makes
the files that it takes for given, under the names that the text gives them. What no rule of `SMALL` knows is run as
it is: a new command is tested by being written.
"""

import argparse
import importlib
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from lib import train
from lib.data.catalogue import HUB
from lib.papers import PAPERS, resolve
from tests.test_whole_pages import parameters_of
from tests.tools import documented
from tests.tools.documented import (
    BIN,
    ROOT,
    commands_of,
    commands_of_docstring,
    copy_of_the_checkout,
    python_of,
    texts,
)


@dataclass(frozen=True)
class Rule:
    """What makes a command small: `find`, an expression, is replaced by `put` wherever it matches."""

    find: str
    put: str
    quick: bool = False  # what is left takes so little time that every run of the tests does it


# parameters with which `test_whole_pages` runs the pages that are named with them
WHOLE = (" -p dataset my/folder -p variant +transfer", " -p dataset arxiv", " -p preset demo")
SMALL = (
    # what needs a network, a person or a class of students: whether all that it names is there
    Rule(r"^make (?!help$)", "make -n ", quick=True),
    Rule(r"^python -m lib$", r"\g<0>", quick=True),
    Rule(r"^make help$", r"\g<0>", quick=True),
    Rule(r'^pip install (?:-e )?"?\.\[(.+)\]"?$', r"grep -q '^\1 = \\[' pyproject.toml", quick=True),
    Rule(r"^(?:uv )?pip install (?:--require-hashes )?-r (\S+)$", r"test -f \1", quick=True),
    Rule(r"^uv pip install .*", r"\g<0> --help", quick=True),
    Rule(r"^uv run --no-sync papermill .*", r"\g<0> --prepare-only"),
    Rule(r"^uv venv .*", r"\g<0> --help", quick=True),
    Rule(r"^pip install \.$", "test -f pyproject.toml", quick=True),
    Rule(r"^pip install [\w-]+$", "pip install --help", quick=True),
    Rule(r"^conda env create -f (\S+) && conda activate (\S+)$", r"grep -qx 'name: \2' \1", quick=True),
    Rule(r"^python3\.11 -m venv", "python -m venv --help", quick=True),
    Rule(r"^\. \S+$|^papermill --help", r"\g<0>", quick=True),
    Rule(r"^python -m tests\.tools\.locks.*", r"\g<0> --help", quick=True),
    Rule(r"^jupyter lab \S+", r"\g<0> --show-config"),
    Rule(r"^(?=.*nbgrader autograde )", "rm -r autograded && "),
    Rule(r"^(?=.*nbgrader )", "cd class && "),
    Rule(r"^python -m pytest .*", r"\g<0> --collect-only"),
    # names that stand for another, and dots that stand for what is said elsewhere
    Rule(
        r"^python -m (lib\.(train|human|show_runs)|tests\.tools\.(official_rouge|pmc_sample) FOLDER)$",
        r"\g<0> --help",
    ),
    # it makes the same of the packages' texts in certain versions alone, and says so of others
    Rule(r"^python -m tests\.tools\.docstrings_sample$", "python -c 'import tests.tools.docstrings_sample'"),
    Rule(r"sentence_splitters --before FILE", "sentence_splitters --before lib/data/sentences.py"),
    Rule(r"lib\.train \.\.\.", "lib.train mem2mem --preset demo --output runs/demo"),
    Rule(r"lib\.train PAPER --preset PRESET", "lib.train mem2mem --preset demo"),
    Rule(r"lib\.(pages\.)?(corpora|figures) FOLDER", r"lib.\1\2 my/\2"),
    Rule(r"lib\.human (answers|scores) FOLDER", r"companion.human \1 runs/rating"),
    Rule(
        r"table \.\.\. --add-to \S+",
        "table mem2mem_table2 --corpus aclsum --output U.json --add-to T.scores.json.gz ...",
    ),
    Rule(r"(--add-to .*) \.\.\.$", r"\1 hred=b/scores.json"),
    Rule(r"(NAME=\S+) \.\.\.$", r"\1 Lead=lead.jsonl"),
    Rule(r" \.\.\.$", ""),
    Rule(r"MODULE \[ARGUMENTS \.\.\.\]", "lib.corpora"),
    Rule(r"^snakemake NAME", "snakemake -c1 mem2mem_table2"),
    # training, scoring, and what is made of them
    Rule(r"^sbatch .* --wrap '(.*)'$", r"\1"),
    Rule(r"^python -m tests\.gpu (?:plan|run)( .*)?$", r"\g<0> --list", quick=True),
    Rule(r"^(?:PYTHON\S+ )?python3? -m (tests\.gpu (?:prepare|card|keep)) .*$", r"python -m \1 --help", quick=True),
    Rule(r"^(.*lib\.train .*) --resume$", r"\1 && \1 --resume"),
    Rule(r"lib\.train (?!.*--help)(?=\w)(\w+)", r"lib.train \1 --limit 4 --batch-size 2 --steps 2"),
    Rule(r"--nproc-per-node \d+", "--nproc-per-node 2"),
    Rule(r"lib\.(score run|trained score|show_runs \w+) .*", r"\g<0> --documents 1"),
    Rule(r"lib\.score summaries .*", r"\g<0> --documents 1"),
    Rule(r"lib\.intervene .*", r"\g<0> --documents 2"),
    Rule(r"lib\.solve memory( --output \S+)?$", r'companion.solve memory "all ways, both, plain gate" --seeds 0\1'),
    Rule(r"(lib\.solve .* --seeds \d+)(?: \d+)+", r"\1"),
    Rule(r"lib\.retrain .*", r"\g<0> --documents 2 --steps 1 --seeds 0"),
    Rule(r"lib\.score baselines .*", r"\g<0> --limit 4 --documents 1"),
    Rule(r"^python -m tests\.tools\.disturbed_texts$", r"\g<0> --documents 1"),
    Rule(r"^python -m tests\.tools\.mutants.*", r"\g<0> --minutes 0.01 lib/data/characters.py"),
    Rule(r"^snakemake (?!.*kept=1)(?!-n)", "snakemake -n "),
    Rule(r"--executor slurm", "--executor dryrun"),
    # pages
    Rule(f"^papermill .* out.ipynb(?:{'|'.join(map(re.escape, WHOLE))})?$", r"\g<0> --prepare-only"),
    Rule(r"-p dataset .*", r"\g<0> -p steps 2"),
)  # fmt: skip

GIVEN = {
    "my/folder": documented.sections,
    "my/corpora": documented.sections,
    "my/figures": documented.figures,
    "arxiv": documented.cohan,
    "pubmed": documented.cohan,
    "arxiv-dataset": documented.cohan,
    "pubmed-dataset": documented.cohan,
    "cnn_dailymail": documented.highlights,
    "multi_news": documented.clusters,
    "gigaword_folder": documented.headlines,
    "wikihow_folder": documented.wikihow,
    "wikisum_folder": documented.wikisum,
    "sumpubmed": documented.sumpubmed,
    "reuters": documented.reuters,
    "paper.md": documented.text,
    "paper.txt": documented.text,
    "notes.txt": documented.text,
    "dispatch.txt": documented.dispatch,
    "papers.jsonl": documented.records,
    "more.csv": documented.table,
    "runs/arxiv": documented.kept("mem2mem"),
    "runs/x": documented.kept("mem2mem"),
    "runs/mem2mem": documented.kept("mem2mem"),
    "runs/windowed": documented.kept("windowed"),
    "runs/read_again": documented.kept("read_again"),
    "runs/mine": documented.kept("read_again"),
    "runs/hierarchical_transformer": documented.kept("hierarchical_transformer"),
    "runs/ht_copying": documented.kept("hierarchical_transformer_copying"),
    "runs/figures/read_again_seconds.json": documented.figure,
    "a/scores.json": documented.scores(0),
    "b/scores.json": documented.scores(1),
    "T.scores.json.gz": documented.table_scores,
    "T.json": documented.kept_table,
    "FILE.json": documented.kept_table,
    "ht.jsonl": documented.summaries,
    "ft.jsonl": documented.summaries,
    "lead.jsonl": documented.summaries,
    "summaries.jsonl": documented.summaries,
    "theirs.jsonl": documented.theirs,
    "windowed.jsonl": documented.theirs,
    "runs/scores/mem2mem/scores.json": documented.scores_of_theirs,
    "runs/tables/support_table.json": documented.support_table,
    "runs/rating": documented.rating,
    "class": documented.course,
}
IN_DATA = ("sumpubmed", "reuters")  # by hand in the folder `data`
EXTRAS = {"snakemake": "tables", "nbgrader": "class", "cosmic-ray": "mutants"}  # of programs that not everybody has


def small(command: str) -> tuple[str, bool, list[Rule]]:
    """A command as it is run here, whether it takes little time, and the rules that made it so."""
    used = []
    for rule in SMALL:
        made, times = re.subn(rule.find, rule.put, command)
        if times:
            command, used = made, [*used, rule]
    return command, any(rule.quick for rule in used), used


def given(command: str) -> list[str]:
    """What of `GIVEN` a command reads; not what it writes."""
    if command.startswith("make -n"):
        return []
    if kept := re.search(r"lib\.trained score (\w+)", command):  # on the corpus that it was trained on
        return ["reuters" if kept[1] == "read_again" else "sumpubmed"]
    read = re.sub(r"(--output|--html|>|sheet) \S+", "", command)
    return [name for name in GIVEN if re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w-])", read)]


COMMANDS = documented.documented()
QUICK = [command for command in COMMANDS if small(command)[1]]
LONG = list({small(command)[0]: command for command in COMMANDS if command not in QUICK}.values())  # each once


@pytest.fixture(scope="session")
def shelf(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("shelf")


@pytest.fixture
def checkout(tmp_path_factory):
    """A copy of the checkout, so that nothing is written into it."""
    folder = tmp_path_factory.mktemp("checkout")
    copy_of_the_checkout(folder)
    yield folder
    shutil.rmtree(folder)


def put(name: str, shelf: Path, checkout: Path) -> None:
    """A given file or folder, made once for all commands, into a copy of the checkout."""
    made, place = shelf / name.replace("/", " ") / name, checkout / ("data" if name in IN_DATA else "") / name
    if not made.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        GIVEN[name](made)
    place.parent.mkdir(parents=True, exist_ok=True)
    if made.is_dir():
        shutil.copytree(made, place)
    else:
        shutil.copy(made, place)


def run(command: str, checkout: Path, shelf: Path) -> None:
    """By bash, as who has activated the environment; without a network."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COMPANION_")}
    environment |= {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(checkout)}
    environment |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "COMPANION_CACHE": str(shelf / "cache")}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=checkout, env=environment, timeout=600,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}"


def programs_of(command: str) -> set[str]:
    """The words of a command, and the programs that it calls without naming them."""
    behind = {"nbgrader": "class" in given(command), "cosmic-ray": "tests.tools.mutants" in command}
    return {*command.split(), *(program for program, used in behind.items() if used)}


def check(command: str, checkout: Path, shelf: Path) -> None:
    made = small(command)[0]
    for program, extra in EXTRAS.items():
        if program in programs_of(made) and shutil.which(program, path=str(BIN)) is None:
            pytest.skip(f"needs the extra `{extra}`")
    for name in given(made):
        put(name, shelf, checkout)
    # without a network: a folder in place of a corpus of the Hub
    made = re.sub(rf"(dataset[ =])({'|'.join(HUB)})(?![\w-])", r"\1./\2", made)
    run(made, checkout, shelf)


@pytest.mark.parametrize("command", QUICK, ids=str)
def test_a_quick_command_of_a_text(command, checkout, shelf):
    check(command, checkout, shelf)


@pytest.mark.long
@pytest.mark.parametrize("command", LONG, ids=str)
def test_a_command_of_a_text(command, checkout, shelf):
    check(command, checkout, shelf)


class Parsed(Exception):
    """The command line has been understood."""


@pytest.mark.parametrize("command", [command for command in COMMANDS if "-m lib." in command], ids=str)
def test_a_command_of_the_library_has_its_options(command, monkeypatch):
    """As far as that, in a moment: what `test_a_command_of_a_text` runs to its end."""
    parse_args = argparse.ArgumentParser.parse_args

    def parse(*arguments, **named):
        parse_args(*arguments, **named)
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse)
    for part in re.split(r"&&|\|", small(command)[0]):
        if words := re.search(r"-m lib\.([\w.]+)([^>]*)", part):
            understood(words[1], shlex.split(words[2]))


def understood(module: str, arguments: list[str]) -> None:
    """Raises SystemExit with another status than 0 where it is not."""
    name = "companion.human.__main__" if module == "human" else f"lib.{module}"
    command = importlib.import_module(name)
    try:
        if module == "train":
            train.parse(arguments)
        elif hasattr(command, "command_parser"):
            command.main(arguments)
    except Parsed:
        return
    except SystemExit as stopped:
        if stopped.code:
            raise


@pytest.mark.parametrize("command", [command for command in COMMANDS if ".ipynb out" in command], ids=str)
def test_a_page_has_the_parameters_of_a_command(command):
    page = re.search(r"(\w+)\.ipynb out", command)[1]
    words = shlex.split(command)
    parameters = {words[i + 1]: words[i + 2] for i, word in enumerate(words) if word == "-p"}
    assert not set(parameters) - set(parameters_of(page))
    if page in PAPERS:
        resolve(page, parameters.get("preset", "demo"), parameters.get("variant"))


@pytest.mark.parametrize(
    ("number", "block"),
    [
        pytest.param(number, block, id=f"{path.relative_to(ROOT)}, {number}")
        for path in texts()
        for number, block in enumerate(python_of(path.read_text(encoding="utf-8")), 1)
    ],
)
def test_the_python_of_a_text(number, block, checkout, shelf):
    (checkout / "typed.py").write_text(block, encoding="utf-8")
    run("python typed.py", checkout, shelf)


def test_every_rule_and_every_file_is_for_a_command():
    """Of a command that no text names any more nothing is left here."""
    used = {rule for command in COMMANDS for rule in small(command)[2]}
    assert [rule for rule in SMALL if rule not in used] == []
    made = [small(command)[0] for command in COMMANDS]
    read = {name for command in made for name in given(command)}
    assert sorted(set(GIVEN) - read) == []
    assert sorted(set(EXTRAS) - set().union(*map(programs_of, made))) == []


def test_what_a_text_tells_to_type_is_found():
    text = """Run `make` or `make  x`, see `lib/train.py`, then `python -m lib.train
y --z`:

```sh
. .venv/bin/activate   # first
A=1 papermill a.ipynb \\
  -p x "y # z"
# a remark
```

```python
import lib
```

<!-- table t -->
Made by `snakemake t`.
<!-- end -->
"""
    typed = [". .venv/bin/activate", 'A=1 papermill a.ipynb -p x "y # z"', "make x", "python -m lib.train y --z"]
    assert list(commands_of(text)) == typed and python_of(text) == ["import lib\n"]
    docstring = "What it does.\n\n    python -m lib.x a    # why\n\n`make x` does it too.\n"
    assert list(commands_of_docstring(docstring)) == ["python -m lib.x a", "make x"]
