"""The properties of `tests/test_properties_*.py` on many generated examples, other ones for every seed.

    python -m tests.tools.torture_properties --minutes 5     # or: make torture
    python -m tests.tools.torture_properties --minutes 5 --seed 7 --keep     # the counts into docs/robustness.md

Every property is tried in turn, on as many examples as `make test` has, until the time is over. Ends with the
smallest example of the first that does not hold, and with status 1 where one was never tried.
"""

import argparse
import sys
import time
from collections import Counter
from importlib import import_module

from companion.results.kept import render
from lib.system.files import project_root, write_json
from tests.properties import Property

TABLE = {
    "table": "properties_table",
    "title": "Properties tried",
    "columns": ["examples in `make test`", "examples in `make torture`", "outcome"],
}


def properties() -> list[Property]:
    """All properties, in the order of their files."""
    paths = sorted((project_root() / "tests").glob("test_properties_*.py"))
    functions = (f for path in paths for f in vars(import_module(f"tests.{path.stem}")).values())
    return [function.property for function in functions if isinstance(getattr(function, "property", None), Property)]


def campaign(those: list[Property], minutes: float, seed: int) -> Counter:
    """How many examples of each property were tried, by what it says."""
    tried, ends = Counter(), time.monotonic() + 60 * minutes
    while time.monotonic() < ends:
        for one in those:
            tried[one.says] += one.tried(seed, one.few)
        seed += 1
    return tried


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", action="store_true", help="put the counts into docs/robustness.md")
    args = parser.parse_args(arguments)
    print(f"seed {args.seed}")
    those = properties()
    tried = campaign(those, args.minutes, args.seed)
    if never := [one.says for one in those if not tried[one.says]]:
        print(f"never tried: {' '.join(never)} Give it more --minutes.")
        return 1
    for says, count in tried.items():
        print(f"{count:,}: {says}")
    if args.keep:
        lines = {one.says: [one.few, f"{tried[one.says]:,}", "held"] for one in those}
        command = f"python -m tests.tools.torture_properties --minutes {args.minutes:g} --seed {args.seed}"
        write_json(
            project_root() / "figures" / "properties_table.json", {**TABLE, "command": command, "lines": lines}
        )
        render()
    return 0


if __name__ == "__main__":
    sys.exit(main())
