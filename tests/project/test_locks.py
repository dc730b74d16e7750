"""The pins, the lock made of them, and the Pythons that the project promises say the same."""

import re
import tomllib

import pytest

from lib.system.files import project_root
from tests.tools.locks import promised_pythons

ROOT = project_root()


def normal(name):
    """A package's name as an index writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins():
    """{package: version} of constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return {
        normal(name): version
        for name, version in (line.split("==") for line in lines if "==" in line)
    }


def locked():
    """{package: (version, hashes)} of requirements.lock."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    found = {}
    for entry in re.split(
        r"\n(?=[a-z0-9])", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).strip()
    ):
        name, version = re.match(r"([A-Za-z0-9._-]+)==([^ ;\\]+)", entry).groups()
        assert name not in found, "one version for every Python and system"
        found[name] = version, re.findall(r"--hash=sha256:([0-9a-f]{64})\b", entry)
    return found


def test_the_lock_has_every_pin_and_every_need():
    versions = {name: version for name, (version, _) in locked().items()}
    assert {name: versions.get(name) for name in pins()} == pins()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needs = [
        need for group in project["optional-dependencies"].values() for need in group
    ] + project["dependencies"]
    assert {normal(re.match(r"[A-Za-z0-9._-]+", need)[0]) for need in needs} <= versions.keys()


def test_everything_locked_has_hashes_and_comes_from_no_named_index():
    assert [
        name
        for name, (_, hashes) in locked().items()
        if not hashes or len(set(hashes)) < len(hashes)
    ] == []
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert not re.search(r"://|--(extra-)?index|--find-links|file:|\+cpu", text)


def test_the_pythons_that_are_promised(tmp_path):
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(text.replace('">=3.11"', '">=3.10"'), encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"requires-python begins at 3\.10, the classifiers at \['3\.11'\]"
    ):
        promised_pythons(tmp_path)
