"""Import of a region by a process that compiles, so that this one needs no MLIR.

A fault in torch-mlir then ends that process and not the program, and its memory is given back when
it has nothing to do any more. What travels is the graph that has been traced again, with shapes,
dtypes, strides and lines of the user's program; no contents of parameters.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from torch import fx

from mlir_npu.dialect.target import Target
from mlir_npu.lowering.graph_pickle import dump_graph, load_graph
from mlir_npu.lowering.retrace import Retraced


@dataclass(frozen=True)
class ImportRequest:
    """graph: pickled; around: what else is known of it, without contents of constants;
    parameters: names of placeholders; threads: fixed number of threads, if any."""

    graph: bytes
    around: Retraced
    parameters: frozenset[str]
    target: Target
    threads: int | None

    @staticmethod
    def of(
        retraced: Retraced, parameters: frozenset[str], target: Target, threads: int | None
    ) -> ImportRequest:
        # of the constants in the graph, only those that are still read
        module = fx.GraphModule(retraced.graph_module, retraced.graph_module.graph)
        graph = dump_graph(module)
        around = dataclasses.replace(retraced, graph_module=None, constants=())
        return ImportRequest(graph, around, parameters, target, threads)

    def run(self) -> bytes:
        """The region in linalg on tensors, as bytecode. Raises RegionImportError."""
        from mlir_npu.dialect.bindings import ir
        from mlir_npu.dialect.target import set_target
        from mlir_npu.lowering.compile_region import set_threads
        from mlir_npu.lowering.importer import import_retraced
        from mlir_npu.runtime.bytecode import bytecode

        retraced = dataclasses.replace(self.around, graph_module=load_graph(self.graph))
        module = import_retraced(retraced, self.parameters).module
        with module.context, ir.Location.unknown():
            set_target(module.operation, self.target)
            set_threads(module, self.threads)
        return bytecode(module)
