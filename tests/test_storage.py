"""Folders, and what counts as the code of a result."""

import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import lib
from lib.system.files import cache_dir, locked, project_root, remove_leftovers, temporary_beside, write_whole
from lib.system.fingerprints import code_digest, contents_digest

PACKAGE = Path(lib.__path__[0])
FILES = {
    "__init__": '"""The front door."""\nimport lib.far\n',
    "near": '"""Near."""\nfrom lib.data import pieces\n\n\ndef twice(x):\n    """2x."""\n    return 2 * x  # x + x\n',
    "far": "LIMIT = 3\n",
    "data/__init__": "COUNT = 1\n",
    "data/pieces": 'def late():\n    from .text import WORDS\n\n    return WORDS, "x"\n',
    "data/text": "import os\nimport yaml\n\nWORDS: tuple[str, ...] = ()\n",
}


def code(folder, **changes):
    """The digest of `lib.near` in a small package, some of whose files are changed."""
    for name, text in {**FILES, **changes}.items():
        path = folder / "lib" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        os.utime(path, ns=(0, hash(text) % 10**18))  # two edits within a tick of the clock
    return code_digest("lib.near", root=folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"near": FILES["near"].replace("2 * x", "3 * x")},
        {"data/__init__": "COUNT = 2\n"},  # imported by name
        {"data/pieces": FILES["data/pieces"].replace('"x"', '"y"')},
        {"data/text": FILES["data/text"].replace("()", "('a',)")},  # imported within a function, by a relative name
    ],
)
def test_code_that_is_imported_counts(tmp_path, changes):
    assert code(tmp_path / "a", **changes) != code(tmp_path / "b")


@pytest.mark.parametrize(
    "changes",
    [
        {"near": FILES["near"].replace("Near.", "Another text.").replace("2x", "Two x").replace("x + x", "or so")},
        {"near": FILES["near"].replace("2 * x", "(2\n        * x)").replace("\n\n\n", "\n\n")},
        {"far": "LIMIT = 4\n", "__init__": "raise ValueError\n"},  # nobody imports them by name
    ],
)
def test_texts_and_other_modules_do_not_count(tmp_path, changes):
    assert code(tmp_path / "a", **changes) == code(tmp_path / "b")


def test_what_an_error_says_does_not_count(tmp_path):
    """But which one is raised, and when."""
    far = 'import sys\n\n\ndef f(n):\n    if n > 1:\n        raise ValueError(f"{n} is too large")\n'
    first, *others = (
        code(tmp_path / str(i), **{"data/text": text})
        for i, text in enumerate(
            (
                far,
                far.replace("too large", "above 1"),
                far.replace("ValueError", "KeyError"),
                far.replace("> 1", "> 2"),
            )
        )
    )
    assert [first == other for other in others] == [True, False, False]


def test_a_file_that_changes_is_read_again(tmp_path):
    before = code(tmp_path)
    assert code(tmp_path, **{"data/text": "WORDS = 1\n"}) != before
    assert code(tmp_path) == before


def test_a_module_that_is_not_there_is_named():
    with pytest.raises(ValueError, match=r"no module lib\.nowhere in "):
        code_digest("lib.nowhere")


def test_batches_count_for_those_who_make_them(tmp_path):
    """In a copy of the library: an edit of `make_batch`, of docstrings, and of what readers of batches do not use."""
    users = ("lib.data.batching", "lib.layers.transformer")
    others = ("lib.data.readers", "lib.data.options")
    shutil.copytree(PACKAGE, tmp_path / "lib", ignore=shutil.ignore_patterns("__pycache__"))
    before = {name: code_digest(name, root=tmp_path) for name in users + others}
    assert before == {name: code_digest(name) for name in users + others}
    path = tmp_path / "lib" / "data" / "batch.py"
    text = path.read_text(encoding="utf-8")
    changed = re.sub(r'"""Pad `documents`[^"]*"""', '"""Something else."""', text)
    assert changed != text
    path.write_text(changed, encoding="utf-8")
    assert before == {name: code_digest(name, root=tmp_path) for name in users + others}
    path.write_text(
        text.replace("torch.full((len(documents), 1), BOS)", "torch.full((len(documents), 1), BOS + 1)"),
        encoding="utf-8",
    )
    after = {name: code_digest(name, root=tmp_path) for name in users + others}
    assert [after[name] != before[name] for name in users + others] == [True, True, False, False]


# ------------------------------------------------------------------------------------------------- whole files


