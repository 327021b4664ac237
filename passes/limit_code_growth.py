"""Tell LLVM that the code is unrolled and split as it should be: no inlining, no further unrolling.

Works on the LLVM dialect, on modules with kernels. Micro-kernels are register-blocked already;
unrolling them again only makes code longer. Inlining a kernel into its caller would compile it
twice, because the kernel itself stays visible.

Before:
    llvm.func @k_chunk(...) { ^head: ... llvm.br ^head }
After:
    llvm.func @k_chunk(...) attributes {no_inline} {
      ^head: ... llvm.br ^head {loop_annotation = #llvm.loop_annotation<unroll = ...>} }
"""

from __future__ import annotations

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.registry import NoOptions, register_pass

NO_UNROLLING = "#llvm.loop_annotation<unroll = <disable = true>>"


@register_pass("limit-code-growth")
def limit_code_growth(module: ir.Operation, options: NoOptions) -> None:
    annotation = ir.Attribute.parse(NO_UNROLLING)
    for function in module.regions[0].blocks[0].operations:
        if function.operation.name == "llvm.func" and len(function.regions[0].blocks):
            function.attributes["no_inline"] = ir.UnitAttr.get()
            _annotate_loops(function.operation, annotation)


def _annotate_loops(function: ir.Operation, annotation: ir.Attribute) -> None:
    """Mark every branch back to a block that stands before it."""
    seen: list[ir.Block] = []
    for block in function.regions[0].blocks:
        seen.append(block)
        last = block.operations[-1].operation
        if last.name == "llvm.br" and last.successors[0] in seen:
            last.attributes["loop_annotation"] = annotation
