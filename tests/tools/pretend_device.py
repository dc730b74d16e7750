"""A device that is not there. Its tensors say that they are on `pretend:0`, and a CPU computes
them; what a GPU would refuse is a `Fault` that says where, and what makes the host wait for a GPU
is counted.

    with pretend_device() as device:
        model.to(DEVICE)(batch.to(DEVICE))["loss"].backward()
    device.synchronisations         # by place, as "lib/layers/pointer.py:141"
    device.watch = print            # is told of every operation, with its arguments and results as the CPU has them

To import this registers the device with PyTorch for the rest of the process: let it be one of its
own. What cuDNN, autocast, or kernels of a real GPU do cannot be seen here.
"""

import math
import os
import sys
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn import Module
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_unflatten
from torch.utils.backend_registration import (
    _DummyBackendModule,
    _setup_privateuseone_for_python_backend,
)

from lib.layers import cpu_kernels
from lib.system.files import project_root

# operations of both devices that a GPU has: copies, and what takes lengths from the CPU
BETWEEN = {"_to_copy", "copy_", "_pack_padded_sequence", "_local_scalar_dense"}
WAITS = {
    "_local_scalar_dense",
    "nonzero",
    "masked_select",
    "equal",
    "_unique2",
    "unique_consecutive",
    "unique_dim",
}
# of Triton's kernels, beside gradients
RESULTS = {"alpha", "slope", "memories", "made", "psi", "reads"}
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}


class Fault(RuntimeError):
    """What a GPU would refuse, or do on the CPU without a word: says what, and in which file and
    line."""

    def __init__(self, what: str):
        super().__init__(f"{what}, {place()}")


def place() -> str:
    """File and line of the innermost code that is neither PyTorch's nor Python's own."""
    others = (__file__, str(Path(torch.__file__).parent), sysconfig.get_path("stdlib"), "<")
    frame = sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(others):
        frame = frame.f_back
    if frame is None:
        return "PyTorch's backward pass"
    path = Path(frame.f_code.co_filename)
    inside = path.is_relative_to(project_root())
    return (
        f"{path.relative_to(project_root()).as_posix() if inside else path.name}:{frame.f_lineno}"
    )


class _Backend(_DummyBackendModule):
    """What PyTorch asks of a device's module."""

    def is_available(self) -> bool:
        return True

    def device_count(self) -> int:
        return 1

    def current_device(self) -> int:
        return 0

    def manual_seed_all(self, seed: int) -> None:
        pass

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]

    def _is_in_bad_fork(self) -> bool:
        return False


_setup_privateuseone_for_python_backend("pretend", backend_module=_Backend())
DEVICE = torch.device("pretend:0")


class PretendTensor(Tensor):
    """A tensor that says it is on the device; `inner` holds its numbers."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor):
        return Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=DEVICE,
        )

    def __init__(self, inner: Tensor):
        self.inner = inner

    def __repr__(self, **_) -> str:
        return f"PretendTensor({self.inner!r})"

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise Fault(f"{func}: the device is used outside of pretend_device()")


@dataclass(frozen=True)
class Backward:
    """The gradient of a function that a GPU has as one kernel."""

    function: Callable


@dataclass(frozen=True)
class Launched:
    """A kernel of `lib.layers.gpu_kernels`, with so many programs."""

    name: str
    programs: int


@dataclass
class Device:
    """What was seen of a device: how often the host waited for it, by place."""

    synchronisations: Counter[str] = field(default_factory=Counter)
    watch: Callable[[Any, Any, Any, Any], None] = lambda func, args, kwargs, results: None
    # whether Triton's kernels are interpreted, which takes long, or all their results are 0
    computes: bool = True

    def wait(self) -> None:
        self.synchronisations[place()] += 1


@contextmanager
def pretend_device() -> Iterator[Device]:
    """The device, for as long as this lasts."""
    device = Device()
    kernels = _triton_kernels(device) if find_spec("triton") else nullcontext()
    with kernels, _Operations(device), _Functions(device):
        yield device


@contextmanager
def _triton_kernels(device: Device) -> Iterator[None]:
    """Let the device have Triton's kernels, computed by its interpreter."""
    os.environ["TRITON_INTERPRET"] = "1"
    from lib.layers import gpu_kernels

    launch = gpu_kernels.launch

    def launched(kernel: Any, programs: tuple[int, ...], *arguments: Any, **sizes: int) -> None:
        inner = _inner(arguments)
        device.watch(Launched(kernel.__name__, math.prod(programs)), inner, sizes, ())
        if device.computes:
            launch(kernel, programs, *inner, **sizes)
            return
        for name, value in zip(kernel.arg_names, inner):
            if name.startswith("d_") or name in RESULTS:
                value.zero_()

    def runs(values: Tensor) -> bool:
        return isinstance(values, PretendTensor) and values.dtype == torch.float32

    with (
        patch.object(gpu_kernels, "launch", launched),
        patch.object(cpu_kernels, "triton_runs", runs),
    ):
        yield


