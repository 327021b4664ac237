"""A whole model as one graph of Dynamo, and what it read of the Python world.

Dynamo reads the model's bytecode, as under torch.compile, and gives a graph, the sources of its
inputs, guards on everything it looked at, and bytecode that builds the model's result from the
graph's. The guards tell which flags and tensors to watch; the bytecode runs once, on stand-ins, and
shows which leaf of the result is which output.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import linecache
import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._dynamo import config, convert_frame, exc
from torch._dynamo.guards import _get_closure_vars
from torch._dynamo.source import Source
from torch._dynamo.utils import dynamo_timed, get_metrics_context
from torch._dynamo.variables.torch_function import torch_function_mode_stack_state_mgr
from torch._guards import TracingContext, tracing

from mlir_npu.errors import CaptureError
from mlir_npu.lowering.roles import readable
from mlir_npu.lowering.source_location import TORCH

STATIC = {
    "assume_static_by_default": True,
    "automatic_dynamic_shapes": False,
    "specialize_int": True,
    "specialize_float": True,
}
# how Dynamo's message ends where a call of PyTorch fails
_FAILED_CALL = re.compile(r"""got (\w+)\(('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\)$""", re.MULTILINE)
SIDE_EFFECTS = "side effects happened"  # in the error that side_effect_replay_policy asks for


class GraphBreakError(CaptureError):
    """There is something in the model that Dynamo leaves to Python."""


@dataclass(frozen=True)
class WholeGraph:
    """graph_module: None if the model computes no tensor; inputs: where each of its inputs comes
    from; guarded: the other sources that were looked at; scope: what their names are evaluated in;
    assigned: dictionaries of buffers and parameters that the model assigns to."""

    graph_module: fx.GraphModule | None
    example_inputs: Sequence[Any]
    inputs: tuple[Source, ...]
    guarded: tuple[Source, ...]
    scope: Mapping[str, Any]
    assigned: Mapping[str, dict]
    _output: convert_frame.CaptureOutput
    _call: inspect.BoundArguments

    @property
    def result_count(self) -> int:
        """Of the graph."""
        if self.graph_module is None:
            return 0
        return len(self.graph_module.graph.output_node().args[0])

    @property
    def results_share_memory(self) -> bool:
        """Whether results that are different tensors lie in memory that the graph makes."""
        if self.graph_module is None:
            return False
        nodes = self.graph_module.graph.find_nodes(op="placeholder")
        given = {_storage(node) for node in nodes}
        results = set(self.graph_module.graph.output_node().args[0])
        made = [_storage(node) for node in results if isinstance(node, fx.Node)]
        made = [storage for storage in made if storage is not None and storage not in given]
        return len(made) > len(set(made))

    @contextlib.contextmanager
    def compiling(self) -> Iterator[None]:
        """The context in which a backend gets the graph."""
        made = self._output.backend_input
        context = TracingContext(made.fake_mode)
        context.tensor_to_context = made.tensor_to_context
        with tracing(context):
            yield

    def run_around(self, graph: Callable[..., Sequence[Any]]) -> Any:
        """The model's result for the arguments of the capture, with this function in the place of
        the graph. Raises CaptureError if the model assigns another buffer to one of its names."""
        environment = self._output.graph_capture_output.get_runtime_env()
        made = self._output.backend_input
        function = environment.forward_callable(
            made.backend_id if made else "no_graph", graph, extra_globals=dict(self.scope["G"])
        )
        before = {name: dict(dictionary) for name, dictionary in self.assigned.items()}
        try:
            return function(*self._call.args, **self._call.kwargs)
        finally:
            self._restore(before)

    def _restore(self, before: Mapping[str, dict]) -> None:
        """What is assigned must be what was there: `self.count += 1` assigns, and changes the
        buffer in place."""
        for name, dictionary in self.assigned.items():
            after = dict(dictionary)
            dictionary.clear()
            dictionary.update(before[name])
            for key in after.keys() | before[name].keys():
                if after.get(key) is not before[name].get(key):
                    raise CaptureError(
                        f"it assigns a new tensor to {readable(f'{name}[{key!r}]')}, which a "
                        "program does not repeat: copy into the old one (copy_)"
                    )


def capture_whole(
    model: Callable, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> WholeGraph:
    """Raises CaptureError (GraphBreakError where there are several graphs), and what the call
    itself raises."""
    function, bound_self = convert_frame.get_traced_fn(model)
    given = arguments if bound_self is None else (bound_self, *arguments)
    call = inspect.signature(function, follow_wrapped=False).bind(*given, **keywords)
    scope = {"L": _Locals(function, call), "G": function.__globals__, **_get_closure_vars()}
    traced = tuple(arguments), dict(keywords)
    assigned: dict[str, dict] = {}
    with config.patch(STATIC), contextlib.ExitStack() as stack:
        stack.enter_context(config.patch(side_effect_replay_policy="error"))
        try:
            output = _trace(model, *traced)
        except RuntimeError as error:
            if SIDE_EFFECTS not in str(error):
                raise
            assigned = _assigned(str(error), scope)
            stack.enter_context(config.patch(side_effect_replay_policy="info"))
            output = _trace(model, *traced)
    found, made = output.graph_capture_output, output.backend_input
    sources = found.output_graph.export_metadata.graph_input_idx_to_local_source
    graph_module = made.graph_module if made else None
    count = len(graph_module.graph.find_nodes(op="placeholder")) if graph_module else 0
    if set(sources) != set(range(count)):
        raise CaptureError("its graph has inputs of unknown origin")
    guarded = {guard.name: guard.originating_source for guard in found.output_graph.guards}
    return WholeGraph(
        graph_module,
        made.example_inputs if made else (),
        tuple(sources[index] for index in range(count)),
        tuple(guarded[name] for name in sorted(guarded) if name),
        scope | {"G": found.f_globals},
        assigned,
        output,
        call,
    )


def _trace(model: Callable, arguments: tuple, keywords: dict) -> convert_frame.CaptureOutput:
    with (
        convert_frame.compile_lock,
        get_metrics_context(),
        dynamo_timed("fullgraph_capture"),
        torch_function_mode_stack_state_mgr,
    ):
        try:
            return convert_frame.fullgraph_capture(model, arguments, keywords)
        except (exc.Unsupported, exc.UserError) as error:
            raise GraphBreakError(*_told(error)) from None
        except exc.TorchDynamoException as error:
            raise failure(error) from None


def failure(error: exc.TorchDynamoException) -> CaptureError:
    """What went wrong while Dynamo looked at the model, in the words of PyTorch if it was a call of
    PyTorch that failed."""
    found = _FAILED_CALL.search(str(error))
    if found is None:
        return CaptureError(*_told(error))
    name, text = found.groups()
    frames = getattr(error, "real_stack", None) or []
    own = [frame for frame in frames if not frame.filename.startswith(TORCH)] or frames
    place = _place(own[-1]) if own else (None, None)
    reason = f"it fails for these inputs: {name}: {ast.literal_eval(text)}"
    return CaptureError(reason, *place, compiles=False)


def traceable(model: Callable) -> Callable:
    """The model, as something that Dynamo starts from: a module, function or method."""
    if isinstance(model, torch.nn.Module) or inspect.isfunction(model) or inspect.ismethod(model):
        return model

    def call(*arguments: Any, **keywords: Any) -> Any:
        return model(*arguments, **keywords)

    return call


def _storage(node: fx.Node) -> int | None:
    """Of the value in Dynamo's trace."""
    value = node.meta.get("example_value")
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    return value.untyped_storage()._cdata


class _Locals(dict):
    """The first frame's variables, which Dynamo's sources start from. Free variables are read from
    their cells, which may change."""

    def __init__(self, function: Callable, call: inspect.BoundArguments) -> None:
        given = inspect.BoundArguments(call.signature, dict(call.arguments))
        given.apply_defaults()
        super().__init__(given.arguments)
        self._cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))

    def __missing__(self, name: str) -> Any:
        return self._cells[name].cell_contents


def _told(error: exc.TorchDynamoException) -> tuple[str, str | None, str | None]:
    """Reason, location and line."""
    reason = str(error).split("\n\nfrom user code:")[0].strip()
    stack = getattr(error, "real_stack", None)
    if not stack:
        return reason, None, None
    return reason, *_place(stack[-1])


def _place(frame: traceback.FrameSummary) -> tuple[str, str]:
    line = frame.line or linecache.getline(frame.filename, frame.lineno)
    return f"{frame.filename}:{frame.lineno}", line.strip()


def _assigned(message: str, scope: Mapping[str, Any]) -> dict[str, dict]:
    """The dictionaries of buffers and parameters that a tracing assigned to. Raises CaptureError if
    it changed anything else."""
    names = ast.literal_eval(message.rpartition("double check: ")[2])
    other = [name for name in names if not name.endswith(("._buffers", "._parameters"))]
    if other:
        changed = ", ".join(map(readable, other))
        raise CaptureError(
            "it changes Python objects beside its result, which a program does not repeat: "
            + changed
        )
    return {name: eval(name, dict(scope)) for name in names}
