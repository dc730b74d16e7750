"""The installation by make, with programs that take the place of Python, pip and NVIDIA's."""

import shutil
import subprocess

import pytest

from lib.system.files import project_root

MAKE = shutil.which("make") or pytest.skip("make is not here", allow_module_level=True)
TOOLS = ("sh", "grep", "mkdir", "cp", "touch")
PYTHON = """#!/bin/sh
case "$*" in
  *"config list"*) cat pip.conf ;;
  *) echo "called: $*" ;;
esac
"""


@pytest.fixture
def install(tmp_path):
    """Return what `make` prints on a machine: Linux, without a GPU, its pip not configured."""
    folder, tools = tmp_path / "checkout", tmp_path / "tools"
    pages = folder / "companion" / "pages"
    for path in (folder / ".venv" / "bin", pages, tools):
        path.mkdir(parents=True)

    def program(path, text):
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    shutil.copy(project_root() / "Makefile", folder)
    for name in ("pyproject.toml", "constraints.txt", "pip.conf"):
        (folder / name).touch()
    (pages / "ipython_kernel_config.py").touch()
    program(folder / ".venv" / "bin" / "python", PYTHON)
    for name in (*TOOLS, "cat"):
        (tools / name).symlink_to(shutil.which(name))

    def run(*arguments, system="Linux", gpu=False, pip=""):
        program(tools / "uname", f"#!/bin/sh\necho {system}\n")
        if gpu:
            program(tools / "nvidia-smi", "#!/bin/sh\n")
        (folder / "pip.conf").write_text(pip, encoding="utf-8")
        done = subprocess.run(
            [MAKE, ".venv/.ready", *arguments],
            cwd=folder,
            env={"PATH": str(tools)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


PIP = "called: -m pip install --disable-pip-version-check -c constraints.txt"
CPU_INDEX = "--extra-index-url https://download.pytorch.org/whl/cpu"


def test_without_a_gpu_make_installs_the_cpu_build_and_says_so(install):
    printed = install()
    assert f"{PIP} {CPU_INDEX} -e" in printed
    (line,) = [line for line in printed.splitlines() if "CPU build" in line]
    assert "no nvidia-smi" in line and "For the CUDA build: rm -rf .venv, then make CUDA=1" in line


@pytest.mark.parametrize(
    ("arguments", "machine"),
    [
        (["CUDA=1"], {}),
        ([], {"gpu": True}),
        ([], {"system": "Darwin"}),
        ([], {"pip": "global.index-url='https://example.org/simple'\n"}),
        (["CPU_BUILD="], {}),
    ],
)
def test_otherwise_make_leaves_the_build_to_pip(install, arguments, machine):
    printed = install(*arguments, **machine)
    assert f"{PIP} -e" in " ".join(printed.split())
    assert "download.pytorch.org" not in printed and "CPU build" not in printed
