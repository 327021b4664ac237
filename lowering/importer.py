"""FX region -> linalg on tensors.

Before: a functional ATen graph whose placeholders have fake tensors in meta["val"].
After:  a module with one function on packed, row-major tensors of static shape.

Steps: re-trace (retrace.py), text in the torch dialect (torch_text.py), torch-mlir's passes
(torch_to_linalg.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import fx

from mlir_npu.lowering.import_apart import ImportRequest, TorchText
from mlir_npu.lowering.import_error import RegionImportError
from mlir_npu.lowering.retrace import Retraced, retrace
from mlir_npu.lowering.source_location import source_location
from mlir_npu.lowering.torch_text import write_graph
from mlir_npu.runtime.interface import Interface

if TYPE_CHECKING:
    from mlir_npu.dialect.bindings import ir
    from mlir_npu.dialect.target import Target

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


def torch_text(retraced: Retraced) -> TorchText:
    """The graph in the torch dialect. Raises RegionImportError."""
    for node in retraced.graph_module.graph.nodes:
        _refuse_crashes(node)
    return write_graph(retraced.graph_module)


def torch_module(retraced: Retraced) -> ir.Module:
    """The graph in the torch dialect. Raises RegionImportError."""
    from mlir_npu.lowering.torch_to_linalg import parse_torch

    return parse_torch(torch_text(retraced))


def import_request(
    retraced: Retraced, parameters: Set[str], target: Target, threads: int | None
) -> ImportRequest:
    """To import elsewhere. Raises RegionImportError."""
    return ImportRequest(torch_text(retraced), roles_of(retraced, parameters), target, threads)


def roles_of(retraced: Retraced, parameters: Set[str]) -> tuple[str, ...]:
    """Of all arguments. Constants that were lifted out of the graph follow the inputs and are
    parameters too."""
    held = set(retraced.positions(parameters))
    inputs = ("parameter" if i in held else "input" for i in range(len(retraced.inputs)))
    return (*inputs, *("parameter" for _ in retraced.constants))


def lower_to_linalg(
    module: ir.Module, retraced: Retraced, parameters: Set[str] = frozenset()
) -> ImportedRegion:
    """Lower the module of a graph in place. Raises RegionImportError."""
    from mlir_npu.lowering.torch_to_linalg import lower_torch

    lower_torch(module, roles_of(retraced, parameters))
    return ImportedRegion(module, retraced.interface(parameters))


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
