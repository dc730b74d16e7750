"""Machines that are not the author's: a checkout that one may only read, no home, a cache of somebody else's, few of
many cores, a system that prints no UTF-8, another `lib` in the current folder."""

import io
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import lib
from companion.pages.parameters import check_parameters
from lib import corpora, summarize
from lib.decoding.readable import Readable
from lib.decoding.reading import Reading
from lib.decoding.run import Run, Summary
from lib.decoding.search import DecodeConfig
from lib.papers.mem2mem.sections import CohanOptions
from lib.system.files import (
    cache_dir,
    cached,
    locked,
    project_root,
    remove_leftovers,
    temporary_folder,
    unwritable,
    work_folder,
)
from lib.system.processes import default_workers

PRIVILEGES = "-dac_override,-dac_read_search"  # of root, whom no permission would keep out


@pytest.fixture
def anybody(tmp_path):
    """Runs Python as somebody whom permissions hold for, without a home. Gives the finished process."""
    bound = []
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        bound = ["setpriv", f"--bounding-set={PRIVILEGES}", f"--inh-caps={PRIVILEGES}"]
        if shutil.which("setpriv") is None:
            pytest.skip("root may write everywhere, and there is no setpriv to hinder it")
    temporary, closed = tmp_path / "temporary", tmp_path / "closed"
    temporary.mkdir()
    closed.mkdir(mode=0o555)

    def run(*arguments, checkout, status=0, **environment):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HOME", "XDG_", "COMPANION_", "NUMBA_"))}
        places = {"HOME": str(closed / "home"), "TMPDIR": str(temporary), "PYTHONPATH": str(checkout)}
        done = subprocess.run(
            [*bound, sys.executable, *map(str, arguments)], env={**kept, **places, **environment}, cwd=checkout,
            capture_output=True, encoding="utf-8",
        )  # fmt: skip
        assert done.returncode == status, done.stderr
        return done

    code = f"import os; print(os.access({str(closed)!r}, os.W_OK))"
    if run("-c", code, checkout=tmp_path).stdout != "False\n":
        pytest.skip("permissions hold for nobody here")
    return run


def only_read(folder):
    """Takes away everybody's right to write in a folder and all that it holds."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)


def may_write(folder):
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.fixture
def checkout(tmp_path):
    """The project in a folder that may only be read."""
    folder, ignored = tmp_path / "checkout", shutil.ignore_patterns("__pycache__")
    for name in ("lib", "notebooks", "figures", "trained/mem2mem"):
        shutil.copytree(project_root() / name, folder / name, ignore=ignored)
    shutil.copy(project_root() / "pyproject.toml", folder)
    only_read(folder)
    yield folder
    may_write(folder)


def made_in(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


# ------------------------------------------------------------------------------------- without home and checkout

KEPT = """
from lib.system.files import cache_dir, work_folder, write_whole
from lib.layers import cpu_kernels
for _ in range(2):
    write_whole(work_folder() / "figures" / "a.txt", "a")
    write_whole(cache_dir() / "b.txt", "b")
print(cpu_kernels.__file__)
"""


def test_what_is_made_without_a_home_on_a_checkout_that_may_only_be_read(anybody, checkout, tmp_path):
    """It goes to a folder of temporary files, and each of the two kinds is one line."""
    before = made_in(checkout)
    done = anybody("-c", KEPT, checkout=checkout)
    assert done.stdout == f"{checkout / 'lib' / 'layers' / 'cpu_kernels.py'}\n", "its own library"
    (own,) = (tmp_path / "temporary").iterdir()
    assert made_in(own) == ["cache/b.txt", "runs/figures/a.txt"]
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    assert done.stderr.splitlines() == [
        f"{checkout / 'runs'} cannot be written; in its place: {own / 'runs'}",
        f"{checkout / 'cache'} cannot be written; in its place: {own / 'cache'}",
    ]
    assert made_in(checkout) == before


def test_what_is_made_with_a_home_on_a_checkout_that_may_only_be_read(anybody, checkout, tmp_path):
    """It goes to folders of the user's own. numba finds its own by itself."""
    home = tmp_path / "home"
    home.mkdir()
    done = anybody("-c", KEPT, checkout=checkout, HOME=str(home))
    assert len(done.stderr.splitlines()) == 2 and str(home) in done.stderr
    assert [Path(name).name for name in made_in(home) if name.endswith(".txt")] == ["b.txt", "a.txt"]
    assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.long
