"""PyTorch's own database of operators as cases: operators, element types, inputs."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

SECOND_DTYPES = (torch.int64, torch.bfloat16, torch.float16, torch.bool, torch.complex64)


@dataclass(frozen=True)
class Suite:
    """One way to run all operators.

    direction: "forward" (under no_grad), "backward" (results and gradients) or "inplace" (the
    variant that overwrites its first input). second: run the second element type, not the first.
    npu_only: leave out samples of which no node is the NPU's. first_only: one sample per operator.
    """

    name: str
    direction: str
    options: tuple[tuple[str, Any], ...] = ()
    second: bool = False
    npu_only: bool = False
    first_only: bool = False


_NPU = (("min_region_macs", 0),)

SUITES = {
    suite.name: suite
    for suite in (
        Suite("forward", "forward"),
        Suite("backward", "backward"),
        Suite("inplace", "inplace"),
        Suite("second-dtype", "forward", second=True),
        Suite("npu-forward", "forward", _NPU, npu_only=True),
        Suite("npu-backward", "backward", _NPU, npu_only=True),
        Suite("eager-forward", "forward", (("fallback", "eager"),)),
        Suite("inductor-forward", "forward", (("fallback", "inductor"),), first_only=True),
    )
}


@dataclass(frozen=True)
class Sample:
    """Arguments of one call: a tree with its leaves taken out."""

    leaves: tuple[Any, ...]
    spec: pytree.TreeSpec
    process: Callable[[Any], Any]

    @functools.cached_property
    def tensor_positions(self) -> tuple[int, ...]:
        return tuple(i for i, leaf in enumerate(self.leaves) if isinstance(leaf, torch.Tensor))

    def key(self) -> object:
        """Equal for samples that differ in the values of tensors only."""
        storages = [_storage(leaf) for leaf in self.leaves if isinstance(leaf, torch.Tensor)]
        shared = tuple(map(storages.index, storages))
        return (str(self.spec), shared, tuple(map(_leaf_key, self.leaves)))

    def copied(self) -> Sample:
        """The same with tensors of its own, which share memory where the originals do."""
        storages: dict[int, torch.UntypedStorage] = {}
        leaves = [
            _copy(leaf, storages) if isinstance(leaf, torch.Tensor) else leaf
            for leaf in self.leaves
        ]
        return Sample(tuple(leaves), self.spec, self.process)

    def mapped(self, function: Callable[[torch.Tensor], torch.Tensor]) -> Sample:
        """The same with `function` of every tensor."""
        leaves = [
            function(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.leaves
        ]
        return Sample(tuple(leaves), self.spec, self.process)

    def in_double(self) -> Sample:
        """The same in float64 and complex128."""
        return Sample(tuple(map(_in_double, self.leaves)), self.spec, self.process)

    def arguments(self) -> tuple[Any, tuple, dict]:
        return pytree.tree_unflatten(self.leaves, self.spec)


@functools.cache
def all_ops() -> dict[str, Any]:
    """OpInfo of every operator by its full name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return {_full_name(op): op for op in op_db}


def dtype_of(op: Any, suite: Suite) -> torch.dtype | None:
    """Element type of the samples; None if the operator has none for this suite."""
    supported = op.supported_dtypes("cpu")
    first = _first(supported)
    if suite.second:
        return next((d for d in SECOND_DTYPES if d in supported and d != first), None)
    if suite.direction == "backward":
        differentiable = op.supports_autograd and first in op.supported_backward_dtypes("cpu")
        return first if differentiable else None
    if suite.direction == "inplace" and op.get_inplace() is None:
        return None
    return first


def samples_of(op: Any, dtype: torch.dtype, suite: Suite) -> Iterator[Sample]:
    """Samples in a fixed order with fixed values."""
    torch.manual_seed(0)
    grad = suite.direction == "backward"
    count = 0
    for sample in op.sample_inputs("cpu", dtype, requires_grad=grad):
        if suite.direction == "inplace" and sample.broadcasts_input:
            continue
        leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        found = Sample(tuple(leaves), spec, sample.output_process_fn_grad)
        if suite.first_only and not _has_elements(found):
            continue
        yield found
        count += 1
        if suite.first_only and count == 1:
            return


def _full_name(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def _first(supported: set[torch.dtype]) -> torch.dtype | None:
    if torch.float32 in supported:
        return torch.float32
    preferred = (*SECOND_DTYPES[::-1], *SECOND_DTYPES, *sorted(supported, key=str))
    return next((dtype for dtype in preferred if dtype in supported), None)


def _has_elements(sample: Sample) -> bool:
    tensors = [sample.leaves[i] for i in sample.tensor_positions]
    return all(tensor.numel() for tensor in tensors)


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata if _is_plain(tensor) else id(tensor)


def _is_plain(tensor: torch.Tensor) -> bool:
    return (
        type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and tensor.layout is torch.strided
        and not tensor.is_quantized
        and not tensor.is_conj()
        and not tensor.is_neg()
    )


def _in_double(leaf: Any) -> Any:
    wider = {torch.complex64: torch.complex128}
    dtype = leaf.dtype if isinstance(leaf, torch.Tensor) else leaf
    if not isinstance(dtype, torch.dtype) or not (dtype.is_floating_point or dtype in wider):
        return leaf
    dtype = wider.get(dtype, torch.float64)
    if not isinstance(leaf, torch.Tensor):
        return dtype
    return leaf.detach().to(dtype).requires_grad_(leaf.requires_grad)


def _leaf_key(leaf: Any) -> object:
    if not isinstance(leaf, torch.Tensor):
        return (type(leaf), repr(leaf))
    plain = (leaf.stride(), leaf.storage_offset()) if _is_plain(leaf) else id(leaf)
    return (tuple(leaf.shape), leaf.dtype, leaf.requires_grad, plain)


def _copy(tensor: torch.Tensor, storages: dict[int, torch.UntypedStorage]) -> torch.Tensor:
    if not _is_plain(tensor):
        return tensor.detach().clone().requires_grad_(tensor.requires_grad)
    storage = tensor.untyped_storage()
    if storage._cdata not in storages:
        storages[storage._cdata] = storage.clone()
    copy = torch.empty(0, dtype=tensor.dtype)
    copy.set_(storages[storage._cdata], tensor.storage_offset(), tensor.shape, tensor.stride())
    return copy.requires_grad_(tensor.requires_grad)