def test_what_is_put_in_place_is_on_the_disk(tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr("os.fsync", lambda _: done.append("synced"))
    replace = os.replace
    monkeypatch.setattr("os.replace", lambda *paths: done.append("replaced") or replace(*paths))
    assert write_whole(tmp_path / "new" / "x", "é").read_bytes() == "é".encode()
    assert done == ["synced", "replaced"] and [p.name for p in (tmp_path / "new").iterdir()] == ["x"]


def test_what_killed_processes_left_is_removed(tmp_path):
    """Files and folders of processes that have ended; nothing of one that lives, and no file of another kind."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    mine = temporary_beside(tmp_path / "mine").name
    kept = {mine, ".x.tmp", f"x.{ended.pid}.tmp", ".x.y.tmp", f".[z].{ended.pid}.tmp"}
    for name in (*kept, f".last.safetensors.{ended.pid}.tmp"):
        (tmp_path / name).touch()
    (tmp_path / f".corpus.{ended.pid}.tmp").mkdir()
    (tmp_path / f".corpus.{ended.pid}.tmp" / "train.safetensors").touch()
    remove_leftovers(tmp_path, "corpus")
    remove_leftovers(tmp_path, "last.safetensors")
    assert {p.name for p in tmp_path.iterdir()} == kept
    remove_leftovers(tmp_path, "[z]")
    assert {p.name for p in tmp_path.iterdir()} == kept - {f".[z].{ended.pid}.tmp"}
    (tmp_path / f".other.{ended.pid}.tmp").touch()
    remove_leftovers(tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == kept - {f".[z].{ended.pid}.tmp"}


HOLDS = """
import sys
from lib.system.files import locked
with locked(sys.argv[1], "prepares a corpus"):
    print("in", flush=True)
    input()
"""


def test_who_waits_is_told_for_what(tmp_path, capsys):
    path = tmp_path / "lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=project_root()
    )
    assert holder.stdout.readline() == b"in\n"
    threading.Timer(1.5, holder.kill).start()
    with locked(path, "prepares a corpus", patience=0.01):
        assert holder.wait() != 0, "the other is at an end"
    assert capsys.readouterr().err == f"waiting for another process that prepares a corpus (it holds {path})\n"
    with locked(path, "prepares a corpus"):
        assert capsys.readouterr().err == ""


def test_contents_have_a_name_wherever_they_are(tmp_path):
    """Two folders whose files have equal names, sizes and times; and a file that is changed within a tick."""
    folders = [tmp_path / name / "data" for name in "abc"]
    for folder, text in zip(folders, ("one", "two", "one")):
        folder.mkdir(parents=True)
        (folder / "train.jsonl").write_text(text, encoding="utf-8")
        os.utime(folder / "train.jsonl", ns=(10**18, 10**18))
    found = [contents_digest(folder, [folder / "train.jsonl"]) for folder in folders]
    assert found[0] == found[2] != found[1]
    (folders[0] / "train.jsonl").write_text("two", encoding="utf-8")
    os.utime(folders[0] / "train.jsonl", ns=(10**18, 10**18))
    assert contents_digest(folders[0], [folders[0] / "train.jsonl"]) == found[1]
    (folders[0] / "train.jsonl").rename(folders[0] / "val.jsonl")
    assert contents_digest(folders[0], [folders[0] / "val.jsonl"]) not in found


def test_contents_are_read_once(tmp_path, monkeypatch):
    path, read = tmp_path / "train.jsonl", []
    path.write_text("one", encoding="utf-8")
    monkeypatch.setattr("lib.system.fingerprints._sha256", lambda path: read.append(path) or str(len(read)))
    first = [contents_digest(tmp_path, [path]) for _ in range(2)]
    assert len(read) == 2 and first[0] != first[1], "of a file that was written a moment ago nothing is kept"
    monkeypatch.setattr("time.time_ns", lambda: path.stat().st_ctime_ns + 3 * 10**9)
    kept = [contents_digest(tmp_path, [path]) for _ in range(3)]
    assert len(read) == 3 and len(set(kept)) == 1
    (known,) = (cache_dir() / "digests").iterdir()
    known.write_text("", encoding="utf-8")
    assert contents_digest(tmp_path, [path]) != kept[0] and len(read) == 4, "what is damaged is made anew"


# ---------------------------------------------------------------------------------------------------- folders


def asked(folder, where, **environment):
    """What `lib.system.files` says in `folder` of its folders, when `lib` stands in `where`."""
    command = "from lib.system.files import cache_dir, project_root; print(cache_dir()); print(project_root())"
    kept = {k: v for k, v in os.environ.items() if k != "COMPANION_CACHE"}
    result = subprocess.run(
        [sys.executable, "-c", command], cwd=folder, capture_output=True, text=True, check=True,
        env={**kept, "PYTHONPATH": str(where), "PYTHONSAFEPATH": "1", **environment},
    )  # fmt: skip
    return [Path(line) for line in result.stdout.splitlines()]


def test_folders_with_and_without_a_checkout(tmp_path):
    elsewhere, here = tmp_path / "site-packages", tmp_path / "here"
    here.mkdir()
    shutil.copytree(PACKAGE / "system", elsewhere / "lib" / "system")
    home = {"XDG_CACHE_HOME": str(tmp_path / "home"), "HOME": str(tmp_path / "home")}
    cache, root = asked(here, elsewhere, **home)
    assert root == here and tmp_path / "home" in cache.parents and "neural-summarization-companion" in cache.parts
    assert asked(here, elsewhere, COMPANION_CACHE=str(tmp_path / "c"))[0] == tmp_path / "c"
    (elsewhere / "pyproject.toml").touch()
    assert asked(here, elsewhere) == [elsewhere / "cache", elsewhere]


def test_the_checkout_is_the_project(tmp_path):
    assert (project_root() / "lib" / "system" / "files.py").is_file()
    assert cache_dir() == tmp_path / "cache", "what the tests set"


def test_models_need_neither_pieces_nor_bars():
    """Models and layers can be imported where only torch, numpy and safetensors are."""
    missing = ["sentencepiece", "tqdm", "filelock", "datasets", "pandas", "platformdirs", "huggingface_hub"]
    modules = [
        f"lib.{folder}.{path.stem}"
        for folder in ("models", "layers")
        for path in sorted((PACKAGE / folder).glob("*.py"))
        if path.stem != "__init__"
    ]
    assert len(modules) > 12
    code = f"import sys; sys.modules.update(dict.fromkeys({missing})); import {', '.join(modules)}"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=project_root())
