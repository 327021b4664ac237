"""Trace the graph of a region again for import: packed arguments and results, our decompositions.

The traced graph takes packed tensors in memory order and puts a permute behind every argument and
before every result whose order is not row-major, so later layout passes can cancel them. Tensor
constants with more than one element become further arguments: as literals they would cost several
times their size in memory.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx._lazy_graph_module import _use_lazy_graph_module
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.traceback import preserve_node_meta

from mlir_npu.lowering.import_error import RegionImportError
from mlir_npu.lowering.quantized_interpreter import QuantizedInterpreter, as_tensor
from mlir_npu.lowering.source_location import source_location
from mlir_npu.runtime.interface import Interface, Output
from mlir_npu.runtime.tensor_spec import TensorSpec


@dataclass(frozen=True)
class Retraced:
    """graph_module: placeholders are `inputs` then `constants`; it returns `results`.

    zeros: positions of inputs that must hold zeros only, as somebody said that they do.
    """

    graph_module: fx.GraphModule
    input_names: tuple[str, ...]
    inputs: tuple[TensorSpec, ...]
    constants: tuple[torch.Tensor, ...]
    results: tuple[TensorSpec, ...]
    outputs: tuple[Output, ...]
    zeros: tuple[int, ...] = ()

    def positions(self, names: Set[str]) -> tuple[int, ...]:
        """Of the inputs with these names."""
        return tuple(i for i, name in enumerate(self.input_names) if name in names)

    def interface(self, parameters: Set[str]) -> Interface:
        """What the caller of the compiled graph sees; parameters: names of inputs."""
        return Interface(
            self.inputs,
            self.positions(parameters),
            self.constants,
            self.results,
            self.outputs,
            self.zeros,
        )


def retrace(
    graph_module: fx.GraphModule, decompositions: Mapping[torch._ops.OpOverload, Callable]
) -> Retraced:
    """Raises RegionImportError for values that compiled code cannot take or return."""
    placeholders = graph_module.graph.find_nodes(op="placeholder")
    inputs = tuple(_spec(node, "input") for node in placeholders)
    returned = _returned(graph_module)
    computed = list(
        dict.fromkeys(node for node in returned if node is not None and node not in placeholders)
    )
    if not computed:
        raise RegionImportError("the region computes no tensor: it only returns its inputs")
    results = tuple(_spec(node, "result") for node in computed)
    for node, spec in zip(computed, results):
        _refuse_overlap(node, spec)

    position = {node.name: index for index, node in enumerate(computed)}
    interpreter = _Values(graph_module, position)

    def physical(*packed: torch.Tensor) -> tuple[torch.Tensor, ...]:
        logical = [_permute(tensor, spec.inverse_order) for tensor, spec in zip(packed, inputs)]
        values = interpreter.collect(logical)
        return tuple(_permute(value, spec.order) for value, spec in zip(values, results))

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode, preserve_node_meta(), _use_lazy_graph_module(True):  # nobody runs it
        arguments = [torch.empty(spec.physical_shape, dtype=spec.dtype) for spec in inputs]
        trace = make_fx(
            physical,
            decomposition_table=dict(decompositions),
            _disable_torch_fn_metadata_mode=True,  # it would note names that nobody reads
        )
        traced = trace(*arguments)
    traced.graph.eliminate_dead_code()
    _refuse_mutation(traced)
    constants = _lift_constants(traced)
    traced.recompile()
    outputs = tuple(_output(node, placeholders, computed) for node in returned)
    names = tuple(node.name for node in placeholders)
    zeros = tuple(names.index(name) for name in interpreter.used_zeros)
    return Retraced(traced, names, inputs, constants, results, outputs, zeros)


class _Values(QuantizedInterpreter):
    """Runs a graph and returns the nodes named in `wanted`; every new node keeps the user's stack
    trace."""

    def __init__(self, graph_module: fx.GraphModule, wanted: Mapping[str, int]) -> None:
        super().__init__(graph_module)
        self._wanted = wanted
        self._found: dict[int, torch.Tensor] = {}

    def collect(self, arguments: list[torch.Tensor]) -> list[torch.Tensor]:
        self.run(*arguments)
        return [self._found[index] for index in range(len(self._wanted))]

    def run_node(self, node: fx.Node):
        value = super().run_node(node)
        if node.name in self._wanted:
            self._found[self._wanted[node.name]] = as_tensor(value)
        return value


def _returned(graph_module: fx.GraphModule) -> list[fx.Node | None]:
    (output,) = graph_module.graph.find_nodes(op="output")
    values = output.args[0] if isinstance(output.args[0], (tuple, list)) else (output.args[0],)
    for value in values:
        if value is not None and not isinstance(value, fx.Node):
            raise RegionImportError(
                f"the region returns the Python value {value!r}; only tensors can be results"
            )
    return list(values)


def _spec(node: fx.Node, what: str) -> TensorSpec:
    value = node.meta.get("val")
    if (fault := _fault(value)) is not None:
        raise RegionImportError(f"{what} {node.name} {fault}", location=source_location(node))
    return TensorSpec.of(value)


def _fault(value: object) -> str | None:
    """What keeps a value from crossing the boundary of compiled code."""
    if not isinstance(value, torch.Tensor):
        return f"is {type(value).__name__}, not a tensor"
    if value.device.type != "cpu" or value.layout is not torch.strided:
        return f"is on {value.device} with layout {value.layout}"
    if any(not isinstance(extent, int) for extent in (*value.shape, *value.stride())):
        return f"has the dynamic shape {list(value.shape)}"
    if 0 in value.shape:
        return f"is empty: shape {list(value.shape)}"
    if value.dtype.is_complex or value.is_quantized:
        return f"has dtype {value.dtype}"
    return None


def _refuse_overlap(node: fx.Node, spec: TensorSpec) -> None:
    """Results may have gaps and expanded dims; windows (unfold) share memory in other ways."""
    kept = [d for d in spec.order if spec.shape[d] > 1 and spec.strides[d] != 0]
    for outer, inner in itertools.pairwise(kept):
        if spec.strides[outer] < spec.strides[inner] * spec.shape[inner]:
            raise RegionImportError(
                f"result {node.name} overlaps itself: shape {list(spec.shape)}, "
                f"strides {list(spec.strides)}",
                location=source_location(node),
            )


def _permute(tensor: torch.Tensor, order: tuple[int, ...]) -> torch.Tensor:
    return tensor if order == tuple(range(len(order))) else tensor.permute(order)


def _refuse_mutation(traced: fx.GraphModule) -> None:
    for node in traced.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if schema is not None and schema.is_mutable:
            raise RegionImportError(
                f"{node.target} writes to its argument; regions must be functional",
                operators=(str(node.target),),
                location=source_location(node),
            )


def _lift_constants(traced: fx.GraphModule) -> tuple[torch.Tensor, ...]:
    """Constants of several elements -> placeholders; of one element -> one get_attr for each use,
    as import needs."""
    graph = traced.graph
    constants = []
    last = graph.find_nodes(op="placeholder")[-1:]
    for node in graph.find_nodes(op="get_attr"):
        value = operator.attrgetter(node.target)(traced)
        if value.numel() > 1:
            with (
                graph.inserting_after(last[0])
                if last
                else graph.inserting_before(next(iter(graph.nodes)))
            ):
                placeholder = graph.placeholder(f"constant_{len(constants)}")
            placeholder.meta.update(node.meta)
            node.replace_all_uses_with(placeholder)
            graph.erase_node(node)
            constants.append(_in_plain_order(value))
            last = [placeholder]
            continue
        for user in list(node.users)[1:]:
            with graph.inserting_before(user):
                twin = graph.get_attr(node.target)
            twin.meta.update(node.meta)
            user.replace_input_with(node, twin)
    return tuple(constants)


def _in_plain_order(constant: torch.Tensor) -> torch.Tensor:
    """Placeholders of constants have the shape that the program sees."""
    if TensorSpec.of(constant).is_row_major:
        return constant
    return constant.clone(memory_format=torch.contiguous_format)


def _output(node: fx.Node | None, placeholders: list[fx.Node], computed: list[fx.Node]) -> Output:
    if node is None:
        return Output("none")
    if node in placeholders:
        return Output("input", placeholders.index(node))
    return Output("result", computed.index(node))
