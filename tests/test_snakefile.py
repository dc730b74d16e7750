"""The workflow: a rule for each table and figure, runs that go on where they stopped, and nothing done twice."""

import json
import logging
import multiprocessing
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from lib.papers import PAPERS
from lib.system.files import project_root

pytest.importorskip("snakemake", reason="needs the extra `tables`")
ROOT = project_root()
TINY = ["--config", "steps=40", "limit=3", "documents=2", "seeds=1"]


def own_caches(folder, patch):
    """Nothing lands in the caches of who runs the tests."""
    for variable in ("COMPANION_CACHE", "XDG_CACHE_HOME"):
        patch.setenv(variable, str(folder / "cache"))


def laid_out(folder):
    """The workflow's own folder, so that nothing lands in the project's."""
    for name in ("lib", "notebooks", "workflow"):
        (folder / name).symlink_to(ROOT / name)
    return folder


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    own_caches(tmp_path, monkeypatch)
    return laid_out(tmp_path)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder in which a table was made, its file, and what was in it."""
    folder = laid_out(tmp_path_factory.mktemp("made"))
    with pytest.MonkeyPatch.context() as patch:
        own_caches(folder, patch)
        snakemake(folder, "mem2mem_table3", *TINY)
    (table,) = (folder / "runs" / "tables").glob("*/mem2mem_table3.json")
    return SimpleNamespace(folder=folder, table=table, text=table.read_text(encoding="utf-8"))


def command(*arguments):
    return [sys.executable, "-m", "snakemake", "-c2", *arguments]


def in_a_fork(main, folder, said, arguments):
    """The command in a fork of this process, which has imported what takes the command seconds."""
    os.chdir(folder)
    for stream in (1, 2):
        os.dup2(said.fileno(), stream)
    sys.stdout = sys.stderr = said
    logging.getLogger().handlers.clear()  # pytest's
    main(["-c2", *arguments])


def ended(folder, *arguments):
    """The command's exit status, and all that it has said."""
    if sys.platform != "linux":  # where forks are not safe
        run = subprocess.run(command(*arguments), cwd=folder, capture_output=True, text=True, timeout=300)
        return run.returncode, run.stdout + run.stderr
    from snakemake.cli import main

    with (folder / ".said").open("w+", encoding="utf-8") as said:
        process = multiprocessing.get_context("fork").Process(target=in_a_fork, args=(main, folder, said, arguments))
        process.start()
        process.join(300)
        process.kill()
        return process.exitcode, (folder / ".said").read_text(encoding="utf-8")


def snakemake(folder, *arguments):
    status, said = ended(folder, *arguments)
    assert status == 0, said
    return said


def test_every_table_and_figure_has_a_rule(workplace):
    listed = snakemake(workplace, "-n", "--quiet", "rules")
    listed += snakemake(workplace, "-n")
    of_runs = [n for paper in PAPERS.values() for n in (*paper.samples, *paper.run_figures)]
    for name in [
        n for paper in PAPERS.values() for n in (*paper.tables, *paper.page_tables, *paper.figures)
    ] + of_runs:
        assert re.search(rf"\brule {name}:", listed), name
    assert "mem2mem--read--2/trained" in listed and "scores-val.json" in listed and "scores-scaled.json" in listed


def test_an_unknown_setting_is_refused(workplace):
    run = subprocess.run(command("-n", "--config", "step=3"), cwd=workplace, capture_output=True, text=True)
    assert (
        run.returncode and "--config has no step; there are dataset, preset, seeds, steps" in run.stdout + run.stderr
    )


def test_papers_sizes_and_other_corpora(workplace):
    listed = snakemake(
        workplace,
        "-n",
        "-p",
        "read_again_table2",
        "--config",
        "preset=paper",
        "dataset=gigaword",
        "test=duc2004",
        "seeds=2",
    )
    assert "--preset paper --variant 'read-again lstm + copy' --options.vocab-size 15000 --dataset gigaword" in listed
    assert "gigaword-paper/read_again--read-again-lstm-copy--15000--1/scores-duc2004-exactly15-numbers.json" in listed
    assert "--min-length=15 --max-length=15 --numbers" in listed
    assert "option-2" not in listed, "there is no second sentence"
    assert "--test duc2004" in listed
    listed = snakemake(workplace, "-n", "-p", "windowed_table", "--config", "preset=paper", "dataset=cnn_dailymail")
    assert "--preset CD_II" in listed and "WIKI" not in listed, "the rows of that corpus alone"
    listed = snakemake(workplace, "-n", "-p", "hierarchical_table2", "--config", "seeds=1")
    scored = re.findall(r"lib\.score run (\S+--HT--0) (.*)", listed)
    assert len({folder for folder, _ in scored}) == 1, "one run, scored twice"
    assert sorted("--scaled paragraphs=5/3" in how for _, how in scored) == [False, True]


