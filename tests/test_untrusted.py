"""Folders from somebody else: some of what `tests.tools.untrusted` makes, and what was mended, one by one."""

import json
import os
import shutil
import sys
from collections import Counter
from random import Random

import pytest
import torch
from safetensors.torch import load_file, save_file

import lib
from lib.data.vocabulary import Vocabulary
from lib.system.command_line import plain_errors
from lib.system.errors import CompanionError, InputError, RunError
from lib.system.files import parse_strict, read_numbers, write_whole
from lib.training.folder import read_metrics

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pipes, devices and limits as Linux has them")
if sys.platform == "linux":
    from tests.tools import torture, untrusted
    from tests.tools.untrusted import OPENS, TRIES, Fault, alone, encoders, surroundings, try_run, write_run


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # OpenMP's threads do not outlive a fork
    yield
    torch.set_num_threads(before)


@pytest.fixture
def place(tmp_path):
    surroundings(tmp_path)
    return tmp_path


@pytest.fixture
def run(place):
    return write_run("mem2mem", place / "run")


def change(run, *keys, to):
    config = values = json.loads((run / "config.json").read_text(encoding="utf-8"))
    for key in keys[:-1]:
        values = values[key]
    values[keys[-1]] = to
    (run / "config.json").write_text(json.dumps(config), encoding="utf-8")


def refused(run, *parts):
    """In a process of its own it is an error of one line in which these parts stand."""

    def load():
        with pytest.raises(CompanionError) as error:
            lib.load(run)
        assert not [part for part in parts if part not in str(error.value)], str(error.value)
        raise error.value

    assert alone(run.parent, load) == "refused"


# --------------------------------------------------------------------------------------------- some of each kind


@pytest.mark.parametrize("kind", TRIES if sys.platform == "linux" else ())
def test_some_of_each_kind(kind, tmp_path):
    for number in range(3):
        assert TRIES[kind](Random(f"{kind} {number}"), tmp_path / str(number)) in ("used", "refused")


@pytest.mark.parametrize("paper", encoders() if sys.platform == "linux" else ())
def test_what_is_not_damaged_is_used(paper, tmp_path, monkeypatch):
    monkeypatch.setitem(untrusted.DAMAGES, "none", lambda random, run: None)
    assert try_run(Random(0), tmp_path, "none", "lib.summarize", paper) == "used"


# ------------------------------------------------------------------------------------------------- what is a fault


