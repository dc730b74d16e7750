"""What a public repository says of itself: how to cite it, what changed, who holds which rights, how to take part."""

import fnmatch
import json
import re
import subprocess
import tomllib
from importlib.util import find_spec

import pytest
import yaml

from lib.system.files import project_root

ROOT = project_root()
TO_FILL_IN = "Fill in: owner"  # a name that the owner alone can give


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def citation():
    return yaml.safe_load(text_of("CITATION.cff"))


def annotations():
    return tomllib.loads(text_of("REUSE.toml"))["annotations"]


def project():
    return tomllib.loads(text_of("pyproject.toml"))["project"]


def listed(value):
    return [value] if isinstance(value, str) else value


def test_the_citation_is_of_this_version_and_these_papers():
    found = citation()
    assert {"cff-version", "message", "title", "authors", "version"} <= found.keys()
    assert (found["type"], found["version"], found["license"]) == ("software", project()["version"], "Apache-2.0")
    for paper in found["references"]:
        assert paper["type"] and paper["title"] and paper["year"]
        assert all(author["family-names"] and author["given-names"] for author in paper["authors"])
    cited = [re.fullmatch(r"https://arxiv\.org/abs/(\d+\.\d+)", paper["url"])[1] for paper in found["references"]]
    assert cited == re.findall(r"^\* .*\[arXiv:(\d+\.\d+)\]", text_of("README.md"), re.MULTILINE) and len(cited) == 4


def test_the_changelog_has_this_version():
    headings = re.findall(r"^## (.*)$", text_of("CHANGELOG.md"), re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    versions = [re.fullmatch(r"\[?(\d+\.\d+\.\d+)\]? - \d{4}-\d\d-\d\d", heading)[1] for heading in headings[1:]]
    assert versions[0] == project()["version"]


def test_the_owner_is_the_same_everywhere():
    """The name is filled in in all places or in none."""
    (author,) = citation()["authors"]
    owner = author.get("name") or f"{author['given-names']} {author['family-names']}"
    holders = {listed(entry["SPDX-FileCopyrightText"])[0] for entry in annotations()}
    assert {holder for holder in holders if not holder.startswith("The authors")} == {owner}
    filled_in = TO_FILL_IN not in owner
    for name in ("CITATION.cff", "REUSE.toml"):
        assert ("Fill in" not in text_of(name)) == filled_in, name


# -------------------------------------------------------------------------------------------------------- licences


def licence_of(name):
    """By the last entry of REUSE.toml that names a file, as REUSE has it: * is of one folder, ** of all below."""
    (*_, last) = [e for e in annotations() for p in listed(e["path"]) if re.fullmatch(_pattern(p), name)]
    return last["SPDX-License-Identifier"]


def _pattern(path):
    return re.escape(path).replace(r"\*\*", ".*").replace(r"\*", "[^/]*")


@pytest.mark.parametrize(
    ("files", "licence"),
    [
        (["lib/train.py", "papers.md", "trained/mem2mem/README.md", "lib/data/splits/sumpubmed.json"], "Apache-2.0"),
        (
            [
                "notebooks/mem2mem.ipynb",
                "README.md",
                "docs/reproduce.md",
                "docs/summary_page.png",
                "docs/live_page.png",
            ],
            "Apache-2.0 AND CC-BY-4.0",
        ),
        (["lib/data/pmc_sample/test.jsonl.gz"], "LicenseRef-PMC-Sample"),
        (["lib/data/docstrings_sample/test.jsonl.gz"], "BSD-3-Clause AND MIT"),
    ],
)
def test_licences_are_those_of_the_readme(files, licence):
    assert {licence_of(name) for name in files} == {licence}
    assert project()["license"] == licence_of("pyproject.toml") == "Apache-2.0"


def test_no_weight_and_no_vocabulary_is_under_the_licence_of_the_code():
    used = [path for path in sorted((ROOT / "trained").glob("*/*")) if path.suffix not in (".json", ".jsonl", ".md")]
    assert len(used) == 11, "five models' weights, and six vocabularies"
    for path in used:
        assert licence_of(path.relative_to(ROOT).as_posix()) == "LicenseRef-Research-And-Teaching", path


def test_every_licence_has_its_text_and_every_text_its_licence():
    named = {part for e in annotations() for part in e["SPDX-License-Identifier"].split(" AND ")}
    assert named == {path.stem for path in (ROOT / "LICENSES").glob("*.txt")}
    assert text_of("LICENSES/Apache-2.0.txt") == text_of("LICENSE")


def test_the_licences_of_the_sample_are_those_of_its_papers():
    papers = re.findall(r"^- \S+: .* (CC\S+)$", text_of("lib/data/pmc_sample/ATTRIBUTION.md"), re.MULTILINE)
    told = re.findall(
        r"^(CC.*?)(?::|, no version given)", text_of("LICENSES/LicenseRef-PMC-Sample.txt"), re.MULTILINE
    )
    assert len(papers) == 150 and set(papers) == {
        "CC-BY" if name == "CC BY" else name.replace(" ", "-") for name in told
    }


# --------------------------------------------------------------------------------------------------- taking part


def commands_of(name):
    """Lines of the blocks of code of a text, without comments."""
    blocks = re.findall(r"```sh\n(.*?)```", text_of(name), re.DOTALL)
    return [line.split(" #")[0].strip() for block in blocks for line in block.splitlines()]


def test_what_contributing_names_is_there():
    targets = set(re.findall(r"^([a-z]+):", text_of("Makefile"), re.MULTILINE))
    text, commands = text_of("CONTRIBUTING.md"), commands_of("CONTRIBUTING.md")
    assert len(commands) >= 8
    for target in re.findall(r"^make (\w+)|`make (\w+)`", "\n".join([*commands, text]), re.MULTILINE):
        assert set(filter(None, target)) <= targets
    for command in commands:
        program, *rest = command.split()
        assert program == "make" or (program == "python" and rest[0] == "-m" and find_spec(rest[1])), command
        assert all((ROOT / word).is_file() for word in rest if word.endswith(".py")), command
    for name in re.findall(r"`([\w./]+\.(?:py|md|toml|txt|yml|cff))`", text):
        assert (ROOT / name).is_file() or name in ("notebooks/NAME.py", "docs/papers/NAME.md"), name
    for module in re.findall(r"`(lib(?:\.\w+)+)`", text):
        assert find_spec(module), module


def test_the_container_sets_up_what_make_does():
    container = json.loads(text_of(".devcontainer/devcontainer.json"))
    *_, ready = container["postCreateCommand"].split(" && ")
    dry = subprocess.run([*ready.split(), "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert (
        "up to date" in dry
        or 'install --quiet --disable-pip-version-check -c constraints.txt -e ".[pages,dev,files]"' in dry
    )
    (torch,) = re.findall(r"^torch==.*", text_of("constraints.txt"), re.MULTILINE)
    assert f"--torch-backend cpu {torch}" in container["postCreateCommand"]
    assert fnmatch.fnmatch(container["image"], "*:3.11-*") and project()["requires-python"] == ">=3.11"
