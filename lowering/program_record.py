"""One call of a model, written down: Dynamo's graphs, PyTorch calls between them, what Python read.

The model runs as under torch.compile, in eager and with autograd. Every graph that Dynamo makes is
an event; a mode above autograd sees the PyTorch calls between graphs. The mode is hidden from
Dynamo, which would trace into it: it is taken off while Dynamo compiles a frame.

Events keep the tensors themselves, so that it is known later which is which.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch._dynamo import config
from torch._dynamo.eval_frame import skip_code
from torch._dynamo.exc import TorchRuntimeError
from torch.overrides import TorchFunctionMode, _pop_mode, _push_mode
from torch.utils import _pytree as pytree

from mlir_npu.errors import CaptureError
from mlir_npu.graph_breaks import GraphBreak, record_graph_breaks
from mlir_npu.lowering.capture import STATIC, failure
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
    place_of,
)
from mlir_npu.lowering.program_frames import user_frame
from mlir_npu.lowering.program_numbers import settle_numbers
from mlir_npu.lowering.program_python import PythonValues

_OF_DYNAMO = "\n\nfrom user code:"  # behind errors of any kind that are raised while it traces
# read one element
_NUMBERS = {"item", "__bool__", "__int__", "__float__", "__index__", "is_nonzero"}
# say something of a tensor without looking at its contents
_METADATA = {
    *("__get__", "__hash__", "__len__", "size", "stride", "dim", "ndimension", "numel", "nelement"),
    *("element_size", "itemsize", "is_contiguous", "storage_offset", "data_ptr", "type"),
    *("is_floating_point", "is_complex", "is_signed", "get_device", "is_same_size", "is_tensor"),
    *("result_type", "can_cast", "is_inference", "is_pinned", "is_shared", "__set__"),
}
_MODES = {"_set_grad_enabled"}  # change how later calls are made, which these know

_MOST_NUMBERS = 64  # of a list, that are followed
_TOLD = (
    "Tensor.tolist takes values to Python",
    "numbers of it that come back to PyTorch as they are must be the same in every call; what else "
    "is done with them is not repeated",
)


@dataclass
class Recording:
    events: list[Event] = field(default_factory=list)
    left: list[PythonBetween] = field(default_factory=list)
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
    context.callback = _without_modes(context.callback, recorder.enter)
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


class _Watch:
    """What a call does to tensors that it is given."""

    def __init__(self, values: Sequence[Any]) -> None:
        tensors = {id(value): value for value in values if isinstance(value, torch.Tensor)}
        self._versions = [(t, t._version) for t in tensors.values() if not t.is_inference()]
        self.wanted = frozenset(number for number, t in tensors.items() if t.requires_grad)

    def written(self) -> tuple[torch.Tensor, ...]:
        return tuple(t for t, old in self._versions if t._version != old and t.requires_grad)


class _Recorder(TorchFunctionMode):
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
        mode, watch = Mode.now(), _Watch(pytree.tree_leaves((arguments, keywords)))
        result = function(*arguments, **keywords)
        place = _place()
        event = CallEvent(
            function, arguments, keywords, result, place, mode, watch.wanted, watch.written()
        )
        self.python.look_at_call(event)
        name = getattr(function, "__name__", str(function))
        if any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(result)):
            self.found.events.append(event)
        elif name == "__setitem__" or (name.endswith("_") and not name.endswith("__")):
            self.found.events.append(event)
        elif name in _NUMBERS and isinstance(result, (bool, int, float)):
            self.found.events.append(ReadEvent(arguments[0], result, place))
        elif name == "tolist" and arguments[0].numel() <= _MOST_NUMBERS:
            self.found.events += _reads_of_list(arguments[0], result, place)
            self.found.left.append(PythonBetween(place.location, place.line, *_TOLD))
        elif name not in _METADATA | _MODES:
            self.found.left.append(
                PythonBetween(
                    place.location,
                    place.line,
                    f"Tensor.{name} takes values to Python",
                    "a program does not repeat it",
                )
            )
        return result

    def backend(self, graph_module: fx.GraphModule, _: Sequence[Any]) -> Callable:
        nodes = graph_module.graph.find_nodes(op="placeholder")
        sources = tuple(map(_source, nodes))

        @torch._dynamo.disable
        def run(*inputs: Any) -> Any:
            mode, watch = Mode.now(), _Watch(inputs)
            with torch._C.DisableTorchFunction():
                outputs = graph_module.forward(*inputs)
                seen, reads = _numbers_as_tensors(graph_module, outputs)
            event = GraphEvent(
                graph_module, inputs, seen, sources, mode, watch.wanted, watch.written()
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
        for entry in entries:
            if entry.has_value and entry.guard_type in ("EQUALS_MATCH", "CONSTANT_MATCH"):
                if type(entry.value) is float or (
                    type(entry.value) is int and "._modules[" not in entry.name
                ):
                    self._guarded.append(entry.value)
        return [True] * len(entries)

    def finish(self, result: Any, breaks: tuple[GraphBreak, ...]) -> Recording:
        """Dynamo keeps this object for as long as the model's code, so it must let go of all."""
        found, self.found = self.found, Recording()
        found.events, told = settle_numbers(found.events, self._guarded)
        found.left += [*told, *self.python.tell(found.events), *self.changes.tell()]
        found.result, found.breaks = result, breaks
        self._guarded.clear()
        return found


def _reads_of_list(tensor: torch.Tensor, result: Any, place: Place) -> list[ReadEvent]:
    """Of every number in it, for those that come back."""
    with torch._C.DisableTorchFunction():
        elements = tensor.detach().reshape(-1)
        if elements.untyped_storage()._cdata != tensor.untyped_storage()._cdata:
            return []
        numbers = pytree.tree_leaves(result)
        return [ReadEvent(elements[i], n, place, listed=tensor) for i, n in enumerate(numbers)]


def _numbers_as_tensors(
    graph_module: fx.GraphModule, outputs: Sequence[Any]
) -> tuple[tuple, list[ReadEvent]]:
    """The outputs with tensors in the place of numbers that depend on data, and these numbers."""
    seen, reads = [], []
    for output, node in zip(outputs, graph_module.graph.output_node().args[0], strict=True):
        if isinstance(output, (bool, int, float)) and isinstance(node, fx.Node):
            number, output = output, torch.tensor(output)
            reads.append(ReadEvent(output, number, place_of(node)))
        seen.append(output)
    return tuple(seen), reads


def _place() -> Place:
    frame = user_frame()
    return Place() if frame is None else line_of(frame.f_code.co_filename, frame.f_lineno)


def _source(node: fx.Node) -> str:
    source = getattr(node.meta.get("grapharg"), "source", None)
    return source.name if source is not None else node.name


def _without_modes(callback: Callable, enter: Callable[[Any], None]) -> Callable:
    """Dynamo's callback, which compiles frames, with no mode active."""

    def compile_frame(frame: Any, *arguments: Any, **keywords: Any) -> Any:
        with _no_modes():
            enter(frame)
            return callback(frame, *arguments, **keywords)

    compile_frame._torchdynamo_orig_backend = callback
    return compile_frame


# PyTorch calls it in the place of its functions; it is no part of the model
skip_code(_Recorder.__torch_function__.__code__)


@contextlib.contextmanager
def _no_modes() -> Iterator[None]:
    modes = []
    while torch._C._len_torch_function_stack():
        modes.append(_pop_mode())
    try:
        yield
    finally:
        for mode in reversed(modes):
            _push_mode(mode)
