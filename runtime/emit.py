"""A module in the LLVM dialect -> a relocatable object for this CPU. Needs MLIR, not torch."""

from __future__ import annotations

import ctypes
import tempfile
from pathlib import Path

from mlir_npu.dialect.bindings import ExecutionEngine, ir
from mlir_npu.runtime.native_code import KernelLinkError, address_in_process
from mlir_npu.runtime.packed_entry import pack_arguments

EXTERNAL = "#llvm.linkage<external>"

# What is over with. Letting go of an engine takes as long as the code of a small kernel; a process
# that will have time later sets a list, and empties it then.
finished: list[ExecutionEngine] | None = None


def emit_object(
    module: ir.Module, *, entries: bool = True, opt_level: int = 3, movable: bool = False
) -> bytes:
    """The object of a module with at least one function. Raises KernelLinkError.

    entries: whether its public functions are called from Python. They are changed in place, into
    functions of one pointer to all their arguments. movable: position-independent code, for the
    linkers of others; NativeCode takes it only without.
    """
    functions = [op.operation for op in module.body.operations if op.operation.name == "llvm.func"]
    defined = [op for op in functions if len(op.regions[0].blocks)]
    if entries:
        for function in defined:
            if _is_public(function):
                pack_arguments(function)
    try:
        engine = ExecutionEngine(
            module, opt_level=opt_level, enable_object_dump=True, enable_pic=movable
        )
    except RuntimeError as error:  # an operation is left that LLVM IR cannot express
        raise KernelLinkError(f"{error} (its reason is on stderr)") from error
    callable_ = [_symbol(op) for op in defined if str(op.attributes["linkage"]) == EXTERNAL]
    if not callable_:
        raise KernelLinkError("the module has no function that can be called")
    anything = ctypes.c_void_p(address_in_process("abort"))
    for function in functions:  # the engine links what it compiles; NativeCode links what is kept
        if function not in defined:
            engine.raw_register_runtime(_symbol(function), anything)
    engine.raw_lookup(callable_[0])  # generates the code
    if finished is not None:
        finished.append(engine)
    with tempfile.TemporaryDirectory(prefix="mlir-npu-") as folder:
        path = Path(folder) / "code.o"
        engine.dump_to_object_file(str(path))
        if not path.is_file():
            raise KernelLinkError("no code was generated (the reason is on stderr)")
        return path.read_bytes()


def _is_public(function: ir.Operation) -> bool:
    if "sym_visibility" in function.attributes:
        return ir.StringAttr(function.attributes["sym_visibility"]).value == "public"
    return str(function.attributes["linkage"]) == EXTERNAL


def _symbol(op: ir.Operation) -> str:
    return ir.StringAttr(op.attributes["sym_name"]).value
