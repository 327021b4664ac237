"""Erase results of a `linalg.generic` that nothing reads, with what computes them.

torch-mlir lowers a maximum together with its position. Where only the maximum is read, what is left
is a plain reduction, without the indices that keep it from being a kernel.

Before:
    %m:2 = linalg.generic ins(%x) outs(%low, %zero : tensor<8xf32>, tensor<8xi64>) {
      %i = linalg.index 1 ...
      %max = arith.maximumf %in, %out
      %is_new = arith.cmpf ogt, %in, %out
      %at = arith.select %is_new, %i, %out_0
      linalg.yield %max, %at }
    use(%m#0)
After:
    %m = linalg.generic ins(%x) outs(%low : tensor<8xf32>) {
      %max = arith.maximumf %in, %out
      linalg.yield %max }
    use(%m)
"""

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import nested
from mlir_npu.passes.registry import NoOptions, register_pass
from mlir_npu.passes.rewriting.generics import GENERIC, build_with_maps
from mlir_npu.passes.rewriting.values import before, erase_if_unused


@register_pass("drop-unused-results")
def drop_unused_results(module: ir.Operation, options: NoOptions) -> None:
    for op in list(nested(module, GENERIC)):
        kept = [i for i, result in enumerate(op.results) if any(True for _ in result.uses)]
        if 0 < len(kept) < len(op.results):
            _rebuild(op, kept)


def _rebuild(op: ir.Operation, kept: list[int]) -> None:
    """`op` with results `kept` only, if they do not depend on what the others accumulate."""
    inputs = len(op.operands) - len(op.results)
    block = op.regions[0].blocks[0]
    arguments = list(block.arguments)
    stays = [*range(inputs), *(inputs + i for i in kept)]
    yielded = list(block.operations)[-1].operation.operands
    wanted = [yielded[i] for i in kept]
    needed, free = _needed(block, wanted)
    if any(arguments[i] in free for i in range(len(arguments)) if i not in stays):
        return

    def body(scalars: list[ir.Value]) -> list[ir.Value]:
        known = dict(zip((arguments[i] for i in stays), scalars, strict=True))
        for each in needed:
            copy = each.clone()
            for i, value in enumerate(copy.operands):
                copy.operands[i] = known.get(value, value)
            known.update(zip(each.results, copy.results, strict=True))
        return [known.get(value, value) for value in wanted]

    maps = ir.ArrayAttr(op.attributes["indexing_maps"])
    kinds = ["reduction" if "reduction" in str(k) else "parallel"
             for k in ir.ArrayAttr(op.attributes["iterator_types"])]  # fmt: skip
    dropped = [op.operands[inputs + i] for i in range(len(op.results)) if i not in kept]
    with before(op):
        slim = build_with_maps(
            [op.operands[i] for i in range(inputs)],
            [op.operands[inputs + i] for i in kept],
            [ir.AffineMapAttr(maps[i]).value for i in stays],
            kinds,
            body,
        )
    for index, result in zip(kept, slim.results, strict=True):
        op.results[index].replace_all_uses_with(result)
    op.erase()
    erase_if_unused(*dropped)


def _needed(block: ir.Block, wanted: list[ir.Value]) -> tuple[list[ir.Operation], set[ir.Value]]:
    """(operations that `wanted` takes, in order; all values that it is made of)."""
    values, found = set(wanted), []
    for view in reversed(list(block.operations)[:-1]):
        if any(result in values for result in view.operation.results):
            found.append(view.operation)
            values.update(view.operation.operands)
    return found[::-1], values
