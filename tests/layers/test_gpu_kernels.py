"""Triton's kernels for a GPU, without one: computed by Triton's interpreter, and compiled for two
GPUs.

`tests/layers/test_properties_layers.py` compares their values and gradients with the equations in float64,
for small and extreme numbers, texts of every length and several hypotheses;
`tests/training/on_pretend_device.py` compares whole models.
"""

import json
import os
import subprocess
import sys
import warnings

import pytest
import torch

from lib.layers import cpu_kernels
from lib.layers.attention import _CompiledCoverage
from lib.layers.memory import memory_scan
from lib.system import compiler
from lib.system.files import project_root

pytest.importorskip("triton", reason="Triton is for Linux on x86-64 (the extra dev)")


def with_gradients(function, inputs):
    """Results of a function of float64 or float32 tensors, and the gradients of a sum that weighs
    each number."""
    leaves = [x.clone().requires_grad_() for x in inputs]
    results = function(*leaves)
    results = results if isinstance(results, tuple) else (results,)
    total = sum((x * torch.linspace(-1, 1, x.numel()).to(x).view(x.shape)).sum() for x in results)
    return [*results, *torch.autograd.grad(total, leaves)]


def assert_close(ours, exact):
    for number, (a, b) in enumerate(zip(ours, exact, strict=True)):
        assert (a.double() - b).abs().max() <= 2e-5 * b.abs().max(), number


def test_coverage_of_several_blocks(monkeypatch):
    """Blocks of 4 and 8 words, and documents that end inside a block, at its first word, and at
    once."""
    from lib.layers import gpu_kernels

    monkeypatch.setattr(gpu_kernels, "TILE", 4 * 32)
    monkeypatch.setattr(gpu_kernels, "WORDS", 8)
    torch.manual_seed(0)
    lengths = torch.tensor([21, 9, 0])
    mask = torch.arange(21) < lengths[:, None]
    shapes = (3, 2, 3, 24), (3, mask.shape[1], 24), (24,), (24,), (3, 2, mask.shape[1])
    inputs = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    inputs[4] = inputs[4].abs() * mask[:, None]
    exact = with_gradients(lambda *x: _CompiledCoverage.apply(*x, mask), inputs)
    ours = with_gradients(
        lambda *x: gpu_kernels.CoverageScan.apply(*x, mask), [x.float() for x in inputs]
    )
    assert_close(ours, exact)
    assert not ours[0][2].any()


@pytest.mark.parametrize("slots, width, attended", [(3, 70, 66), (17, 16, 20)])
def test_a_memory_of_several_blocks(slots, width, attended, monkeypatch):
    """Weights of more than one block of 64 that do not fill their last one, and more slots than
    16."""
    torch.manual_seed(0)
    shapes = (2, slots, width), (2, 4, attended), (2, 4, 2 * width), (attended,), (attended, width)
    weights = [
        torch.randn(shape, dtype=torch.float64) for shape in (*shapes, *[(2 * width, width)] * 2)
    ]
    inputs = [*weights[:4], *(x / width**0.5 for x in weights[4:])]
    exact = with_gradients(memory_scan, inputs)
    monkeypatch.setattr("lib.layers.cpu_kernels.triton_runs", lambda values: True)
    assert_close(with_gradients(memory_scan, [x.float() for x in inputs]), exact)


def with_gaps(tensor):
    """The same numbers with other numbers between them, as in a slice of a larger tensor."""
    return torch.stack([tensor, torch.full_like(tensor, 7.0)], -1)[..., 0]


def gradients_of_views(function, inputs):
    """`with_gradients` of tensors with gaps in memory."""
    return with_gradients(lambda *leaves: function(*map(with_gaps, leaves)), inputs)


def test_tensors_need_not_be_contiguous(monkeypatch):
    """The kernels read weights, states and gradients row by row."""
    from lib.layers import gpu_kernels

    assert not with_gaps(torch.ones(3)).is_contiguous()
    torch.manual_seed(0)
    mask = torch.arange(9) < torch.tensor([9, 4])[:, None]
    shapes = (2, 2, 3, 6), (2, 9, 6), (6,), (6,), (2, 2, 9)
    inputs = [torch.randn(shape) for shape in shapes]
    inputs[4] = inputs[4].abs() * mask[:, None]
    doubles = [x.double() for x in inputs]
    exact = with_gradients(lambda *x: _CompiledCoverage.apply(*x, mask).mT, doubles)
    ours = gradients_of_views(lambda *x: gpu_kernels.CoverageScan.apply(*x, mask).mT, inputs)
    assert_close(ours, exact)

    shapes = (2, 3, 8), (2, 4, 6), (2, 4, 16), (6,), (6, 8), (16, 8), (16, 8)
    inputs = [torch.randn(shape) for shape in shapes]
    exact = with_gradients(memory_scan, [x.double() for x in inputs])
    monkeypatch.setattr("lib.layers.cpu_kernels.triton_runs", lambda values: True)
    assert_close(gradients_of_views(memory_scan, inputs), exact)


def test_a_kernel_takes_no_tensor_with_gaps():
    """A kernel would read other numbers of an argument that somebody adds, and nobody would
    know."""
    from lib.layers import gpu_kernels

    tensors = torch.ones(3), with_gaps(torch.ones(3))
    with pytest.raises(
        ValueError, match="argument 1 of the kernel coverage_weights is not contiguous"
    ):
        gpu_kernels.launch(gpu_kernels.coverage_weights, (1,), *tensors)


