"""What a program consists of: its ops, functions and schedules."""

from __future__ import annotations

from collections.abc import Iterator

from mlir_npu.dialect.bindings import ir
from mlir_npu.dialect.target import target_of
from mlir_npu.passes.choose_tiles import SCHEDULE, is_untiled
from mlir_npu.passes.kernels.structured import computed_ops, loop_extents, reduction_loops
from mlir_npu.passes.kernels.walk import (
    KERNEL,
    called,
    entry,
    functions,
    kernels,
    nested,
    string,
    symbol,
)
from mlir_npu.passes.stage_rules import Violation

REGION_OPS = {
    "func.call", "func.return", "tensor.expand_shape", "tensor.collapse_shape", "tensor.cast",
    "arith.constant",
}  # fmt: skip


def no_torch_ops(module: ir.Operation) -> Iterator[Violation]:
    for op in nested(module):
        if op.name.startswith(("torch.", "torch_c.")):
            yield op, f"'{op.name}' is left"


def regions_only_call_kernels(module: ir.Operation) -> Iterator[Violation]:
    marked = {symbol(kernel) for kernel in kernels(module)}
    for function in functions(module):
        if KERNEL in function.attributes:
            continue
        for child in entry(function).operations:
            op = child.operation
            if op.name not in REGION_OPS:
                yield op, f"'{op.name}' stands outside of a kernel"
            elif op.name == "func.call" and called(op) not in marked:
                yield op, f"'{called(op)}' is called but is no kernel"


def kernels_are_scheduled(module: ir.Operation) -> Iterator[Violation]:
    target = target_of(module)
    for kernel in kernels(module):
        if SCHEDULE not in kernel.attributes:
            yield kernel, f"kernel '{symbol(kernel)}' has no schedule"
            continue
        if is_untiled(kernel):
            continue
        schedule = ir.DictAttr(kernel.attributes[SCHEDULE])
        for name, memory in (("sram_bytes", target.sram), ("acc_bytes", target.acc)):
            needed = ir.IntegerAttr(schedule[name]).value if name in schedule else 0
            if needed > memory.bytes and not target.cached:
                yield kernel, f"schedule needs {needed} of {memory.bytes} {name}"


def ops_have_the_extents_of_their_tile(module: ir.Operation) -> Iterator[Violation]:
    for kernel in kernels(module):
        tile = [int(size) for size in ir.DictAttr(kernel.attributes[SCHEDULE])["tile"]]
        computed = computed_ops(nested(kernel))
        if not any(tile) or not computed:
            continue
        reductions, extents = reduction_loops(computed[-1]), loop_extents(computed[-1])
        parallel = [extent for i, extent in enumerate(extents) if i not in reductions]
        if any(size not in (0, extent) for size, extent in zip(tile, parallel)):
            yield kernel, f"kernel '{symbol(kernel)}' works on {parallel}, its tile is {tile}"


def no_tensors(module: ir.Operation) -> Iterator[Violation]:
    for op in nested(module):
        if any(isinstance(result.type, ir.RankedTensorType) for result in op.results):
            yield op, f"'{op.name}' makes a tensor"


def functions_return_nothing(module: ir.Operation) -> Iterator[Violation]:
    for function in functions(module):
        type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
        if type_.results:
            yield function, f"'{symbol(function)}' returns {type_.results[0]}"


def no_npu_ops(module: ir.Operation) -> Iterator[Violation]:
    for op in nested(module):
        if op.name.startswith("npu."):
            yield op, f"'{op.name}' is left"


def only_llvm(module: ir.Operation) -> Iterator[Violation]:
    for op in nested(module):
        if not op.name.startswith("llvm."):
            yield op, f"'{op.name}' is not lowered"


def nothing_asserts(module: ir.Operation) -> Iterator[Violation]:
    """A check that fails would end the process."""
    for op in nested(module):
        if op.name == "cf.assert":
            yield op, f"'cf.assert' is left: {string(op, 'msg')}"
