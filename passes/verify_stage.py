"""What must hold at the end of every stage, one small rule each; runs after each stage, always."""
from __future__ import annotations

from collections.abc import Iterator

from mlir_npu.dialect.attributes import ACC, DRAM, SRAM, TokenType, space_of
from mlir_npu.dialect.bindings import ir
from mlir_npu.dialect.target import Target, target_of
from mlir_npu.passes.analysis import memory_plan
from mlir_npu.passes.choose_tiles import SCHEDULE, is_untiled
from mlir_npu.passes.kernels.describe import is_linalg, loop_extents, reduction_loops
from mlir_npu.passes.kernels.liveness import Steps
from mlir_npu.passes.kernels.walk import (
    KERNEL,
    argument_roles,
    called,
    constant_of,
    entry,
    functions,
    kernels,
    nested,
    string,
    symbol,
)
from mlir_npu.passes.pass_manager import Diagnostic
from mlir_npu.passes.split_dma import dims_of_move

Violation = tuple[ir.Operation, str]

REGION_OPS = {
    "func.call", "func.return", "tensor.expand_shape", "tensor.collapse_shape", "tensor.cast",
    "arith.constant",
}  # fmt: skip
TAKES_TOKENS = ("npu.dma_wait", "scf.for", "scf.yield")
DRAM_ACCESS = ("memref.load", "memref.store", "memref.copy", "linalg.generic")
COMPUTE = {
    "npu.fill", "npu.conv2d", "npu.depthwise_conv2d", "npu.matmul", "npu.pool2d", "npu.reduce",
    "npu.eltwise", "npu.drain",
}  # fmt: skip


class StageViolation(Exception):
    """The module breaks a rule of the stage it has come through."""

    def __init__(self, stage: str, diagnostics: tuple[Diagnostic, ...]):
        self.diagnostics = diagnostics
        super().__init__(f"after stage '{stage}': {'; '.join(map(str, diagnostics))}")


def verify_stage(module: ir.Module, stage: str) -> None:
    """Raise StageViolation, with every broken rule, unless the module is right after `stage`."""
    with module.context, ir.Location.unknown():
        module.operation.verify()
        found = [v for rule in RULES[stage] for v in rule(module.operation)]
        diagnostics = tuple(
            Diagnostic("error", str(op.location), getattr(op.location, "start_line", None), text)
            for op, text in found
        )
    if diagnostics:
        raise StageViolation(stage, diagnostics)


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
            needed = ir.IntegerAttr(schedule[name]).value
            if needed > memory.bytes and not target.cached:
                yield kernel, f"schedule needs {needed} of {memory.bytes} {name}"


def ops_have_the_extents_of_their_tile(module: ir.Operation) -> Iterator[Violation]:
    for kernel in kernels(module):
        tile = [int(size) for size in ir.DictAttr(kernel.attributes[SCHEDULE])["tile"]]
        computed = [op for op in nested(kernel) if is_linalg(op)]
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


def dram_is_reached_by_dma_only(module: ir.Operation) -> Iterator[Violation]:
    for function in functions(module):
        for op in nested(function):
            if is_linalg(op) or op.name in DRAM_ACCESS:
                yield op, f"'{op.name}' is left"
    for kernel in kernels(module):
        for op in nested(kernel, "memref.alloc"):
            if space_of(op.results[0].type) == DRAM:
                yield op, f"kernel '{symbol(kernel)}' allocates {op.results[0].type} in dram"
        for op in nested(kernel, *COMPUTE):
            if any(space_of(value.type) == DRAM for value in op.operands):
                yield op, f"'{op.name}' touches dram"


def tokens_are_waited_once(module: ir.Operation) -> Iterator[Violation]:
    """A token has one use in its own block: a wait, or a loop or branch that takes it further."""
    for op in nested(module):
        for token, block in _tokens(op):
            uses = [use.owner.operation for use in token.uses]
            if len(uses) != 1:
                yield op, f"a move is waited for {len(uses)} times"
            elif uses[0].name not in TAKES_TOKENS or uses[0].block != block:
                yield uses[0], f"'{uses[0].name}' may leave a move without a wait"