def moved(model: Module) -> Any:
    """A model on the device, where layers that share weights go on to share them."""
    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        return model.to(DEVICE)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(before)


def on_cpu(values: Any) -> Any:
    """Values whose tensors of the device are on the CPU, without counting."""
    return _mapped(
        lambda x: x.inner.detach().clone() if isinstance(x, PretendTensor) else x, values
    )


def _mapped(function: Callable[[Any], Any], values: Any) -> Any:
    """Arguments or results as they are, with `function` of each that is no list, tuple or
    dictionary."""
    if isinstance(values, list | tuple):
        return type(values)(_mapped(function, value) for value in values)
    if isinstance(values, dict):
        return {name: _mapped(function, value) for name, value in values.items()}
    return function(values)


def _tensors(values: Any) -> list[Tensor]:
    """The tensors among arguments."""
    if isinstance(values, Tensor):
        return [values]
    values = (
        values.values()
        if isinstance(values, dict)
        else values
        if isinstance(values, list | tuple)
        else ()
    )
    return [tensor for value in values for tensor in _tensors(value)]


# ---------------------------------------------------------------------------------
# operations


class _Operations(TorchDispatchMode):
    """Every operation of PyTorch's core."""

    def __init__(self, device: Device):
        super().__init__()
        self.device = device

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func._schema.name.split("::")[1]
        tensors = _tensors((args, kwargs))
        here = any(isinstance(x, PretendTensor) for x in tensors)
        if here and name not in BETWEEN:
            _check_devices(name, args, tensors)
        if _waits(name, args, kwargs, here):
            self.device.wait()
        inner = _inner(args), _inner(kwargs)
        result = func(*inner[0], **inner[1])
        asked = kwargs.get("device")
        if name == "_local_scalar_dense" or not (_is_ours(asked) if asked is not None else here):
            return result
        self.device.watch(func, *inner, result)
        if name == "_pack_padded_sequence":  # the sizes of the steps stay on the CPU
            return PretendTensor(result[0]), result[1]
        result = _outer(result)
        writes = any(x.alias_info and x.alias_info.is_write for x in func._schema.returns)
        return return_and_correct_aliasing(func, args, kwargs, result) if writes else result


def _is_ours(device: Any) -> bool:
    return torch.device(device).type == DEVICE.type


def _inner(values: Any) -> Any:
    """Arguments for the CPU."""

    def inner(value: Any) -> Any:
        if isinstance(value, PretendTensor):
            return value.inner
        return torch.device("cpu") if isinstance(value, torch.device) and _is_ours(value) else value

    return _mapped(inner, values)


def _outer(values: Any) -> Any:
    """Results of the CPU on the device."""
    return _mapped(lambda x: PretendTensor(x) if isinstance(x, Tensor) else x, values)


