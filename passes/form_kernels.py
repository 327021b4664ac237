"""Give every computation of a region a private function of its own, a kernel.

A kernel holds one root operation, the pad of its image, the tensor it starts from, and the
elementwise generic that ends it, if nothing else uses what lies between; besides that the
transposes of its operands and of its result, which become a part of the moves of tiles. A
concatenation holds the slices that only it uses. Where sram is a cache and many kernels read the
same transposed operand, the transpose is a kernel of its own.
`npu.kernel` says its kind: conv2d, grouped_conv2d, depthwise_conv2d, pointwise_conv2d,
winograd_conv2d, matmul, batch_matmul, pool2d, reduce, eltwise, or copy for what only moves
elements. Arguments and results are tensors; scalars are made inside. What remains is calls,
reshapes that move nothing, and dense constants.

Before:
    %p = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {%zero}
    %f = linalg.fill ins(%zero) outs(%e)
    %c = linalg.generic {npu.op = "conv2d"} ins(%p, %w) outs(%f)
    %r = linalg.generic {add, relu} ins(%c, %shift) outs(%e)
    return %r
After:
    %r = call @conv2d_0(%x, %w, %shift)
    return %r
    func.func private @conv2d_0(...) attributes {npu.kernel = "conv2d"} { the four operations }
"""

from collections import Counter

from mlir_npu.dialect.bindings import ir, linalg
from mlir_npu.dialect.target import target_of
from mlir_npu.passes.registry import NoOptions, register_pass
from mlir_npu.passes.rewriting.functions import region_functions
from mlir_npu.passes.rewriting.generalize import generalize
from mlir_npu.passes.rewriting.generics import build_generic
from mlir_npu.passes.rewriting.kernel_groups import (
    Group,
    cut_parts,
    epilogues,
    group_of,
    needs_kernel,
)
from mlir_npu.passes.rewriting.moves import write_parts
from mlir_npu.passes.rewriting.outlining import outline
from mlir_npu.passes.rewriting.transposed_edges import Edges, expose_transposes, find_edges
from mlir_npu.passes.rewriting.transposes import coalesce_transposes, transposes_to_views
from mlir_npu.passes.rewriting.values import (
    before,
    defined_by,
    element_type,
    empty,
    erase_unused,
    replace,
    shape_of,
)
from mlir_npu.passes.rewriting.views import VIEWS

PAD = "tensor.pad"
# Their second operand is the tensor that they write into.
_WRITES_INTO = ("tensor.insert_slice", "tensor.insert")
_STAYS = (*VIEWS, "func.return", "func.call", "arith.constant")


@register_pass("form-kernels")
def form_kernels(module: ir.Operation, options: NoOptions) -> None:
    names = _Names(module)
    for function in region_functions(module):
        block = function.regions[0].blocks[0]
        _normalize(block)
        edges = find_edges(block, cached=target_of(module).cached)
        coalesce_transposes(block, besides=edges)
        _outline_all(module, function, edges, names)
        erase_unused(block)


class _Names:
    """Unused symbols: the kind of a kernel and a number."""

    def __init__(self, module: ir.Operation):
        symbols = [view.operation for view in module.regions[0].blocks[0].operations]
        self._taken = {
            ir.StringAttr(op.attributes["sym_name"]).value
            for op in symbols
            if "sym_name" in op.attributes
        }
        self._next: Counter[str] = Counter()

    def take(self, kind: str) -> str:
        while (name := f"{kind}_{self._next[kind]}") in self._taken:
            self._next[kind] += 1
        self._taken.add(name)
        return name


def _normalize(block: ir.Block) -> None:
    transposes_to_views(block)
    for view in list(block.operations):
        op = view.operation
        if op.name == "linalg.fill" and needs_kernel(op):
            _fill_to_generic(op)
        else:
            generalize(op)
    expose_transposes(block)
    erase_unused(block)


def _fill_to_generic(op: ir.Operation) -> None:
    """A fill that is more than a start, as a generic without inputs."""
    scalar, shape = op.operands[0], shape_of(op.results[0])
    whole = tuple(range(len(shape)))
    with before(op):
        init = empty(shape, element_type(op.results[0]))
        filled = build_generic([], [], [init], [whole], frozenset(), len(shape), lambda _: [scalar])
    replace(op, list(filled.results))


def _outline_all(module: ir.Operation, function: ir.Operation, edges: Edges, names: _Names) -> None:
    block = function.regions[0].blocks[0]
    ends = epilogues(block)
    ended = set(ends.values())
    parts = {part for op in _candidates(block) for part in cut_parts(op)}
    inside = ended | parts
    candidates = [op for op in _candidates(block) if op not in inside and op not in edges]
    groups = [group_of(op, ends.get(op), edges) for op in candidates if op.name != PAD]
    _outline_groups(module, groups, names)
    erase_unused(block)
    # Pads that some other operation than the root of a window reads.
    _outline_groups(module, [group_of(pad, None, edges) for pad in _candidates(block)], names)


def _candidates(block: ir.Block) -> list[ir.Operation]:
    ops = [view.operation for view in block.operations]
    return [op for op in ops if op.name not in _STAYS and needs_kernel(op)]


def _outline_groups(module: ir.Operation, groups: list[Group], names: _Names) -> None:
    for group in groups:
        kernel = outline(module, group.ops, group.kind, names.take(group.kind))
        _own_destinations(kernel)


def _own_destinations(kernel: ir.Operation) -> None:
    """Nothing in a kernel writes over an argument, and concatenations write their parts."""
    block = kernel.regions[0].blocks[0]
    for view in list(block.operations):
        op = view.operation
        if op.name == "tensor.concat":
            with before(op):
                replace(op, [write_parts(op)])
        elif op.name in _WRITES_INTO and isinstance(op.operands[1].owner, ir.Block):
            _own_destination(op, 1)
        elif op.name.startswith("linalg."):
            for index in range(len(op.operands) - len(op.results), len(op.operands)):
                _own_destination(op, index)


def _own_destination(op: ir.Operation, index: int) -> None:
    init = op.operands[index]
    if defined_by(init, "tensor.empty", "linalg.fill") is not None:
        return
    with before(op):
        fresh = empty(shape_of(init), element_type(init))
        op.operands[index] = linalg.copy(init, outs=[fresh]) if _reads(op, index) else fresh


def _reads(op: ir.Operation, index: int) -> bool:
    """Whether `op` uses what its destination held before."""
    if op.name.startswith("tensor.") or not len(op.regions):
        return True
    argument = op.regions[0].blocks[0].arguments[index]
    return any(True for _ in argument.uses)
