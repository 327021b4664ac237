"""The tensors, modules and flags of a captured model, and whether they are still the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from mlir_npu.errors import MismatchError
from mlir_npu.lowering.capture_inputs import TENSORS
from mlir_npu.lowering.capture_origins import Origin, Origins
from mlir_npu.lowering.roles import describe_value
from mlir_npu.runtime.entries import Entries

REMEDY = "capture it again"


@dataclass(frozen=True)
class Watch:
    """tensors: in the order of the origins, as they were when last looked at. No older tensor is
    kept alive."""

    tensors: tuple[torch.Tensor, ...]
    _plan: _Plan
    _entries: Entries
    _loose: tuple[tuple[Any, Any], ...]

    @classmethod
    def of(cls, origins: Origins) -> Watch:
        tensors = tuple(origin.value for origin in origins.tensors)
        first: dict[int, int] = {}
        ties = tuple(first.setdefault(id(tensor), i) for i, tensor in enumerate(tensors))
        plan = _Plan(
            tuple(dataclasses.replace(origin, value=None) for origin in origins.tensors),
            tuple(map(_spec, tensors)),
            ties,
            origins.flags,
            origins.modules,
            tuple((dictionary, key) for dictionary, key, _ in origins.entries),
            tuple(dataclasses.replace(origin, value=None) for origin in origins.loose),
        )
        return plan.look(tensors)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the tensors, for people."""
        return tuple(origin.name for origin in self._plan.tensors)

    def unchanged(self) -> bool:
        """Whether every tensor is the same object, found on the same way, and no flag differs."""
        if not self._entries.unchanged():
            return False
        return not self._loose or all(read() is value for read, value in self._loose)

    def renewed(self) -> Watch:
        """With the tensors that the model has now. Raises MismatchError if it is another model."""
        return self._plan.look(self._plan.check())


@dataclass(frozen=True)
class _Plan:
    """specs: of the tensors; ties: for each, the first of those that were the same object; entries:
    dictionaries and keys."""

    tensors: tuple[Origin, ...]
    specs: tuple[tuple, ...]
    ties: tuple[int, ...]
    flags: tuple[Origin, ...]
    modules: tuple[Origin, ...]
    entries: tuple[tuple[dict, str], ...]
    loose: tuple[Origin, ...]

    def look(self, tensors: tuple[torch.Tensor, ...]) -> Watch:
        entries = [(dictionary, key, dictionary.get(key)) for dictionary, key in self.entries]
        loose = tuple((origin.read, _read(origin)) for origin in self.loose)
        return Watch(tensors, self, Entries(entries), loose)

    def check(self) -> tuple[torch.Tensor, ...]:
        """The tensors as they are now. Raises MismatchError."""
        for module in self.modules:
            if _read(module) is not module.value:
                raise MismatchError(f"the module {module.name} was replaced: {REMEDY}")
        for flag in self.flags:
            if (found := _read(flag)) != flag.value:
                raise MismatchError(
                    f"{flag.name} is {found}, and was {flag.value} when the model was captured: "
                    f"set it back, by train() or eval(), or {REMEDY}"
                )
        tensors = tuple(map(_read, self.tensors))
        for origin, tensor, spec in zip(self.tensors, tensors, self.specs):
            _check_tensor(origin, tensor, spec)
        self._check_ties(tensors)
        return tensors

    def _check_ties(self, tensors: Sequence[torch.Tensor]) -> None:
        """Names of one tensor, of which the graph has one input, still are."""
        for origin, tensor, first in zip(self.tensors, tensors, self.ties):
            if tensor is not tensors[first]:
                raise MismatchError(
                    f"{origin.name} and {self.tensors[first].name} were one tensor when the model "
                    f"was captured, and are two now: {REMEDY}"
                )


def _read(origin: Origin) -> Any:
    try:
        return origin.read()
    except Exception as error:  # whatever evaluation raises
        raise MismatchError(
            f"{origin.name} of the captured model is not there any more: {REMEDY}"
        ) from error


def _spec(tensor: torch.Tensor) -> tuple:
    return tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.device


def _check_tensor(origin: Origin, tensor: Any, spec: tuple) -> None:
    if type(tensor) not in TENSORS or tensor.layout is not torch.strided:
        raise MismatchError(
            f"{origin.name} is a {type(tensor).__name__}, and was a tensor when the model was "
            f"captured: {REMEDY}"
        )
    if _spec(tensor) != spec:
        raise MismatchError(
            f"{origin.name} is {describe_value(tensor)} with strides {list(tensor.stride())} on "
            f"{tensor.device}, and was {_describe(spec)} when the model was captured: {REMEDY}"
        )


def _describe(spec: tuple) -> str:
    shape, strides, dtype, device = spec
    sizes = ", ".join(map(str, shape))
    name = str(dtype).removeprefix("torch.")
    return f"{name}[{sizes}] with strides {list(strides)} on {device}"
