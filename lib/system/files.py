"""Folders of the project, and files that are written whole or not at all."""

import errno
import glob
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from lib.system.errors import InputError

PROJECT = "neural-summarization-companion"  # names the folders that it has outside a checkout


def _checkout() -> Path | None:
    """The checkout of the project that `lib` stands in; None where `lib` was installed without one."""
    folder = Path(__file__).resolve().parents[2]
    return folder if (folder / "pyproject.toml").is_file() else None


def project_root() -> Path:
    """The checkout, or the current folder: pages run from anywhere, so they never use relative paths."""
    return _checkout() or Path.cwd()


def check_ours() -> None:
    """Raise InputError where Python takes another folder for `lib`, such as one in the current folder. An editable
    installation lets it find this one's modules all the same."""
    name = __name__.partition(".")[0]
    ours, theirs = Path(__file__).resolve().parents[1], Path(sys.modules[name].__path__[0]).resolve()
    if theirs != ours:
        raise InputError(
            f"{theirs} is in the way: Python takes it for {ours}. Start in another folder (papermill: --cwd FOLDER), "
            "or a command with python -P -m"
        )


def work_folder() -> Path:
    """The folder for what pages make: `runs` in the checkout or the current folder. Where that cannot be written it
    is a folder of the user's, or a temporary one, which is said once."""
    return _writable(project_root() / "runs", "runs")


def trained_folder(name: str) -> Path:
    """The folder of the run that the project keeps of a paper."""
    return project_root() / "trained" / name


def cache_dir() -> Path:
    """The folder of prepared corpora: the environment variable COMPANION_CACHE, or `cache` in the checkout, or the
    user's own cache. Where none is named and the checkout's cannot be written, it is the user's or a temporary one,
    which is said once."""
    return Path(os.environ.get("COMPANION_CACHE") or _writable(_shared_cache(), "cache"))


def cached(name: str, whole: str = "") -> Path:
    """The place of `name`, a path, in the cache: a cache that may only be read counts for what is there.

    whole: the file of a folder `name` that says that all of it is there.
    """
    shared = _shared_cache() / name
    return shared if os.access(shared / whole, os.R_OK) else cache_dir() / name


def _shared_cache() -> Path:
    checkout = _checkout()
    return Path(os.environ.get("COMPANION_CACHE") or (checkout / "cache" if checkout else _of_the_user("cache")))


def _of_the_user(kind: str) -> Path:
    """The user's own "cache" or "runs"."""
    import platformdirs  # here, because what has a folder does not need it

    if kind == "cache":
        return Path(platformdirs.user_cache_dir(PROJECT))
    return Path(platformdirs.user_data_dir(PROJECT)) / kind


def _writable(folder: Path, kind: str) -> Path:
    """The folder; where it cannot be written the user's of this kind, or a temporary one."""
    if not unwritable(folder):
        return folder
    own = _of_the_user(kind)
    if unwritable(own):
        own = temporary_folder() / kind
    say_once(f"{folder} cannot be written; in its place: {own}")
    return own


@cache
def temporary_folder() -> Path:
    """A folder among temporary files, this user's alone and the same for all processes. Where somebody else has taken
    its name it is a new one: what is read there may be code."""
    user = getattr(os, "getuid", lambda: 0)()  # on Windows temporary files are a user's own, and have no other
    folder = Path(tempfile.gettempdir()) / f"{PROJECT}-{user}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()  # of a link, not of what it leads to
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == user and os.access(folder, os.W_OK | os.X_OK)
    return folder if own else Path(tempfile.mkdtemp(prefix=f"{PROJECT}-"))


@cache
def say_once(line: str) -> None:
    """Print a line on standard error, the first time that this process has it to say."""
    print(line, file=sys.stderr, flush=True)


def write_whole(path: str | Path, content: str | bytes) -> Path:
    """Write `content` under a temporary name, then put it in place: a reader never sees half a file, nor does who
    comes after a power failure."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_beside(path)
    temporary.unlink(missing_ok=True)  # of an earlier process; in a folder of somebody else's perhaps a link
    try:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        to_disk(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def check_writable(path: str | Path) -> None:
    """Raise OSError where `write_whole` would after all the work: a folder is there, or none can be made."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if reason := unwritable(path.parent):
        raise reason


def unwritable(folder: Path) -> OSError | None:
    """The reason why nothing can be written in a folder, which need not be there yet; None where it can."""
    # os.path, for which a path that nobody may ask for is not there
    there = next((path for path in (folder.absolute(), *folder.absolute().parents) if os.path.exists(path)), None)
    if there is None:  # a drive that is not here
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
    if not there.is_dir():
        return NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(there))
    if not os.access(there, os.W_OK | os.X_OK):
        return PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(there))
    return None


