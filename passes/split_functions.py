"""Take a module apart: one module for each function that is called from outside, with its kernels.

After the stage "normalise" @main and @prepare have nothing in common, so the rest can be done for
each alone, at the same time. A module whose functions share a kernel, or that has more than
functions, stays as it is.

Before:
    module attributes {npu.target = T} {
      func.func @prepare(...) { call @copy_0(...) }
      func.func @main(...) { call @conv2d_0(...) }
      func.func private @copy_0(...) attributes {npu.kernel = "copy"} {...}
      func.func private @conv2d_0(...) attributes {npu.kernel = "conv2d"} {...} }
After:
    module attributes {npu.target = T} {
      func.func @main(...) { call @conv2d_0(...) }
      func.func private @conv2d_0(...) attributes {npu.kernel = "conv2d"} {...} }
and
    module attributes {npu.target = T} {
      func.func @prepare(...) { call @copy_0(...) }
      func.func private @copy_0(...) attributes {npu.kernel = "copy"} {...} }
"""

from __future__ import annotations

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import KERNEL, called, functions, nested, symbol
from mlir_npu.passes.split_kernels import empty_like


def split_functions(module: ir.Module) -> list[ir.Module]:
    """The function with the most kernels comes first. `module` is not changed."""
    top = [op.operation for op in module.body.operations]
    outer = [op for op in functions(module.operation) if KERNEL not in op.attributes]
    groups = [_with_kernels(function, top) for function in outer]
    if len(outer) < 2 or not _are_apart(groups, outer, top):
        return [module]
    return [_alone(module, group) for group in sorted(groups, key=len, reverse=True)]


def _with_kernels(function: ir.Operation, top: list[ir.Operation]) -> list[ir.Operation]:
    names = {called(call) for call in nested(function, "func.call")}
    return [op for op in top if op == function or (KERNEL in op.attributes and symbol(op) in names)]


def _are_apart(
    groups: list[list[ir.Operation]], outer: list[ir.Operation], top: list[ir.Operation]
) -> bool:
    """Whether each operation of the module is in one group, and needs no other group."""
    members = [op for group in groups for op in group]
    return len(members) == len(set(members)) == len(top) and not any(
        nested(op, "func.call") for op in members if op not in outer
    )


def _alone(module: ir.Module, group: list[ir.Operation]) -> ir.Module:
    alone = empty_like(module)
    with ir.InsertionPoint(alone.body):
        for op in group:
            op.clone()
    return alone
