"""Programs of many graphs, and programs that train: see `mlir_npu.capture`."""

from __future__ import annotations

import dataclasses
import os
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from mlir_npu.errors import MismatchError
from mlir_npu.explanation import Explanation
from mlir_npu.graph_breaks import GraphBreak
from mlir_npu.lowering.capture_inputs import Inputs
from mlir_npu.lowering.capture_result import ResultPlan
from mlir_npu.lowering.plan import PartitionPlan
from mlir_npu.lowering.program_events import PythonBetween
from mlir_npu.lowering.program_plan import ProgramPlan, Unit, Value
from mlir_npu.lowering.program_source import program_source
from mlir_npu.lowering.report import GraphReport
from mlir_npu.options import Options
from mlir_npu.program_state import State


@dataclass(frozen=True)
class ProgramUnit:
    """One compiled graph of a program.

    source: the Python function that calls its parts; tangents: of a backward, what it takes beside
    what the forward `saved`; each is `of` a value whose label names module and line.
    """

    plan: Unit
    source: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value | None, ...]
    saved: tuple[Value, ...]
    tangents: tuple[Value, ...]
    report: GraphReport

    @property
    def name(self) -> str:
        return self.plan.name

    def __str__(self) -> str:
        lines = [f"{self.name} ({self.plan.origin} at {self.plan.location})"]
        lines += [f"  takes {value.name}: {value.label}" for value in self.inputs]
        lines += [f"  makes {value.name}: {value.label}" for value in self.outputs if value]
        return "\n".join(lines)


