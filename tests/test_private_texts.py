"""Texts that may not be published stay out of what Git takes up; no run is scored on what it has learned from."""

import json
import shutil
import subprocess

import pytest

import lib
from lib import score, show_runs, train
from lib.data.corpora import SAMPLE, load_corpus, unseen
from lib.data.documents import CorpusError, Document
from lib.human.__main__ import main as human
from lib.human.sheets import write_summaries
from lib.storage import project_root, would_be_published

DOCUMENTS = [Document(f"d{n}", "", [""], [[f"Text {n} of an article."]], [f"Summary {n}."]) for n in range(3)]


@pytest.fixture
def checkout(tmp_path):
    """A Git checkout that ignores `runs`."""
    subprocess.run(["git", "init", "-q", tmp_path / "checkout"], check=True)
    (tmp_path / "checkout" / ".gitignore").write_text("runs/\n", encoding="utf-8")
    return tmp_path / "checkout"


@pytest.fixture
def sumpubmed(tmp_path):
    """A folder of that name, with texts of our own."""
    folder = tmp_path / "sumpubmed"
    folder.mkdir()
    for name in ("train", "val", "test"):
        texts = [f"We measured the growth of plant {n} . It grew by {n} mm in the field ." for n in range(4)]
        lines = [json.dumps({"document": text, "summary": text[: text.index(".")] + "."}) for text in texts]
        (folder / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder


def test_what_git_takes_up(checkout, tmp_path):
    assert would_be_published(checkout / "a.json") and would_be_published(checkout / "new" / "folder" / "a.json")
    assert not would_be_published(checkout / "runs" / "new" / "a.json")
    assert not would_be_published(tmp_path / "a.json"), "no checkout"


def test_private_summaries_in_a_checkout(checkout):
    summaries = [document.summary for document in DOCUMENTS]
    for private in ("sumpubmed", "../data/reuters", "newsroom:abstractive"):
        with pytest.raises(CorpusError, match=r"s\.jsonl: texts of .* may not be published, .*below runs/"):
            write_summaries(checkout / "s.jsonl", DOCUMENTS, summaries, private)
    assert not (checkout / "s.jsonl").exists()
    write_summaries(checkout / "runs" / "s.jsonl", DOCUMENTS, summaries, "sumpubmed")
    write_summaries(checkout / "s.jsonl", DOCUMENTS, summaries, "aclsum")
    assert (checkout / "s.jsonl").exists()


def test_sheets_of_private_texts(checkout):
    """The corpus is known of the files of summaries."""
    files = [checkout / "runs" / f"{name}.jsonl" for name in "ab"]
    for path in files:
        write_summaries(path, DOCUMENTS, [document.summary for document in DOCUMENTS], "sumpubmed")
    given = ["sheet", "--documents", "2", *(f"{path.stem}={path}" for path in files)]
    with pytest.raises(SystemExit, match="texts of sumpubmed may not be published"):
        human([given[0], str(checkout / "rating"), *given[1:]])
    assert not (checkout / "rating").exists()
    human([given[0], str(checkout / "runs" / "rating"), *given[1:]])
    assert (checkout / "runs" / "rating" / "form.html").exists()


def test_scores_of_a_shipped_run_stand_below_runs(sumpubmed, monkeypatch, tmp_path):
    """Not in `trained`, whose files are the project's, and which Git does not ignore as a whole."""
    project = tmp_path / "project"
    shutil.copytree(project_root() / "trained" / "read_again", project / "trained" / "read_again")
    shutil.copy(project_root() / ".gitignore", project)
    subprocess.run(["git", "init", "-q", project], check=True)
    before = sorted(path.name for path in (project / "trained" / "read_again").iterdir())
    monkeypatch.setattr(score, "project_root", lambda: project)
    monkeypatch.setattr(score, "trained_folder", lambda name: project / "trained" / name)
    given = ["run", str(project / "trained" / "read_again"), "--dataset", str(sumpubmed), "--documents", "2"]
    score.main(given)
    made = project / "runs" / "scores" / "read_again"
    assert sorted(path.name for path in made.iterdir()) == ["scores.json", "summaries.jsonl"]
    assert sorted(path.name for path in (project / "trained" / "read_again").iterdir()) == before
    with pytest.raises(SystemExit, match="texts of sumpubmed may not be published"):
        score.main([*given, "--output", str(project / "scores.json")])
    status = subprocess.run(["git", "status", "--short", "-uall"], cwd=project, capture_output=True, text=True)
    assert "runs" not in status.stdout and "scores.json" not in status.stdout
    for name in ("scores-200.json", "summaries.jsonl"):
        assert not would_be_published(project / "trained" / "read_again" / name), "put there by hand"


# -------------------------------------------------------------------------------------- what a run has learned from


def test_a_paper_that_a_run_has_learned_from_is_left_out(capsys):
    corpus = load_corpus(SAMPLE)
    every = [document.id for document in corpus.split("test")]
    found = [document.id for document in unseen(corpus, "test", ["data/sumpubmed"])]
    assert set(every) - set(found) == {"PMC4784345"} and "PMC4784345" in capsys.readouterr().err
    assert [document.id for document in unseen(corpus, "test", ["reuters"])] == every
    assert len(unseen(corpus, "val", ["sumpubmed"])) == 20 and len(unseen(corpus, "test", ["sumpubmed"], 5)) == 5
    assert capsys.readouterr().err.count("\n") == 1, "nothing is said where nothing is left out"


@pytest.mark.parametrize("command", ["score", "show_runs"])
def test_commands_leave_it_out(command, monkeypatch, tmp_path):
    """Mem2Mem was trained on SumPubMed, which has the paper as well."""
    place = [d.id for d in load_corpus(SAMPLE).split("test")].index("PMC4784345")
    taken, run = [], project_root() / "trained" / "mem2mem"
    where = ["--dataset", SAMPLE, "--documents", str(place + 1), "--output", str(tmp_path / "x.json")]
    if command == "score":
        monkeypatch.setattr(
            score, "score_run", lambda _, documents, *__: taken.extend(documents) or ({"parts": {}}, [])
        )
        monkeypatch.setattr(score, "write_summaries", lambda *_: None)
        score.main(["run", str(run), *where])
    else:
        monkeypatch.setattr(show_runs, "samples", lambda _, __, documents, ___: taken.extend(documents) or {})
        monkeypatch.setattr(show_runs, "samples_text", lambda _: "")
        show_runs.main(["samples", "mem2mem_table6", *where, f"Mem2Mem={run}"])
    ids = [document.id for document in taken]
    assert len(ids) == place + 1 and "PMC4784345" not in ids


# ------------------------------------------------------------------------------------------------ options of commands


def test_how_a_run_writes_when_it_is_scored(monkeypatch, tmp_path):
    asked, run = [], str(project_root() / "trained" / "mem2mem")
    monkeypatch.setattr(
        score, "score_run", lambda run, *rest: asked.append((run.decode, rest[-1])) or ({"parts": {}}, [])
    )
    monkeypatch.setattr(score, "write_summaries", lambda *_: None)
    given = ["run", run, "--dataset", SAMPLE, "--documents", "1", "--output", str(tmp_path / "x.json")]
    score.main([*given, "--min-length", "5", "--max-length", "100", "--beam", "2", "--batch-size", "3"])
    (tmp_path / "x.json").unlink()
    score.main(given)
    (changed, size), (own, usual) = asked
    assert (changed.min_length, changed.max_length, changed.beam, size) == (5, 100, 2, 3)
    assert own == lib.load(run).decode and usual == 16
    (tmp_path / "x.json").unlink()
    with pytest.raises(SystemExit, match=r"at least 240 words and at most 100 .*: give --min-length, --max-length"):
        score.main([*given, "--max-length", "100"])


@pytest.mark.parametrize(("paper", "corpus"), [("read_again", "docstrings"), ("mem2mem", "aclsum")])
def test_a_paper_is_trained_on_its_own_corpus(paper, corpus):
    command, _ = train.parse([paper, "--preset", "demo", "--output", "runs/x"])
    assert command.dataset == corpus
    command, _ = train.parse([paper, "--preset", "demo", "--output", "runs/x", "--dataset", "my/folder"])
    assert command.dataset == "my/folder"
