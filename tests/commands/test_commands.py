"""Commands: what a user can mend is one line, and a bug keeps its traceback."""

import errno
import os
import signal
import subprocess
import sys
import time

import pytest

from lib import corpora, score, summarize, train
from lib.__main__ import main as list_commands
from lib.models.mem2mem import Mem2Mem
from lib.papers import PAPERS
from lib.papers.paper import Setup
from lib.system.command_line import plain_errors
from lib.system.devices import device_named
from lib.system.errors import InputError, RunError
from lib.system.files import project_root
from lib.training.folder import read_meta
from lib.training.loop import NonFiniteLossError

DEMO = ["mem2mem", "--preset", "demo", "--limit", "3", "--steps", "2"]


def refused(main, arguments, part):
    """The command ends with status 1 and one line in which `part` occurs."""
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    message = str(stopped.value.code)
    assert message.startswith("error: ") and "\n" not in message and part in message


def test_an_output_folder_that_cannot_be_used_stops_training_early(tmp_path, monkeypatch):
    monkeypatch.setattr(
        Setup, "open_corpus", lambda *_, **__: pytest.fail("the corpus was opened first")
    )
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "last.safetensors").write_text("{}", encoding="utf-8")
    messages = {
        "file": "File exists",
        "file/below": "Not a directory",
        "run": "holds a run already",
    }
    for output, message in {**messages, "x" * 300: "File name too long"}.items():
        refused(train.main, [*DEMO, "--output", tmp_path / output], message)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("device", ["foo", "cuda:99", "mps", "cpu:1", "meta"])
def test_a_device_that_is_absent(tmp_path, device):
    refused(train.main, [*DEMO, "--output", tmp_path / "run", "--device", device], repr(device))
    with pytest.raises(RunError, match="no device"):
        device_named(device)


def test_files_that_cannot_be_read_or_written(tmp_path):
    """Outputs are checked before the work: these corpora do not exist."""
    baselines = ["baselines", "mem2mem", "--dataset", tmp_path / "none", "--output"]
    refused(score.main, [*baselines, tmp_path], f"{tmp_path}: Is a directory")
    (tmp_path / "other.json").write_text('{"a": 1}', encoding="utf-8")
    refused(score.main, [*baselines, tmp_path / "other.json"], "would replace")
    refused(
        score.main,
        ["run", tmp_path / "none", "--dataset", "aclsum"],
        f"{tmp_path / 'none'} holds no run",
    )
    refused(
        summarize.main, [tmp_path / "gone", tmp_path / "a.txt"], "a.txt: No such file or directory"
    )
    refused(summarize.main, [tmp_path / "other.json"], "python -m lib.summarize trained/mem2mem")
    refused(corpora.main, ["nowhere/at/all"], "no corpus or folder")
    with pytest.raises(SystemExit) as stopped:
        score.main([*map(str, baselines), str(tmp_path / "s.json"), "--documents", "0"])
    assert stopped.value.code == 2
    assert {path.name for path in tmp_path.iterdir()} == {"other.json"}, (
        "no folder for a name that was mistyped"
    )


def test_a_folder_that_cannot_be_written_names_the_option(tmp_path, monkeypatch):
    monkeypatch.setattr("lib.system.files._is_writable", lambda _: False)
    wanted = f"{tmp_path}: Permission denied. Name a file in another folder: --output FILE"
    given = ["baselines", "mem2mem", "--dataset", "none", "--output", tmp_path / "s.json"]
    refused(score.main, given, wanted)


def test_a_place_that_nobody_can_write_is_named_before_the_work(tmp_path, monkeypatch):
    """Such as a file system that is read-only, in which an administrator has all rights."""

    def fail(**_):
        raise OSError(errno.EROFS, "Read-only file system")

    given = ["baselines", "mem2mem", "--dataset", "none", "--output"]
    refused(score.main, [*given, tmp_path], f"{tmp_path}: Is a directory. Name a file in it")
    monkeypatch.setattr("tempfile.TemporaryFile", fail)
    refused(score.main, [*given, tmp_path / "s.json"], "Name a file in another folder: --output")


def test_a_link_to_nothing_is_explained(tmp_path):
    (tmp_path / "run").symlink_to(tmp_path / "gone")
    wanted = f"{tmp_path / 'run'}: a link to {tmp_path / 'gone'}, which is not there"
    refused(train.main, [*DEMO, "--output", tmp_path / "run"], wanted)


