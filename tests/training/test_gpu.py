"""The plan for GPUs, and the checks that `make gpu` makes on one (`tests.gpu`), tried where there
is none."""

import json
from itertools import count

import pytest
import torch

from companion.results.kept import stored_numbers
from companion.results.text import markdown
from lib.system.files import project_root
from tests.conftest import in_a_process
from tests.gpu import checks, plan, tables
from tests.gpu.__main__ import README, main
from tests.gpu.cases import CASES, CORPORA, PAPER_CASES
from tests.gpu.checks import MEASURED
from tests.gpu.machines import GPUS, LAUNCH
from tests.gpu.pieces import do_here, finished, path_of
from tests.gpu.plan import PLAN

ROOT = project_root()


def kept_plan() -> dict:
    return json.loads(PLAN.read_text(encoding="utf-8"))


# ---------------------------------------------------------------------------------
# plan


def test_the_kept_tables_are_the_plans():
    """Made again from `plan.json` and from the losses of the shipped runs:
    `python -m tests.gpu plan --keep`."""
    readme = README.read_text(encoding="utf-8")
    for name, table in tables.of_plan(kept_plan()).items():
        assert markdown(table) in readme if name in readme else stored_numbers(name) == table, name


def test_the_kept_measurements_are_a_gpus():
    """Made again from `measured.json`: `python -m tests.gpu keep`."""
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    for name, table in tables.of_measured(measured).items():
        assert stored_numbers(name) == table, name


def test_the_plan_was_made_with_the_peaks_of_today():
    kept = kept_plan()["machines"]
    assert {name: kept[name]["flop"] for name in GPUS} == {
        name: gpu.flop for name, gpu in GPUS.items()
    }
    assert {kept[name]["launch"] for name in GPUS} == {LAUNCH}


def test_a_step_is_its_operations_its_launches_and_an_exchange():
    a100 = GPUS["A100"]
    # bound by products, and twice by memory
    operations = [[39e12, 2.039e12, 1, 1], [0, 4.078e12, 1, 2]]
    assert plan.roofline(operations, a100.flop["float32"], a100.bandwidth) == pytest.approx(
        2 + 2 * 2
    )
    assert plan.exchange(a100, 75_000_000_000, 4) == pytest.approx(1.5), (
        "1.5 times 300 GB by 300 GB/s"
    )
    assert plan.exchange(a100, 10**9, 1) == 0
    counted = {"work": {"A100": {"float32": 6.0}}, "launches": 100_000, "exchange": {"A100": 0.5}}
    assert plan.step_seconds(counted, "A100") == pytest.approx(6 + 100_000 * LAUNCH + 0.5)


def test_cases_have_the_sizes_of_their_presets():
    sizes = {str(case): (case.source, case.target, case.batch) for case in CASES}
    assert sizes["mem2mem paper arxiv"] == (2_000, 200, 16) and sizes["mem2mem paper newsroom"] == (
        751,
        60,
        16,
    )
    assert sizes["windowed CD_II cnn_dailymail"] == (781, 100, 12), (
        "781 is the mean: less than 1,160"
    )
    assert sizes["read_again paper gigaword"] == (31, 17, 64)
    assert (
        CASES[0].updates("arxiv") == 15 * (203_037 // 16)
        and CASES[-2].updates("wikisum") == 500_000
    )
    assert list(PAPER_CASES) and all(str(PAPER_CASES[case.paper]) in sizes for case in CASES)
    assert {name for case in CASES for name in case.corpora} == set(CORPORA)
    for case in CASES:
        assert max(len(d.source) for d in case.documents(3)) * case.batch <= (
            case.setup.train.batch_tokens or 10**9
        )


def same_as_the_kept_count(made: dict) -> None:
    """Compare a count of Read-Again's paper preset, one of 8 processes, with the plan's."""
    kept = kept_plan()["rows"]["read_again paper gigaword"]["by_processes"]["8"]
    assert made["flop"] == kept["flop"] and made["parameters"] == kept["parameters"]
    for what in ("launches", "moved", "peak_bytes"):
        assert made[what] == pytest.approx(kept[what], rel=0.05), what


@pytest.mark.long
def test_the_command_makes_the_plan(tmp_path):
    """`on_pretend_device.py` makes the same count without the command."""
    name = "count/read_again paper gigaword/8"
    done = in_a_process("-m", "tests.gpu", "plan", name, "--folder", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    same_as_the_kept_count(finished(tmp_path / "plan", name) or {})


# ---------------------------------------------------------------------------------
# pieces


@pytest.mark.parametrize(
    ("cuda", "reason"),
    [
        (None, r"is a CPU build, .*: rm -rf \.venv, then make CUDA=1 gpu\."),
        ("13.0", "finds no GPU here"),
    ],
)
def test_without_a_gpu_the_checks_fail(cuda, reason, monkeypatch, tmp_path):
    """A batch job that got no GPU must not look as if it had passed."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(torch.version, "hip", None)
    with pytest.raises(SystemExit, match=f"{reason}.* Nothing was run") as stopped:
        main(["run", "step/*", "--folder", str(tmp_path)])
    assert isinstance(stopped.value.code, str), "status 1, and the text on standard error"


def test_a_finished_piece_is_not_done_again(tmp_path):
    def work(device: str) -> dict:
        return {"ok": True, "device given": device}

    do_here(["step/x"], {"step/x": work}, "cpu", tmp_path)
    made = finished(tmp_path, "step/x")
    assert made is not None and made["device given"] == "cpu" and made["ok"]
    path_of(tmp_path, "step/x").write_text(
        json.dumps({**made, "code": "another"}), encoding="utf-8"
    )
    assert finished(tmp_path, "step/x") is None, "other code has made it"


# ---------------------------------------------------------------------------------
# checks


def test_a_model_that_computes_something_else_is_found(monkeypatch):
    """Weights that are a thousandth larger on one of the two devices."""
    variant = next(v for v in checks.cases(checks.PAPERS) if str(v) == "read_again, abs bag")
    assert checks.equality(variant, "cpu")["ok"]
    calls = count()
    monkeypatch.setattr(
        checks, "put", lambda model, place: _scaled(model, 1 + 0.001 * (next(calls) % 2))
    )
    found = checks.equality(variant, "cpu")
    assert not found["ok"] and found["difference"]["float64"] > 1e-6


def _scaled(model, factor: float):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(factor)
    return model


def on_the_pretend_device(folder, *pieces: str) -> tuple[dict, str]:
    """Results and texts of pieces that ran to their end, and once more: then nothing is left to
    do."""
    command = ("-m", "tests.gpu", "run", *pieces, "--device", "pretend", "--folder", str(folder))
    done = in_a_process(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((folder / "pretend" / "results.json").read_text(encoding="utf-8"))
    text = (folder / "pretend" / "results.md").read_text(encoding="utf-8")
    assert not results["failed"] and not results["not done"]
    assert text in done.stdout and "Nothing failed." in text
    again = in_a_process(*command)
    assert again.returncode == 0 and "to do" not in again.stdout and text in again.stdout
    return results, text


@pytest.mark.long
def test_the_other_kinds_of_pieces_on_the_pretend_device(tmp_path):
    kinds = "resume/read_again", "commands/read_again", "generation/read_again", "processes/*"
    results, _ = on_the_pretend_device(tmp_path, *kinds, "kernels/read_again")
    assert len(results["pieces"]) == 5 and results["kinds"]["resume"]["read_again"]["resumed"] == 0
