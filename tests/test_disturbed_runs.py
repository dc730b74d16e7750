"""A few of the conditions of `tests.tools.torture_runs`, and two trainings at once."""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from lib.system.files import project_root
from tests.tools.torture_runs import (
    CONDITIONS,
    NAMES,
    Undisturbed,
    completed,
    contents,
    disk_fills,
    killed,
    main,
    odd_names,
    trained_at_once,
)

linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked, which is safe on Linux alone")


@pytest.fixture(scope="module")
def right(tmp_path_factory):
    return Undisturbed(tmp_path_factory.mktemp("right"))


@linux
@pytest.mark.parametrize("seed", range(3))
def test_kills_at_random_moments_change_no_byte(right, tmp_path, seed):
    count = killed(np.random.default_rng(seed), right, tmp_path / "run", most=4)
    assert count["killed"] + count["by Ctrl-C"] >= 1


@linux
def test_a_run_that_ends_before_it_is_killed_is_begun_again(right, tmp_path, monkeypatch):
    monkeypatch.setattr(right, "seconds", dict.fromkeys(right.seconds, 60.0))
    count = killed(np.random.default_rng(0), right, tmp_path / "run", most=1)
    assert count["too late"] >= 1 and count["killed"] + count["by Ctrl-C"] == 1


@linux
def test_a_full_disk_keeps_the_last_checkpoint(right, tmp_path):
    assert disk_fills(np.random.default_rng(1), right, tmp_path / "run").total() >= 1


@linux
@pytest.mark.parametrize("name", NAMES)
def test_names_of_folders_and_the_working_directory_change_nothing(right, tmp_path, monkeypatch, name):
    monkeypatch.setattr("tests.tools.torture_runs.NAMES", (name,))
    odd_names(np.random.default_rng(0), right, tmp_path / "a folder")


@linux
def test_a_difference_is_found(right, tmp_path):
    completed("mem2mem", tmp_path)
    right.check("mem2mem", tmp_path, "as it is")
    for path in (tmp_path / "best.safetensors", tmp_path / "metrics.jsonl"):
        whole = path.read_bytes()
        path.write_bytes(whole.replace(b"5", b"6", 1) if path.suffix == ".jsonl" else whole[:-1] + b"\x01")
        with pytest.raises(AssertionError, match=path.name):
            right.check("mem2mem", tmp_path, "changed")
        path.write_bytes(whole)


def test_what_was_never_tried_is_no_success(monkeypatch, capsys):
    monkeypatch.setattr("tests.tools.torture_runs.Undisturbed", lambda folder: None)
    assert main(["--minutes", "0"]) == 1
    assert capsys.readouterr().out.startswith("never tried: trainings that are stopped, full disks, odd folders. ")
    some = {what: lambda *_: Counter({"so": 2}) for what in CONDITIONS}
    monkeypatch.setattr("tests.tools.torture_runs.CONDITIONS", some)
    assert main(["--minutes", "0.0001"]) == 0
    monkeypatch.setitem(some, "full disks", lambda *_: Counter())
    assert main(["--minutes", "0.0001"]) == 1
    assert "never tried: full disks. " in capsys.readouterr().out


def test_runs_that_differ_stay_to_be_looked_at(tmp_path, monkeypatch, capsys):
    def differs(_, __, folder):
        folder.mkdir()
        raise AssertionError(f"weights differ in {folder}")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("tests.tools.torture_runs.Undisturbed", lambda folder: None)
    monkeypatch.setattr("tests.tools.torture_runs.CONDITIONS", {"full disks": differs})
    assert main(["--minutes", "0.01"]) == 1
    assert Path(capsys.readouterr().out.split(" in ")[-1].strip()).is_dir()


def test_two_trainings_at_once_finish(tmp_path, monkeypatch):
    """One prepares the corpus while the other waits; then both train, to the same weights."""
    monkeypatch.chdir(project_root())
    runs = trained_at_once(tmp_path)
    for process in runs:
        assert process.returncode == 0, process.stdout.read().decode()
    first, second = (contents(tmp_path / str(n)) for n in range(2))
    assert first == second and "last.safetensors" in first
