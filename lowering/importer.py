"""FX region -> linalg on tensors.

Before: a functional ATen graph whose placeholders have fake tensors in meta["val"].
After:  a module with one function on packed, row-major tensors of static shape,

    func.func @main(%0: tensor<...> {npu.role = "input"}, %1: tensor<...> {npu.role = "parameter"},
    ...) -> (...)

in linalg, tensor, arith and math. Steps: re-trace (retrace.py), torch-mlir's FxImporter, its
backend pipeline.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass

import torch
from torch import fx

from mlir_npu.dialect.bindings import PassManager, func, fx_importer, ir, make_context
from mlir_npu.lowering.import_error import RegionImportError
from mlir_npu.lowering.retrace import Retraced, retrace
from mlir_npu.lowering.source_location import source_location
from mlir_npu.runtime.region import Interface

TO_BACKEND = (
    "builtin.module(func.func(torch-match-quantized-custom-ops),"
    "torchdynamo-export-to-torch-backend-pipeline{extra-library=})"
)
TO_LINALG = "builtin.module(torch-backend-to-linalg-on-tensors-backend-pipeline)"

_LINALG_LEVEL = frozenset({"builtin", "func", "linalg", "tensor", "arith", "math", "cf"})

# torch-mlir's lowering of these crashes the process for 8-bit integers instead of failing
_CRASHING_CALLS = frozenset(
    {
        *("mm", "bmm", "addmm", "baddbmm", "matmul", "mv", "dot"),
        *("convolution", "convolution_backward"),
        *("avg_pool1d", "avg_pool2d", "avg_pool3d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d"),
    }
)
_CRASHING_DTYPES = frozenset({torch.int8, torch.uint8})


@dataclass(frozen=True)
class ImportedRegion:
    """A module with @main, and what its caller sees."""

    module: ir.Module
    interface: Interface


def import_graph(
    graph_module: fx.GraphModule,
    *,
    parameters: Set[str] = frozenset(),
    decompositions: Mapping[torch._ops.OpOverload, Callable],
) -> ImportedRegion:
    """Import a region. `parameters` names the placeholders that are weights: they change seldom.

    Raises RegionImportError that names the operators and the user's source line.
    """
    return import_retraced(retrace(graph_module, decompositions), parameters)


def import_retraced(retraced: Retraced, parameters: Set[str] = frozenset()) -> ImportedRegion:
    """Import a graph that has been traced again. Raises RegionImportError."""
    return lower_to_linalg(torch_module(retraced), retraced, parameters)


def torch_module(retraced: Retraced) -> ir.Module:
    """The graph in the torch dialect. Raises RegionImportError."""
    for node in retraced.graph_module.graph.nodes:
        _refuse_crashes(node)
    context = make_context()
    with context, ir.Location.unknown():
        # config_check logs through the root logger, which would set up logging for the user
        importer = fx_importer()(
            context=context, config_check=False, graph_node_importer_cls=_node_importer()
        )
        try:
            importer.import_stateless_graph(retraced.graph_module.graph, func_name="main")
        except (NotImplementedError, TypeError, RuntimeError, AssertionError) as error:
            raise RegionImportError(f"torch-mlir cannot import the graph: {error}") from error
        _refuse_unknown_operators(importer.module)
    return importer.module


def lower_to_linalg(
    module: ir.Module, retraced: Retraced, parameters: Set[str] = frozenset()
) -> ImportedRegion:
    """Lower the module of a graph in place. Raises RegionImportError."""
    with module.context, ir.Location.unknown():
        _lower(module)
        _refuse_other_dialects(module)
        _set_roles(module, retraced.positions(parameters), len(retraced.inputs))
    return ImportedRegion(module, retraced.interface(parameters))


@functools.cache
def _node_importer() -> type:
    """torch-mlir's node importer, with the name of the ATen call in the location of what it makes.

    Diagnostics about operations that come out of an ATen call then name the call.
    """
    importer = sys.modules[fx_importer().__module__]

    class NamedLocations(importer.ContextCache):
        def get_node_location(self, node: fx.Node) -> ir.Location:
            frames = super().get_node_location(node)
            return ir.Location.name(str(node.target), childLoc=frames, context=self._c)

    class NodeImporter(importer.GraphNodeImporter):
        def __init__(self, fx_importer, context, context_cache, block) -> None:
            named = NamedLocations(context, py_attr_tracker=context_cache._py_attr_tracker)
            super().__init__(fx_importer, context, named, block)

    return NodeImporter


def _refuse_crashes(node: fx.Node) -> None:
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return
    if node.target.overloadpacket.__name__ not in _CRASHING_CALLS:
        return
    dtypes = {
        arg.meta["val"].dtype
        for arg in node.all_input_nodes
        if isinstance(arg.meta.get("val"), torch.Tensor)
    }
    if dtypes & _CRASHING_DTYPES:
        raise RegionImportError(
            f"{node.target} on {', '.join(sorted(map(str, dtypes)))}: "
            "torch-mlir cannot lower it for 8-bit integers",
            operators=(str(node.target),),
            location=source_location(node),
        )


def _refuse_unknown_operators(module: ir.Module) -> None:
    """Operators that torch-mlir does not know are imported as torch.operator and would fail much
    later."""
    unknown: dict[str, str | None] = {}

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "torch.operator":
            name = ir.StringAttr(op.attributes["name"]).value.removeprefix("torch.")
            unknown.setdefault(name, _file_line(op.location))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    if unknown:
        names = tuple(sorted(unknown))
        raise RegionImportError(
            f"torch-mlir does not know {', '.join(names)}",
            operators=names,
            location=unknown[names[0]],
        )


def _lower(module: ir.Module) -> None:
    for pipeline in (TO_BACKEND, TO_LINALG):
        try:
            PassManager.parse(pipeline).run(module.operation)
        except ir.MLIRError as error:
            raise _explain(error) from error


def _refuse_other_dialects(module: ir.Module) -> None:
    """Scatter, sort, scan and attention come out as tm_tensor operations, loops as scf: nothing
    here lowers those."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name.split(".")[0] not in _LINALG_LEVEL:
            found.append(op)
            return ir.WalkResult.INTERRUPT
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    if found:
        raise RegionImportError(
            f"an operator comes out as {found[0].name}, which is not supported",
            location=_file_line(found[0].location),
        )