def _check_devices(name: str, args: Sequence[Any], tensors: list[Tensor]) -> None:
    """Raise Fault for a tensor of the CPU among those of the device; one number alone may come from
    there."""
    strangers = [x for x in tensors if not isinstance(x, PretendTensor) and x.dim()]
    if name in INDEXING and any(x is index for index in args[1] for x in strangers):
        raise Fault(f"{name}: an index on the CPU for a tensor of the device")
    if strangers:
        raise Fault(f"{name}: tensors of both devices")


def _waits(name: str, args: Sequence[Any], kwargs: dict[str, Any], here: bool) -> bool:
    """Whether the host waits for the device: for numbers, for how many there are, or for a copy
    either way."""
    if name == "_to_copy":
        asked, pinned = (
            kwargs.get("device"),
            kwargs.get("non_blocking") and getattr(args[0], "pinned", False),
        )
        return asked is not None and here != _is_ours(asked) and not pinned
    if name == "copy_":
        target, source = args[:2]
        return (
            isinstance(target, PretendTensor) != isinstance(source, PretendTensor)
            and source.dim() > 0
        )
    if name == "repeat_interleave":
        return here and kwargs.get("output_size") is None
    return here and (name in WAITS or (name in INDEXING and _by_mask(name, args)))


def _by_mask(name: str, args: Sequence[Any]) -> bool:
    """Whether an index is a mask, whose places have to be counted; to put one number in them is
    not."""
    fills = name != "index" and isinstance(args[2], Tensor) and args[2].numel() == 1
    return not fills and any(
        x is not None and x.dtype in (torch.bool, torch.uint8) for x in args[1]
    )


# ---------------------------------------------------------------------------------
# functions


class _Functions(TorchFunctionMode):
    """Functions that take numbers from Python or give them, and those for which a GPU has one
    kernel."""

    def __init__(self, device: Device):
        super().__init__()
        self.device = device
        self.own: dict[Any, Callable] = {
            torch.tensor: self._tensor,
            Tensor.new_tensor: self._new_tensor,
            Tensor.tolist: self._tolist,
            Tensor.numpy: self._numpy,
            Tensor.pin_memory: self._pin_memory,
            Tensor.__getitem__: self._getitem,
            Tensor.__setitem__: self._setitem,
            F.scaled_dot_product_attention: self._attention,
            torch.gru: self._recurrent(torch.gru),
            torch.lstm: self._recurrent(torch.lstm),
            torch.gru_cell: self._recurrent(torch.gru_cell),
            torch.lstm_cell: self._recurrent(torch.lstm_cell),
        }

    def __torch_function__(self, func: Any, types, args=(), kwargs=None):
        chosen: Callable = self.own.get(func) or func
        return chosen(*args, **(kwargs or {}))

    def _from_host(self, values: Any, **kwargs) -> Tensor:
        self.device.wait()
        return PretendTensor(torch.tensor(values, **kwargs))

    def _tensor(self, values: Any, device: Any = None, **kwargs) -> Tensor:
        if device is not None and _is_ours(device):
            return self._from_host(values, **kwargs)
        return torch.tensor(values, device=device, **kwargs)

    def _new_tensor(self, owner: Tensor, values: Any, **kwargs) -> Tensor:
        if isinstance(owner, PretendTensor):
            return self._from_host(values, **{"dtype": owner.dtype, **kwargs})
        return owner.new_tensor(values, **kwargs)

    def _tolist(self, x: Tensor) -> list:
        if not isinstance(x, PretendTensor):
            return x.tolist()
        self.device.wait()
        return x.inner.tolist()

    def _numpy(self, x: Tensor, **kwargs) -> Any:
        if isinstance(x, PretendTensor):
            raise Fault(
                "numpy: an array, such as the kernels of the CPU read, of a tensor of the device"
            )
        return x.numpy(**kwargs)

    def _pin_memory(self, x: Tensor) -> Any:
        pinned: Any = x.clone()
        pinned.pinned = True
        return pinned

    def _index(self, owner: Tensor, index: Any) -> Any:
        """An index whose lists are tensors where their owner is, as PyTorch makes them."""
        if isinstance(index, tuple):
            return tuple(self._index(owner, part) for part in index)
        return (
            self._from_host(index, dtype=None if index else torch.long)
            if isinstance(index, list)
            else index
        )

    def _getitem(self, x: Tensor, index: Any) -> Tensor:
        return x[self._index(x, index) if isinstance(x, PretendTensor) else index]

    def _setitem(self, x: Tensor, index: Any, value: Any) -> None:
        x[self._index(x, index) if isinstance(x, PretendTensor) else index] = value

    def _attention(self, *args, **kwargs) -> Tensor:
        tensors = _tensors((args, kwargs))
        if not any(isinstance(x, PretendTensor) for x in tensors):
            return F.scaled_dot_product_attention(*args, **kwargs)
        _check_devices("scaled_dot_product_attention", (), tensors)
        return self._in_one(F.scaled_dot_product_attention, args, kwargs)

    def _recurrent(self, function: Callable) -> Callable:
        def read(*args) -> Any:
            if not any(isinstance(x, PretendTensor) for x in _tensors(args)):
                return function(*args)
            _check_recurrent(function.__name__, args)
            return self._in_one(function, args, {})

        return read

    def _in_one(self, function: Callable, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """A function that a GPU has as one kernel, on tensors of the device."""
        leaves, structure = tree_flatten((args, kwargs))
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, PretendTensor)]

        def run(*inner: Tensor) -> tuple[Tensor, ...]:
            values = dict(zip(places, inner))
            args, kwargs = tree_unflatten(
                [values.get(i, leaf) for i, leaf in enumerate(leaves)], structure
            )
            result = function(*args, **kwargs)
            return result if isinstance(result, tuple) else (result,)

        def tell(backward: bool, results: Any) -> None:
            self.device.watch(
                Backward(function) if backward else function, _inner(args), _inner(kwargs), results
            )

        results = _InOne.apply(run, tell, *(leaves[i] for i in places))
        return results if len(results) > 1 else results[0]