# ---------------------------------------------------------------------------------
# compiling

COMPILING = """
import json, pathlib, re, subprocess, sys, tempfile
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from lib.layers import gpu_kernels as gpu

INTEGERS = {"K", "T", "N", "A", "R", "r", "d"}
TOOL = pathlib.Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"

def used(kernel, capability, num_warps, **sizes):
    types = {name: "i32" if name in INTEGERS else "*fp32" for name in kernel.arg_names}
    types |= {"lengths": "*i64"} if "lengths" in types else {}
    types |= dict.fromkeys(sizes, "constexpr")
    by_16 = [i for i, name in enumerate(types) if name not in sizes and name not in ("K", "T", "N", "R", "r")]
    divisible = {(i,): [["tt.divisibility", 16]] for i in by_16}
    source = ASTSource(kernel, types, constexprs=sizes, attrs=divisible)
    made = triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": num_warps})
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(made.asm["cubin"])
        file.flush()
        said = subprocess.run([TOOL, "-res-usage", file.name], capture_output=True, text=True, check=True).stdout
    return {name: int(re.search(name + r":(\\d+)", said)[1]) for name in ("REG", "STACK", "LOCAL")}

width, capability = 256, int(sys.argv[1])
found = {}
for name, sizes in {
    "coverage_weights": {**gpu.coverage_sizes(width), "BM": gpu.WORDS},
    "coverage_scores_backward": {"BM": gpu.WORDS, "num_warps": gpu.COVERAGE_WARPS},
    "coverage_keys_backward": gpu.coverage_sizes(width, sums=3),
    "coverage_queries_backward": gpu.coverage_sizes(width),
    "memory_forward": {"R2": 16, "D2": width, "B": gpu.BLOCK, "num_warps": gpu.MEMORY_WARPS},
    "memory_backward": {"R2": 16, "D2": width, "B": gpu.BLOCK, "num_warps": gpu.MEMORY_WARPS},
}.items():
    found[name] = used(getattr(gpu, name), capability, **sizes)
print(json.dumps(found))
"""


@pytest.mark.parametrize("capability", [80, 90])
def test_kernels_are_compiled_without_local_memory(capability, tmp_path):
    """For A100 and H100, at the paper's width; numbers that fit into no register would be kept in
    local memory, which is slow."""
    done = subprocess.run(
        [sys.executable, "-c", COMPILING, str(capability)],
        capture_output=True,
        text=True,
        cwd=project_root(),
        env={**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == 6
    for name, used in found.items():
        assert used["STACK"] == used["LOCAL"] == 0 and used["REG"] <= 255, (name, used)


# ---------------------------------------------------------------------------------
# where they run


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Set what a machine with a GPU has; without arguments it has all that the kernels need."""

    def has(capability=(8, 0), triton=True, compilers=("gcc",), cc=None, header=True):
        (tmp_path / "Python.h").unlink(missing_ok=True)
        if header:
            (tmp_path / "Python.h").touch()
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
        monkeypatch.setattr(compiler, "find_spec", lambda name: triton or None)
        found = {name: f"/bin/{name}" for name in compilers}
        monkeypatch.setattr(compiler.shutil, "which", found.get)
        paths = {"include": str(tmp_path)}
        monkeypatch.setattr(compiler.sysconfig, "get_paths", lambda scheme: paths)
        monkeypatch.delenv("CC", raising=False)
        if cc is not None:
            monkeypatch.setenv("CC", cc)
        cpu_kernels._has_triton.cache_clear()

    yield has
    cpu_kernels._has_triton.cache_clear()


@pytest.mark.parametrize(
    ("missing", "advice"),
    [
        ({"capability": (7, 5)}, "need compute capability 8.0 or later"),
        ({"triton": False}, "need Triton"),
        ({"compilers": ()}, "need a C compiler, .* no gcc or clang here: install gcc, or set CC"),
        ({"cc": "icc"}, "need a C compiler, and CC='icc' is none here"),
        ({"header": False}, r"need Python\.h, .*: install python3-dev"),
    ],
)
def test_a_warning_names_what_the_kernels_miss(machine, missing, advice):
    """Triton itself would stop in the first update: without a compiler it cannot start a kernel."""
    machine(**missing)
    with pytest.warns(UserWarning, match=advice) as warned:
        assert not cpu_kernels._has_triton(torch.device("cuda", 0))
    assert "\n" not in str(warned[0].message)


@pytest.mark.parametrize(
    ("compilers", "cc"),
    [(["gcc"], None), (["clang"], None), (["icc"], "icc")],
)
def test_any_compiler_that_triton_finds_will_do(machine, compilers, cc):
    machine(compilers=compilers, cc=cc)
    with warnings.catch_warnings(action="error"):
        assert cpu_kernels._has_triton(torch.device("cuda", 0))


def test_what_is_no_gpus_single_precision_takes_another_way():
    for values in (
        torch.zeros(1),
        torch.zeros(1, device="meta"),
        torch.zeros(1, dtype=torch.float64),
    ):
        assert not cpu_kernels.triton_runs(values)
