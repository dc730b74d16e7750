"""Mutants: would the tests notice a fault? Small changes, drawn at random, are made in a module, one at a time in a
copy of the project, and the tests that belong to the module are run.

    pip install -c constraints.txt -e ".[mutants]"  # cosmic-ray: the changes are its operators'
    python -m tests.tools.mutants --each 8 --seed 4 lib/data/tokenize.py lib/training/loop.py
    python -m tests.tools.mutants --each 8 --seed 4    # of every module that has tests here

A mutant is killed if a test fails or takes too long; it survives if all pass. One line of JSON for each is added to
runs/mutants.jsonl, and mutants that stand there are not run again.
"""

import ast
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from lib.system.command_line import command_parser
from lib.system.files import project_root

ROOT = project_root()
RESULTS = ROOT / "runs" / "mutants.jsonl"
SECONDS = 300  # tests of a module take less
# comparisons, arithmetic, and/or/not, True and False, numbers, break and continue, exceptions that are caught
KINDS = re.compile(
    r"core/(Replace(?:Binary|Comparison|Unary)Operator|Replace(?:True|False|And|Or|Break|Continue)With|AddNot"
    r"|NumberReplacer|ExceptionReplacer)"
)
SAME = re.compile(r"_(Eq_Is|NotEq_IsNot|Is_Eq|IsNot_NotEq)$")  # alike for constants and None
TESTS = {  # the tests of a module, as arguments of pytest
    "lib/evaluation/rouge.py": "test_rouge test_properties_evaluation test_support",
    "lib/evaluation/bootstrap.py": "test_bootstrap test_properties_evaluation",
    "lib/data/sentences.py": "test_sentences test_properties_data",
    "lib/data/tokenize.py": "test_tokenize test_properties_data test_headlines",
    "lib/data/characters.py": "test_tokenize test_properties_data",
    "lib/layers/pointer.py": "test_layers test_properties_layers test_attentive_rnn",
    "lib/layers/coverage.py": "test_layers test_properties_layers",
    "lib/decoding/search.py": "test_generate test_properties_runs",
    "lib/models/windowed.py": "test_windowed test_models",
    "lib/models/mem2mem.py": "test_mem2mem test_models",
    "lib/models/read_again.py": "test_read_again test_models",
    "lib/papers/paper.py": "test_papers test_results",
    "lib/training/folder.py": "test_runs test_train",
    "lib/training/loop.py": "test_train test_gpu",
    "companion/studies/windows.py": "test_studies",
}


def drawn(module: str, seed: int) -> Iterator[tuple[int, str, str, str]]:
    """Yield mutants of a module in random order: line, old and new text of the line, new source."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names

    source, draw = (ROOT / module).read_text(encoding="utf-8"), random.Random(f"{seed} {module}")
    nodes, types = list(ast_nodes(get_ast(source))), _annotations(source)
    places: dict[tuple, list[tuple[str, int]]] = {}
    for name in operator_names():
        if not (kind := KINDS.match(name)) or SAME.search(name):
            continue
        operator = get_operator(name)()
        starts = (start for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, start in enumerate(starts):
            if not any(begin <= start < end for begin, end in types):
                places.setdefault((*start, kind[1]), []).append((name, occurrence))
    shuffled = sorted(places.items())
    draw.shuffle(shuffled)
    for _, changes in shuffled:
        name, occurrence = draw.choice(changes)
        text = mutate_code(source, get_operator(name)(), occurrence)
        pairs = enumerate(zip(source.splitlines(), text.splitlines()), start=1)
        line, was, now = next((number, was.strip(), now.strip()) for number, (was, now) in pairs if was != now)
        yield line, was, now, text


def _annotations(source: str) -> list[tuple]:
    """Places of types, which do nothing when the code runs."""
    nodes = ast.walk(ast.parse(source))
    found = [part for node in nodes for part in (getattr(node, "annotation", None), getattr(node, "returns", None))]
    return [((n.lineno, n.col_offset), (n.end_lineno, n.end_col_offset)) for n in found if n is not None]


def passes(folder: Path, module: str, compiled: str) -> bool:
    """Run the tests of a module in a copy of the project; False if one fails or they take too long."""
    tests = [f"tests/{name}.py" for name in TESTS[module].split()]
    options = ["-x", "-q", "-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:nbval"]
    environment = os.environ | {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": compiled, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", *options, *tests]
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main(arguments: list[str] | None = None) -> None:
    parser = command_parser("tests.tools.mutants", __doc__)
    parser.add_argument("modules", nargs="*", help="by default all that have tests here")
    parser.add_argument("--each", type=int, default=8, help="mutants of each module")
    parser.add_argument("--seed", type=int, default=4)
    args = parser.parse_args(arguments)
    RESULTS.parent.mkdir(exist_ok=True)
    known = [json.loads(line) for line in RESULTS.open(encoding="utf-8")] if RESULTS.exists() else []
    outcomes = {one["key"]: one["outcome"] for one in known}
    counts: Counter = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
        for file in filter(None, listed.stdout.split("\0")):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, folder / file)
        for module in args.modules or TESTS:
            for _, (line, was, now, text) in zip(range(args.each), drawn(module, args.seed)):
                key = hashlib.sha256(text.encode()).hexdigest()[:16]
                if key not in outcomes:
                    (folder / module).write_text(text, encoding="utf-8")
                    outcomes[key] = "survived" if passes(folder, module, str(folder / "compiled")) else "killed"
                    place = {"module": module, "line": line, "was": was, "now": now}
                    with RESULTS.open("a", encoding="utf-8") as lines:
                        lines.write(json.dumps({"key": key, "outcome": outcomes[key], **place}) + "\n")
                    print(f"{outcomes[key]}: {module}:{line}: {was}  ->  {now}", flush=True)
                counts[module, outcomes[key]] += 1
            shutil.copy2(ROOT / module, folder / module)
            print(f"{module}: {counts[module, 'killed']} killed, {counts[module, 'survived']} survived")


if __name__ == "__main__":
    main()
