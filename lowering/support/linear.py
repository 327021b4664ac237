"""Matrix products."""

from __future__ import annotations

from torch import fx

from mlir_npu.lowering.support.rules import arguments, rule, shape


@rule("aten.mm.default", "aten.bmm.default")
def matmul(node: fx.Node) -> str | None:
    """mm and bmm of matrices of floats."""
    return None


@rule("aten.matmul.default", "aten.linear.default")
def linear(node: fx.Node) -> str | None:
    """linear and matmul of tensors of rank 2 and above."""
    for operand in node.all_input_nodes[:2]:
        rank = len(shape(operand))
        if rank < 2:
            return f"operand {operand.name} has rank {rank}, and the NPU multiplies matrices"
    return None


@rule("aten.addmm.default", "aten.baddbmm.default")
def addmm(node: fx.Node) -> str | None:
    """addmm and baddbmm, with any alpha and beta that are numbers."""
    call = arguments(node)
    for name in ("alpha", "beta"):
        if isinstance(call[name], (fx.Node, complex)):
            return f"{name}={call[name]} is not a real number known at compile time"
    return None
