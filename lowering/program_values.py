"""The values of a program that is being built, and the tensors of the call that they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from mlir_npu.errors import CaptureError
from mlir_npu.lowering.program_events import Place
from mlir_npu.lowering.program_names import Names
from mlir_npu.lowering.program_plan import Value
from mlir_npu.lowering.roles import readable
from mlir_npu.lowering.tensor_type import TensorType

RESERVED = ("inputs", "parameters", "saved", "tangents", "forward", "backward", "torch", "args")


@dataclass(frozen=True, eq=False)
class Known:
    """What was there before the call. inputs: tensors by the name of the input; state: parameters
    and buffers by name; existing: all tensors of the process, by id."""

    inputs: Mapping[str, torch.Tensor]
    state: Mapping[str, torch.Tensor]
    existing: Mapping[int, torch.Tensor]


class ProgramValues:
    """names: all that are in use; table: values by name; tensors: of the model, and constants."""

    def __init__(self, known: Known) -> None:
        self.names = Names(RESERVED)
        self.table: dict[str, Value] = {}
        self.tensors: dict[str, torch.Tensor] = {}
        self._known = known
        self._state = {id(tensor): name for name, tensor in known.state.items()}
        self._named: dict[int, str] = {}
        self._alive: list[torch.Tensor] = []  # ids stay those of these
        self._bases: dict[int, tuple[str, torch.Tensor]] = {}
        for name, tensor in known.inputs.items():
            self._take(tensor, "input", f"argument {name}", name)

    def __contains__(self, tensor: torch.Tensor) -> bool:
        return id(tensor) in self._named

    def base_of(self, tensor: torch.Tensor) -> tuple[str, torch.Tensor] | None:
        """The value that was first in its memory."""
        return self._bases.get(storage_of(tensor))

    def find(self, tensor: torch.Tensor, source: str, place: Place) -> str | None:
        """Its name; None if all that is known of it is the memory it is in. Raises CaptureError."""
        if id(tensor) in self._named:
            return self._named[id(tensor)]
        if id(tensor) in self._state:
            name = self._state[id(tensor)]
            kind = "parameter" if isinstance(tensor, torch.nn.Parameter) else "buffer"
            return self._take(tensor, kind, f"{kind} {name}", name)
        if id(tensor) in self._known.existing:
            name = readable(source) if source else "constant"
            if isinstance(tensor, torch.nn.Parameter) or tensor.requires_grad:
                return self._take(tensor, "parameter", f"parameter {name}", name)
            return self._take(tensor, "constant", f"constant {name}", None)
        if self.base_of(tensor) is not None and not tensor.requires_grad:
            return None
        raise CaptureError(
            f"a tensor of unknown origin comes in here ({readable(source) or 'between graphs'}: "
            f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}): Python made it from "
            "values that a program does not have",
            place.location,
            place.line,
        )

    def _take(self, tensor: torch.Tensor, kind: str, label: str, source: str | None) -> str:
        name = self.new(source or label, kind, TensorType.of(tensor), label, source=source)
        self.bind(tensor, name)
        if kind != "input":
            self.tensors[name] = tensor
        return name

    def new(
        self,
        wanted: str,
        kind: str,
        type_: TensorType,
        label: str,
        *,
        source: str | None = None,
        of: str | None = None,
    ) -> str:
        """A value, under this name if it is free. `type_` says whether it requires a gradient."""
        name = self.names.new(str(wanted))
        dtype = str(type_.dtype).removeprefix("torch.")
        self.table[name] = Value(
            name, kind, type_.shape, type_.strides, dtype, label, source, of, type_.requires_grad
        )
        return name

    def bind(self, tensor: torch.Tensor, name: str) -> None:
        """The tensor of the recorded call is this value."""
        self._named[id(tensor)] = name
        self._alive.append(tensor)
        self._bases.setdefault(storage_of(tensor), (name, tensor))

    def forget(self, tensor: torch.Tensor, place: Place) -> None:
        """Its memory has a new value, which a graph returns as an output of its own. Raises
        CaptureError."""
        storage = storage_of(tensor)
        if self.table[self._named[id(tensor)]].kind != "output" or any(
            storage_of(other) == storage and other is not tensor for other in self._alive
        ):
            raise CaptureError(
                "it changes, in place, a tensor with a gradient that shares memory with another",
                place.location,
                place.line,
            )
        del self._bases[storage], self._named[id(tensor)]


def storage_of(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata
