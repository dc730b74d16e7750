"""The workflow: a rule for each table and figure, and nothing done twice."""

import json
import re
import shlex
import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from companion.results.tables import PAGE_RESULTS, SHOWN, TABLES
from lib.system.files import project_root

pytest.importorskip("snakemake", reason="needs the extra `tables`")
ROOT = project_root()
TINY = ["--config", "steps=40", "limit=3", "documents=2", "seeds=1"]


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """The workflow in a folder of its own, so that nothing is written into the project's folders
    and caches."""
    for variable in ("COMPANION_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "cache"))
    for name in ("lib", "companion", "notebooks", "trained", "workflow"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def run(folder, *arguments):
    command = [sys.executable, "-m", "snakemake", "-c2", *arguments]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    return ended.returncode, ended.stdout + ended.stderr


def snakemake(folder, *arguments):
    status, output = run(folder, *arguments)
    assert status == 0, output
    return output


@pytest.mark.slow
def test_every_table_and_figure_has_a_rule(workplace):
    listed = snakemake(workplace, "-n")
    for name in (*TABLES, *SHOWN, *PAGE_RESULTS):
        assert re.search(rf"\brule {name}:", listed), name
    assert (
        "mem2mem--read--2/trained" in listed
        and "scores-val.json" in listed
        and "scores-scaled.json" in listed
    )
    status, output = run(workplace, "-n", "--config", "step=3")
    assert status and "--config has no step; there are dataset, preset, seeds, steps" in output


@pytest.mark.slow
def test_presets_and_other_corpora(workplace):
    given = ["preset=paper", "dataset=gigaword", "test=duc2004", "seeds=2"]
    listed = snakemake(workplace, "-n", "-p", "read_again_table2", "--config", *given)
    assert (
        "--preset paper --variant 'read-again lstm + copy' --options.vocab-size 15000 --dataset "
        "gigaword" in listed
    )
    assert (
        "gigaword-paper/read_again--read-again-lstm-copy--15000--1/scores-duc2004-exactly15-numbers.json"
        in listed
    )
    assert "--min-length=15 --max-length=15 --numbers" in listed and "--test duc2004" in listed
    assert "option-2" not in listed, "there is no second sentence"
    listed = snakemake(workplace, "-n", "-p", "hierarchical_table2", "--config", "seeds=1")
    scored = re.findall(r"lib\.score run (\S+--HT--0) (.*)", listed)
    assert len({folder for folder, _ in scored}) == 1, "one run, scored twice"
    assert sorted("--scaled paragraphs=5/3" in how for _, how in scored) == [False, True]


def test_the_command_of_a_table_can_be_pasted(workplace):
    """Whatever the name of the folder that it is made of."""
    listed = snakemake(
        workplace, "-n", "-p", "mem2mem_table3", "--config", "dataset=a/my folder", "seeds=1"
    )
    (command,) = re.findall(r"companion\.make_tables (table mem2mem_table3 .*)", listed)
    made = shlex.split(command)[shlex.split(command).index("--made-by") + 1]
    assert shlex.split(made) == [
        "snakemake",
        "-c2",
        "mem2mem_table3",
        "--config",
        "dataset=my folder",
        "seeds=1",
    ]


@pytest.mark.slow
def test_samples_of_a_kept_run(workplace):
    """Only its own row; a figure of which no kept run has a row has no rule."""
    given = ["--config", "kept=1", "dataset=pmc-sample", "documents=1"]
    snakemake(workplace, "read_again_table5", *given)
    made = workplace / "runs" / "tables" / "pmc-sample-kept" / "read_again_table5.json"
    summaries = json.loads(made.read_text(encoding="utf-8"))["documents"][0]["summaries"]
    assert list(summaries) == ["with copying"] and summaries["with copying"]
    status, output = run(workplace, "-n", "windowed_figure1", *given)
    assert status and "MissingRuleException" in output


@pytest.mark.long
def test_a_table_is_made_once(workplace):
    snakemake(workplace, "mem2mem_table3", *TINY)
    (table,) = (workplace / "runs" / "tables").glob("*/mem2mem_table3.json")
    numbers = json.loads(table.read_text(encoding="utf-8"))
    assert numbers["documents"] == 2 and numbers["rows"][3]["steps"] == 40
    assert (
        numbers["command"]
        == "snakemake -c2 mem2mem_table3 --config steps=40 limit=3 documents=2 seeds=1"
    )
    assert "Nothing to be done" in snakemake(workplace, "mem2mem_table3", *TINY)
    (scores,) = table.parent.glob("*--0/scores-2.json")
    scores.unlink()
    table.unlink()
    listed = snakemake(workplace, "-n", "mem2mem_table3", *TINY)
    assert "rule score:" in listed and "rule train:" not in listed, "only what is missing"


@pytest.mark.slow
def test_a_page_that_fails_is_no_output(workplace):
    (workplace / "notebooks").unlink()
    (workplace / "notebooks").mkdir()
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    parameters = new_code_cell(
        'dataset: str = ""\npreset: str = ""', metadata={"tags": ["parameters"]}
    )
    page = new_notebook(cells=[parameters, new_code_cell("1 / 0")], metadata=kernel)
    nbformat.write(page, workplace / "notebooks" / "read_again.ipynb")
    status, output = run(workplace, "read_again_table4")
    assert status and "rule page" in output
    left = [
        path.name
        for path in (workplace / "runs").rglob("*")
        if path.is_file() and path.name[0] != "."
    ]
    assert left == []
