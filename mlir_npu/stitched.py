"""Programs of many graphs, and programs that train: see `mlir_npu.capture`."""

from __future__ import annotations

import dataclasses
import os
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from mlir_npu.call_checks import check_autocast
from mlir_npu.errors import MismatchError
from mlir_npu.explanation import Explanation
from mlir_npu.exporting import Exporting
from mlir_npu.graph_breaks import GraphBreak
from mlir_npu.lowering.capture_inputs import Inputs
from mlir_npu.lowering.capture_result import ResultPlan
from mlir_npu.lowering.plan import PartitionPlan
from mlir_npu.lowering.program_events import PythonBetween
from mlir_npu.lowering.program_plan import ProgramPlan
from mlir_npu.lowering.program_source import program_source
from mlir_npu.lowering.report import GraphReport
from mlir_npu.options import Options
from mlir_npu.program_gradients import ProgramCall
from mlir_npu.program_state import State
from mlir_npu.program_unit import ProgramUnit
from mlir_npu.words import count

if TYPE_CHECKING:
    from mlir_npu.export.program import Exportable


@dataclass(frozen=True)
class Stitched:
    """All that a program is but its weights.

    parts: compiled parts by their names in the source; codes: what each can be loaded from in
    another process; constants: tensors by their names in the source; unit_sources, reports: by
    unit. graphs, options: what the units were compiled from.
    """

    plan: ProgramPlan
    inputs: Inputs
    result: ResultPlan
    parts: Mapping[str, Callable]
    codes: Mapping[str, Any]
    constants: Mapping[str, torch.Tensor]
    unit_sources: Mapping[str, str]
    reports: Mapping[str, GraphReport]
    breaks: tuple[GraphBreak, ...]
    python_between: tuple[PythonBetween, ...]
    autocast: torch.dtype | None
    graphs: Mapping[str, PartitionPlan] = dataclasses.field(default_factory=dict)
    options: Options | None = None


