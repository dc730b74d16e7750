"""Folders, and what counts as the code of a result."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import companion
import lib
from lib.system import fingerprints
from lib.system.files import project_root

PACKAGE = Path(lib.__path__[0])


def test_the_code_of_a_module_is_that_of_all_that_it_imports(tmp_path, monkeypatch):
    """A change of what it imports, however deep, gives another digest; comments and other modules
    do not."""
    files = {
        "near": "from lib.data import pieces\n\n\ndef twice(x):\n    return 2 * x  # x + x\n",
        "far": "LIMIT = 3\n",
        "data/pieces": "def late():\n    from lib.data.text import WORDS\n\n    return WORDS\n",
        "data/text": "import os\n\nWORDS = ()\n",
    }

    def digest_of(**changes):
        for name, text in {**files, **changes}.items():
            path = tmp_path / "lib" / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        fingerprints._read_code.cache_clear()
        return fingerprints.code_digest("lib.near")

    monkeypatch.setattr(fingerprints, "_ROOT", tmp_path)
    before = digest_of()
    assert digest_of(near=files["near"].replace("x + x", "or so"), far="LIMIT = 4\n") == before
    for name, changed in {"near": "2 * x", "data/pieces": "late", "data/text": "()"}.items():
        assert digest_of(**{name: files[name].replace(changed, "three")}) != before


# ---------------------------------------------------------------------------------
# folders


def run_python(command, folder, *path, **environment):
    """Run a command in `folder`, with these folders before all others on Python's path."""
    kept = {k: v for k, v in os.environ.items() if k != "COMPANION_CACHE"}
    return subprocess.run(
        [sys.executable, "-c", command],
        cwd=folder,
        capture_output=True,
        text=True,
        env={
            **kept,
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "PYTHONSAFEPATH": "1",
            **environment,
        },
    )


def copy_checks(folder):
    """Copy what an import of the project runs first."""
    for package in (lib, companion):
        (folder / package.__name__).mkdir(parents=True)
        shutil.copy(package.__file__, folder / package.__name__)
    shutil.copytree(PACKAGE / "system", folder / "lib" / "system")
    return folder


def asked(folder, where, **environment):
    """What `lib.system.files` says in `folder` of its folders, when `lib` stands in `where`."""
    command = (
        "from lib.system.files import cache_dir, project_root; print(cache_dir()); "
        "print(project_root())"
    )
    result = run_python(command, folder, where, **environment)
    assert not result.returncode, result.stderr
    return [Path(line) for line in result.stdout.splitlines()]


def test_folders_with_and_without_a_checkout(tmp_path):
    elsewhere, here = copy_checks(tmp_path / "site-packages"), tmp_path / "here"
    here.mkdir()
    home = {"XDG_CACHE_HOME": str(tmp_path / "home"), "HOME": str(tmp_path / "home")}
    cache, root = asked(here, elsewhere, **home)
    assert (
        root == here
        and tmp_path / "home" in cache.parents
        and "neural-summarization-companion" in cache.parts
    )
    assert asked(here, elsewhere, COMPANION_CACHE=str(tmp_path / "c"))[0] == tmp_path / "c"
    page = run_python(
        "from lib.system.files import check_checkout; check_checkout()", here, elsewhere
    )
    assert "Clone the project" in page.stderr.splitlines()[-1]
    (elsewhere / "pyproject.toml").write_text(
        '[project]\nname = "another-project"\n', encoding="utf-8"
    )
    assert asked(here, elsewhere, **home) == [cache, root]
    shutil.copy(project_root() / "pyproject.toml", elsewhere)
    assert asked(here, elsewhere) == [elsewhere / "cache", elsewhere]


@pytest.mark.parametrize(
    ("module", "file", "message"),
    [
        ("companion", "other/lib/__init__.py", "{file} is in the way"),
        ("companion", "other/lib.py", "{file} is in the way"),
        ("companion", "ours/lib/__init__.py", "{file} is not this project's file"),
        ("lib.system.files", "ours/lib/__init__.py", "{file} is not this project's file"),
        # it is gone
        ("lib.system.files", None, "{ours}/lib/__init__.py is not this project's file"),
    ],
)
def test_another_lib_is_named(tmp_path, module, file, message):
    ours = copy_checks(tmp_path / "ours")
    if file is None:
        (ours / "lib" / "__init__.py").unlink()
    else:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("def helper(): ...\n", encoding="utf-8")
    said = run_python(f"import {module}", tmp_path, tmp_path / "other", ours).stderr.splitlines()[
        -1
    ]
    assert message.format(file=tmp_path / str(file), ours=ours) in said and "What helps: " in said


def test_a_command_runs_beside_files_with_the_names_of_packages(tmp_path):
    for name in ("torch", "numpy", "tqdm", "random"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(__file__)\n", encoding="utf-8")
    command = [sys.executable, "-m", "lib.score", "--help"]
    environment = {**os.environ, "PYTHONPATH": str(project_root())}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout.startswith("usage: python -m lib.score"), done.stderr


def test_models_need_neither_pieces_nor_bars():
    """Models and layers can be imported where only torch, numpy and safetensors are."""
    missing = [
        "sentencepiece",
        "tqdm",
        "filelock",
        "datasets",
        "pandas",
        "platformdirs",
        "huggingface_hub",
    ]
    modules = [
        f"lib.{folder}.{path.stem}"
        for folder in ("models", "layers")
        for path in sorted((PACKAGE / folder).glob("*.py"))
        if path.stem != "__init__"
    ]
    assert len(modules) > 12
    code = f"import sys; sys.modules.update(dict.fromkeys({missing})); import {', '.join(modules)}"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=project_root())