def test_what_is_shown_of_a_kept_run(workplace):
    """Its own row, on documents that may be published; what no kept run is in has no rule."""
    (workplace / "trained").symlink_to(ROOT / "trained")
    given = ["--config", "kept=1", "dataset=pmc-sample", "documents=1"]
    listed = snakemake(workplace, "-n", "-p", "mem2mem_figure3", "mem2mem_figure4", "windowed_text", *given)
    assert "rule train:" not in listed and "companion.show_runs samples windowed_text" in listed
    assert "Mem2Mem=trained/mem2mem --output runs/tables/pmc-sample-kept/mem2mem_figure3.png" in listed
    snakemake(workplace, "read_again_table5", *given)
    made = workplace / "runs" / "tables" / "pmc-sample-kept" / "read_again_table5.json"
    summaries = json.loads(made.read_text(encoding="utf-8"))["documents"][0]["summaries"]
    assert list(summaries) == ["with copying"] and summaries["with copying"]
    status, said = ended(workplace, "-n", "windowed_figure1", *given)
    assert status != 0 and "MissingRuleException" in said


def test_the_command_of_a_table_can_be_pasted(workplace):
    """Whatever the name of the folder that it is made of."""
    listed = snakemake(workplace, "-n", "-p", "mem2mem_table3", "--config", "dataset=a/my folder", "seeds=1")
    (said,) = re.findall(r"lib\.make_tables (table mem2mem_table3 .*)", listed)
    made = shlex.split(said)[shlex.split(said).index("--made-by") + 1]
    assert shlex.split(made) == ["snakemake", "-c2", "mem2mem_table3", "--config", "dataset=my folder", "seeds=1"]


def test_a_table_is_made_once(made, monkeypatch):
    own_caches(made.folder, monkeypatch)
    numbers = json.loads(made.text)
    assert numbers["documents"] == 2 and numbers["rows"][3]["steps"] == 40
    assert numbers["command"] == "snakemake -c2 mem2mem_table3 --config steps=40 limit=3 documents=2 seeds=1"
    assert "Nothing to be done" in snakemake(made.folder, "mem2mem_table3", *TINY)
    (scores,) = made.table.parent.glob("*--0/scores-2.json")
    scores.unlink()
    made.table.unlink()
    listed = snakemake(made.folder, "-n", "mem2mem_table3", *TINY)
    assert "rule score:" in listed and "rule train:" not in listed, "only what is missing"
    snakemake(made.folder, "mem2mem_table3", *TINY)
    again = json.loads(made.table.read_text(encoding="utf-8"))
    assert again["documents"] == 2, "over what is left of the table before: its Markdown and its scores"


def test_a_killed_run_goes_on_to_the_same_table(workplace, made):
    """Killed without warning while a run trains: the run is not taken for finished, goes on where it stopped, and the
    table is the one of a run that nobody disturbed."""
    started = subprocess.Popen(
        command("mem2mem_table3", *TINY), cwd=workplace, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    folder = workplace / "runs" / "tables" / "aclsum-demo-steps40-limit3" / "mem2mem--read--0"
    until = time.time() + 120
    while not (folder / "metrics.jsonl").exists() or '"step": 10' not in (folder / "metrics.jsonl").read_text(
        encoding="utf-8"
    ):
        assert time.time() < until and started.poll() is None
        time.sleep(0.05)
    os.killpg(started.pid, signal.SIGKILL)
    started.wait()
    assert not (folder / "trained").exists()
    snakemake(workplace, "mem2mem_table3", *TINY)
    assert (folder / "trained").exists()
    steps = [m["step"] for m in map(json.loads, (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines())]
    assert max(steps) == 40 and steps == sorted(steps)
    assert (folder.parent / "mem2mem_table3.json").read_text(encoding="utf-8") == made.text


@pytest.mark.parametrize("code", ["%nosuchmagic", "1 / 0"])
def test_a_page_that_fails_is_no_output(workplace, code):
    """Whatever it fails by: a table of the page is not made of half a page."""
    (workplace / "notebooks").unlink()
    (workplace / "notebooks").mkdir()
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    parameters = new_code_cell('dataset: str = ""\npreset: str = ""', metadata={"tags": ["parameters"]})
    cells = [parameters, new_code_cell(code), new_code_cell("print('after')")]
    nbformat.write(new_notebook(cells=cells, metadata=kernel), workplace / "notebooks" / "read_again.ipynb")
    name = next(iter(PAPERS["read_again"].page_tables))
    status, said = ended(workplace, name)
    assert status != 0 and "rule page" in said, said
    left = [path.name for path in (workplace / "runs").rglob("*") if path.is_file() and path.name[0] != "."]
    assert left == []
