"""ATen graphs for tests of lowering, and ways to run them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from mlir_npu.lowering.plan import PartitionPlan

aten = torch.ops.aten


@dataclass(frozen=True)
class PartitionOptions:
    min_region_macs: int = 0
    host_ops: tuple[str, ...] = ()
    npu_ops: tuple[str, ...] | None = None


def trace(function: Callable, *arguments: torch.Tensor) -> fx.GraphModule:
    """The ATen calls that a function makes, as written, with fake tensors in meta["val"]."""
    graph_module = make_fx(function, tracing_mode="fake")(*arguments)
    graph_module.graph.eliminate_dead_code()
    graph_module.recompile()
    return graph_module


def call_of(graph_module: fx.GraphModule, overload: str) -> fx.Node:
    """The only call of an overload such as "aten.relu.default"."""
    (node,) = [node for node in graph_module.graph.nodes if str(node.target) == overload]
    return node


def capture(
    function: Callable, *arguments: torch.Tensor, train: bool = False, dynamic: bool = False
) -> list[fx.GraphModule]:
    """Graphs that torch.compile hands to a backend: [inference] or [forward, backward]."""
    graphs: list[fx.GraphModule] = []

    def keep(graph_module: fx.GraphModule, example_inputs: list) -> Callable:
        graphs.append(graph_module)
        return make_boxed_func(graph_module.forward)

    backend = aot_autograd(fw_compiler=keep, bw_compiler=keep, inference_compiler=keep)
    torch._dynamo.reset()
    with torch.set_grad_enabled(train):
        result = torch.compile(function, backend=backend, dynamic=dynamic)(*arguments)
        if train:
            result.sum().backward()
    return graphs


def run_plan(plan: PartitionPlan, arguments: list) -> list:
    """Run the parts in order. As real regions do, NPU parts return memory of their own."""
    values = dict(zip(plan.placeholders, arguments, strict=True))
    for part in plan.parts:
        outputs = part.graph_module(*(values[name] for name in part.inputs))
        if part.place == "npu":
            outputs = [output.clone() for output in outputs]
        values.update(zip(part.outputs, outputs, strict=True))
    return [values[result] if isinstance(result, str) else result for result in plan.results]


def places(plan: PartitionPlan) -> list[str]:
    return [part.place for part in plan.parts]


def calls(plan: PartitionPlan, part: str) -> list[str]:
    """Names of the ATen calls of a part, without namespace and overload."""
    (found,) = [candidate for candidate in plan.parts if candidate.name == part]
    targets = [n.target for n in found.graph_module.graph.nodes if n.op == "call_function"]
    return [
        target.overloadpacket.__name__ for target in targets if hasattr(target, "overloadpacket")
    ]


def one_call(
    target: torch._ops.OpOverload, *arguments: object, **options: object
) -> fx.GraphModule:
    """A graph of one call; tensors among the arguments (also inside lists) become its inputs, those
    of integers constants. Of several results it returns the first tensor."""
    mode = FakeTensorMode()
    graph, owner = fx.Graph(), torch.nn.Module()

    def as_input(value: object) -> object:
        if isinstance(value, (list, tuple)):
            return [as_input(item) for item in value]
        if not isinstance(value, torch.Tensor):
            return value
        name = f"x{len(graph.nodes)}"
        if _is_input(value):
            node = graph.placeholder(name)
        else:
            owner.register_buffer(name, value)
            node = graph.create_node("get_attr", name)
        node.meta["val"] = mode.from_tensor(value)
        return node

    positional = tuple(as_input(value) for value in arguments)
    named = {name: as_input(value) for name, value in options.items()}
    call = graph.call_function(target, positional, named)
    with mode:
        args, kwargs = fx.map_arg((call.args, call.kwargs), lambda node: node.meta["val"])
        call.meta["val"] = target(*args, **kwargs)
    value = call
    if isinstance(call.meta["val"], (list, tuple)):
        position, tensor = next(
            (i, item) for i, item in enumerate(call.meta["val"]) if item is not None
        )
        value = graph.call_function(operator.getitem, (call, position))
        value.meta["val"] = tensor
    graph.output((value,))
    return fx.GraphModule(owner, graph)


def _is_input(value: torch.Tensor) -> bool:
    return value.is_floating_point() or value.dtype is torch.bool


def inputs_of(*arguments: object, **options: object) -> Iterator[torch.Tensor]:
    """The tensors that `one_call` made inputs, in order."""
    for argument in (*arguments, *options.values()):
        if isinstance(argument, torch.Tensor) and _is_input(argument):
            yield argument
        elif isinstance(argument, list):
            yield from inputs_of(*argument)


def returned(graph_module: fx.GraphModule, values: object) -> torch.Tensor:
    """What a graph of `one_call` returns of the results of its call."""
    (output,) = graph_module.graph.output_node().args[0]
    return values[output.args[1]] if output.target is operator.getitem else values
