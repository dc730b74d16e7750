"""Work in pieces, each of which leaves a file of JSON: what was done is not done again, unless the
code has changed.

Pieces whose names begin alike (`step/mem2mem/float32`, `step/mem2mem/bf16`) run in one process, for
at most eight minutes; a piece that was cut off is done by the next run.
"""

import math
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from fnmatch import fnmatch
from itertools import groupby
from pathlib import Path
from typing import Any

from companion.results.tables import slug
from lib.system.errors import InputError
from lib.system.files import project_root, read_numbers, write_json
from lib.system.fingerprints import code_digest

LIMIT = 480  # seconds of a process on a GPU
LONGER = 7200  # where no GPU computes
Pieces = dict[str, Callable[[str], dict]]  # name -> what does it on a device by name


def chosen(names: Iterable[str], patterns: list[str]) -> list[str]:
    """Names that fit a pattern, such as `step/*`; without patterns all. Raises InputError where
    none fits one."""
    names = list(names)
    for pattern in patterns:
        if not any(fnmatch(name, pattern) for name in names):
            kinds = ", ".join(sorted({name.partition("/")[0] + "/*" for name in names}))
            raise InputError(
                f"no piece is called {pattern!r}; there are {kinds} (--list names all)"
            )
    return [
        name
        for name in names
        if not patterns or any(fnmatch(name, pattern) for pattern in patterns)
    ]


def path_of(folder: Path, name: str) -> Path:
    return folder / f"{slug(name)}.json"


def code(name: str) -> str:
    """What a piece was made by: the code of the library that it runs, and of the plan's or of the
    checks'."""
    kind = name.partition("/")[0]
    commands = ["lib.train", "lib.score", "lib.intervene"] if kind == "commands" else []
    own = ["tests.gpu.plan"] if kind == "count" else ["tests.gpu.checks"]
    return code_digest(*own, *commands)


def finished(folder: Path, name: str) -> dict | None:
    """What a piece has left, if this code has made it."""
    path = path_of(folder, name)
    if not path.is_file():
        return None
    made = read_numbers(path, "piece", ("piece", "code"))
    return made if made["code"] == code(name) and made["piece"] == name else None


def do(names: list[str], device: str, folder: Path, until: float = math.inf) -> list[str]:
    """Do what is not finished or has failed, group by group, until a time of `time.monotonic`.
    Returns the names of the pieces that are not there afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    for group, members in groupby(names, key=lambda name: name.rpartition("/")[0]):
        waiting = [name for name in members if not _is_well(finished(folder, name))]
        limit = min(LIMIT if device == "cuda" else LONGER, until - time.monotonic())
        if waiting and limit > 0:
            print(f"{group}: {len(waiting)} to do", flush=True)
            _in_a_process(waiting, device, folder, limit)
    return [name for name in names if finished(folder, name) is None]


def _is_well(made: dict | None) -> bool:
    return made is not None and made.get("ok", True)  # the plan's pieces do not judge


def _in_a_process(names: list[str], device: str, folder: Path, limit: float) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.gpu",
        "piece",
        *names,
        "--device",
        device,
        "--folder",
        str(folder),
    ]
    # what `resume` needs to be deterministic
    environment = {**os.environ, "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    try:
        done = subprocess.run(command, cwd=project_root(), env=environment, timeout=limit)
    except subprocess.TimeoutExpired:
        print(f"  stopped after {limit:.0f} seconds: the same command goes on", flush=True)
        return
    if done.returncode:
        print(f"  ended with status {done.returncode}: see above", flush=True)


def do_here(names: list[str], pieces: Pieces, device: str, folder: Path) -> None:
    """Do pieces in this process, and write down each. An error is printed, and its piece is not
    done."""
    for name in names:
        started = time.perf_counter()
        try:
            made: dict[str, Any] = {
                "piece": name,
                "device": device,
                "code": code(name),
                **pieces[name](device),
            }
        except Exception:  # of a kind that nobody has foreseen: the others are done all the same
            traceback.print_exc()
            continue
        made["took"] = round(time.perf_counter() - started, 1)
        write_json(path_of(folder, name), made)
        print(f"  {name}: {made['took']} s", flush=True)