def test_commands_and_a_page_on_a_checkout_that_may_only_be_read(anybody, checkout, tmp_path):
    (tmp_path / "paper.md").write_text("We read long papers. They have many sentences.", encoding="utf-8")
    shown = anybody("-m", "lib.summarize", "trained/mem2mem", tmp_path / "paper.md", checkout=checkout)
    told, *of_the_text = shown.stderr.splitlines()
    assert shown.stdout.strip() and told.startswith("neither ")
    assert [line.split(":")[0] for line in of_the_text] == ["paper.md"] * 2
    training = ["-m", "lib.train", "mem2mem", "--preset", "demo", "--steps", "1", "--limit", "4", "--output"]
    anybody(*training, tmp_path / "run", checkout=checkout)
    refused = anybody(*training, "runs/here", checkout=checkout, status=1)
    assert refused.stderr.splitlines()[-1] == (
        f"error: {checkout} cannot be written: no permission. Choose another output folder."
    )
    page = ["-m", "papermill", "--no-progress-bar", "notebooks/start_here.ipynb", tmp_path / "out.ipynb"]
    anybody(*page, checkout=checkout)
    (own,) = (tmp_path / "temporary").glob("neural-summarization-companion-*")
    assert any(name.startswith("runs/figures/") for name in made_in(own))


def test_a_temporary_folder_that_somebody_else_has_made_is_not_used(tmp_path, monkeypatch):
    """What is read there may be code: neither a link to another place, nor another user's folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    of_this_name = temporary_folder.__wrapped__
    own = of_this_name()
    assert of_this_name() == own and own.parent == tmp_path
    own.rmdir()
    (tmp_path / "elsewhere").mkdir()
    own.symlink_to(tmp_path / "elsewhere")
    assert of_this_name() not in (own, of_this_name())
    own.unlink()
    own.write_text("", encoding="utf-8")
    assert of_this_name().is_dir()
    own.unlink()
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert of_this_name() != tmp_path / f"{own.name.rpartition('-')[0]}-12345", "this user made it, not that one"


def test_a_path_that_nobody_may_ask_for_cannot_be_written(anybody, tmp_path):
    (tmp_path / "hidden" / "home").mkdir(parents=True)
    (tmp_path / "hidden").chmod(0)
    code = (
        "from pathlib import Path; from lib.system.files import unwritable; "
        f"print(unwritable(Path({str(tmp_path)!r}) / "
    )
    try:
        done = anybody("-c", code + "'hidden/home/.cache'))", checkout=project_root())
    finally:
        (tmp_path / "hidden").chmod(0o755)
    assert done.stdout == f"[Errno 13] Permission denied: '{tmp_path / 'hidden'}'\n"


def test_a_drive_that_is_not_here(monkeypatch, tmp_path):
    monkeypatch.setattr("os.path.exists", lambda path: False)
    assert isinstance(unwritable(tmp_path), FileNotFoundError)


# ----------------------------------------------------------------------------------------- a cache of two users

PREPARES = """
import sys
from dataclasses import replace
from lib.system.errors import CompanionError
from tests.test_extraction import OPTIONS, corpus, EXTRACTS, train_pointer

