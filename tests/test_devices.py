"""Models on another device than the CPU, without one: the tests of `on_pretend_device.py`, in their own process."""

import os
import subprocess
import sys

import pytest

from lib.system.files import project_root


def on_pretend_device(*arguments: str) -> None:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "tests/on_pretend_device.py", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, cwd=project_root(), timeout=1800,
        env={**own, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_model_of_each_kind():
    on_pretend_device("-m", "not long")


@pytest.mark.long
def test_every_variant_and_the_kept_runs():
    on_pretend_device("--long", "-m", "long")
