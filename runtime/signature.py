"""The arguments of a compiled module: what each slot holds.

    @main(inputs and parameters..., prepared..., outputs..., workspace, scratch)
    @prepare(parameters..., outputs..., workspace, scratch)

Host modules have no prepared values, workspace or scratch. Neither torch nor MLIR is imported here:
processes that compile know no torch, and those that run compiled code need no MLIR.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

ROLES = ("input", "parameter", "prepared", "output", "workspace", "scratch")

# element type -> its name in torch, bytes
ELEMENTS = {
    "f16": ("float16", 2),
    "bf16": ("bfloat16", 2),
    "f32": ("float32", 4),
    "f64": ("float64", 8),
    "i1": ("bool", 1),
    "i8": ("int8", 1),
    "i16": ("int16", 2),
    "i32": ("int32", 4),
    "i64": ("int64", 8),
}


class SignatureError(ValueError):
    """The module does not follow the calling convention."""


@dataclass(frozen=True)
class Argument:
    """One slot: a packed, row-major buffer of an element type such as "f32"."""

    role: str
    shape: tuple[int, ...]
    element: str

    @property
    def dtype(self) -> torch.dtype:
        return getattr(importlib.import_module("torch"), ELEMENTS[self.element][0])

    @property
    def bytes(self) -> int:
        return prod(self.shape) * ELEMENTS[self.element][1]


@dataclass(frozen=True)
class FunctionSignature:
    """Arguments of one function, in order."""

    name: str
    arguments: tuple[Argument, ...]

    def slots(self, *roles: str) -> tuple[int, ...]:
        """Positions of the arguments with one of these roles, in order."""
        return tuple(i for i, argument in enumerate(self.arguments) if argument.role in roles)

    def bytes_of(self, role: str) -> int:
        return sum(argument.bytes for argument in self.arguments if argument.role == role)


@dataclass(frozen=True)
class Signature:
    """`prepare` is None if nothing depends on the parameters alone."""

    main: FunctionSignature
    prepare: FunctionSignature | None

    def __post_init__(self) -> None:
        _check(self.main, self.prepare)

    @classmethod
    def of(cls, functions: Iterable[FunctionSignature]) -> Signature:
        """Raises SignatureError."""
        named = {function.name: function for function in functions}
        if "main" not in named:
            raise SignatureError("the module has no function @main")
        return cls(named["main"], named.get("prepare"))

    @property
    def workspace_bytes(self) -> int:
        return max(f.bytes_of("workspace") for f in (self.main, self.prepare) if f is not None)

    @property
    def scratch_bytes(self) -> int:
        """Bytes of one thread."""
        return max(f.bytes_of("scratch") for f in (self.main, self.prepare) if f is not None)


def _check(main: FunctionSignature, prepare: FunctionSignature | None) -> None:
    prepared = [main.arguments[i] for i in main.slots("prepared")]
    produced = [prepare.arguments[i] for i in prepare.slots("output")] if prepare else []
    shapes = [(a.shape, a.element) for a in prepared]
    if shapes != [(a.shape, a.element) for a in produced]:
        raise SignatureError(
            f"@prepare makes {len(produced)} values and @main takes {len(prepared)} prepared ones "
            "of other types"
        )
    given = len(main.slots("parameter"))
    if prepare and len(prepare.slots("parameter")) != given:
        taken = len(prepare.slots("parameter"))
        raise SignatureError(f"@prepare takes {taken} parameters and @main {given}")
