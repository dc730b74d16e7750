"""Whether the versions that constraints.txt pins can be installed: with all extras, by the lowest
and the highest Python that pyproject.toml promises, on Linux, macOS and Windows. And
requirements.lock made again. Both ask the package index.

    python -m tests.tools.locks            # exit status 1 where a version cannot be installed
    python -m tests.tools.locks make       # writes requirements.lock
"""

import os
import subprocess
import sys
import tomllib
from functools import partial
from itertools import product
from pathlib import Path
from typing import Literal

from lib.system.command_line import run_command
from lib.system.files import project_root, write_whole

PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-apple-darwin", "x86_64-pc-windows-msvc")
# published as source alone; none needs a compiler
NO_WHEELS = ("connection-pool", "rouge-score", "yattag")
CLASSIFIER = "Programming Language :: Python :: "
HEADER = """\
# Exact versions with hashes of all that the project and all of its extras need, on Linux, macOS and Windows, with
# every Python from {lowest} on. Made by `python -m tests.tools.locks make` (uv pip compile --universal
# --generate-hashes) from pyproject.toml and constraints.txt, whose tested versions stand here too. What
# constraints.txt does not pin was resolved, not tested: spaCy and what it needs, what Python 3.12 or another system
# needs, and CUDA's libraries.
# On Linux this is PyTorch's CUDA build (several GB); its CPU build comes from PyTorch's own index, with other hashes.
# pip install --require-hashes -r requirements.lock, or uv pip install -r requirements.lock; then the project itself:
# pip install --no-deps -e ., or uv pip install --no-deps -e .
"""


def promised_pythons(root: Path) -> list[str]:
    """The Pythons of pyproject.toml's classifiers, lowest first; the lowest is the very first
    release that `requires-python` allows. Raises ValueError where both name another lowest one."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [c.removeprefix(CLASSIFIER) for c in project["classifiers"] if c.startswith(CLASSIFIER)]
    pythons = sorted(named, key=lambda python: tuple(map(int, python.split("."))))
    lowest = project["requires-python"].removeprefix(">=")
    if pythons[:1] != [lowest]:
        raise ValueError(
            f"pyproject.toml: requires-python begins at {lowest}, the classifiers at {pythons[:1]}"
        )
    return [f"{lowest}.0", *pythons[1:]]


def unresolved(root: Path, python: str, platform: str) -> str:
    """Why the pins of a project cannot be installed; empty where they can."""
    sources = [f"--no-binary={name}" for name in NO_WHEELS]
    arguments = [
        "--python-version",
        python,
        "--python-platform",
        platform,
        "--only-binary",
        ":all:",
        *sources,
    ]
    done = _compile(root, *arguments)
    return done.stderr.strip() or f"uv: exit status {done.returncode}" if done.returncode else ""


def make_lock(root: Path) -> Path:
    """requirements.lock; where there is one, versions that constraints.txt does not pin stay as
    they are.

    Raises ValueError with uv's reason where the pins contradict each other.
    """
    lowest, path = promised_pythons(root)[0], root / "requirements.lock"
    wanted = [
        "--universal",
        "--generate-hashes",
        "--no-emit-index-url",
        "--no-annotate",
        "--no-header",
    ]
    done = _compile(root, *wanted, "--python-version", lowest, "--output-file", path.name)
    if done.returncode:
        raise ValueError(done.stderr.strip())
    return write_whole(path, HEADER.format(lowest=lowest) + path.read_text(encoding="utf-8"))


def _compile(root: Path, *arguments: str) -> subprocess.CompletedProcess:
    command = [
        sys.executable,
        "-m",
        "uv",
        "pip",
        "compile",
        "--quiet",
        "--all-extras",
        "-c",
        "constraints.txt",
    ]
    macos = {"MACOSX_DEPLOYMENT_TARGET": "14.0"}  # the lowest that PyTorch has wheels for
    return subprocess.run(
        [*command, *arguments, "pyproject.toml"],
        cwd=root,
        env=os.environ | macos,
        capture_output=True,
        text=True,
    )


def check_or_make(command: Literal["check", "make"] = "check", /) -> None:
    """Check that the pins can be installed, or make the lock."""
    if command == "make":
        print(make_lock(project_root()))
        return
    lowest, *_, highest = promised_pythons(project_root())
    for python, platform in product((lowest, highest), PLATFORMS):
        if reason := unresolved(project_root(), python, platform):
            sys.exit(
                f"Python {python}, {platform}: not all pins of constraints.txt can be "
                f"installed\n{reason}"
            )
        print(f"Python {python}, {platform}: all pins can be installed")


main = partial(run_command, "tests.tools.locks", __doc__, check_or_make)

if __name__ == "__main__":
    main()
