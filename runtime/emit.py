"""A module in the LLVM dialect -> a relocatable object for this CPU. Needs MLIR, not torch."""

from __future__ import annotations

import ctypes
import tempfile
from pathlib import Path

from mlir_npu.dialect.bindings import ExecutionEngine, ir
from mlir_npu.runtime.native_code import KernelLinkError, address_in_process

EXTERNAL = "#llvm.linkage<external>"


def emit_object(module: ir.Module, opt_level: int = 3) -> bytes:
    """The object of a module with at least one function. Raises KernelLinkError.

    Every function is also there as `_mlir_<name>(void **argv)`: slot i of argv holds the address of
    argument i.
    """
    try:
        engine = ExecutionEngine(module, opt_level=opt_level, enable_object_dump=True)
    except RuntimeError as error:  # an operation is left that LLVM IR cannot express
        raise KernelLinkError(f"{error} (its reason is on stderr)") from error
    defined, external = _functions(module)
    if not defined:
        raise KernelLinkError("the module has no function that can be called")
    anything = ctypes.c_void_p(address_in_process("abort"))
    for name in external:  # the engine links what it compiles; NativeCode links what is kept
        engine.raw_register_runtime(name, anything)
    engine.raw_lookup(defined[0])  # generates the code
    with tempfile.TemporaryDirectory(prefix="mlir-npu-") as folder:
        path = Path(folder) / "code.o"
        engine.dump_to_object_file(str(path))
        if not path.is_file():
            raise KernelLinkError("no code was generated (the reason is on stderr)")
        return path.read_bytes()


def _functions(module: ir.Module) -> tuple[list[str], list[str]]:
    """Names of the functions that can be called from outside, and of those without a body."""
    functions = [op.operation for op in module.body.operations if op.operation.name == "llvm.func"]
    defined = [op for op in functions if len(op.regions[0].blocks)]
    callable_ = [op for op in defined if str(op.attributes["linkage"]) == EXTERNAL]
    external = [op for op in functions if op not in defined]
    return [_symbol(op) for op in callable_], [_symbol(op) for op in external]


def _symbol(op: ir.Operation) -> str:
    return ir.StringAttr(op.attributes["sym_name"]).value