found = OPTIONS.prepare(corpus(), progress=False)
extracts = EXTRACTS.prepare(corpus(), progress=False)
pointer = train_pointer(extracts, OPTIONS, progress=False)
print(found.fingerprint, sum(p.sum().item() for p in pointer.parameters()))
more = (
    lambda: replace(EXTRACTS, matches=1).prepare(corpus(), progress=False),
    lambda: train_pointer(extracts, replace(OPTIONS, pointer_steps=3), progress=False),
)
for make in more if sys.argv[1:] else ():
    try:
        make()
    except CompanionError as error:
        print(error)
"""


def test_a_cache_that_another_user_has_filled(anybody, tmp_path):
    """What is in it is used; for what is not, the error names the folder and another way."""
    shared, root = tmp_path / "shared", project_root()
    first = anybody("-c", PREPARES, checkout=root, COMPANION_CACHE=str(shared))
    only_read(shared)
    before = made_in(shared)
    second = anybody("-c", PREPARES, "more", checkout=root, COMPANION_CACHE=str(shared))
    numbers, *errors = second.stdout.splitlines()
    assert [numbers] == first.stdout.splitlines() and second.stderr == "" and len(errors) == 2
    for line in errors:
        assert str(shared) in line and "COMPANION_CACHE names another place" in line and "--resume" not in line
    assert made_in(shared) == before
    may_write(shared)


def test_a_shared_cache_gives_what_it_has_and_the_rest_is_ones_own(anybody, checkout, tmp_path):
    """Without a name for the cache: the checkout's, which somebody with the right has filled, and the user's own."""
    may_write(checkout)
    (checkout / "cache" / "whole").mkdir(parents=True)
    (checkout / "cache" / "whole" / "prepared.json").write_text("{}", encoding="utf-8")
    (checkout / "cache" / "half").mkdir()
    only_read(checkout)
    code = (
        "from lib.system.files import cached; "
        "[print(cached(name, 'prepared.json')) for name in ('whole', 'half', 'no')]"
    )
    whole, half, no = map(Path, anybody("-c", code, checkout=checkout).stdout.splitlines())
    assert whole == checkout / "cache" / "whole"
    assert half.parent == no.parent != whole.parent and tmp_path / "temporary" in no.parents


def test_a_named_cache_is_not_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert cache_dir() == tmp_path / "cache" and cached("a") == tmp_path / "cache" / "a"


def test_a_lock_is_everybodys_who_may_write_in_its_folder(tmp_path):
    """Otherwise the second user of a group could not open the file that the first one's lock has left."""
    before = os.umask(0o022)
    try:
        with locked(tmp_path / "lock", "waits"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == 0o666


def test_leftovers_of_another_user_stay(anybody, tmp_path):
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / ".a.4194305.tmp").touch()  # above the numbers that Linux gives processes
    only_read(folder)
    code = f"from lib.system.files import remove_leftovers; remove_leftovers({str(folder)!r})"
    anybody("-c", code, checkout=project_root())
    assert made_in(folder) == [".a.4194305.tmp"]
    may_write(folder)
    remove_leftovers(folder)
    assert made_in(folder) == []


# --------------------------------------------------------------------------------------------------------- cores


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is one worker")
def test_workers_are_as_many_as_the_cores_that_one_may_use(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 128)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 17, 90, 91})
    assert default_workers() == 4
    code = (
        "import os; from lib.system.processes import default_workers\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); print(default_workers())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=project_root(), check=True)
    assert done.stdout == b"1\n"


# ------------------------------------------------------------------------------------------- another lib in the way

# what an editable installation does: modules of a package that Python has found elsewhere are found here
EDITABLE = """
import importlib.util, runpy, sys
from pathlib import Path

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.startswith("lib."):
            place = Path({root!r}, *name.split("."))
            inside = place / "__init__.py"
            file = inside if inside.exists() else place.with_suffix(".py")
            return importlib.util.spec_from_file_location(name, file)

sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != Path({root!r})]
sys.meta_path = [f for f in sys.meta_path if "editable" not in str(f)] + [Finder]
sys.path.insert(0, "")
import lib
sys.argv = ["lib.corpora"]
runpy.run_module("lib.corpora", run_name="__main__")
"""


@pytest.mark.parametrize("package", [True, False])
def test_a_command_in_a_folder_with_another_lib(tmp_path, package):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / ("__init__.py" if package else "notes.txt")).write_text("X = 1\n", encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", EDITABLE.format(root=str(project_root()))], env=environment, cwd=tmp_path,
        capture_output=True, encoding="utf-8",
    )  # fmt: skip
    own = project_root() / "lib"
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr == (
        f"error: {tmp_path / 'lib'} is in the way: Python takes it for {own}. Start in another folder "
        "(papermill: --cwd FOLDER), or a command with python -P -m\n"
    )


