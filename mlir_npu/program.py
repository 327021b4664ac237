"""Programs of one graph, which are called directly: see `mlir_npu.capture`."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from mlir_npu.call_checks import check_autocast, refuse_overlap
from mlir_npu.capture_stitched import capture_stitched
from mlir_npu.explanation import Explanation
from mlir_npu.exporting import Exporting
from mlir_npu.lowering.capture_compile import Executable
from mlir_npu.lowering.capture_inputs import Inputs
from mlir_npu.lowering.capture_result import ResultPlan
from mlir_npu.lowering.capture_watch import Watch
from mlir_npu.lowering.program_events import PythonBetween, autocast_dtype
from mlir_npu.lowering.program_plan import ProgramPlan
from mlir_npu.one_graph import stitched_graph
from mlir_npu.options import Options
from mlir_npu.program_unit import ProgramUnit
from mlir_npu.runtime.binding import Binding
from mlir_npu.stitched import StitchedProgram

if TYPE_CHECKING:
    from mlir_npu.export.program import Exportable


class Program(Exporting):
    """A model of one graph, captured for inputs of one kind. Call it as the model was called; see
    `capture`.

    Results have no gradients. Calls from several threads are safe, unless the model changes
    buffers.
    """

    def __init__(
        self,
        model: Callable,
        inputs: Inputs,
        result: ResultPlan,
        executable: Executable | None,
        watch: Watch,
        options: Options,
    ) -> None:
        self._model, self._inputs, self._executable = model, inputs, executable
        self._options = options
        self._result, self._build = result, result.builder()
        self._written = executable.written if executable else ()
        # the number of inputs, where they are nothing but tensors by position
        simple = inputs.plain and not inputs.keywords and not inputs.constants
        self._simple = inputs.positional if simple else -1
        self._autocast = autocast_dtype()
        self._lock = threading.Lock()
        self._bound = watch, self._bind(watch)

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        if not keywords and len(inputs) == self._simple:
            leaves = inputs
        else:
            leaves = self._inputs.leaves(inputs, keywords)
        watch, binding = self._bound
        if (
            binding.fits(*leaves, *binding.loose)  # autocast too, but for its type
            and watch.unchanged()
            and binding.holds()
        ):
            taken = leaves
            if self._autocast is not None:
                check_autocast(self._autocast)
        else:
            taken, watch, binding = self._admit(leaves)
        if self._written:
            refuse_overlap(self._executable, self._inputs, taken, watch.tensors)
        if not torch.is_grad_enabled():
            return self._build(binding.call(taken), leaves, watch.tensors)
        with torch.no_grad():
            return self._build(binding.call(taken), leaves, watch.tensors)

    @property
    def source(self) -> str:
        """The program as a Python module: see `StitchedProgram.source`."""
        return self._whole.source

    @property
    def parts(self) -> dict[str, Any]:
        """The free names of `source`: compiled parts, and constants."""
        return self._whole.parts

    @property
    def plan(self) -> ProgramPlan:
        """All of it as plain data."""
        return self._whole.plan

    @property
    def forward_units(self) -> tuple[ProgramUnit, ...]:
        """One unit, or none if the model computes nothing."""
        return self._whole.forward_units

    @property
    def backward_units(self) -> tuple[ProgramUnit, ...]:
        """None: results have no gradients."""
        return ()

    @property
    def python_between(self) -> tuple[PythonBetween, ...]:
        """None: all of the model is in the graph."""
        return ()

    @property
    def parameters(self) -> tuple[torch.Tensor, ...]:
        """Parameters and buffers, in the order in which `forward` of the source takes them."""
        return self._whole.parameters

    @property
    def weights(self) -> dict[str, torch.Tensor]:
        """Parameters and buffers by their names in the model."""
        return self._whole.weights

    def save(self, folder: str | os.PathLike, *, weights: bool = True) -> None:
        """Write the program to a folder, for `mlir_npu.load`.

        weights: store them too; else they are passed to `load`. The model is called once, on
        zeros.
        """
        self._captured_again().save(folder, weights=weights)

    def exportable(self) -> Exportable:
        """What is exported. Raises ExportError."""
        return self._whole.exportable()

    @functools.cached_property
    def _whole(self) -> StitchedProgram:
        """The same program, as one of many graphs."""
        executable = self._executable
        if executable is not None and executable.call is not executable.inner.call:
            return self._captured_again()  # as a plan that says what is written and what is a view
        watch = self._bound[0].renewed()
        stitched = stitched_graph(
            executable,
            self._inputs,
            self._result,
            watch.names,
            watch.tensors,
            self._autocast,
            self._options,
        )
        return StitchedProgram(stitched, _Watched(self))

    def _captured_again(self) -> StitchedProgram:
        leaves: list[Any] = [None] * self._inputs.tree.num_leaves
        for tensor in self._inputs.tensors:
            leaves[tensor.index] = tensor.stand_in()
        for constant in self._inputs.constants:
            leaves[constant.index] = constant.value
        inputs, keywords = self._inputs.unflatten(leaves)
        with torch.autocast("cpu", self._autocast, enabled=self._autocast is not None):
            return capture_stitched(self._model, inputs, keywords, self._options, train=False)

    @property
    def explanation(self) -> Explanation:
        """What `explain` reports, of this program."""
        graphs = (self._executable.inner.report,) if self._executable else ()
        return Explanation(graphs, (), None)

    def __repr__(self) -> str:
        described = sorted((*self._inputs.tensors, *self._inputs.constants), key=lambda i: i.index)
        inputs = ", ".join(map(str, described))
        name = getattr(self._model, "__name__", type(self._model).__name__)
        return f"<program of {name}({inputs})>"

    def __reduce_ex__(self, protocol: int) -> Any:
        raise TypeError(
            "a captured program is tied to its model and to machine code of this process: copy the "
            "model, and capture the copy"
        )

    def _admit(self, leaves: Sequence[Any]) -> tuple[Sequence[Any], Watch, Binding]:
        """Inputs as the code takes them, and the model as it is now, after all checks. Raises
        MismatchError."""
        taken = self._inputs.admit(leaves)
        watch, binding = self._bound
        if not (watch.unchanged() and binding.holds() and binding.keeps_kinds()):
            watch, binding = self._renew()
        check_autocast(self._autocast)
        if not self._written:
            for tensor in self._inputs.tensors:
                taken[tensor.index] = taken[tensor.index].resolve_neg()
        if self._inputs.constants or self._executable is None:
            return taken, watch, binding
        if all(a is b and not a.requires_grad for a, b in zip(taken, leaves)):
            binding.admit(taken)
        return taken, watch, binding

    def _bind(self, watch: Watch) -> Binding:
        if self._executable is None:
            return Binding((), lambda _: (), (), (), None)
        return self._executable.bind(watch.tensors, self._inputs)

    def _renew(self) -> tuple[Watch, Binding]:
        """With the model as it is now."""
        with self._lock, torch.no_grad():
            watch = self._bound[0].renewed()
            self._bound = bound = watch, self._bind(watch)
        return bound


@dataclass(frozen=True)
class _Watched:
    """The weights of a program of one graph."""

    program: Program

    def current(self) -> tuple[torch.Tensor, ...]:
        return self.program._bound[0].renewed().tensors