def _check_recurrent(name: str, args: Sequence[Any]) -> None:
    """Raise Fault for arguments of a recurrent layer that cuDNN refuses; it takes the sizes of
    steps from the CPU."""
    words, second, *rest = args
    sizes = isinstance(second, Tensor) and second.dtype == torch.long
    tensors = _tensors([words, *([] if sizes else [second]), rest])
    if sizes and isinstance(second, PretendTensor):
        raise Fault(f"{name}: the sizes of steps must be on the CPU")
    _check_devices(name, (), tensors)
    if len({x.dtype for x in tensors}) > 1:
        raise Fault(f"{name}: tensors of several types")
    if not all(x.is_contiguous() for x in _tensors(rest[0] if sizes else second)):
        raise Fault(f"{name}: first states that are not contiguous")


class _InOne(torch.autograd.Function):
    """A function that a GPU has as one kernel, and its gradient, computed by the CPU's."""

    @staticmethod
    def forward(ctx, function, tell, *tensors):
        wanted = ctx.needs_input_grad[2:]
        ctx.inputs = [x.inner.detach().requires_grad_(wants) for x, wants in zip(tensors, wanted)]
        with torch.set_grad_enabled(any(wanted)):
            ctx.results = function(*ctx.inputs)
        ctx.tell = tell
        tell(False, ctx.results)
        ctx.set_materialize_grads(False)
        return tuple(PretendTensor(x.detach()) for x in ctx.results)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *slopes):
        pairs = [
            (result, slope.inner) for result, slope in zip(ctx.results, slopes) if slope is not None
        ]
        results, known = zip(*pairs)
        learns = [x for x in ctx.inputs if x.requires_grad]
        slopes_of_inputs = torch.autograd.grad(results, learns, known, allow_unused=True)
        ctx.tell(True, slopes_of_inputs)
        found, needs = iter(slopes_of_inputs), [x.requires_grad for x in ctx.inputs]
        del ctx.inputs, ctx.results, ctx.tell  # as what PyTorch saves is let go of
        return None, None, *(_outer(next(found)) if need else None for need in needs)
