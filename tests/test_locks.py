"""The pins, the lock made of them, and the Pythons that the project promises say the same."""

import re
import tomllib
import zipfile

import pytest
import yaml

from lib.system.files import project_root
from tests.tools.locks import promised_pythons, unresolved

ROOT = project_root()
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def normal(name):
    """A package's name as an index writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins():
    """{package: version} of constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return {normal(name): version for name, version in (line.split("==") for line in lines if "==" in line)}


def locked():
    """{package: (version, hashes)} of requirements.lock."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    found = {}
    for entry in re.split(r"\n(?=[a-z0-9])", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).strip()):
        name, version = re.match(r"([A-Za-z0-9._-]+)==([^ ;\\]+)", entry).groups()
        assert name not in found, "one version for every Python and system"
        found[name] = version, re.findall(r"--hash=sha256:([0-9a-f]{64})\b", entry)
    return found


def test_the_lock_has_every_pin_and_every_need():
    versions = {name: version for name, (version, _) in locked().items()}
    assert {name: versions.get(name) for name in pins()} == pins()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needs = [need for group in project["optional-dependencies"].values() for need in group] + project["dependencies"]
    assert {normal(re.match(r"[A-Za-z0-9._-]+", need)[0]) for need in needs} <= versions.keys()


def test_everything_locked_has_hashes_and_comes_from_no_named_index():
    assert [name for name, (_, hashes) in locked().items() if not hashes or len(set(hashes)) < len(hashes)] == []
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert not re.search(r"://|--(extra-)?index|--find-links|file:|\+cpu", text)


def test_the_pythons_that_are_promised(tmp_path):
    assert promised_pythons(ROOT)[0] == "3.11.0" and len(promised_pythons(ROOT)) >= 2
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(text.replace('">=3.11"', '">=3.10"'), encoding="utf-8")
    with pytest.raises(ValueError, match=r"requires-python begins at 3\.10, the classifiers at \['3\.11'\]"):
        promised_pythons(tmp_path)


@pytest.fixture
def own_index(tmp_path, monkeypatch):
    """A project that pins `thing`, and an index of two wheels of it: 2.0 is for Python 3.11.5 and later, 1.0 for
    every Python."""
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    for version, python in (("1.0", "3.8"), ("2.0", "3.11.5")):
        with zipfile.ZipFile(tmp_path / f"thing-{version}-py3-none-any.whl", "w") as wheel:
            about = f"Metadata-Version: 2.1\nName: thing\nVersion: {version}\nRequires-Python: >={python}\n"
            wheel.writestr(f"thing-{version}.dist-info/METADATA", about)
            wheel.writestr(f"thing-{version}.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
    project = '[project]\nname = "ours"\nversion = "1"\nrequires-python = ">=3.11"\ndependencies = ["thing"]\n'
    (tmp_path / "pyproject.toml").write_text(project, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(("version", "python", "resolves"), [
    ("2.0", "3.11.0", False), ("2.0", "3.13", True), ("1.0", "3.11.0", True)
])  # fmt: skip
def test_a_pin_that_a_python_cannot_have_is_found(own_index, version, python, resolves):
    pytest.importorskip("uv", reason="uv is not installed: make test installs it")
    (own_index / "constraints.txt").write_text(f"thing=={version}\n", encoding="utf-8")
    reason = unresolved(own_index, python, "x86_64-manylinux_2_28")
    assert not reason if resolves else "thing==2.0 requires Python >=3.11.5" in reason


# ------------------------------------------------------------------------------------------------------ workflows


def steps(workflow):
    """Of all jobs of a workflow."""
    return [
        step for job in yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"].values() for step in job["steps"]
    ]


def test_workflows_run_the_lowest_and_the_highest_python():
    lowest, *_, highest = (".".join(python.split(".")[:2]) for python in promised_pythons(ROOT))
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))["jobs"]
    matrix = jobs["systems"]["strategy"]["matrix"]
    assert matrix["python"] == [lowest, highest]
    assert {system.split("-")[0] for system in matrix["system"]} == {"ubuntu", "macos", "windows"}
    used = [
        step["with"]["python-version"] for path in WORKFLOWS for step in steps(path) if "setup-python" in str(step)
    ]
    assert len(used) >= 4 and set(used) == {lowest, "${{ matrix.python }}"}


def test_workflows_install_the_pinned_pytorch_without_cuda():
    commands = [step["run"] for path in WORKFLOWS for step in steps(path) if "torch==" in step.get("run", "")]
    assert len(commands) == 3, "tests, systems, book"
    for command in commands:
        assert f"--torch-backend cpu torch=={pins()['torch']}" in command