class StitchedProgram(Exporting):
    """A model captured over all graph breaks. Call it as the model was called.

    A program that trains gives results with gradients, as the model does in training; its
    backward is one step of autograd that runs all backward units. `source` is the Python behind
    both.

    What PyTorch computed between graphs is compiled too. Numbers that Python decided upon are
    compared in every call with what they were, and another branch is a MismatchError. Everything
    else that Python did, such as printing, is not repeated: see `python_between`.
    """

    def __init__(self, stitched: Stitched, state: State) -> None:
        self.stitched, self._state = stitched, state
        self.plan = stitched.plan
        self._build = stitched.result.builder()
        tensors = {tensor.name: tensor.index for tensor in stitched.inputs.tensors}
        values = self.plan.values
        self._taken = tuple(tensors[values[name].source] for name in self.plan.inputs)
        self._wants = tuple(values[name].requires_grad for name in self.plan.inputs)
        self._written = {name for unit in self.plan.units for name in unit.written}
        self._source = program_source(self.plan, stitched.unit_sources)
        module = types.ModuleType("mlir_npu_program", "The source of a captured program.")
        module.__dict__.update(self.parts)
        exec(compile(self._source, "<mlir_npu program>", "exec"), module.__dict__)
        self.module = module

    @property
    def parts(self) -> dict[str, Any]:
        """The free names of `source`: compiled parts, and constants."""
        return {**self.stitched.parts, **self.stitched.constants}

    @property
    def source(self) -> str:
        """A Python module with `forward(inputs, parameters)` and, for training,
        `backward(saved, tangents)`; `parts` are the names that it does not define."""
        return self._source

    @property
    def forward_units(self) -> tuple[ProgramUnit, ...]:
        """In the order in which they run."""
        return tuple(
            ProgramUnit.of(self, unit) for unit in self.plan.units if unit.kind != "backward"
        )

    @property
    def backward_units(self) -> tuple[ProgramUnit, ...]:
        """In the order in which they run."""
        return tuple(
            ProgramUnit.of(self, unit) for unit in self.plan.units if unit.kind == "backward"
        )

    @property
    def python_between(self) -> tuple[PythonBetween, ...]:
        """Python of the model that a program does not repeat, with lines."""
        return self.stitched.python_between

    @property
    def parameters(self) -> tuple[torch.Tensor, ...]:
        """Parameters and buffers, in the order in which `forward` takes them."""
        return self._state.current()

    @property
    def explanation(self) -> Explanation:
        """What `explain` reports, of this program."""
        return Explanation(tuple(self.stitched.reports.values()), self.stitched.breaks, None)

    @property
    def weights(self) -> dict[str, torch.Tensor]:
        """Parameters and buffers by their names in the model."""
        names = (self.plan.values[name].source for name in self.plan.parameters)
        return dict(zip(names, self.parameters, strict=True))

    def save(self, folder: str | os.PathLike, *, weights: bool = True) -> None:
        """Write the program to a folder, for `mlir_npu.load`.

        weights: store them too; else they are passed to `load`.
        """
        from mlir_npu.program_files import save

        save(folder, self, weights=weights)

    def exportable(self) -> Exportable:
        """What is exported. Raises ExportError."""
        from mlir_npu.export.from_stitched import exportable_stitched

        return exportable_stitched(self.stitched, self.parameters)

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        leaves = self.stitched.inputs.leaves(inputs, keywords)
        self._check(leaves)
        parameters = self._state.current()
        taken = [leaves[index] for index in self._taken]
        if self._written:
            self._refuse_overlap(taken, parameters)
        if self.plan.train and torch.is_grad_enabled():
            results = ProgramCall.apply(self, len(taken), *taken, *parameters)
        else:
            with torch.no_grad():
                results, _ = self.module.forward(taken, parameters)
        constants = tuple(self.stitched.constants.values())
        return self._build(results, leaves, (*parameters, *constants))

    def __repr__(self) -> str:
        backward = len(self.backward_units)
        units = count(len(self.plan.units) - backward, "forward unit")
        units += f", {count(backward, 'backward unit')}" if self.plan.train else ""
        return f"<program of {', '.join(map(str, self.stitched.inputs.tensors))}: {units}>"

    def _check(self, leaves: Sequence[Any]) -> None:
        check_autocast(self.stitched.autocast)
        with torch.no_grad():
            admitted = self.stitched.inputs.admit(leaves)
        for tensor in self.stitched.inputs.tensors:
            if admitted[tensor.index] is not leaves[tensor.index]:
                raise MismatchError(
                    f"input {tensor.name} has strides {list(leaves[tensor.index].stride())}, and "
                    f"the program was captured for {list(tensor.strides)}: copy it to that layout"
                )
        if not torch.is_grad_enabled():
            return
        for index, name, wants in zip(self._taken, self.plan.inputs, self._wants, strict=True):
            if leaves[index].requires_grad and not wants:
                raise MismatchError(
                    f"{self.plan.values[name].label} requires a gradient, and the program computes "
                    "none for it: capture the model with train=True and such an input"
                )

    def _refuse_overlap(
        self, taken: Sequence[torch.Tensor], parameters: Sequence[torch.Tensor]
    ) -> None:
        """What is written must not be an input too: its units know them as two."""
        names = (*self.plan.inputs, *self.plan.parameters)
        owners: dict[int, list[str]] = {}
        for name, tensor in zip(names, (*taken, *parameters), strict=True):
            if tensor.numel():
                owners.setdefault(tensor.untyped_storage().data_ptr(), []).append(name)
        for shared in owners.values():
            if len(shared) > 1 and self._written & {*shared} and {*shared} & {*self.plan.inputs}:
                raise MismatchError(
                    f"{' and '.join(self.plan.values[name].label for name in shared)} share memory "
                    "that the model writes to, and did not when it was captured: pass copies"
                )
