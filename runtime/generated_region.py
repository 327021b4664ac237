"""A region whose code a code generator of the user's made: a callable from tensors to a tuple."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any

import torch

from mlir_npu.runtime.interface import Interface
from mlir_npu.runtime.prepared import Prepared, PreparedCache
from mlir_npu.runtime.region import mismatch, picker, refuse_other_than_zeros
from mlir_npu.runtime.tensor_spec import TensorSpec


@dataclass(frozen=True)
class GeneratedCode:
    """What a code generator made of a region.

    All tensors are those of @main: row-major, in memory order, on the CPU.

    run: takes the arguments of @main and returns its results, a tensor or a sequence of tensors. It
    may not write to arguments.
    prepare: takes the arguments with the role "parameter", when the region runs first and when one
    of them has changed; `run` then takes what it returned, and the arguments with the role "input".
    """

    run: Callable[..., torch.Tensor | Sequence[torch.Tensor]]
    prepare: Callable[..., Any] | None = None


class GeneratedRegion:
    """Call it with the region's inputs in order; as safe from several threads as the code is.

    Raises ValueError for inputs of another count, shape or dtype than it was compiled for, and
    TypeError for results that are not what the region returns. Any strides are accepted.
    """

    tuning = None  # the code generator's business

    def __init__(self, name: str, code: GeneratedCode, interface: Interface) -> None:
        self.name = name
        self.interface = interface
        self._code = code
        parameters = set(interface.parameters)
        self._inputs = tuple(i for i in range(len(interface.inputs)) if i not in parameters)
        owned = tuple(map(TensorSpec.of, interface.constants))
        self._parameter_specs = (*(interface.inputs[i] for i in interface.parameters), *owned)
        self._zeros = tuple(interface.parameters.index(i) for i in interface.zeros)
        self._pick_parameters = picker(interface.parameters)
        self._cache = PreparedCache(self._make_prepared)

    def __call__(self, *tensors: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        specs = self.interface.inputs
        if len(tensors) != len(specs):
            raise ValueError(f"{self.name} takes {len(specs)} tensors, not {len(tensors)}")
        for index, (tensor, spec) in enumerate(zip(tensors, specs, strict=True)):
            if tensor.shape != spec.shape or tensor.dtype is not spec.dtype:
                raise mismatch(f"input {index} of {self.name}", spec, tensor)
        parameters = self._pick_parameters(tensors) + self.interface.constants
        return self._call(self._cache.get(parameters), *tensors)

    @property
    def reads_parameters(self) -> bool:
        """Whether it has parameters, or constants of its own."""
        return bool(self._parameter_specs)

    def bound(self, parameters: Sequence[torch.Tensor], packed: Set[int] = frozenset()) -> Callable:
        """The region with these parameters (those at `interface.parameters`) as they are now."""
        prepared = self._cache.get((*parameters, *self.interface.constants))
        return functools.partial(self._call, prepared)

    def _call(self, prepared: Prepared, *tensors: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        specs = self.interface.inputs
        inputs = {i: _physical(tensors[i], specs[i]) for i in self._inputs}
        if self._code.prepare is not None:
            arguments = (*prepared.owned, *inputs.values())
        else:
            parameters = iter(prepared.owned)
            count = len(specs) + len(self.interface.constants)
            arguments = tuple(inputs[i] if i in inputs else next(parameters) for i in range(count))
        try:
            returned = self._code.run(*arguments)
        except Exception as error:
            error.add_note(f"in code that a code generator made of region {self.name}")
            raise
        results = [returned] if isinstance(returned, torch.Tensor) else list(returned)
        return self.interface.arrange(tensors, self._checked(results, arguments))

    def _make_prepared(
        self, parameters: Sequence[torch.Tensor]
    ) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        refuse_other_than_zeros(self.name, parameters, self._zeros)
        pairs = zip(parameters, self._parameter_specs, strict=True)
        packed = tuple(_physical(parameter.detach(), spec) for parameter, spec in pairs)
        if self._code.prepare is None:
            return (), packed
        return (), (self._code.prepare(*packed),)

    def _checked(self, results: list, arguments: Sequence[Any]) -> list[torch.Tensor]:
        """The results as tensors of the shapes and memory orders that the region promises."""
        specs = self.interface.results
        found = [_describe(result) for result in results]
        wanted = [f"{spec.dtype}{list(spec.physical_shape)}" for spec in specs]
        if found != wanted:
            raise TypeError(
                f"the code generator's code of region {self.name} returned {', '.join(found)}; "
                f"the region returns {', '.join(wanted)}"
            )
        taken = {a.untyped_storage().data_ptr() for a in arguments if isinstance(a, torch.Tensor)}
        own = [
            result.clone() if result.untyped_storage().data_ptr() in taken else result.contiguous()
            for result in results
        ]
        return [result.permute(spec.inverse_order) for result, spec in zip(own, specs)]


def _physical(tensor: torch.Tensor, spec: TensorSpec) -> torch.Tensor:
    return spec.conform(tensor).permute(spec.order)


def _describe(result: object) -> str:
    if not isinstance(result, torch.Tensor):
        return f"a {type(result).__name__}"
    place = "" if result.device.type == "cpu" else f" on {result.device}"
    return f"{result.dtype}{list(result.shape)}{place}"
