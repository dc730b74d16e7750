"""Folders, and what counts as the code of a result."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import lib
from lib.system import fingerprints
from lib.system.files import project_root

PACKAGE = Path(lib.__path__[0])


def test_the_code_of_a_module_is_that_of_all_that_it_imports(tmp_path, monkeypatch):
    """A change of what it imports, however deep, gives another digest; comments and other modules do not."""
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
