"""What a computation asks of a GPU, operation by operation, counted on a device that is not there
(`tests.tools.pretend_device`).

    with counted() as counts:
        one_update(training)
    counts.flop, counts.moved, counts.launches, counts.peak

An operation that gives a view of a tensor costs nothing; each other is one launch, which reads its
arguments from the GPU's memory and writes its results there. Floating-point operations are those of
matrix products, attention and recurrent layers (`torch.utils.flop_counter` has the first two); what
is done number by number is bound by memory. cuDNN's recurrent layers are a launch for all words,
and one for each step. The library's Triton kernels are one launch each; they read keys or weights
again at every word, and those with fewer programs than a GPU has multiprocessors use that part of
it only. Counting does not compute them: their results are 0.
"""

import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.nn import functional as F
from torch.utils.flop_counter import flop_registry, sdpa_backward_flop_count, sdpa_flop_count

from tests.tools.pretend_device import (
    Backward,
    Device,
    Launched,
    PretendTensor,
    _tensors,
    pretend_device,
)

NO_KERNEL = {"empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided"}
NO_KERNEL |= {"_unsafe_view", "_reshape_alias"}
OVERWRITES = {"copy_", "fill_", "zero_", "uniform_", "normal_", "bernoulli_", "random_"}
# what reads of its first argument as much as it gives, and what writes as much into it as it is
# given
PICKS = {"embedding", "index", "index_select", "gather"}
PUTS = {
    "index_add_",
    "index_copy_",
    "index_put_",
    "_index_put_impl_",
    "scatter_",
    "scatter_add_",
    "masked_scatter_",
}
VECTORS = {"mv", "addmv", "dot", "addmv_", "vdot"}  # products that no formula of PyTorch's counts
MULTIPROCESSORS = 132  # of an H100; an A100 has 108
INNER_SLOPES = 2  # a layer's gradients cost twice its products: by its inputs, and by its weights