@dataclass(frozen=True)
class Stitched:
    """All that a program is but its weights.

    parts: compiled parts by their names in the source; codes: what each can be loaded from in
    another process; constants: tensors by their names in the source; unit_sources, reports: by
    unit. graphs, options: what the units were compiled from, not of programs that were loaded.
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


class StitchedProgram:
    """A model captured over all graph breaks. Call it as the model was called.

    A program that trains gives results with gradients, as the model does in training; its
    backward is one step of autograd that runs all backward units. `source` is the Python behind
    both.

    What PyTorch computed between graphs is compiled too. Numbers that Python decided upon are
    compared in every call with what they were, and another branch is a MismatchError. Everything
    else that Python did, such as printing, is not repeated: see `python_between`.
    """

    def __init__(self, stitched: Stitched, state: State) -> None:
        self._stitched, self._state = stitched, state
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
        return {**self._stitched.parts, **self._stitched.constants}

    @property
    def source(self) -> str:
        """A Python module with `forward(inputs, parameters)` and, for training,
        `backward(saved, tangents)`; `parts` are the names that it does not define."""
        return self._source

    @property
    def forward_units(self) -> tuple[ProgramUnit, ...]:
        """In the order in which they run."""
        return tuple(self._unit(unit) for unit in self.plan.units if unit.kind != "backward")

    @property
    def backward_units(self) -> tuple[ProgramUnit, ...]:
        """In the order in which they run."""
        return tuple(self._unit(unit) for unit in self.plan.units if unit.kind == "backward")

    @property
    def python_between(self) -> tuple[PythonBetween, ...]:
        """Python of the model that a program does not repeat, with lines."""
        return self._stitched.python_between

    @property
    def parameters(self) -> tuple[torch.Tensor, ...]:
        """Parameters and buffers, in the order in which `forward` takes them."""
        return self._state.current()

    @property
    def explanation(self) -> Explanation:
        """What `explain` reports, of this program."""
        return Explanation(tuple(self._stitched.reports.values()), self._stitched.breaks, None)

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

    def export(
        self,
        directory: str | Path,
        *,
        name: str = "program",
        levels: Collection[str] = ("torch", "linalg", "npu", "llvm", "object"),
        host_calls: bool = False,
    ) -> Path:
        """Write the program, gradients included, for other languages: see `Program.export`."""
        from mlir_npu.export.from_stitched import exportable_stitched
        from mlir_npu.export.to_directory import export_to

        program = exportable_stitched(self._stitched, self.parameters)
        return export_to(directory, program, name=name, levels=levels, host_calls=host_calls)

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        leaves = self._stitched.inputs.leaves(inputs, keywords)
        self._check(leaves)
        parameters = self._state.current()
        taken = [leaves[index] for index in self._taken]
        if self._written:
            self._refuse_overlap(taken, parameters)
        if self.plan.train and torch.is_grad_enabled():
            results = _Call.apply(self, len(taken), *taken, *parameters)
        else:
            with torch.no_grad():
                results, _ = self.module.forward(taken, parameters)
        constants = tuple(self._stitched.constants.values())
        return self._build(results, leaves, (*parameters, *constants))

    def __repr__(self) -> str:
        backward = len(self.backward_units)
        units = f"{len(self.plan.units) - backward} forward units"
        units += f", {backward} backward units" if self.plan.train else ""
        return f"<program of {', '.join(map(str, self._stitched.inputs.tensors))}: {units}>"

    def _check(self, leaves: Sequence[Any]) -> None:
        now = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None
        if now != self._stitched.autocast:
            raise MismatchError(
                f"autocast is {now or 'off'}, and was {self._stitched.autocast or 'off'} when the "
                "model was captured: capture it again under autocast as it is now"
            )
        with torch.no_grad():
            admitted = self._stitched.inputs.admit(leaves)
        for tensor in self._stitched.inputs.tensors:
            if admitted[tensor.index] is not leaves[tensor.index]:
                raise MismatchError(
                    f"input {tensor.name} has strides {list(leaves[tensor.index].stride())}, and "
                    f"the program was captured for {list(tensor.strides)}: copy it to that layout"
                )
        if not torch.is_grad_enabled():
            return
        for index, name, wants in zip(self._taken, self.plan.inputs, self._wants):
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

    def _unit(self, unit: Unit) -> ProgramUnit:
        values = self.plan.values
        inputs = tuple(values[name] for name in unit.inputs)
        return ProgramUnit(
            unit,
            self._stitched.unit_sources[unit.name],
            inputs,
            tuple(values[name] if name else None for name in unit.outputs),
            tuple(values[name] for name in unit.saved),
            tuple(value for value in inputs if value.kind in ("tangent", "gradient")),
            self._stitched.reports[unit.name],
        )


class _Call(torch.autograd.Function):
    """The whole program as one step of autograd."""

    @staticmethod
    def forward(ctx: Any, program: StitchedProgram, count: int, *tensors: torch.Tensor) -> tuple:
        plan = program.plan
        results, saved = program.module.forward(tensors[:count], tensors[count:])
        ctx.program = program
        ctx.save_for_backward(*saved)
        values = plan.values
        ctx.differentiable = [values[name].requires_grad for name in plan.results]
        ctx.mark_non_differentiable(
            *(result for result, wanted in zip(results, ctx.differentiable) if not wanted)
        )
        return results

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple:
        program = ctx.program
        plan = program.plan
        tangents = [g for g, wanted in zip(gradients, ctx.differentiable) if wanted]
        with torch.no_grad():
            values = program.module.backward(ctx.saved_tensors, tangents)
        if torch.is_grad_enabled():  # create_graph=True
            made = [value for value in values if value is not None]
            last = iter(_Last.apply(*(value.detach().requires_grad_() for value in made)))
            values = [None if value is None else next(last) for value in values]
        found = dict(zip((gradient.of for gradient in plan.gradients), values, strict=True))
        return None, None, *(found.get(name) for name in (*plan.inputs, *plan.parameters))


class _Last(torch.autograd.Function):
    """Values that must not be differentiated: taken for constants, they would give wrong
    gradients."""

    @staticmethod
    def forward(ctx: Any, *values: torch.Tensor) -> tuple:
        return tuple(value.view_as(value) for value in values)

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> tuple:
        raise RuntimeError(
            "the gradients of a captured program have no gradients themselves (double backward): "
            "run the model without compiling it for that"
        )