def _tokens(op: ir.Operation) -> Iterator[tuple[ir.Value, ir.Block]]:
    """Tokens that `op` makes or that its regions receive, each with its block."""
    values = [(result, op.block) for result in op.results]
    blocks = [block for region in op.regions for block in region.blocks]
    values += [(argument, block) for block in blocks for argument in block.arguments]
    yield from ((v, block) for v, block in values if isinstance(v.type, TokenType))


def moves_have_the_rank_of_the_engine(module: ir.Operation) -> Iterator[Violation]:
    target = target_of(module)
    most = target.dma.max_rank
    for move in () if target.cached else nested(module, "npu.dma_start"):
        if (rank := len(dims_of_move(move))) > most:
            yield move, f"a move of {rank} dimensions exceeds the {most} of the DMA engine"


def nothing_is_allocated(module: ir.Operation) -> Iterator[Violation]:
    for op in nested(module, "memref.alloc", "memref.alloca"):
        yield op, f"{op.results[0].type} has no place"


def memory_is_passed_last(module: ir.Operation) -> Iterator[Violation]:
    for function in functions(module):
        wanted = ["scratch"] if KERNEL in function.attributes else ["workspace", "scratch"]
        roles = argument_roles(function)
        if roles[-len(wanted) :] != wanted:
            yield function, f"'{symbol(function)}' must end with {wanted}, has {roles}"


def placed_buffers_are_disjoint(module: ir.Operation) -> Iterator[Violation]:
    """Read offsets and lives back from the IR and check them, per function and memory."""
    for function in functions(module):
        steps = Steps(function)
        views = nested(function, "memref.view")
        for space in {space_of(view.results[0].type) for view in views}:
            own = [view for view in views if space_of(view.results[0].type) == space]
            requests = [_request(i, view, steps) for i, view in enumerate(own)]
            offsets = {r.name: _offset(view) for r, view in zip(requests, own)}
            capacity = max(view.operands[0].type.shape[0] for view in own)
            for fault in memory_plan.verify(requests, offsets, 1, capacity):
                yield function, f"{space} of '{symbol(function)}': {fault}"


def _request(number: int, view: ir.Operation, steps: Steps) -> memory_plan.Request:
    type_ = ir.MemRefType(view.results[0].type)
    size = max(1, type_.element_type.width // 8)
    for extent in type_.shape:
        size *= extent
    first, last = steps.use(view)
    return memory_plan.Request(f"{number}: {type_}", size, first, last)


def _offset(view: ir.Operation) -> int:
    return ir.IntegerAttr(constant_of(view.operands[1])).value


def scratch_fits(module: ir.Operation) -> Iterator[Violation]:
    target: Target = target_of(module)
    for kernel in kernels(module):
        used = ir.DictAttr(kernel.attributes["npu.memory"])
        for space, memory in ((SRAM, target.sram), (ACC, target.acc)):
            needed = ir.IntegerAttr(used[f"{space}_bytes"]).value
            if needed > memory.bytes and not (target.cached or is_untiled(kernel)):
                kind = string(kernel, KERNEL)
                yield kernel, f"{kind} kernel needs {needed} of {memory.bytes} bytes of {space}"


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


RULES = {
    "normalise": (no_torch_ops, regions_only_call_kernels),
    "schedule": (kernels_are_scheduled,),
    "tile": (ops_have_the_extents_of_their_tile,),
    "buffers": (no_tensors, functions_return_nothing),
    "stage": (
        dram_is_reached_by_dma_only,
        tokens_are_waited_once,
        moves_have_the_rank_of_the_engine,
    ),
    "pipeline": (dram_is_reached_by_dma_only, tokens_are_waited_once),
    "allocate": (
        tokens_are_waited_once,
        moves_have_the_rank_of_the_engine,
        nothing_is_allocated,
        memory_is_passed_last,
        placed_buffers_are_disjoint,
        scratch_fits,
    ),
    "host": (no_tensors, functions_return_nothing, nothing_is_allocated, nothing_asserts),
    "cpu": (no_npu_ops,),
    "llvm": (only_llvm,),
}
