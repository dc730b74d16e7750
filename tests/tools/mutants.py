"""Mutants: would the tests notice a fault? Small changes, drawn at random, are made in a module,
one at a time in a copy of the project, and the tests that belong to the module are run.

    pip install -c constraints.txt -e ".[mutants]"  # cosmic-ray makes the changes
    python -m tests.tools.mutants --each 8 --seed 4 lib/data/tokenize.py lib/training/loop.py
    python -m tests.tools.mutants --each 8 --seed 4    # of every module that has tests here

A mutant is killed if a test fails or takes too long; it survives if all pass. Survivors are
printed.
"""

import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from lib.system.command_line import run_command
from lib.system.files import project_root

ROOT = project_root()
SECONDS = 300  # tests of a module take less
# comparisons, arithmetic, and/or/not, True and False, numbers, break and continue, exceptions that
# are caught
KINDS = re.compile(
    r"core/(Replace(?:Binary|Comparison|Unary)Operator|Replace(?:True|False|And|Or|Break|Continue)With|AddNot"
    r"|NumberReplacer|ExceptionReplacer)"
)
SAME = re.compile(r"_(Eq_Is|NotEq_IsNot|Is_Eq|IsNot_NotEq)$")  # alike for constants and None
# of a module
TESTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def draw(module: str, count: int, seed: int) -> list[Any]:
    """Draw some places of a module at random, and a change at each. In types, changes would do
    nothing."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names
    from cosmic_ray.work_item import MutationSpec

    source, random_numbers = (
        (ROOT / module).read_text(encoding="utf-8"),
        random.Random(f"{seed} {module}"),
    )
    nodes, types = list(ast_nodes(get_ast(source))), _annotations(source)
    changes: dict[tuple, list[MutationSpec]] = {}
    for name in operator_names():
        if not (kind := KINDS.match(name)) or SAME.search(name):
            continue
        operator = get_operator(name)()
        places = (place for node in nodes for place in operator.mutation_positions(node))
        for occurrence, (start, end) in enumerate(places):
            if not any(first <= start < last for first, last in types):
                change = MutationSpec(module, name, occurrence, start, end)
                changes.setdefault((*start, kind[1]), []).append(change)
    chosen = random_numbers.sample(sorted(changes), min(count, len(changes)))
    return [random_numbers.choice(changes[place]) for place in chosen]


def _annotations(source: str) -> list[tuple]:
    """Find the places of types."""
    nodes = ast.walk(ast.parse(source))
    found = [
        part
        for node in nodes
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None))
    ]
    return [
        ((n.lineno, n.col_offset), (n.end_lineno, n.end_col_offset)) for n in found if n is not None
    ]


def try_mutants(modules: tuple[str, ...] = (), /, *, each: int = 8, seed: int = 4) -> None:
    """Make changes, and run tests.

    Args:
        modules: by default all that have tests here.
        each: mutants of each module.
    """
    from cosmic_ray.mutating import mutate_and_test
    from cosmic_ray.testing import run_tests

    with tempfile.TemporaryDirectory() as folder:
        files = subprocess.run(
            ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        for file in files.splitlines():
            (Path(folder) / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, Path(folder) / file)
        os.chdir(folder)
        os.environ |= {
            "PYTHONPATH": folder,
            "NUMBA_CACHE_DIR": f"{folder}/compiled",
            "OMP_NUM_THREADS": "1",
        }
        options = "-x -q -o addopts= -p no:cacheprovider -p no:nbval"
        places = {path.stem: str(path) for path in Path("tests").glob("*/test_*.py")}
        for module in modules or TESTS:
            tests = re.sub(r"\btest_\w+", lambda found: places[found[0]], TESTS[module])
            command = f"{sys.executable} -m pytest {options} {tests}"
            outcome, output = run_tests(command, SECONDS)
            if outcome.value != "survived":  # every mutant would count as killed
                raise SystemExit(f"The tests of {module} fail without a mutant.\n{output}")
            outcomes: Counter[str] = Counter()
            for change in draw(module, each, seed):
                result = mutate_and_test([change], command, SECONDS)
                outcomes[str(result.test_outcome.value)] += 1
                if result.test_outcome == "survived":
                    print(result.diff, flush=True)
            print(f"{module}: {dict(outcomes)}", flush=True)


main = partial(run_command, "tests.tools.mutants", __doc__, try_mutants)

if __name__ == "__main__":
    main()
