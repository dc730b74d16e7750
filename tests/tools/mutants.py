"""Mutants: would the tests notice a fault? The same number of small changes, drawn at random, is made in each of the
modules below, one at a time in a copy of the project, and the tests that belong to the module are run.

    pip install -c constraints.txt -e ".[mutants]"  # cosmic-ray: the changes are its operators'
    python -m tests.tools.mutants                  # 15 of each module: an hour or two
    python -m tests.tools.mutants --minutes 20     # as many of them as come in this time
    python -m tests.tools.mutants --each 5 --seed 7 lib/data/words.py
    python -m tests.tools.mutants --keep           # the counts into docs/robustness.md

A mutant is killed where a test fails or takes several times as long; it survives where all pass. Outcomes are lines
of runs/mutants/results.jsonl: a run that was stopped goes on, a killed mutant is not run again, one that has survived
is where a test of its module has changed. Linux and macOS.
"""

import argparse
import ast
import hashlib
import json
import math
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import islice, takewhile
from pathlib import Path

import numba
import pytest

from lib.system.files import project_root, write_json
from tests.tools.documented import files

ROOT = project_root()
RESULTS = ROOT / "runs" / "mutants" / "results.jsonl"
MEMORY = 16 * 2**30  # bytes of addresses that a test may have: a mutant may ask for more than there is
SLOWER = 4  # times the seconds of the processor that tests take which pass
WAITS = 30  # times as many seconds by the clock, on a machine that does other things too

# comparisons, arithmetic, and/or/not, True and False, numbers, break and continue, exceptions that are caught
KINDS = re.compile(
    r"core/(Replace(?:Binary|Comparison|Unary)Operator|Replace(?:True|False|And|Or|Break|Continue)With|AddNot"
    r"|NumberReplacer|ExceptionReplacer)"
)
SAME = re.compile(r"_(Eq_Is|NotEq_IsNot|Is_Eq|IsNot_NotEq)$")  # of constants and None they are alike
DATA = "tests/test_properties_data.py"
SCORES = "tests/test_properties_evaluation.py"
LAYERS = ("tests/test_layers.py", "tests/test_properties_layers.py")
SLOW = "not (process or command or variant or another_corpus or vocabulary_can or prepared_folder or help)"
TESTS = {  # what pytest is told: tests that belong to a module, without those that take long or look at the clock
    "lib/evaluation/metrics.py": (
        "tests/test_metrics.py",
        "tests/test_words.py",
        SCORES,
        "-k",
        "metrics or rouge or recall or letters or repetition",
    ),
    "lib/evaluation/bootstrap.py": ("tests/test_bootstrap.py", SCORES, "-k", "bootstrap or interval or paired"),
    "lib/data/sentences.py": ("tests/test_sentences.py", f"{DATA}::test_sentences_are_the_text", "-k", "not time"),
    "lib/data/words.py": (
        "tests/test_words.py",
        "tests/test_headlines.py",
        "-k",
        "not in_time",
    ),
    "lib/data/characters.py": ("tests/test_words.py", f"{DATA}::test_cleaned_texts", "-k", "not in_time"),
    "lib/layers/pointer.py": (*LAYERS, "tests/test_attentive_rnn.py", "-k", "layers or shortlist"),
    "lib/layers/coverage.py": LAYERS,
    "lib/decoding/search.py": ("tests/test_generate.py", "tests/test_properties_runs.py", "-k", "not resumed"),
    "companion/studies/windows.py": ("tests/test_windows_on_papers.py",),
    "lib/models/windowed.py": (
        "tests/test_windowed.py",
        "tests/test_windows.py",
        "tests/test_windowed_statements.py",
    ),
    "lib/data/prepared.py": ("tests/test_data.py", "-k", "not workers"),
    "lib/papers/paper.py": ("tests/test_papers.py", "tests/test_results.py", "-k", "papers and not fifth or of_runs"),
    "lib/training/folder.py": (
        "tests/test_runs.py",
        "tests/test_train.py",
        "tests/test_untrusted.py",
        "-k",
        f"{SLOW} and not untrusted or values_of_a_config",
    ),
    "lib/training/loop.py": (
        "tests/test_threads.py",
        "tests/test_train.py",
        "-k",
        f"{SLOW} or second_process or several_processes or processes_give",
    ),
    "lib/layers/kernels.py": ("tests/test_kernels.py", LAYERS[1]),
}
# Mutants that do what the module does: {module: {part of the changed line: why}}.
EQUIVALENT: dict[str, dict[str, str]] = {
    "lib/evaluation/metrics.py": {
        "maxsize=2<<17": "a cache of another size",
        "maxsize= 1**17": "a cache of another size",
    },
    "lib/evaluation/bootstrap.py": {"@dataclass(frozen=False": "nothing assigns to its fields"},
    "lib/data/characters.py": {
        "range(0xE0000, 918015)": "U+E01FF is no character",
        "range( 917503, 0xE0200)": "U+DFFFF is no character",
        "range( 57343, 0x20000)": "U+DFFF is half of one",
        "code - 0:": "neighbours stand one by one in place of a range",
        "ranges[- 0][1]": "neighbours stand one by one in place of a range",
        "range( 917505, 0xE0200)": "U+E0000 is no character",
    },
    "lib/layers/pointer.py": {"(features)[0][..., -1], torch.inf": "only its shape counts"},
    "lib/layers/coverage.py": {
        "compiled(inputs[ -1])": "all inputs are of one type, on one device",
        "keys.shape[2] ** queries.shape[1]": "documents are cut into other groups",
    },
    "lib/decoding/search.py": {
        "batch.unknown), default= -1": "no batch is without documents",
        "gather(1, place)[:, -1]": "there is one column",
        "batch_size: int = 17": "batches of another size",
        "@dataclass(frozen=False": "nothing assigns to its fields",
    },
    "companion/studies/windows.py": {"sizes, before = [], 1": "[SLIDE] has another id"},
    "lib/models/windowed.py": {
        "int(windows.min()) % stride": "more words are looked at, those before the windows with weight 0",
        "behind > -1": "the only window of a text has no end that counts",
    },
    "lib/data/prepared.py": {
        "@dataclass(frozen=False": "nothing assigns to its fields",
    },
    "lib/papers/paper.py": {"@dataclass(frozen=False": "nothing assigns to its fields"},
    "lib/training/loop.py": {
        "made: bool = True": "its only caller says which",
        "self.rank <= 0": "no rank is below 0",
        "SGD(model.parameters(), **common, fused=False": "the same numbers to the bit, in more calls",
        "zero_grad(set_to_none=False": "every parameter has a gradient in every update",
    },
    "lib/layers/kernels.py": {"range( 0, LANES)": "the first is compared with itself"},
}
TABLE = {
    "table": "mutants_table",
    "title": "Mutants",
    "columns": ["drawn", "killed", "survived", "equivalent", "killed of those not equivalent"],
}