def _explain(error: ir.MLIRError) -> RegionImportError:
    diagnostics = error.error_diagnostics
    if not diagnostics:
        return RegionImportError(f"torch-mlir cannot lower the graph: {error}")
    first = diagnostics[0]
    found = re.search(r'loc\("(\w+\.[\w.]+)"', str(first.location))
    operators = (found.group(1),) if found else ()
    what = operators[0] if operators else "the graph"
    return RegionImportError(
        f"torch-mlir cannot lower {what}: {first.message.splitlines()[0]}",
        operators=operators,
        location=_file_line(first.location),
    )


def _file_line(location: ir.Location) -> str | None:
    """ "file:line" of the innermost frame in a location."""
    frames = re.findall(r'"([^"]+)":(\d+):\d+', str(location))
    return f"{frames[0][0]}:{frames[0][1]}" if frames else None


def _set_roles(module: ir.Module, parameters: tuple[int, ...], inputs: int) -> None:
    """Constants that were lifted out of the graph follow the inputs and are parameters too."""
    (main,) = (op for op in module.body.operations if isinstance(op, func.FuncOp))
    roles = [
        "parameter" if i in parameters or i >= inputs else "input"
        for i in range(len(main.arguments))
    ]
    main.arg_attrs = ir.ArrayAttr.get(
        [ir.DictAttr.get({"npu.role": ir.StringAttr.get(role)}) for role in roles]
    )
