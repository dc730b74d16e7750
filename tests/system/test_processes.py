"""Work that processes share: each has what one alone would have, bit for bit, and none waits for
another by the clock while a corpus is prepared.

    torchrun --standalone --nproc-per-node 2 -m tests.system.test_processes FOLDER NAME
"""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import lib
from lib import intervene, score, summarize
from lib.data.corpus import Corpus
from lib.decoding.run import Run
from lib.decoding.search import extract
from lib.evaluation.interventions import agreements, changes_of, log_probs
from lib.papers import resolve
from lib.system.command_line import plain_errors
from lib.system.devices import Process, default_device, device_named, processes
from lib.system.files import project_root
from lib.system.metrics import read_metrics
from lib.system.threads import torch_threads
from lib.training.folder import read_meta
from lib.training.loop import evaluate_loss, train
from tests.commands.test_summarize import RECORDS
from tests.conftest import make_planted_corpus
from tests.training.test_train import CONFIG, MEM2MEM, model

OTHERS = [
    {
        "id": f"t{i}",
        "section_names": ["Introduction", "Conclusion"],
        "sections": [[f"Text {i} is read by a model."] * (1 + i % 4), ["It helps."]],
        "abstract_text": [f"A text is read in {i} days."],
    }
    for i in range(7)
]

SYLLABLES = " ".join(a + b for a in "bdfgklmnp" for b in "aeiou")  # more words than a text has
WORDS = {**RECORDS[0], "id": "words", "sections": [[SYLLABLES], ["It helps."]]}


def shared_work(run: Run, process: Process) -> dict:
    """All that processes share out, as JSON has it: batches of two documents, of several
    lengths."""
    documents = run.documents(OTHERS)
    encoded, summarizer, vocabulary = run.encode(documents), run.model, run.vocabulary
    drawing = replace(run, decode=replace(run.decode, sample=3, min_length=0, max_length=9))
    summaries = run.summarize(documents, attention=True, batch_size=2, process=process)
    changes = changes_of(summarizer)
    return {
        "gathered": [process.gather(i * i for i in process.share(range(n))) for n in (0, 1, 2, 7)],
        "summaries": [
            [s.sentences, s.score, {k: w.tolist() for k, w in s.attention.items()}]
            for s in summaries
        ],
        "drawn": [
            [s.text, s.score] for s in drawing.summarize(documents, batch_size=3, process=process)
        ],
        "extracts": extract(summarizer, encoded, vocabulary, batch_size=2, process=process),
        "losses": [
            evaluate_loss(
                summarizer,
                encoded,
                2,
                len(vocabulary),
                tokens=tokens,
                by_words=by_words,
                process=process,
            )
            for tokens, by_words in ((None, False), (40, True))
        ],
        "changes": [
            log_probs(summarizer, encoded, c, 2, process=process).tolist() for c in changes.values()
        ],
        "agreements": [row["values"] for row in agreements(run, documents, process=process)],
    }


def commands(folder: Path, name: str) -> None:
    """The commands that processes share, with what they write."""
    run, out = str(folder / "run"), folder / name
    corpus = ["--dataset", str(folder / "corpus")]
    score.main(
        [
            "run",
            run,
            *corpus,
            "--batch-size",
            "2",
            "--device",
            "cpu",
            "--output",
            f"{out}.scores.json",
        ]
    )
    intervene.main(
        [run, "another memory", *corpus, "--device", "cpu", "--output", f"{out}.changes.json"]
    )
    intervene.main([run, *corpus, "--attention", "--of", "summaries", "--device", "cpu"])
    summarize.main(
        [
            run,
            str(folder / "corpus" / "test.jsonl"),
            "--json",
            "--device",
            "cpu",
            "--html",
            f"{out}.html",
        ]
    )