def hang():
    with open("/dev/zero", "rb") as file:
        while file.read(1):
            pass


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda place: {}["x"], "KeyError"),
        (lambda place: os.abort(), "SIGABRT"),
        (lambda place: bytearray(2**33), "MemoryError"),
        (lambda place: print("\x1b[31mred"), "printed"),
        (lambda place: print(untrusted.SECRET), "printed"),
        (lambda place: (place / "outside" / "secret").read_bytes(), "outside of the folder"),
        (lambda place: os.replace(place / "text.txt", place / "outside" / "new"), "was written outside"),
        (lambda place: os.system("true"), "outside of the folder"),
        (lambda place: lib.load("nowhere"), "no line about a place"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_faults_are_found(place, function, reason):
    with pytest.raises(Fault, match=reason):
        alone(place, lambda: function(place))


def test_a_hang_is_a_fault(place, monkeypatch):
    monkeypatch.setattr(untrusted, "CPU_SECONDS", 1)
    with pytest.raises(Fault, match=r"SIGXCPU|SIGKILL"):
        alone(place, hang)


def test_what_was_never_tried_is_no_success(monkeypatch, capsys):
    monkeypatch.setattr(untrusted, "campaign", lambda minutes, seed: {"runs": Counter()})
    assert untrusted.main(["--minutes", "0"]) == 1 and "never tried: runs" in capsys.readouterr().out


# ------------------------------------------------------------------------------------------------- what was mended


@pytest.mark.parametrize(
    ("keys", "value", "part"),
    [
        (("model", "hidden"), 10**9, "no model of these sizes"),
        (("model", "hidden"), 10**6, "of memory"),
        (("model", "hidden"), 64, "weights of another model"),
        (("model", "vocab_size"), 10**12, "vocab_size must be int"),
        (("model", "slots"), 2**31 - 2, "of memory"),
        (("decode", "beam"), 10**6, "beam must be at most 1,000"),
        (("decode", "max_length"), 10**9, "max_length must be at most 100,000"),
        (("decode", "length_penalty"), 1e308, "length_penalty must be from -9 to 9"),
        (("weights",), "../../outside/secret", "holds no weights '../../outside/secret'"),
        (("documents", "test"), "x", "documents of test are a number"),
        (("corpus",), "a\0b", "corpus holds a control character"),
    ],
)
def test_values_of_a_config(run, keys, value, part):
    change(run, *keys, to=value)
    refused(run, "config.json" if keys[0] not in ("model", "weights") else str(run), part)


def test_as_many_layers_as_nobody_has(place):
    run = write_run("hierarchical_transformer", place / "run")
    change(run, "model", "local_layers", to=10**9)
    refused(run, "local_layers must be from 0 to 1,000")


def test_a_ranker_of_a_size_that_its_weights_have_not(place):
    run = write_run("hierarchical_transformer", place / "run")
    change(run, "options", "ranker_width", to=10**9)

    def summarize():
        with pytest.raises(RunError, match=r"ranker\.safetensors holds weights of another model"):
            lib.load(run).summarize([untrusted.TEXT])

    assert alone(place, summarize) == "used"


@pytest.mark.parametrize(("text", "reason"), [
    ('{"a": 1, "b": 2, "a": 3}', "'a' is there twice"), ("[NaN]", "NaN is no number"), ("-Infinity", "no number")
])  # fmt: skip
def test_what_json_does_not_have(text, reason):
    with pytest.raises(ValueError, match=reason):
        parse_strict(text)
    assert parse_strict('{"a": {"a": [1e3]}}') == {"a": {"a": [1000.0]}}


def test_a_config_of_a_hundred_megabytes(run):
    (run / "config.json").write_bytes(b"{" + b" " * 100_000_000 + b"}")
    refused(run, "config.json: 100,000,002 bytes")


@pytest.mark.parametrize("name", ["config.json", "vocabulary.txt", "best.safetensors"])
def test_no_file(run, name):
    """A pipe would be waited for, a device has no end, and a link leads to what is not the folder's."""
    path, whole = run / name, (run / name).read_bytes()
    path.unlink()
    os.mkfifo(path)
    refused(run, name, "a pipe or a device, where a file must be")
    path.unlink()
    path.symlink_to("/dev/zero")
    refused(run, name, "where a file must be")
    path.unlink()
    (run.parent / "outside" / "file").write_bytes(whole)
    path.symlink_to("../outside/file")
    refused(run, name, "a link out of the folder")
    path.unlink()
    (run / "file").write_bytes(whole)
    path.symlink_to("file")
    assert alone(run.parent, lambda: lib.load(run)) == "used", "a link within the folder"
    (run.parent / "linked").symlink_to("run")
    assert alone(run.parent, lambda: lib.load(run.parent / "linked")) == "used", "a link to the whole folder"


@pytest.mark.parametrize("name", sorted(torture.corpora()) if sys.platform == "linux" else ())
def test_a_pipe_in_a_corpus(name, place):
    files = torture.corpora()[name]
    for file, data in files.items():
        (place / "texts" / file).parent.mkdir(parents=True, exist_ok=True)
        (place / "texts" / file).write_bytes(data)
    piped = place / "texts" / sorted(files)[-1]
    piped.unlink()
    os.mkfifo(piped)

    def read():
        found, _ = torture.outcomes(str(place / "texts"))
        assert set(found.values()) == {f"{piped}: a pipe or a device, where a file must be"}

    assert alone(place, read) == "used"


@pytest.mark.parametrize("kind", [torch.int8, torch.bool, torch.float8_e4m3fn])
def test_weights_that_are_no_floats(run, kind):
    tensors = load_file(run / "best.safetensors")
    name = sorted(tensors)[0]
    save_file({**tensors, name: tensors[name].to(kind)}, run / "best.safetensors")
    refused(run, f"{name} is of ", "where weights are F16")


@pytest.mark.parametrize("meta", ["{}", "[]", '{"loss": "x"}', "[" * 9_999])
def test_a_checkpoint_that_does_not_say_its_loss(run, meta):
    save_file(load_file(run / "best.safetensors"), run / "best-3.safetensors", {"meta": meta})
    change(run, "weights", to="average")
    refused(run, "best-3.safetensors is damaged")


def test_words_for_which_a_model_has_no_row(run):
    (run / "vocabulary.txt").write_text("one\ntwo\n", encoding="utf-8")
    change(run, "encoder", to=untrusted.TextEncoder(None, Vocabulary(["one", "two"])).digest())
    refused(run, "vocab_size is ", "the vocabulary beside it has 6 words")


@pytest.mark.parametrize("line", ["", " ", "two words"])
def test_a_line_that_is_no_word(tmp_path, line):
    path = tmp_path / "vocabulary.txt"
    path.write_text(f"one\n{line}\nthree\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"vocabulary\.txt, line 2: .* is no word"):
        Vocabulary.load(path)


def test_a_vocabulary_of_ten_million_lines(run):
    (run / "vocabulary.txt").write_bytes(b"".join(b"%d\n" % (n % 1000) for n in range(10_000_000)))
    refused(run, "vocabulary.txt: 10,000,000 lines")


def test_a_normalizer_whose_bytes_are_others(place):
    """SentencePiece before 0.2.2 reads outside of its memory there."""
    run = write_run("hierarchical_transformer", place / "run")
    path, random = run / "pieces.model", Random(0)
    data = bytearray(path.read_bytes())
    begin = len(data) // 3  # the table of characters is nearly all of a model with few pieces
    for _ in range(3_000):
        data[begin + random.randrange(len(data) // 3)] = random.randrange(256)
    path.write_bytes(data)
    refused(run, "pieces.model")


@pytest.mark.parametrize(
    "line",
    ['{"step": 1e9}', '{"step": 9999999999}', '{"step": 1, "loss": "x"}', "[1]}"],
)
def test_metrics_of_other_kinds(run, line):
    (run / "metrics.jsonl").write_text(line, encoding="utf-8")
    with pytest.raises(RunError, match=r"metrics\.jsonl, line 1: no losses of a step"):
        read_metrics(run)


def test_two_lines_of_the_same_step(run):
    logged = [{"step": 3, "split": "train", "loss": 1.0, "seconds": s} for s in (1.0, 2.0)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(m) + "\n" for m in logged), encoding="utf-8")
    assert lib.load(run).hours == 0


def test_programs_that_a_git_configuration_names_are_not_started(place):
    run = write_run("mem2mem", place / "run")
    untrusted.traps(Random(0), run)
    assert shutil.which("git")
    (run / "scores.json").unlink()
    assert alone(place, lambda: OPENS["lib.score"](run)) == "used"
    assert not (place / "outside" / "pwned").exists()


def test_a_link_under_a_temporary_name_is_not_followed(tmp_path):
    (tmp_path / "other").write_text("other", encoding="utf-8")
    (tmp_path / f".x.json.{os.getpid()}.tmp").symlink_to("other")
    write_whole(tmp_path / "x.json", "new")
    assert [(tmp_path / name).read_text(encoding="utf-8") for name in ("x.json", "other")] == ["new", "other"]


def test_a_pipe_in_place_of_scores(tmp_path):
    os.mkfifo(tmp_path / "scores.json")
    with pytest.raises(InputError, match="a pipe or a device"):
        read_numbers(tmp_path / "scores.json", "scores", ())


def test_an_error_is_one_line_that_a_terminal_does_not_obey():
    with pytest.raises(SystemExit) as error, plain_errors():
        raise InputError("a\nb\x1b[31m\x9bc\td")
    assert error.value.code == r"error: a b\x1b[31m\x9bc" + "\td"
