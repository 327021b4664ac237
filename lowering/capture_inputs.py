"""The inputs of a captured program: what they are called, and what each has to be."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from mlir_npu.errors import CaptureError, MismatchError
from mlir_npu.lowering.roles import describe_value

TENSORS = (torch.Tensor, torch.nn.Parameter)
NUMBERS = (type(None), bool, int, float, complex, str, bytes)
CONSTANTS = (*NUMBERS, torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size)
REMEDY = "capture the model again for such inputs"


@dataclass(frozen=True)
class TensorInput:
    """index: among the leaves of all inputs."""

    name: str
    index: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype

    def __str__(self) -> str:
        return f"{self.name}: {self._type}"

    @property
    def _type(self) -> str:
        return f"{str(self.dtype).removeprefix('torch.')}[{', '.join(map(str, self.shape))}]"

    def stand_in(self) -> torch.Tensor:
        """A tensor of its kind, all zeros."""
        reach = sum(max(n - 1, 0) * step for n, step in zip(self.shape, self.strides)) + 1
        memory = torch.zeros(reach, dtype=self.dtype, device="cpu")
        return memory.as_strided(self.shape, self.strides)

    def admit(self, value: Any) -> torch.Tensor:
        """The tensor with the strides it was captured with, where strides say nothing. Raises
        MismatchError."""
        if type(value) not in TENSORS:
            raise self._mismatch(f"a {type(value).__name__}", "a torch.Tensor")
        if value.layout is not torch.strided or not value.is_cpu:
            found = f"on {value.device} with layout {value.layout}"
            raise self._mismatch(found, "a strided tensor on the CPU")
        if tuple(value.shape) != self.shape or value.dtype is not self.dtype:
            raise self._mismatch(describe_value(value), self._type)
        if value.requires_grad and torch.is_grad_enabled():
            raise MismatchError(
                f"input {self.name} requires a gradient, and a captured program computes none: "
                "call it under torch.no_grad(), or pass a detached tensor; to train, use "
                'torch.compile(model, backend="mlir_npu")'
            )
        if value.stride() == self.strides:
            return value
        if (
            any(
                size > 1 and found != expected
                for size, found, expected in zip(self.shape, value.stride(), self.strides)
            )
            and value.numel()
        ):
            raise MismatchError(
                f"input {self.name} has strides {list(value.stride())}, and the program was "
                f"captured for {list(self.strides)}, on which the strides of its results depend: "
                f"copy it to that layout, or {REMEDY}"
            )
        return value.as_strided(self.shape, self.strides)

    def _mismatch(self, found: str, expected: str) -> MismatchError:
        return MismatchError(
            f"input {self.name} is {found}, and the program was captured for {expected}: {REMEDY}"
        )


@dataclass(frozen=True)
class ConstantInput:
    """A number, text or None, whose value is part of the program."""

    name: str
    index: int
    value: Any

    def __str__(self) -> str:
        return f"{self.name}={self.value!r}"

    def check(self, value: Any) -> None:
        if type(value) is not type(self.value) or (value != self.value and value == value):
            raise MismatchError(
                f"input {self.name} is {value!r}, and its value {self.value!r} is part of the "
                "captured program: capture the model again with that value"
            )


@dataclass(frozen=True)
class Inputs:
    """keywords: the names of the keyword inputs, in order; plain: every input is a leaf."""

    tree: pytree.TreeSpec
    positional: int
    keywords: tuple[str, ...]
    plain: bool
    tensors: tuple[TensorInput, ...]
    constants: tuple[ConstantInput, ...]

    def leaves(self, arguments: tuple, keywords: dict[str, Any]) -> Sequence[Any]:
        """Of a call, in the order of the capture. Raises MismatchError."""
        if len(arguments) != self.positional or keywords.keys() != set(self.keywords):
            raise MismatchError(
                f"the program takes {self._calling(self.positional, self.keywords)}, as it was "
                f"captured, and was given {self._calling(len(arguments), tuple(keywords))}"
            )
        keywords = {name: keywords[name] for name in self.keywords}
        if self.plain:
            return (*arguments, *keywords.values())
        leaves, tree = pytree.tree_flatten((arguments, keywords))
        if tree != self.tree:
            raise MismatchError(
                f"the inputs are nested as {pytree.treespec_pprint(tree)}, and the program was "
                f"captured for {pytree.treespec_pprint(self.tree)}: {REMEDY}"
            )
        return leaves

    def unflatten(self, leaves: Sequence[Any]) -> tuple[tuple, dict[str, Any]]:
        return pytree.tree_unflatten(leaves, self.tree)

    def admit(self, leaves: Sequence[Any]) -> list[Any]:
        """The leaves as the compiled code takes them. Raises MismatchError naming the input."""
        admitted = list(leaves)
        for tensor in self.tensors:
            admitted[tensor.index] = tensor.admit(leaves[tensor.index])
        for constant in self.constants:
            constant.check(leaves[constant.index])
        return admitted

    @staticmethod
    def _calling(count: int, keywords: tuple[str, ...]) -> str:
        named = f" and the keywords {', '.join(keywords)}" if keywords else ""
        return f"{count} positional input{'' if count == 1 else 's'}{named}"


def describe_inputs(
    model: Callable, arguments: tuple, keywords: Mapping[str, Any]
) -> tuple[Inputs, list[Any]]:
    """With stand-ins for the leaves: distinct tensors, so that Dynamo takes no two inputs for one,
    nor an input for a parameter. Raises CaptureError for what cannot be an input."""
    keywords = dict(keywords)
    paths, tree = pytree.tree_flatten_with_path((arguments, keywords))
    names = _positional_names(model, len(arguments))
    tensors: list[TensorInput] = []
    constants: list[ConstantInput] = []
    stand_ins = []
    for index, (path, leaf) in enumerate(paths):
        name = _name(path, names)
        if type(leaf) in TENSORS and leaf.layout is torch.strided and leaf.is_cpu:
            made = TensorInput(name, index, tuple(leaf.shape), leaf.stride(), leaf.dtype)
            tensors.append(made)
            leaf = torch.empty_strided(made.shape, made.strides, dtype=made.dtype, device="cpu")
        elif isinstance(leaf, CONSTANTS):
            constants.append(ConstantInput(name, index, leaf))
        else:
            raise CaptureError(f"input {name} is a {_describe(leaf)}; {_SUPPORTED}")
        stand_ins.append(leaf)
    plain = len(paths) == len(arguments) + len(keywords) and all(
        len(path) == 2 for path, _ in paths
    )
    inputs = Inputs(tree, len(arguments), tuple(keywords), plain, tuple(tensors), tuple(constants))
    return inputs, stand_ins


_SUPPORTED = (
    "inputs are strided tensors on the CPU, numbers, text and None, nested in containers that "
    "torch.utils._pytree knows"
)


def _describe(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    return f"{type(value).__name__} on {value.device} with layout {value.layout}"


def _positional_names(model: Callable, count: int) -> list[str]:
    function = model.forward if isinstance(model, torch.nn.Module) else model
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # builtin functions
        parameters = []
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "inputs")
    return [*named[:count], *(f"{rest}[{i}]" for i in range(count - len(named)))]


def _name(path: tuple, names: list[str]) -> str:
    group, first, *inner = path
    root = names[first.idx] if group.idx == 0 else first.key
    return root + pytree.keystr(tuple(inner))
