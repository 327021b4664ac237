"""One call of a model, written down: Dynamo's graphs, PyTorch calls between them, what Python read.

The model runs as under torch.compile, in eager and with autograd. Every graph that Dynamo makes is
an event; a mode above autograd sees the PyTorch calls between graphs. The mode is hidden from
Dynamo, which would trace into it: it is taken off while Dynamo compiles a frame.

Events keep the tensors themselves, so that it is known later which is which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch._dynamo import config
from torch._dynamo.eval_frame import skip_code
from torch._dynamo.exc import TorchRuntimeError
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from mlir_npu.errors import CaptureError
from mlir_npu.graph_breaks import GraphBreak, record_graph_breaks
from mlir_npu.lowering.capture import STATIC, failure
from mlir_npu.lowering.program_call_kinds import (
    describe_left_out,
    describe_list,
    reads_a_number,
    reads_numbers,
    writes,
)
from mlir_npu.lowering.program_changes import ChangesOutside
from mlir_npu.lowering.program_events import (
    CallEvent,
    Event,
    GraphEvent,
    Mode,
    Place,
    PythonBetween,
    ReadEvent,
    line_of,
)
from mlir_npu.lowering.program_frames import user_frame
from mlir_npu.lowering.program_modes import without_modes
from mlir_npu.lowering.program_numbers import settle_numbers
from mlir_npu.lowering.program_python import PythonValues
from mlir_npu.lowering.program_reads import numbers_as_tensors, reads_of_list

_OF_DYNAMO = "\n\nfrom user code:"  # behind errors of any kind that are raised while it traces


@dataclass
class Recording:
    """events: in order; left_out: Python that a program does not repeat; result: of the model."""

    events: list[Event] = field(default_factory=list)
    left_out: list[PythonBetween] = field(default_factory=list)
    breaks: tuple[GraphBreak, ...] = ()
    result: Any = None


def record_run(
    model: Callable,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
    modules: Mapping[str, torch.nn.Module],
) -> Recording:
    """Call the model, of these modules. Raises CaptureError for a call that PyTorch refuses, and
    what it raises."""
    recorder = _Recorder(modules)
    context = torch._dynamo.optimize(
        recorder.backend,
        guard_filter_fn=recorder.look_at_guards,
        recompile_limit=1 << 20,
        isolate_recompiles=True,  # what others compile of the model stays as it is
    )
    context.callback = without_modes(context.callback, recorder.enter)
    static = config.patch(
        {**STATIC, "capture_scalar_outputs": True, "accumulated_recompile_limit": 1 << 20}
    )
    with static, record_graph_breaks() as breaks, recorder:
        try:
            result = context(model)(*arguments, **keywords)
        except TorchRuntimeError as error:
            raise failure(error) from None
        except Exception as error:
            if _OF_DYNAMO not in str(error):
                raise  # the model's own
            raise CaptureError(f"Dynamo fails: {str(error).partition(_OF_DYNAMO)[0]}") from error
    return recorder.finish(result, tuple(breaks))


class _TensorsBefore:
    """Tensors that a call is given, as they were before it. wanted: ids of those that required a
    gradient."""

    def __init__(self, values: Sequence[Any]) -> None:
        tensors = {id(value): value for value in values if isinstance(value, torch.Tensor)}
        self._versions = [(t, t._version) for t in tensors.values() if not t.is_inference()]
        self.wanted = frozenset(number for number, t in tensors.items() if t.requires_grad)

    def written(self) -> tuple[torch.Tensor, ...]:
        return tuple(t for t, old in self._versions if t._version != old and t.requires_grad)


class _Recorder(TorchFunctionMode):
    """Sees the graphs that Dynamo makes, and the calls of PyTorch between them."""

    def __init__(self, modules: Mapping[str, torch.nn.Module]) -> None:
        super().__init__()
        self.found = Recording()
        self.python = PythonValues()
        self.changes = ChangesOutside(modules)
        self._guarded: list[Any] = []  # values of local variables that graphs were made for

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: Mapping | None = None
    ) -> Any:
        return self._call(func, args, kwargs or {})

    @torch._dynamo.disable
    def _call(self, function: Callable, arguments: tuple, keywords: Mapping) -> Any:
        mode, before = Mode.now(), _TensorsBefore(pytree.tree_leaves((arguments, keywords)))
        result = function(*arguments, **keywords)
        place = _place()
        event = CallEvent(
            function, arguments, keywords, result, place, mode, before.wanted, before.written()
        )
        self.python.look_at_call(event)
        self._note(event)
        return result

    def _note(self, event: CallEvent) -> None:
        found = self.found
        if any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(event.result)):
            found.events.append(event)
        elif writes(event):
            found.events.append(event)
        elif reads_a_number(event):
            found.events.append(ReadEvent(event.arguments[0], event.result, event.place))
        elif reads_numbers(event):
            found.events += reads_of_list(event)
            found.left_out.append(describe_list(event))
        elif (told := describe_left_out(event)) is not None:
            found.left_out.append(told)

    def backend(self, graph_module: fx.GraphModule, _: Sequence[Any]) -> Callable:
        nodes = graph_module.graph.find_nodes(op="placeholder")
        sources = tuple(map(_source, nodes))

        @torch._dynamo.disable
        def run(*inputs: Any) -> Any:
            mode, before = Mode.now(), _TensorsBefore(inputs)
            with torch._C.DisableTorchFunction():
                outputs = graph_module.forward(*inputs)
                seen, reads = numbers_as_tensors(graph_module, outputs)
            event = GraphEvent(
                graph_module, inputs, seen, sources, mode, before.wanted, before.written()
            )
            self.found.events.append(event)
            self.found.events += reads
            return outputs

        return run

    def enter(self, frame: Any) -> None:
        """Before Dynamo compiles this frame."""
        self.python.enter(frame)
        self.changes.enter(frame)

    def look_at_guards(self, entries: Sequence[Any]) -> list[bool]:
        """Remember which numbers in variables a graph was made for."""
        self.python.look_at(entries)
        self.changes.look_at(entries)
        self._guarded += [entry.value for entry in entries if _is_for_a_number(entry)]
        return [True] * len(entries)

    def finish(self, result: Any, breaks: tuple[GraphBreak, ...]) -> Recording:
        """Dynamo keeps this object for as long as the model's code, so it must let go of all."""
        found, self.found = self.found, Recording()
        found.events, told = settle_numbers(found.events, self._guarded)
        found.left_out += [*told, *self.python.tell(found.events), *self.changes.tell()]
        found.result, found.breaks = result, breaks
        self._guarded.clear()
        return found


def _is_for_a_number(guard: Any) -> bool:
    """Whether a graph was made for this number alone. Integers in names of modules are indices."""
    if not guard.has_value or guard.guard_type not in ("EQUALS_MATCH", "CONSTANT_MATCH"):
        return False
    if type(guard.value) is int:
        return "._modules[" not in guard.name
    return type(guard.value) is float


def _place() -> Place:
    frame = user_frame()
    return Place() if frame is None else line_of(frame.f_code.co_filename, frame.f_lineno)


def _source(node: fx.Node) -> str:
    source = getattr(node.meta.get("grapharg"), "source", None)
    return source.name if source is not None else node.name


# PyTorch calls it in the place of its functions; it is no part of the model
skip_code(_Recorder.__torch_function__.__code__)
