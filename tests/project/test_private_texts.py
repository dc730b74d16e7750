"""Texts that may not be published stay out of all that Git takes up, whichever command writes
them."""

import json
import shutil
import subprocess

import pytest

from companion import draw_samples
from companion.human.sheets import write_sheets
from companion.results.tables import SHOWN
from lib import score
from lib.data.documents import CorpusError, Document
from lib.evaluation.summaries import read_summaries, write_summaries
from lib.system.files import project_root, trained_folder, would_be_published

TEXT = "The grain was sold abroad in May. Prices rose by three cents."


@pytest.fixture
def checkout(tmp_path):
    """One that ignores what the project's does."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    shutil.copy(project_root() / ".gitignore", folder)
    return folder


@pytest.fixture
def private(checkout):
    """A private corpus by its folder."""
    folder = checkout / "data" / "newsroom"
    folder.mkdir(parents=True)
    for name in ("train", "val", "test"):
        lines = (
            json.dumps({"id": f"{name} {n}", "text": TEXT, "summary": "Grain sold."}) + "\n"
            for n in range(3)
        )
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


def left_in(checkout) -> list[str]:
    """What Git would take up."""
    command = ["git", "-C", str(checkout), "ls-files", "--others", "--exclude-standard"]
    return sorted(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    )


def test_what_git_takes_up(checkout, tmp_path):
    ignored = (
        "trained/x/summaries.jsonl",
        "trained/x/summaries-200.jsonl",
        "trained/x/scores-2.json",
    )
    ignored += ("runs/a/b.json", "cache/c/prepared.json", "data/d.txt")
    assert not any(would_be_published(checkout / name) for name in ignored)
    assert all(would_be_published(checkout / name) for name in ("trained/x/table.json", "new/a"))
    assert not would_be_published(tmp_path / "outside.json")


def test_summaries_beside_scores(checkout, private, monkeypatch, capsys):
    run = [
        "run",
        str(trained_folder("read_again")),
        "--dataset",
        str(private),
        "--documents",
        "1",
        "--output",
    ]
    score.main([*run, str(checkout / "runs" / "scores.json")])
    assert TEXT in (checkout / "runs" / "summaries.jsonl").read_text(encoding="utf-8")
    monkeypatch.setattr(score.lib, "load", lambda *_: pytest.fail("it works before it says so"))
    wrong = [*run, str(checkout / "scores.json")]
    for more in ([], ["--test", "pmc-sample", "--split", "val"]):
        with pytest.raises(
            SystemExit, match=r"summaries\.jsonl: texts of newsroom may not be published"
        ):
            score.main([*wrong, *more])
    with pytest.raises(SystemExit, match=r"r\.html: texts of newsroom may not be published"):
        score.main([*run, str(checkout / "runs" / "x.json"), "--html", str(checkout / "r.html")])
    assert left_in(checkout) == [".gitignore"]


def test_forms(checkout, private):
    """The form holds the texts of the files that it is made of."""
    document = Document("d", "", [""], [[TEXT]], ["Grain sold."])
    files = [checkout / "runs" / f"{name}.jsonl" for name in "ab"]
    for path in files:
        write_summaries(path, [document], [["Grain."]], str(private))
    systems = {path.stem: read_summaries(path) for path in files}
    with pytest.raises(CorpusError, match=r"form\.html: texts of newsroom may not be published"):
        write_sheets(checkout / "rating", systems, 1)
    with pytest.raises(CorpusError, match="may not be published"):
        write_summaries(checkout / "a.jsonl", [document], [["Grain."]], "newsroom:mixed")
    write_sheets(checkout / "runs" / "rating", systems, 1)
    assert left_in(checkout) == [".gitignore"] and "grain was sold" in (
        checkout / "runs/rating/form.html"
    ).read_text(encoding="utf-8")


def test_figures_whose_panels_are_texts(checkout, private, monkeypatch):
    monkeypatch.setattr(
        draw_samples.lib, "load", lambda *_, **__: pytest.fail("it works before it says so")
    )
    (label,) = (row.label for row in SHOWN["read_again_figure4"].rows)
    run = [
        "read_again_figure4",
        f"{label}={trained_folder('read_again')}",
        "--dataset",
        str(private),
    ]
    with pytest.raises(SystemExit, match=r"f\.json: texts of newsroom may not be published"):
        draw_samples.main([*run, "--output", str(checkout / "f.png")])
    assert left_in(checkout) == [".gitignore"]
