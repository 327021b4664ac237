"""Names of an object that other objects and a linker see. Works on the LLVM dialect."""

from __future__ import annotations

from collections.abc import Mapping

from mlir_npu.dialect.bindings import ir
from mlir_npu.runtime.packed_entry import pack_arguments

# what insert-thread-team calls -> mlir_npu_runtime.h: a program that has OpenMP keeps its own
RUNTIME = {
    "GOMP_parallel": "mlir_npu_parallel",
    "omp_get_thread_num": "mlir_npu_thread",
    "omp_get_num_threads": "mlir_npu_team_size",
    "omp_get_max_threads": "mlir_npu_max_threads",
}
_LOCAL = "#llvm.linkage<internal>"


def make_linkable(module: ir.Module, entries: Mapping[str, str]) -> None:
    """Functions in `entries` get one argument and their new names, all others become local."""
    for op in module.body.operations:
        name, defined = _name(op.operation), _is_defined(op.operation)
        if name in entries and defined:
            pack_arguments(op.operation)
        elif defined:
            op.attributes["linkage"] = ir.Attribute.parse(_LOCAL)
    for name, new in (*entries.items(), *RUNTIME.items()):
        _rename(module, name, new)


def _name(op: ir.Operation) -> str | None:
    return ir.StringAttr(op.attributes["sym_name"]).value if "sym_name" in op.attributes else None


def _is_defined(op: ir.Operation) -> bool:
    if op.name == "llvm.func":
        return len(op.regions[0].blocks) > 0
    return op.name == "llvm.mlir.global" and (
        "value" in op.attributes or len(op.regions[0].blocks) > 0
    )


def _rename(module: ir.Module, old: str, new: str) -> None:
    for op in module.body.operations:
        if _name(op.operation) == old:
            ir.SymbolTable.replace_all_symbol_uses(old, new, module.operation)
            ir.SymbolTable.set_symbol_name(op.operation, new)
            return
