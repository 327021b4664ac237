"""A compiled kernel with memory of its own, to be called again and again."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from mlir_npu.runtime.arena import align
from mlir_npu.runtime.kernel import Kernel, SlotBlock
from mlir_npu.runtime.signature import Argument, FunctionSignature, Signature

# Distances that rounding may make, as the tests allow them between a network and eager: relative to
# a value, and to the largest one. Other types are allowed as much of their own rounding.
RELATIVE, OF_LARGEST = 1e-4, 1e-5
# Of the random arguments: small enough for sums of many products, and exponentials of these, to
# stay in a range in which no value hides the others.
DEVIATION = 0.25


class Trial:
    """`run()` computes `outputs` from the given tensors, inputs and parameters in order."""

    def __init__(
        self, code: bytes, signature: Signature, given: Sequence[torch.Tensor], threads: int
    ) -> None:
        """Raises KernelLinkError."""
        self._kernel = Kernel.of_objects([code])
        self._kept = list(given)
        self._scratch = align(signature.scratch_bytes) * threads
        prepared: list[torch.Tensor] = []
        if signature.prepare is not None:
            parameters = [
                tensor
                for tensor, argument in zip(given, _given(signature.main), strict=True)
                if argument.role == "parameter"
            ]
            block, prepared = self._block(signature.prepare, parameters, [])
            self._kernel.sibling("prepare").run(block.address)
        self._arguments, self.outputs = self._block(signature.main, given, prepared)

    def run(self) -> None:
        self._kernel.run(self._arguments.address)

    def _block(
        self,
        function: FunctionSignature,
        given: Sequence[torch.Tensor],
        prepared: Sequence[torch.Tensor],
    ) -> tuple[SlotBlock, list[torch.Tensor]]:
        block, outputs = SlotBlock(len(function.arguments)), []
        taken, ready = iter(given), iter(prepared)
        for slot, argument in enumerate(function.arguments):
            if argument.role in ("input", "parameter"):
                tensor = next(taken)
            elif argument.role == "prepared":
                tensor = next(ready)
            elif argument.role == "scratch":
                tensor = torch.empty(self._scratch, dtype=torch.uint8)
            else:
                tensor = torch.zeros(argument.shape, dtype=argument.dtype)
            if argument.role == "output":
                outputs.append(tensor)
            self._kept.append(tensor)
            block.values[slot] = tensor.data_ptr()
        return block, outputs


def random_arguments(signature: Signature) -> list[torch.Tensor]:
    """What @main is given: the same numbers every time. Integers, which may be positions, are 0."""
    generator = torch.Generator().manual_seed(0)
    return [
        (DEVIATION * torch.randn(argument.shape, generator=generator)).to(argument.dtype)
        if argument.dtype.is_floating_point
        else torch.zeros(argument.shape, dtype=argument.dtype)
        for argument in _given(signature.main)
    ]


def same_numbers(actual: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> bool:
    """Whether results agree within rounding; NaN equals NaN."""
    return len(actual) == len(expected) and all(map(_agree, actual, expected))


def _agree(actual: torch.Tensor, expected: torch.Tensor) -> bool:
    if actual.shape != expected.shape or actual.dtype is not expected.dtype:
        return False
    if not expected.dtype.is_floating_point:
        return torch.equal(actual, expected)
    unit = torch.finfo(expected.dtype).eps / torch.finfo(torch.float32).eps
    finite = expected[expected.isfinite()].abs()
    largest = float(finite.max()) if finite.numel() else 0.0
    relative, absolute = min(unit, 100) * RELATIVE, min(unit, 1000) * OF_LARGEST * largest
    return torch.allclose(actual, expected, rtol=relative, atol=absolute, equal_nan=True)


def _given(function: FunctionSignature) -> list[Argument]:
    return [function.arguments[slot] for slot in function.slots("input", "parameter")]
