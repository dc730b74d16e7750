"""Models on another device than the CPU, without one: the tests of `on_pretend_device.py`, in their
own process."""

import pytest

from tests.conftest import in_a_process


def on_pretend_device(*arguments: str) -> None:
    done = in_a_process(
        "-m",
        "pytest",
        "tests/training/on_pretend_device.py",
        "-q",
        "-p",
        "no:cacheprovider",
        *arguments,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_model_of_each_kind():
    on_pretend_device("-m", "not long")


@pytest.mark.long
def test_every_variant_and_the_kept_runs():
    on_pretend_device("--long", "-m", "long")
