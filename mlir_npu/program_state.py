"""The weights of a program: where they are, and whether they still fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from mlir_npu.errors import MismatchError
from mlir_npu.lowering.program_plan import Value

REMEDY = "capture it again"


class State(Protocol):
    def current(self) -> tuple[torch.Tensor, ...]:
        """Parameters and buffers as they are now, in the order of the plan. Raises
        MismatchError."""


@dataclass(frozen=True)
class OwnState:
    """Tensors that belong to the program, as in one that was loaded."""

    values: tuple[Value, ...]
    tensors: tuple[torch.Tensor, ...]

    def current(self) -> tuple[torch.Tensor, ...]:
        for value, tensor in zip(self.values, self.tensors):
            _check(value, tensor)
        return self.tensors


class ModelState:
    """Tensors of modules, looked up by name in every call, so that they may be replaced."""

    def __init__(
        self,
        values: Sequence[Value],
        tensors: Sequence[torch.Tensor],
        modules: Mapping[str, torch.nn.Module],
    ) -> None:
        self._values, self._tensors = tuple(values), list(tensors)
        self._places = [_place(value.source, modules) for value in values]
        # before anything else: tensors are looked up in the modules of the capture
        self._modules = [
            (parent._modules, key, module, prefix + ".".join(filter(None, (path, key))))
            for prefix, root in modules.items()
            for path, parent in root.named_modules()
            for key, module in parent._modules.items()
        ]
        self._ties = _ties(tensors, modules)
        self._flags = [
            (module, f"{prefix}{name}", module.training)
            for prefix, root in modules.items()
            for name, module in root.named_modules()
        ]

    def current(self) -> tuple[torch.Tensor, ...]:
        for dictionary, key, module, name in self._modules:
            if dictionary.get(key) is not module:
                raise MismatchError(f"the module {name} was replaced: {REMEDY}")
        for module, name, flag in self._flags:
            if module.training is not flag:
                raise MismatchError(
                    f"{name or 'model'}.training is {module.training}, and was {flag} when the "
                    f"model was captured: set it back, by train() or eval(), or {REMEDY}"
                )
        for index, place in enumerate(self._places):
            if place is not None:
                self._tensors[index] = place[0].get(place[1])
            _check(self._values[index], self._tensors[index])
        for (first, one), (second, other), names in self._ties:
            if first.get(one) is not second.get(other):
                raise MismatchError(
                    f"{names} were one tensor when the model was captured, and are two now: "
                    f"{REMEDY}"
                )
        return tuple(self._tensors)


_Place = tuple[dict[str, torch.Tensor], str]


def _ties(
    tensors: Sequence[torch.Tensor], modules: Mapping[str, torch.nn.Module]
) -> list[tuple[_Place, _Place, str]]:
    """Places that hold one of the tensors, in pairs, with their names."""
    found: dict[int, list[tuple[_Place, str]]] = {id(tensor): [] for tensor in tensors}
    for prefix, root in modules.items():
        for path, module in root.named_modules():
            for dictionary in (module._parameters, module._buffers):
                for key, tensor in dictionary.items():
                    if id(tensor) in found:
                        name = prefix + ".".join(filter(None, (path, key)))
                        found[id(tensor)].append(((dictionary, key), name))
    return [
        (first, second, f"{name} and {other}")
        for (first, name), *rest in filter(None, found.values())
        for second, other in rest
    ]


def _check(value: Value, tensor: torch.Tensor | None) -> None:
    if tensor is None:
        raise MismatchError(f"{value.label} is not there any more: {REMEDY}")
    dtype = str(tensor.dtype).removeprefix("torch.")
    if (tuple(tensor.shape), tensor.stride(), dtype) != (
        value.shape,
        value.strides,
        value.dtype,
    ):
        raise MismatchError(
            f"{value.label} is {dtype}{list(tensor.shape)} with strides "
            f"{list(tensor.stride())}, and was {value.dtype}{list(value.shape)} with strides "
            f"{list(value.strides)} when the model was captured: {REMEDY}"
        )
    if tensor.requires_grad and not value.requires_grad and torch.is_grad_enabled():
        raise MismatchError(
            f"{value.label} requires a gradient, and did not when the model was captured: {REMEDY}"
        )


def _place(name: str | None, modules: Mapping[str, torch.nn.Module]) -> _Place | None:
    """The dictionary and key that hold a tensor; None if it is in no module."""
    for prefix, root in modules.items():
        path, _, key = (name or "").removeprefix(prefix).rpartition(".")
        try:
            module = root.get_submodule(path)
        except AttributeError:
            continue
        for dictionary in (module._parameters, module._buffers):
            if key in dictionary:
                return dictionary, key
    return None