def test_a_page_in_a_folder_with_another_lib(tmp_path, monkeypatch):
    check_parameters({})
    monkeypatch.setattr(lib, "__path__", [str(tmp_path)])
    with pytest.raises(ValueError, match=f"{tmp_path} is in the way"):
        check_parameters({})


# ------------------------------------------------------------------------------------------------ what is printed


class Short:
    """A run whose summaries are given."""

    config, options = {"paper": "mem2mem", "variant": "Mem2Mem"}, CohanOptions()
    model, decode = None, DecodeConfig()

    def __init__(self, summaries):
        self.summaries = summaries

    documents = Run.documents
    _document = Run._document

    def summarize(self, documents, attention, progress, process):
        reading = Reading([], [], 3, 3, [], 0.0)
        shown = [Readable([text], []) for text in self.summaries]
        return [Summary(one.sentences, 0.0, [], [], [], readable=one, reading=reading) for one in shown]


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-16"])
def test_summaries_are_printed_as_utf8(tmp_path, monkeypatch, encoding):
    """Names of files too, among them one that is no text; none is lost, nor any after it."""
    names = ["λόγος.txt", "a.txt", os.fsdecode(b"caf\xe9.txt")]
    for name in names:
        (tmp_path / name).write_text("We read it.", encoding="utf-8")
    summaries = ["Über λ → ∞.", "数.", "End."]
    monkeypatch.setattr(lib, "load", lambda *_: Short(summaries))
    for option in ([], ["--json"]):
        out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", out)
        summarize.main(["a run", *(str(tmp_path / name) for name in names), *option])
        lines = out.buffer.getvalue().decode("utf-8").splitlines()
        if option:
            found = [json.loads(line) for line in lines]
            assert [f["name"] for f in found] == names and [f["readable"][0] for f in found] == summaries
        else:
            names_shown = [names[0], names[1], r"caf\udce9.txt"]
            assert [line for line in lines if line] == [line for pair in zip(names_shown, summaries) for line in pair]


def test_a_command_of_a_process_prints_utf8(tmp_path):
    """Its line of an error, on a system that would write it otherwise."""
    command = [sys.executable, "-m", "lib.corpora", str(tmp_path / "λ")]
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252"}
    done = subprocess.run(command, env=environment, cwd=project_root(), capture_output=True)
    assert f"{tmp_path / 'λ'}" in done.stderr.decode("utf-8")


def test_printing_goes_on_where_there_is_no_encoding(monkeypatch):
    """In a page standard output has none to be changed."""
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    assert corpora.main([]) == 0 and "aclsum" in out.getvalue()


# ------------------------------------------------------------------------------------------------------- Windows


def test_what_a_command_takes_where_there_is_no_module_for_resources(tmp_path):
    """Windows has none: the command is measured on a system whose /proc says it, without asking for the module."""
    code = (
        "import sys; sys.modules['resource'] = None; "
        "from companion.pages.process_cost import peak_memory; print(peak_memory())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=project_root(), capture_output=True, encoding="utf-8")
    if not Path("/proc/self/status").exists():
        pytest.skip("only Linux says it without")
    assert done.returncode == 0, done.stderr
    assert 0 < float(done.stdout) < 10


def test_pages_keep_what_they_make_in_the_checkout_where_they_may():
    assert work_folder() == project_root() / "runs"