def test_columns_that_are_not_known_are_listed_once(tmp_path, capsys):
    for split in ("train", "val", "test"):
        (tmp_path / f"{split}.jsonl").write_text('{"body": "A.", "gist": "B."}\n' * 2, "utf-8")
    assert corpora.main([str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert told.count("among ['body', 'gist']") == 1 and "val: " in told


@pytest.mark.parametrize("kind", [InputError, RunError, NonFiniteLossError])
def test_errors_of_a_user_are_one_line(kind):
    with pytest.raises(SystemExit, match=r"^error: two lines$"), plain_errors():
        raise kind("two\nlines")


@pytest.mark.parametrize("kind", [KeyError, ValueError, RuntimeError, FloatingPointError])
def test_bugs_keep_their_traceback(kind):
    with pytest.raises(kind), plain_errors():
        raise kind("a bug")


def test_a_bug_in_a_model_keeps_its_traceback(monkeypatch, tmp_path):
    monkeypatch.setattr(Mem2Mem, "compress", lambda self, *states: (1, 2, 3))
    with pytest.raises(ValueError, match="too many values to unpack"):
        train.main([*DEMO, "--output", str(tmp_path / "run")])


def test_the_commands_are_listed(capsys):
    list_commands()
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[2] for line in lines} >= {"lib.train", "lib.score", "lib.summarize"}
    assert all(line.endswith(".") for line in lines)


def test_light_commands_import_nothing_heavy():
    code = (
        "import sys, lib.__main__, lib.corpora; sys.exit({'torch', 'numba', 'pandas'} & "
        "sys.modules.keys() or "
        "None)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=project_root(), check=True)


@pytest.mark.parametrize("name", ["corpora", "intervene", "score", "summarize", "train"])
def test_help_is_fast_and_has_a_line_for_each_command(name):
    """PyTorch takes seconds to import, so help does without it."""
    code = (
        "import sys; from importlib import import_module\n"
        f"module = import_module('lib.{name}')\n"
        "try: module.main(['--help'])\n"
        "finally: assert not {'torch', 'numba', 'pandas'} & sys.modules.keys(), 'slow'"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=project_root(), capture_output=True, text=True
    )
    assert told.returncode == 0, told.stderr
    assert f"usage: python -m lib.{name} " in told.stdout
    examples = [line for line in told.stdout.splitlines() if line.startswith("    python -m lib.")]
    assert examples and all(line.count("python -m") == 1 for line in examples)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "2.5"], "Error parsing --steps: invalid literal"),
        (["--limit", "0"], "Error parsing --limit: '0' is no whole number of at least 1"),
    ],
)
def test_errors_of_arguments_name_the_option_and_no_python_type(capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        train.main([*DEMO[:3], *arguments, "--output", "run"])
    error = capsys.readouterr().err
    assert stopped.value.code == 2 and message in error
    assert "FieldInfo" not in error and "None" not in error.partition("helptext")[0]


@pytest.mark.parametrize(
    "command", ["lib", "lib.corpora", "lib.train mem2mem --preset demo --help"]
)
def test_a_closed_pipe_ends_in_silence(command):
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run(
        [sys.executable, "-m", *command.split()],
        stdout=write,
        stderr=subprocess.PIPE,
        cwd=project_root(),
        text=True,
    )
    os.close(write)
    assert (ended.returncode, ended.stderr) == (1, "")


@pytest.mark.parametrize("name", PAPERS)
def test_without_a_preset_the_presets_are_listed(name, capsys, monkeypatch):
    monkeypatch.setattr(Setup, "open_corpus", lambda *_, **__: pytest.fail("a training began"))
    with pytest.raises(SystemExit) as stopped:
        train.main([name, "--output", "run"])
    lines = capsys.readouterr().err.splitlines()
    assert stopped.value.code == 2
    assert [line[2:16].strip() for line in lines[1:-1]] == list(PAPERS[name].presets)
    assert any(
        line.startswith("  demo ") and ("100 documents" in line or "500 steps" in line)
        for line in lines
    )


@pytest.mark.slow
def test_ctrl_c_leaves_a_run_that_is_resumed(tmp_path):
    last = tmp_path / "last.safetensors"
    command = [*DEMO[:-2], "--save-every", "5", "--output", str(tmp_path)]

    def step():
        return read_meta(last)["step"] if last.exists() else 0

    with subprocess.Popen(
        [sys.executable, "-m", "lib.train", *command, "--steps", "100000"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=project_root(),
        # as in a terminal: whoever runs the tests in the background ignores the signal, and its
        # children do
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        until = time.monotonic() + 200
        while step() < 5 and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=100)
    assert process.returncode == 130
    assert errors.splitlines()[-1].startswith("stopped. With --resume")
    train.main([*command, "--steps", str(step() + 1), "--resume"])
