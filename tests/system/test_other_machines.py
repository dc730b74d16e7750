"""Machines that are not the author's: read-only checkouts and caches."""

import errno
import os
from pathlib import Path

import pytest

from lib.decoding.run import Run
from lib.system import files
from lib.system.command_line import plain_errors
from lib.system.files import cache_dir, cached, temporary_folder, work_folder, write_whole
from lib.train import draw_losses
from lib.training import loop as training
from tests.training.test_train import CONFIG, MEM2MEM, model


@pytest.fixture
def no_rights(tmp_path, monkeypatch):
    """A checkout and a home in which nothing can be written; a function opens a folder again."""
    monkeypatch.delenv("COMPANION_CACHE")
    monkeypatch.setattr(files, "_checkout", lambda: tmp_path / "checkout")
    monkeypatch.setattr(files, "_user_folder", lambda kind: tmp_path / "home" / kind)
    closed = {tmp_path / "checkout", tmp_path / "home"}
    for folder in closed:
        folder.mkdir()
    access = os.access

    def asked(path, how):
        return (
            how == os.R_OK and access(path, how)
            if closed & {path, *path.parents}
            else access(path, how)
        )

    monkeypatch.setattr(os, "access", asked)
    for function in (files.say_once, temporary_folder):
        function.cache_clear()
    return closed.discard


def test_folders_where_the_checkout_cannot_be_written(no_rights, tmp_path, capsys):
    """The user's are used, or a temporary one; each is reported once."""
    for _ in range(2):
        assert (
            work_folder() == temporary_folder() / "runs"
            and cache_dir() == temporary_folder() / "cache"
        )
    assert len(capsys.readouterr().err.splitlines()) == 2
    no_rights(tmp_path / "home")
    assert (work_folder(), cache_dir()) == (tmp_path / "home" / "runs", tmp_path / "home" / "cache")
    no_rights(tmp_path / "checkout")
    assert (work_folder(), cache_dir()) == (
        tmp_path / "checkout" / "runs",
        tmp_path / "checkout" / "cache",
    )


def test_a_read_only_cache_is_used_for_what_it_has(no_rights, tmp_path):
    no_rights(tmp_path / "home")
    whole = tmp_path / "checkout" / "cache" / "whole"
    whole.mkdir(parents=True)
    (whole / "prepared.json").write_text("{}", encoding="utf-8")
    (whole.parent / "half").mkdir()
    assert cached("whole", "prepared.json") == whole
    assert cached("half", "prepared.json") == tmp_path / "home" / "cache" / "half"


def test_a_named_cache_is_not_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert cache_dir() == tmp_path / "cache" and cached("a") == tmp_path / "cache" / "a"


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    write_whole(tmp_path / "new" / "a", "first")

    def fails(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="no space"):
        write_whole(tmp_path / "new" / "a", "second")
    assert [
        (path.name, path.read_text(encoding="utf-8")) for path in (tmp_path / "new").iterdir()
    ] == [("a", "first")]


def test_the_file_that_a_full_disk_stops_is_named(tmp_path, monkeypatch):
    """The system's own error names no file."""

    def fails(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fails)
    path = tmp_path / "last.safetensors"
    with pytest.raises(SystemExit) as stopped, plain_errors():
        write_whole(path, "first")
    assert stopped.value.code == f"error: {path}: No space left on device"
    assert not list(tmp_path.iterdir())


FULL = Path("/dev/full")  # the system fails each write to it, as on a full disk


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_a_log_and_a_picture_on_a_full_disk_are_named(tmp_path, planted_corpus):
    loop = training._Loop(MEM2MEM, model(), planted_corpus, CONFIG, tmp_path)
    run = Run(tmp_path, {}, None, encoder=None)  # type: ignore[arg-type]
    run.metrics = [{"split": "train", "step": 1, "loss": 1.0}]
    for name, write in {
        "metrics.jsonl": lambda: loop.files.log({"step": 1}),
        "curve.png": lambda: draw_losses(run),
    }.items():
        (tmp_path / name).symlink_to(FULL)
        with pytest.raises(OSError, match="No space left on device") as stopped:
            write()
        assert stopped.value.filename == str(tmp_path / name)