@dataclass
class Counts:
    """Operations, and the bytes that are there at the same time. An operation is (flop, bytes
    moved, launches)."""

    operations: Counter[tuple[int, int, int]] = field(default_factory=Counter)
    names: Counter[str] = field(default_factory=Counter)  # of launches
    live: int = 0  # bytes now
    peak: int = 0
    _storages: dict[int, Any] = field(default_factory=dict)

    @property
    def flop(self) -> int:
        return sum(flop * times for (flop, _, _), times in self.operations.items())

    @property
    def moved(self) -> int:
        """Bytes between the GPU and its memory."""
        return sum(moved * times for (_, moved, _), times in self.operations.items())

    @property
    def launches(self) -> int:
        return sum(launches * times for (_, _, launches), times in self.operations.items())

    def start(self) -> None:
        """Count anew; what is there stays."""
        self.operations.clear()
        self.names.clear()
        self.peak = self.live

    def times(self, number: int) -> None:
        """Count what was counted so often."""
        for counter in (self.operations, self.names):
            for key in counter:
                counter[key] *= number

    def add(self, name: str, flop: int, moved: int, launches: int) -> None:
        self.operations[flop, moved, launches] += 1
        self.names[name] += launches

    def hold(self, results: Any) -> None:
        """Count the memory of results for as long as anything holds it."""
        for storage in (x.untyped_storage() for x in _tensors(results)):
            known = self._storages.get(storage._cdata)
            if known is None or known() is None:
                self._storages[storage._cdata] = weakref.ref(
                    storage, self._let_go(storage._cdata, storage.nbytes())
                )
                self.grow(storage.nbytes())

    def grow(self, size: int) -> None:
        self.live += size
        self.peak = max(self.peak, self.live)

    def _let_go(self, key: int, size: int) -> Callable[[Any], None]:
        def gone(reference: Any) -> None:
            self.live -= size
            if self._storages.get(key) is reference:
                del self._storages[key]

        return gone

    def __call__(self, func: Any, args: Any, kwargs: Any, results: Any) -> None:
        """Take an operation into account, as `Device.watch`."""
        self.hold(results)
        if func is F.scaled_dot_product_attention or func == Backward(
            F.scaled_dot_product_attention
        ):
            self._attention(isinstance(func, Backward), args, kwargs, results)
        elif isinstance(func, Launched):
            # a program uses one multiprocessor: with fewer programs all takes so much longer
            longer = max(1, MULTIPROCESSORS // func.programs)
            moved = _sizes(args) + _read_again(func.name, args)
            self.add(func.name, longer * _products(func.name, args), longer * moved, 1)
        elif isinstance(func, torch._ops.OpOverload):
            self._operation(func, args, kwargs, results)
        else:
            self._recurrent(func, args, results)

    def _operation(self, func: Any, args: Any, kwargs: Any, results: Any) -> None:
        name = func._schema.name.split("::")[1]
        if func.is_view or name in NO_KERNEL:
            return
        formula = flop_registry.get(getattr(torch.ops.aten, name.removesuffix("_"), None))
        flop = formula(*args, **kwargs, out_val=results) if formula else 0
        if name in VECTORS:
            flop = 2 * max(x.numel() for x in _tensors(args))
        self.add(name, flop, _moved(func, name, args, kwargs, results), 1)

    def _attention(self, backward: bool, args: Any, kwargs: Any, results: Any) -> None:
        q, k, v = (x.shape for x in args[:3])
        if backward:
            out = (*q[:-1], v[-1])
            moved = sum(map(size_of, _tensors((args, kwargs)))) + 2 * args[
                0
            ].element_size() * _numel(out)
            self.add(
                "attention, backward",
                sdpa_backward_flop_count(out, q, k, v),
                moved + _sizes(results),
                2,
            )
        else:
            moved = _sizes((args, kwargs)) + _sizes(results)
            self.add("attention", sdpa_flop_count(q, k, v), moved, 1)

    def _recurrent(self, func: Any, args: Sequence[Any], results: Any) -> None:
        backward, name = isinstance(func, Backward), getattr(func, "function", func).__name__
        words, steps, weights = _recurrence(name, args)
        flop = sum(2 * words * w.numel() for w in weights if w.dim() == 2)
        # of each word and unit what the backward pass needs: gates and, of an LSTM, cells
        reserve = (
            sum(w.shape[0] for w in weights if w.dim() == 2)
            // 2
            * words
            * weights[0].element_size()
            * 5
            // 4
        )
        pairs = sum(w.dim() == 2 for w in weights) // 2
        launches = pairs * (1 + steps) + (pairs if backward else 0)
        times = INNER_SLOPES if backward else 1
        self.add(
            f"{name}, backward" if backward else name,
            times * flop,
            _sizes(args) + reserve,
            launches,
        )
        self.grow(-reserve if backward else reserve)


def _recurrence(name: str, args: Sequence[Any]) -> tuple[int, int, list[Tensor]]:
    """Words, steps and weights of a call of torch.gru, torch.lstm or their cells."""
    if name.endswith("_cell"):
        return len(args[0]), 1, [x for x in args[2:] if isinstance(x, Tensor)]
    packed = isinstance(args[1], Tensor) and args[1].dtype == torch.long and args[1].dim() == 1
    weights = list(args[3 if packed else 2])
    if packed:
        return len(args[0]), len(args[1]), weights
    batch_first = bool(args[-1])
    return args[0].shape[0] * args[0].shape[1], args[0].shape[1 if batch_first else 0], weights


def _products(name: str, args: Sequence[Any]) -> int:
    """Floating-point operations in the products of a Triton kernel, from the sizes that follow its
    tensors."""
    sizes = [x for x in args if isinstance(x, int)]
    if name.startswith("memory"):
        steps, rows, slots, width, attention = sizes
        return 2 * steps * rows * width * (slots * (attention + 2 * width) + 2 * width)
    if name == "coverage_scores_backward":
        return 0
    alpha = max(x.numel() for x in _tensors(args) if x.dim() == 4)
    return 2 * alpha * sizes[-1]


def _read_again(name: str, args: Sequence[Any]) -> int:
    """Bytes that the programs of a Triton kernel read again at every word: weights or keys."""
    tensors, sizes = _tensors(args), [x for x in args if isinstance(x, int)]
    if name.startswith("memory"):  # each row reads its weights, the only matrices
        return (sizes[0] * sizes[1] - 1) * _sizes(
            [x for x in tensors if x.dim() == 2 and x.shape[1] == sizes[3]]
        )
    if name in ("coverage_weights", "coverage_queries_backward"):
        return (sizes[0] * sizes[1] - 1) * size_of(tensors[1])
    return 0


def _numel(shape: Sequence[int]) -> int:
    return int(torch.Size(shape).numel())


def size_of(x: Tensor) -> int:
    """Bytes of a tensor, of what is repeated in it once."""
    return x.element_size() * _numel(
        [n for n, stride in zip(x.shape, x.stride()) if stride or n == 0]
    )


def _sizes(values: Any) -> int:
    return sum(map(size_of, _tensors(values)))


def _moved(func: Any, name: str, args: Any, kwargs: Any, results: Any) -> int:
    """Bytes that an operation reads and writes."""
    if name in PICKS:
        return 2 * _sizes(results) + _sizes(
            [x for x in _tensors(args[1:]) if not x.is_floating_point()]
        )
    if name in PUTS:
        return _sizes(args[1:]) + 2 * max(
            (size_of(x) for x in _tensors(args[1:]) if x.is_floating_point()), default=0
        )
    schema, read, written = func._schema.arguments, 0, 0
    values = {a.name: value for a, value in zip(schema, args)} | dict(kwargs)
    # of another's shape, which is not read
    made = name.endswith("_like") or name.startswith("new_")
    for argument in schema:
        size = _sizes(values.get(argument.name))
        changed = argument.alias_info is not None and argument.alias_info.is_write
        read += 0 if made or argument.is_out or (changed and name in OVERWRITES) else size
        written += size if changed else 0
    return read + (written or _sizes(results))


@contextmanager
def counted() -> Iterator[tuple[Device, Counts]]:
    """The pretend device, and what is asked of it."""
    # of gradients a GPU takes norm and product in one launch for all, where they are of these types
    many = patch(
        "torch.utils._foreach_utils._foreach_supported_types", [Tensor, Parameter, PretendTensor]
    )
    with pretend_device() as device, many:
        counts = Counts()
        device.watch, device.computes = counts, False
        yield device, counts
