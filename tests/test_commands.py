"""What goes wrong around a command is one line, in the first seconds where it can be."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from companion import make_tables, trained
from companion.pages import figures
from lib import corpora, score, summarize, train
from lib.__main__ import main as list_commands
from lib.data.corpora import Corpus
from lib.data.documents import CorpusError
from lib.models.mem2mem import Mem2Mem
from lib.papers import resolve
from lib.papers.paper import Setup
from lib.system.command_line import plain_errors
from lib.system.errors import InputError, RunError
from lib.system.files import of_the_system, project_root
from lib.training.devices import device_named
from lib.training.folder import load_weights, read_meta
from lib.training.loop import NonFiniteLossError
from lib.training.loop import train as train_model

DEMO = ["mem2mem", "--preset", "demo", "--limit", "3", "--steps", "2"]


def refused(main, arguments, *parts) -> str:
    """The command ends with status 1 and one line in which these parts stand."""
    with pytest.raises(SystemExit) as stopped:
        main(list(map(str, arguments)))
    message = str(stopped.value.code)
    assert message.startswith("error: ") and "\n" not in message
    assert not [part for part in parts if part not in message], message
    return message


@pytest.fixture
def unprepared(monkeypatch):
    """The command must stop before it looks at the corpus."""
    monkeypatch.setattr(Setup, "open_corpus", lambda *_, **__: pytest.fail("the corpus was opened first"))


def test_an_output_that_is_a_file(tmp_path, unprepared):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    for output in (tmp_path / "file", tmp_path / "file" / "below"):
        refused(train.main, [*DEMO, "--output", output], f"{tmp_path / 'file'} is a file")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


def test_figures_where_there_are_none(tmp_path):
    refused(figures.main, [tmp_path / "fugures"], "fugures", "No such file or directory")
    (tmp_path / "x.json").write_text('{"plot": "lin', encoding="utf-8")
    refused(figures.main, [tmp_path], f"{tmp_path / 'x.json'}: cannot be read as JSON")


def test_an_output_whose_name_is_too_long(tmp_path, unprepared):
    refused(train.main, [*DEMO, "--output", tmp_path / ("x" * 300)], "File name too long")


def test_an_output_that_holds_a_run(tmp_path, unprepared):
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    refused(train.main, [*DEMO, "--output", tmp_path], "holds a run already")
    os.rename(tmp_path / "config.json", tmp_path / "best-3.safetensors")
    for resume in ([], ["--resume"]):
        refused(train.main, [*DEMO, "--output", tmp_path, *resume], "holds best-3.safetensors and no config.json")


def test_an_output_that_cannot_be_written(tmp_path, unprepared, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, how: False)  # root may do everything
    refused(train.main, [*DEMO, "--output", tmp_path / "run"], f"{tmp_path} cannot be written: no permission")


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own, which can be mounted by root alone."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_disk_that_is_full(small_disk):
    message = refused(train.main, [*DEMO, "--output", small_disk / "run"], "No space left on device")
    assert str(small_disk) in message
    assert not list(small_disk.rglob(".*.tmp")), "half a file does not stay"


def test_a_file_system_that_is_read_only(small_disk, unprepared):
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    refused(train.main, [*DEMO, "--output", small_disk / "run"], f"{small_disk} cannot be written")


@pytest.mark.parametrize("device", ["foo", "cuda:99", "mps", "cpu:1", "meta"])
def test_a_device_that_is_not_here(tmp_path, unprepared, device):
    refused(train.main, [*DEMO, "--output", tmp_path / "run", "--device", device], repr(device))
    refused(summarize.main, [tmp_path, tmp_path / "a.txt", "--device", device])
    with pytest.raises(RunError, match="device"):
        device_named(device)
    assert str(device_named("cpu")) == "cpu"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seed", "-3"], "seed must be at least 0"),
        (["--steps", "-5"], "steps must be at least 1, not -5"),
        (["--limit", "0"], "limit must be at least 1, not 0"),
        (["--learning-rate", "nan"], "learning_rate must be a number above 0"),
    ],
)
def test_numbers_that_cannot_be(tmp_path, unprepared, capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        train.main([*DEMO, *arguments, "--output", str(tmp_path / "run")])
    assert stopped.value.code not in (0, None) and not (tmp_path / "run").exists()
    assert message in f"{stopped.value.code}{capsys.readouterr().err}"


@pytest.mark.parametrize("option", ["--limit", "--documents"])
def test_numbers_of_documents_to_score(tmp_path, option):
    baselines = ["baselines", "mem2mem", "--dataset", "aclsum", "--output", tmp_path / "b.json", option, "0"]
    refused(score.main, baselines, f"{option} must be at least 1, not 0")


def test_scores_that_cannot_be_written(tmp_path):
    """Said before the work: there is no such corpus to be read."""
    arguments = ["baselines", "mem2mem", "--dataset", str(tmp_path / "none"), "--output", str(tmp_path)]
    refused(score.main, arguments, f"error: {tmp_path}: Is a directory")
    refused(score.main, ["run", tmp_path / "none", "--dataset", "aclsum"], f"{tmp_path / 'none'} holds no run")
    assert not list(tmp_path.iterdir()), "no folder for a name that was mistyped"


def test_files_that_cannot_be_read_or_written(tmp_path):
    refused(summarize.main, [tmp_path / "gone", tmp_path / "a.txt"], "a.txt: No such file or directory")
    (tmp_path / "file").write_text("x", encoding="utf-8")
    refused(summarize.main, [tmp_path / "gone", tmp_path], "a folder: give the texts in it")
    refused(summarize.main, [tmp_path / "file" / "run", tmp_path / "file"], "holds no run")


def test_what_the_system_says():
    assert of_the_system(OSError(errno.ENOSPC, "No space left", "a file")) == "a file: No space left"
    assert of_the_system(OSError(errno.ENOSPC, "No space left")) == "No space left"
    assert of_the_system(OSError("two\nlines")) == "two lines"
    assert of_the_system(OSError(errno.ENOSPC, "No space left"), Path("a run")) == "a run: No space left"
    assert of_the_system(OSError(errno.ENOSPC, "No space left", "a file"), "a run") == "a file: No space left"


@pytest.mark.parametrize(
    ("main", "arguments", "part"),
    [
        (corpora.main, ["nowhere/at/all"], "no corpus or folder"),
        (make_tables.main, ["keep", "nowhere.json"], "nowhere.json: No such file or directory"),
        (
            make_tables.main,
            ["page", "hierarchical_table1", "--figure", "/", "--output", "t.json"],
            "a folder, where a file must be",
        ),
        (trained.main, ["keep", "nowhere"], "nowhere"),
        (trained.main, ["score", "hierarchical"], "hierarchical"),
    ],
)
def test_every_command_refuses_alike(main, arguments, part):
    refused(main, arguments, part)


@pytest.mark.parametrize("module", ["corpora", "make_tables", "trained"])
def test_ctrl_c_in_a_short_command(monkeypatch, capsys, module):
    def stop(*_):
        raise KeyboardInterrupt

    called, name, arguments = {
        "corpora": (corpora, "table", []),
        "make_tables": (make_tables, "render", ["render"]),
        "trained": (trained, "keep_run", ["keep", "run"]),
    }[module]
    monkeypatch.setattr(called, name, stop)
    with pytest.raises(SystemExit) as stopped:
        called.main(arguments)
    assert stopped.value.code == 130 and capsys.readouterr().err == "stopped.\n"


@pytest.mark.parametrize("kind", [InputError, CorpusError, RunError, NonFiniteLossError])
def test_errors_are_one_line(kind):
    with pytest.raises(SystemExit, match=r"^error: so$"), plain_errors():
        raise kind("so")


@pytest.mark.parametrize("kind", [KeyError, ValueError, TypeError, RuntimeError, FloatingPointError])
def test_other_errors_are_not_hidden(kind):
    with pytest.raises(kind), plain_errors():
        raise kind("a fault of the program")


def test_a_fault_in_a_model_keeps_its_traceback(monkeypatch, tmp_path):
    """Whoever writes a model sees where it fails."""

    def compress(self, *states):
        attention, memory = (1, 2, 3)
        return attention, memory

    monkeypatch.setattr(Mem2Mem, "compress", compress)
    with pytest.raises(ValueError, match="too many values to unpack") as raised:
        train.main([*map(str, DEMO[:-2]), "--steps", "1", "--output", str(tmp_path / "run")])
    assert not isinstance(raised.value, InputError) and raised.traceback[-1].name == "compress"


def test_the_commands_are_listed(capsys):
    """Each with a sentence, and none is imported for it."""
    list_commands()
    lines = capsys.readouterr().out.splitlines()
    files = {path.stem for path in (project_root() / "lib").glob("[!_]*.py")}
    assert {line.split()[2] for line in lines} == {f"lib.{name}" for name in files | {"human"}}
    assert all(line.endswith(".") for line in lines)


def test_light_commands_start_no_torch():
    """Nor what else takes seconds to import and is not needed to begin."""
    heavy = "{'torch', 'numba', 'scipy', 'pandas', 'matplotlib'}"
    light = "lib.__main__, lib.system.command_line, lib.corpora, companion.site.class_pages"
    code = f"import sys, {light}; sys.exit(', '.join({heavy} & sys.modules.keys()) or None)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=project_root())
    assert (run.returncode, run.stderr) == (0, "")


def test_a_loss_that_is_not_finite(tmp_path):
    """From a rate that no model bears."""
    wild = ["--learning-rate", "1e30", "--max-norm", "None", "--steps", "20", "--optimizer", "sgd"]
    message = refused(train.main, [*DEMO[:-2], *wild, "--output", tmp_path / "run"], "the loss is", "learning rate")
    assert "at step" in message


def interrupted(arguments, when, seconds=100) -> subprocess.CompletedProcess:
    """A command that gets Ctrl-C as soon as `when()`."""
    with subprocess.Popen(
        [sys.executable, "-m", "lib.train", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=project_root(),
        # as in a terminal: whoever runs the tests in the background ignores the signal, and its children do
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:  # fmt: skip
        try:
            until = time.monotonic() + seconds
            while not when() and process.poll() is None and time.monotonic() < until:
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            out, errors = process.communicate(timeout=seconds)
        finally:
            process.kill()
    return subprocess.CompletedProcess(arguments, process.returncode, out, errors)


def step_in(folder: Path) -> int:
    path = folder / "last.safetensors"
    return read_meta(path)["step"] if path.exists() else 0


def test_ctrl_c_says_what_was_saved(tmp_path):
    run = tmp_path / "run"
    long = [*DEMO[:-2], "--steps", "100000", "--save-every", "5", "--output", run]
    stopped = interrupted(long, lambda: step_in(run) >= 5)
    assert stopped.returncode == 130, stopped.stderr
    step = step_in(run)
    said = f"stopped. {run} holds step {step}: the same command with --resume goes on from there."
    assert stopped.stderr.splitlines() == [said]
    train.main([*map(str, [*DEMO[:-2], "--steps", step + 1, "--save-every", "5", "--output", run, "--resume"])])
    assert step_in(run) == step + 1


def test_ctrl_c_before_anything_was_saved():
    with pytest.raises(SystemExit) as stopped, plain_errors(lambda: ""):
        raise KeyboardInterrupt
    assert stopped.value.code == 130


def test_a_model_for_another_corpus_does_not_take_a_runs_weights(tmp_path):
    """A vocabulary as long, in another order."""
    setup = resolve("mem2mem", "demo", steps=1, batch_size=2)
    first, second = (
        setup.prepare(Corpus.from_records(train=records, val=records, test=records), progress=False)
        for records in ([{"document": text, "summary": "four."}] * 4 for text in ("one two two.", "one one two."))
    )
    assert len(first.vocabulary) == len(second.vocabulary) and first.vocabulary.words != second.vocabulary.words
    run = train_model(setup.recipe, setup.build(first), first, setup.train, tmp_path / "run", progress=False)
    assert load_weights(setup.build(first), run.folder)
    with pytest.raises(RunError, match=r"was trained with the vocabulary .* Open the run with its own: lib\.load"):
        load_weights(setup.build(second), run.folder)


@pytest.mark.parametrize(("end", "status"), [("", 0), ("0", 0), ("None", 0), ("3", 3), ("'no'", 1)])
def test_the_cost_of_a_command_that_ends_itself(tmp_path, end, status):
    """Kept where it succeeded; its exit status is handed on."""
    (tmp_path / "ends.py").write_text(f"import sys\nsys.exit({end})\n", encoding="utf-8")
    command = [sys.executable, "-m", "companion.pages.process_cost", str(tmp_path / "cost.json"), "ends"]
    paths = os.pathsep.join([str(project_root()), str(tmp_path)])
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, cwd=tmp_path)
    assert done.returncode == status and (tmp_path / "cost.json").exists() == (status == 0)


@pytest.mark.parametrize(
    "module",
    [
        "companion.pages.figures",
        "companion.site.class_pages",
        "tests.tools.bench",
    ],
)
def test_help_and_unknown_options_write_nothing(tmp_path, module):
    command = [sys.executable, "-m", module]
    env = {**os.environ, "PYTHONPATH": str(project_root())}
    for option, status, shown in (("--help", 0, f"usage: python -m {module}"), ("--nonsense", 2, "error: ")):
        done = subprocess.run([*command, option], env=env, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == status and shown in done.stdout + done.stderr
        assert "Traceback" not in done.stderr and not list(tmp_path.iterdir())


WITHOUT_EXTRAS = """
import importlib, sys
extras = ("matplotlib", "IPython", "jupytext", "nbconvert", "papermill", "pygments", "bs4", "lxml",
          "docx", "pdfminer", "spacy", "snakemake", "pytest", "hypothesis", "yaml")
sys.modules |= dict.fromkeys(extras)
commands = "corpora intervene make_tables retrain score solve summarize train trained windows"
for name in commands.split():
    importlib.import_module(f"lib.{name}")
"""


def test_commands_need_the_library_alone():
    """All but `companion.show_runs`, which draws, run where no extra is installed: on a cluster, say."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_EXTRAS], capture_output=True, text=True, cwd=project_root())
    assert done.returncode == 0, done.stderr
