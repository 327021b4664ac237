"""Take the kernels out of a module whose memory is planned: one module each, and one that calls.

From the stage "allocate" on a kernel is a function of pointers that nothing else looks into, so
kernels are compiled apart: in parallel, once for all that are equal, and again in no other network
that has them. A kernel is named after its text, so equal ones have one name everywhere.

Before:
    module attributes {npu.target = T} {
      func.func @main(...) { call @conv2d_0(...)  call @conv2d_1(...) }
      func.func private @conv2d_0(...) attributes {npu.kernel = "conv2d"} {...} }
After:
    module attributes {npu.target = T} {
      func.func @main(...) { call @kernel_6c1d(...)  call @kernel_0f57(...) }
      func.func private @kernel_6c1d(...) }
and
    module attributes {npu.target = T} {
      func.func @kernel_6c1d(...) attributes {npu.kernel = "conv2d"} {...} }
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from mlir_npu.dialect.bindings import func, ir
from mlir_npu.passes.kernels.walk import called, kernels, nested, symbol

_NAME = "kernel"


@dataclass(frozen=True)
class KernelModule:
    """One kernel, public. text: all that its code depends on, without locations."""

    name: str
    text: str
    module: ir.Module


def split_kernels(module: ir.Module) -> list[KernelModule]:
    """Leaves declarations in `module`, and returns what they declare, equal kernels once."""
    renamed: dict[str, str] = {}
    split: dict[str, KernelModule] = {}
    for kernel in kernels(module.operation):
        if _refers_to_others(kernel):
            continue
        one = _alone(module, kernel)
        renamed[symbol(kernel)] = one.name
        if one.name not in split:
            _declare(kernel, one.name)
        split.setdefault(one.name, one)
        kernel.erase()
    for call in nested(module.operation, "func.call"):
        if (name := renamed.get(called(call))) is not None:
            call.attributes["callee"] = ir.FlatSymbolRefAttr.get(name)
    return list(split.values())


def empty_like(module: ir.Module) -> ir.Module:
    """A module with the same attributes."""
    empty = ir.Module.create(module.operation.location)
    for name in module.operation.attributes:
        empty.operation.attributes[name] = module.operation.attributes[name]
    return empty


def _refers_to_others(kernel: ir.Operation) -> bool:
    return bool(nested(kernel, "func.call", "memref.get_global"))


def _alone(module: ir.Module, kernel: ir.Operation) -> KernelModule:
    alone = empty_like(module)
    with ir.InsertionPoint(alone.body):
        function = kernel.clone()
    del function.attributes["sym_visibility"]
    function.attributes["sym_name"] = ir.StringAttr.get(_NAME)
    text = alone.operation.get_asm(enable_debug_info=False)
    name = f"{_NAME}_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
    function.attributes["sym_name"] = ir.StringAttr.get(name)
    return KernelModule(name, text, alone)


def _declare(kernel: ir.Operation, name: str) -> None:
    type_ = ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value)
    with ir.InsertionPoint(kernel), kernel.location:
        func.FuncOp(name, type_, visibility="private")