def would_be_published(path: str | Path) -> bool:
    """Whether a file stands, or would stand, in a Git checkout that does not ignore it."""
    path = Path(path).resolve()  # git follows no link
    there = next(place for place in path.parents if place.is_dir())
    with suppress(OSError):  # without git nothing is committed
        # the checkout may be somebody else's, whose configuration may name programs: git starts none
        asked = ["git", "-c", "core.fsmonitor=false", "check-ignore", "--quiet", str(path)]
        alone = {**os.environ, "GIT_ALLOW_PROTOCOL": "none"}
        done = subprocess.run(asked, cwd=there, env=alone, capture_output=True)
        return done.returncode == 1  # 128: there is no checkout
    return False


def to_disk(path: Path) -> None:
    """Wait until a file's contents are on the disk, and not in the machine's memory alone."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def temporary_beside(path: Path) -> Path:
    """The name under which this process writes a file or a folder until it is whole."""
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def remove_leftovers(folder: str | Path, name: str = "") -> None:
    """Remove what killed processes were writing in `folder`: all of it, or what was to become `name`."""
    for path in Path(folder).glob(f".{glob.escape(name) or '*'}.*.tmp"):
        process = path.name.split(".")[-2]
        if process.isdecimal() and not _lives(int(process)):
            with suppress(PermissionError):  # what another user left
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _lives(process: int) -> bool:
    """Whether there is such a process; where this cannot be asked, there is."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(process, 0)  # asks, and does nothing
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


LOCK_MODE = 0o666  # of the file of a lock: whoever may write in its folder can hold it


@contextmanager
def locked(path: str | Path, what: str, patience: float = 1.0) -> Iterator[None]:
    """Hold a lock: no other process is in a block with the same `path`, a file that is made; who has to wait is told.

    what: that the others do, for the message. patience: seconds before it.
    """
    from filelock import FileLock, Timeout  # here, because models need no locks

    lock = FileLock(path, mode=LOCK_MODE)
    try:
        lock.acquire(timeout=patience)
    except Timeout:
        print(f"waiting for another process that {what} (it holds {path})", file=sys.stderr, flush=True)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def of_the_system(error: OSError, folder: str | Path | None = None) -> str:
    """An error of the operating system in one line: first the file, where it names one, or the folder at work."""
    place = folder if error.filename is None else error.filename
    reason = error.strerror or " ".join(str(error).split()) or type(error).__name__
    return reason if place is None else f"{place}: {reason}"


def check_file(path: Path, most: int | None = None, folder: Path | None = None) -> None:
    """Raise InputError for what is there in place of a file: a folder, or a pipe or device, whose end may never come.

    most: bytes that it may have. folder: it must stand in this one, and not be a link that leads out of it.
    """
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "a pipe or a device"
        raise InputError(f"{path}: {kind}, where a file must be")
    if folder is not None and not path.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"{path}: a link out of the folder, to {path.resolve()}. Put the file itself there")
    if most is not None and found.st_size > most:
        raise InputError(f"{path}: {found.st_size:,} bytes, and {most:,} are the most that such a file may have")


def parse_strict(text: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError for what JSON does not have, though Python reads it: NaN and
    Infinity, and a name that an object has twice."""
    return json.loads(text, object_pairs_hook=_object, parse_constant=_no_number)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} is there twice")
    return found


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number")


def write_json(path: str | Path, value) -> Path:
    return write_whole(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


MOST_NUMBERS = 2**28  # bytes of a file of numbers: scores of 10,000 documents are a few million


def read_numbers(path: Path, what: str, needed: Iterable[str]) -> dict:
    """Read a file of numbers. Raises ValueError where it is no `what`, a JSON object with the keys that are
    `needed`."""
    check_file(path, MOST_NUMBERS)
    try:
        numbers = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error})") from None
    if not isinstance(numbers, dict):
        raise InputError(f"{path}: no {what}: it holds no JSON object")
    check_keys(numbers, path, what, needed)
    return numbers


def check_keys(record: dict, path: Path, what: str, needed: Iterable[str]) -> None:
    """Raise ValueError where what a file holds is no `what`: it lacks keys that are `needed`."""
    if missing := [key for key in needed if key not in record]:
        raise InputError(f"{path}: no {what}: it has no {', '.join(map(repr, missing))}")


def check_replaces(output: Path, what: str, needed: Iterable[str], *beside: Path) -> None:
    """Raise OSError where files cannot be written, and InputError where they would replace others.

    output: a `what`, a JSON object with the keys that are `needed`.
    beside: files that are written after it, and are its own only where it is there.
    """
    for path in (output, *beside):
        check_writable(path)
    if output in beside:
        raise InputError(f"--output {output}: the same file is written beside the {what}. Name it NAME.json")
    try:
        if output.exists():
            read_numbers(output, what, needed)
        elif others := [path for path in beside if path.exists()]:
            raise InputError(f"{others[0]}: it is of no {what}")
    except InputError as error:
        raise InputError(f"--output would replace {error}. Name another file, or remove this one") from None