@dataclass(frozen=True)
class Mutant:
    """A module with one change."""

    module: str
    line: int
    was: str
    now: str
    text: str

    @property
    def key(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


def drawn(module: str, seed: int) -> Iterator[Mutant]:
    """Mutants of a module in random order, each at another place or of another kind."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    source, draw = (ROOT / module).read_text(encoding="utf-8"), random.Random(f"{seed} {module}")
    places = sorted(_places(source).items())
    draw.shuffle(places)
    for _, changes in places:
        operator, occurrence = draw.choice(changes)
        text = mutate_code(source, get_operator(operator)(), occurrence)
        if _compiles(text):
            pairs = enumerate(zip(source.splitlines(), text.splitlines()), start=1)
            line, was, now = next((i, was.strip(), now.strip()) for i, (was, now) in pairs if was != now)
            yield Mutant(module, line, was, now, text)


def _compiles(text: str) -> bool:
    """The stars of {**a} are taken for an operator, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            return bool(compile(text, "mutant", "exec"))
        except SyntaxError:
            return False


def _places(source: str) -> dict[tuple, list[tuple[str, int]]]:
    """(line, column, kind) -> operators that change something there, each with the how manieth of its changes it is.
    What a type is said to be is left out."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    nodes, types = list(ast_nodes(get_ast(source))), _annotations(source)
    places = defaultdict(list)
    for name in operator_names():
        if (kind := KINDS.match(name)) and not SAME.search(name):
            operator = get_operator(name)()
            starts = (start for node in nodes for start, _ in operator.mutation_positions(node))
            for occurrence, start in enumerate(starts):
                if not any(begin <= start < end for begin, end in types):
                    places[(*start, kind[1])].append((name, occurrence))
    return places


def _annotations(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    fields = (
        (getattr(node, "annotation", None), getattr(node, "returns", None)) for node in ast.walk(ast.parse(source))
    )
    spans = [node for pair in fields for node in pair if node is not None]
    return [((n.lineno, n.col_offset), (n.end_lineno, n.end_col_offset)) for n in spans]


class Copy:
    """A copy of the project, in which the tests of one module after the other are run."""

    def __init__(self, folder: Path):
        self.folder = folder
        for name in files():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)

    def passes(self, module: str, seconds: float | None = None, mutant: bool = False) -> bool:
        """Whether the module's tests pass, in so many seconds of the processor. They run in a fork of this process,
        which has imported all packages but the project's own."""
        with tempfile.TemporaryDirectory() as fresh:
            compiled = fresh if module.endswith("kernels.py") else str(self.folder / "compiled")
            arguments = (self.folder, TESTS[module], compiled, seconds, mutant)
            process = multiprocessing.get_context("fork").Process(target=_test, args=arguments)
            process.start()
            process.join(seconds and WAITS * seconds)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what tests have started, too
            process.join()
            return process.exitcode == 0

    def tests_of(self, module: str) -> str:
        """What tells whether the tests of a module have changed."""
        paths = [self.folder / name.partition("::")[0] for name in TESTS[module] if name.startswith("tests/")]
        contents = (path.read_bytes() for path in paths)
        return hashlib.sha256(b"".join((repr(TESTS[module]).encode(), *contents))).hexdigest()[:16]

    def outcomes(self, module: str, mutants: list[Mutant], ends: float) -> Iterator[tuple[Mutant, str]]:
        """Mutants with what became of them, until the time is over. Raises ValueError where the
        tests of the module itself fail."""
        if not mutants or time.monotonic() > ends:
            return
        begun = _cpu(resource.RUSAGE_CHILDREN)
        if not self.passes(module):
            raise ValueError(f"{module}: its tests fail without a change")
        seconds = SLOWER * (_cpu(resource.RUSAGE_CHILDREN) - begun)
        for mutant in takewhile(lambda _: time.monotonic() < ends, mutants):
            (self.folder / module).write_text(mutant.text, encoding="utf-8")
            yield mutant, "survived" if self.passes(module, seconds, mutant=True) else "killed"
        shutil.copy2(ROOT / module, self.folder / module)


def _cpu(whose: int = resource.RUSAGE_SELF) -> float:
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime


def _test(folder: Path, tests: tuple[str, ...], compiled: str, seconds: float | None, mutant: bool) -> None:
    """Run tests in a copy of the project and end the process, which is new, with pytest's status."""
    os.setsid()
    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if seconds:
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(_cpu() + seconds),) * 2)
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    os.environ.update(PYTHONPATH=str(folder), NUMBA_CACHE_DIR=compiled, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    numba.config.CACHE_DIR, sys.dont_write_bytecode = compiled, mutant
    for name in [name for name in sys.modules if name.partition(".")[0] in ("lib", "tests")]:
        del sys.modules[name]
    sys.path.insert(0, str(folder))
    options = ["-x", "-q", "-o", "addopts=", "-p", "no:cacheprovider", "--basetemp", "temporary"]
    os._exit(pytest.main([*options, *tests]))


def run(modules: list[str], seed: int, each: int, minutes: float) -> dict[str, list[dict]]:
    """The results of each module's mutants: those that are known, and those that are run now, in so many minutes."""
    results, ends = {}, time.monotonic() + 60 * minutes
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder))
        for module in modules:
            known, tests = _known(), copy.tests_of(module)
            mutants = list(islice(drawn(module, seed), each))
            left = [m for m in mutants if known.get(m.key, {}).get("outcome") != "killed"]
            left = [m for m in left if known.get(m.key, {}).get("tests") != tests]
            for mutant, outcome in copy.outcomes(module, left, ends):
                place = {"module": module, "line": mutant.line, "was": mutant.was, "now": mutant.now}
                result = {"outcome": outcome, **place, "key": mutant.key, "tests": tests}
                print(f"{outcome}: {module}:{mutant.line}: {mutant.was}  ->  {mutant.now}", flush=True)
                with RESULTS.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(result, ensure_ascii=False) + "\n")
            known = _known()
            results[module] = [known[m.key] for m in mutants if m.key in known]
    return results


