"""Folders of the project, and files that are written whole or not at all."""

import errno
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from lib.system.errors import InputError

PROJECT = "neural-summarization-companion"  # names the folders that it has outside a checkout


# ---------------------------------------------------------------------------------
# folders


@cache
def _checkout() -> Path | None:
    """Find the checkout that `lib` is in; None where `lib` was installed without one."""
    folder = Path(__file__).resolve().parents[2]
    path = folder / "pyproject.toml"
    if not path.is_file():
        return None
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return folder if f'name = "{PROJECT}"' in lines else None


def check_checkout() -> None:
    """Raise InputError where there is no checkout, which has what pages show: trained runs and
    stored results."""
    if _checkout() is None:
        place = Path(__file__).parents[1]
        raise InputError(
            f"pages need a clone of the project ({PROJECT}): there is none around {place}. Clone "
            "the project, run `pip install -e .` in the clone, and open the page there"
        )


def project_root() -> Path:
    """Return the checkout, or the current folder: pages run from anywhere, so they never use
    relative paths."""
    return _checkout() or Path.cwd()


def work_folder() -> Path:
    """Return the folder for what pages make: `runs` in the checkout, or the user's where that
    cannot be written."""
    return _writable(project_root() / "runs", "runs")


def trained_folder(name: str) -> Path:
    """Return the folder of a trained run that the project keeps."""
    return project_root() / "trained" / name


def cache_dir() -> Path:
    """Return the folder of prepared corpora: COMPANION_CACHE, `cache` in the checkout, or the
    user's own cache."""
    return Path(os.environ.get("COMPANION_CACHE") or _writable(_shared_cache(), "cache"))


def cached(name: str, whole: str = "") -> Path:
    """Return the place of `name`, a path, in the cache; what a read-only cache has is used.

    whole: the file of a folder `name` that shows that all of it is there.
    """
    shared = _shared_cache() / name
    return shared if os.access(shared / whole, os.R_OK) else cache_dir() / name


def _shared_cache() -> Path:
    named = os.environ.get("COMPANION_CACHE")
    if named:
        return Path(named)
    checkout = _checkout()
    return checkout / "cache" if checkout else _user_folder("cache")


def _user_folder(kind: str) -> Path:
    import platformdirs  # here, because a checkout does not need it

    user = platformdirs.user_cache_dir if kind == "cache" else platformdirs.user_data_dir
    return Path(user(PROJECT)) / kind


def _writable(folder: Path, kind: str) -> Path:
    """Return the folder; where it cannot be written the user's of this kind, or a temporary one."""
    for place in (folder, _user_folder(kind)):
        if _is_writable(place):
            break
    else:
        place = temporary_folder() / kind
    if place != folder:
        say_once(f"{folder} cannot be written; instead: {place}")
    return place


def _is_writable(folder: Path) -> bool:
    """Whether files can be written in a folder, which need not exist yet."""
    whole = folder.absolute()
    existing = next(path for path in (whole, *whole.parents) if os.path.exists(path))
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return False
    try:  # the administrator has access to all, but not to what nobody can write
        with tempfile.TemporaryFile(dir=existing):
            return True
    except OSError:
        return False


@cache
def temporary_folder() -> Path:
    """Make a folder among temporary files, for this process."""
    return Path(tempfile.mkdtemp(prefix=f"{PROJECT}-"))


@cache
def say_once(line: str) -> None:
    """Print a line on standard error, once in a process."""
    print(line, file=sys.stderr, flush=True)


# ---------------------------------------------------------------------------------
# files


def write_whole(path: str | Path, content: str | bytes) -> Path:
    """Write a file under a temporary name, then put it in place, so that nobody reads half of
    it."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with errors_named(path), open(temporary, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            # otherwise a power failure may leave the new name with missing contents
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


@contextmanager
def errors_named(path: str | Path) -> Iterator[None]:
    """Name the file that is being written in an error of the system that names none.

    The system knows the name while a file is opened, but not when the disk is full.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise


def check_writable(path: str | Path) -> None:
    """Raise OSError before the work where a file could not be written after it."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not _is_writable(path.parent):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path.parent))


def would_be_published(path: str | Path) -> bool:
    """Whether a file is, or would be, in a Git checkout that does not ignore it."""
    path = Path(path).resolve()
    existing = next(folder for folder in path.parents if folder.is_dir())
    command = ["git", "check-ignore", "--quiet", str(path)]
    try:
        asked = subprocess.run(command, cwd=existing, capture_output=True)
    except OSError:  # without git nothing is committed
        return False
    return asked.returncode == 1  # 128: there is no checkout


def of_the_system(error: OSError, place: str | Path | None = None) -> str:
    """Describe an error of the operating system in one line: first its file, or otherwise
    `place`."""
    where = place if error.filename is None else error.filename
    reason = error.strerror or str(error)
    is_link = where is not None and os.path.islink(where) and not os.path.exists(where)
    if isinstance(error, FileExistsError) and where is not None and is_link:
        reason = f"a link to {os.readlink(where)}, which is not there: remove it, or name another"
    return reason if where is None else f"{where}: {reason}"


# ---------------------------------------------------------------------------------
# JSON


def write_json(path: str | Path, value: Any) -> Path:
    return write_whole(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def read_numbers(path: Path, what: str, needed: Iterable[str]) -> dict:
    """Read a JSON object. Raises InputError where it is no `what`: it lacks a key that is
    `needed`."""
    try:
        numbers = read_json(path)
    except ValueError as error:
        raise InputError(f"{path}: no JSON ({error})") from None
    missing = ["object"]
    if isinstance(numbers, dict):
        missing = [key for key in needed if key not in numbers]
    if missing:
        raise InputError(f"{path}: no {what}: it has no {', '.join(map(repr, missing))}")
    return numbers


def check_replaces(output: Path, what: str, needed: Iterable[str], *beside: Path) -> None:
    """Raise an error before the work where files cannot be written, or `output` is there and is no
    `what`.

    beside: files that are written after it.
    """
    for path in (output, *beside):
        try:
            check_writable(path)
        except IsADirectoryError as error:
            raise InputError(f"{of_the_system(error)}. Name a file in it: --output FILE") from None
        except PermissionError as error:
            raise InputError(
                f"{of_the_system(error)}. Name a file in another folder: --output FILE"
            ) from None
    if output.exists():
        try:
            read_numbers(output, what, needed)
        except InputError as error:
            advice = "Name another file, or remove this one"
            raise InputError(f"--output would replace {error}. {advice}") from None