def trained_with(ahead: int, folder: Path) -> Path:
    """The folder of a run whose processes have so many updates made in the background."""
    config = replace(CONFIG, steps=5, batch_size=7, accumulate=3, validate_every=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lib.training.loop.batches_ahead", lambda device: ahead)
        return train(
            MEM2MEM, model(), make_planted_corpus(), config, folder, progress=False, device="cpu"
        ).folder


def train_until_stopped(folder: Path) -> None:
    config = replace(
        CONFIG, steps=10**6, batch_size=7, log_every=1, validate_every=10**6, save_every=10**6
    )
    with plain_errors("It can go on."):
        train(MEM2MEM, model(), make_planted_corpus(), config, folder, progress=False, device="cpu")


def main(folder: Path, name: str) -> None:
    if name == "until stopped":
        return train_until_stopped(folder)
    with processes() as process, torch_threads(1):
        work = shared_work(lib.load(folder / "run", device="cpu"), process)
        (folder / f"{name}-{process.rank}.json").write_text(json.dumps(work), encoding="utf-8")
        for ahead in (0, 3):
            trained_with(ahead, folder / f"{name}-ahead-{ahead}")
        commands(folder, name)


def in_two_processes(*command: str) -> subprocess.Popen[str]:
    torchrun = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
    ]
    return subprocess.Popen(
        [*torchrun, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=project_root(),
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(project_root())},
    )


@pytest.mark.slow
def test_processes_share_what_one_does(tmp_path, capsys):
    setup = resolve("mem2mem", "demo", steps=4, batch_size=2)
    setup = replace(setup, decode=replace(setup.decode, min_length=4, max_length=12))
    corpus = setup.prepare(
        Corpus.from_records(train=[*RECORDS, WORDS], val=RECORDS[:2], test=RECORDS[:2])
    )
    train(setup.recipe, setup.build(corpus), corpus, setup.train, tmp_path / "run", progress=False)
    (tmp_path / "corpus").mkdir()
    for split, records in (("train", RECORDS), ("val", RECORDS[:1]), ("test", OTHERS)):
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (tmp_path / "corpus" / f"{split}.jsonl").write_text(lines, encoding="utf-8")
    done = in_two_processes("-m", "tests.system.test_processes", str(tmp_path), "two")
    printed, errors = done.communicate(timeout=600)
    assert done.returncode == 0, errors
    capsys.readouterr()
    main(tmp_path, "one")
    expected = json.loads((tmp_path / "one-0.json").read_text(encoding="utf-8"))
    assert expected["gathered"] == [[], [0], [0, 1], [0, 1, 4, 9, 16, 25, 36]]
    for rank in (0, 1):
        assert json.loads((tmp_path / f"two-{rank}.json").read_text(encoding="utf-8")) == expected
    for name in ("scores", "changes"):
        ours, theirs = (
            json.loads((tmp_path / f"{n}.{name}.json").read_text("utf-8")) for n in ("two", "one")
        )
        assert (ours.pop("seconds", 0) == 0) == (theirs.pop("seconds", 0) == 0) and ours == theirs
    written = [(tmp_path / f"{name}.summaries.jsonl").read_bytes() for name in ("two", "one")]
    assert written[0] == written[1]
    assert (tmp_path / "two.html").read_bytes() == (tmp_path / "one.html").read_bytes()
    ahead, in_turn = (tmp_path / f"two-ahead-{count}" for count in (3, 0))
    assert (ahead / "last.safetensors").read_bytes() == (in_turn / "last.safetensors").read_bytes()
    losses = [[m["loss"] for m in read_metrics(folder)] for folder in (ahead, in_turn)]
    assert losses[0] == losses[1] and len(losses[0]) == 5 + 3
    assert printed == capsys.readouterr().out.replace("one.", "two."), "said once"


# a batch system sends SIGTERM; a person at the keyboard sends SIGINT
@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.long), signal.SIGTERM]
)
def test_processes_that_are_told_to_stop_leave_one_checkpoint(tmp_path, number):
    torchrun = in_two_processes("-m", "tests.system.test_processes", str(tmp_path), "until stopped")
    while len(read_metrics(tmp_path)) < 3:
        assert torchrun.poll() is None, torchrun.communicate()
        time.sleep(0.05)
    torchrun.send_signal(number)
    _, errors = torchrun.communicate(timeout=600)
    assert errors.count("stopped. It can go on.") == 1 and "KeyboardInterrupt" not in errors, errors
    assert read_meta(tmp_path / "last.safetensors")["step"] == read_metrics(tmp_path)[-1]["step"]


# ---------------------------------------------------------------------------------
# devices


def test_a_process_has_a_gpu_of_its_own(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv("LOCAL_RANK", "2")
    assert str(device_named()) == str(device_named("cuda")) == "cuda:2"
    assert str(device_named("cuda:1")) == "cuda:1"
    with default_device(torch.device("cpu")):
        assert str(device_named()) == "cpu" and str(device_named("cuda")) == "cuda:2"
    assert str(device_named()) == "cuda:2"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