def _known() -> dict[str, dict]:
    """The last result of each mutant that was run, by its key."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    return {result["key"]: result for result in map(json.loads, lines)}


def row(results: list[dict]) -> list[str | int]:
    """A line of the table. Raises ValueError for a mutant that is said to be equivalent and was killed."""
    equal = [one for one in results if any(part in one["now"] for part in EQUIVALENT.get(one["module"], ()))]
    if wrong := [one["now"] for one in equal if one["outcome"] == "killed"]:
        raise ValueError(f"killed, so not equivalent: {wrong}")
    killed, drawn = sum(one["outcome"] == "killed" for one in results), len(results)
    other = drawn - len(equal)
    share = f"{100 * killed / other:.0f}%" if other else ""
    return [drawn, killed, other - killed, len(equal), share]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help="by default all")
    parser.add_argument("--each", type=int, default=15, help="mutants of each module")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=math.inf, help="then no other mutant is begun")
    parser.add_argument("--keep", action="store_true", help="put the counts into docs/robustness.md")
    args = parser.parse_args(arguments)
    if find_spec("cosmic_ray") is None:
        parser.error('the changes are those of cosmic-ray: pip install -c constraints.txt -e ".[mutants]"')
    for package in ("hypothesis", "pandas", "rouge_score.rouge_scorer", "scipy.stats", "torch"):
        import_module(package)  # once, not in each of the processes that are forked
    results = run(args.modules or list(TESTS), args.seed, args.each, args.minutes)
    lines = {f"`{module}`": row(of_module) for module, of_module in results.items()}
    lines["**all**"] = row([one for of_module in results.values() for one in of_module])
    for module, counts in lines.items():
        print(module, *counts)
    if args.keep:
        command = f"python -m tests.tools.mutants --each {args.each} --seed {args.seed}"
        write_json(ROOT / "figures" / "mutants_table.json", {**TABLE, "command": command, "lines": lines})
        import_module("companion.results.kept").render()


if __name__ == "__main__":
    main()
