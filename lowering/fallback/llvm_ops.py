"""The ATen calls that host lowering is trusted with, and for which element types.

Every entry is compared with eager in test/parity/test_host_llvm.py, on NaN, infinities, -0 and
integer limits. Left out on purpose: contractions and convolutions (naive loops lose to eager),
everything that reads or writes at computed indices (a bad index must raise, not touch other
memory), division of integers (the processor traps on 0 where eager raises), conversion of floats to
integers (undefined for NaN and out of range), argmax and sorting.
"""

from __future__ import annotations

import torch
from torch import fx

from mlir_npu.lowering.source_location import source_location

aten = torch.ops.aten

FLOATS = frozenset({torch.float32, torch.float64})
HALVES = frozenset({torch.float16, torch.bfloat16})
INTEGERS = frozenset({torch.int32, torch.int64})
BOOL = frozenset({torch.bool})
NUMBERS = FLOATS | INTEGERS
ANY = NUMBERS | BOOL
# What is only moved. Halves are computed with in f32 (half_precision.py), but for their signs.
MOVED = ANY | HALVES

# functions of one float, in vectors for f32 and by one library call for each element for f64
_FUNCTIONS = frozenset(
    {
        *(aten.exp.default, aten.log.default, aten.erf.default, aten.tanh.default),
        *(aten.sin.default, aten.cos.default, aten.sigmoid.default, aten.silu.default),
        *(aten.log1p.default, aten.pow.Tensor_Tensor),
    }
)
_ARITHMETIC: dict[torch._ops.OpOverload, frozenset[torch.dtype]] = {
    **dict.fromkeys((aten.add.Tensor, aten.sub.Tensor, aten.sign.default), NUMBERS),
    **dict.fromkeys((aten.abs.default, aten.neg.default), NUMBERS | HALVES),
    aten.mul.Tensor: ANY,
    **dict.fromkeys((aten.div.Tensor, aten.sqrt.default, aten.rsqrt.default), FLOATS),
    **dict.fromkeys(_FUNCTIONS, FLOATS),
    **dict.fromkeys((aten.floor.default, aten.ceil.default, aten.round.default), FLOATS),
    # comparison
    **dict.fromkeys((aten.eq.Tensor, aten.ne.Tensor), ANY),
    **dict.fromkeys((aten.lt.Tensor, aten.le.Tensor, aten.gt.Tensor, aten.ge.Tensor), NUMBERS),
    **dict.fromkeys((aten.eq.Scalar, aten.ne.Scalar, aten.lt.Scalar), INTEGERS),
    **dict.fromkeys((aten.le.Scalar, aten.gt.Scalar, aten.ge.Scalar), INTEGERS),
    **dict.fromkeys((aten.clamp.default, aten.clamp_min.default, aten.clamp_max.default), INTEGERS),
    aten.isinf.default: FLOATS,
    **dict.fromkeys((aten.logical_and.default, aten.logical_or.default), BOOL),
    **dict.fromkeys((aten.logical_xor.default, aten.logical_not.default), BOOL),
    **dict.fromkeys((aten.bitwise_and.Tensor, aten.bitwise_or.Tensor), BOOL | INTEGERS),
    **dict.fromkeys((aten.bitwise_xor.Tensor, aten.bitwise_not.default), BOOL | INTEGERS),
    # reductions
    **dict.fromkeys((aten.sum.dim_IntList, aten.sum.default), ANY),
    **dict.fromkeys((aten.mean.dim, aten.mean.default), FLOATS),
    **dict.fromkeys((aten.amax.default, aten.amin.default), NUMBERS),
    **dict.fromkeys((aten.any.default, aten.any.dim, aten.all.default, aten.all.dim), BOOL),
}
ARITHMETIC = frozenset(_ARITHMETIC)

# element types of the tensor arguments; all of them must be the same unless the call is in _MIXED
ALLOWED: dict[torch._ops.OpOverload, frozenset[torch.dtype]] = {
    **_ARITHMETIC,
    aten.where.self: MOVED,
    # shape and movement
    **dict.fromkeys((aten.view.default, aten._unsafe_view.default, aten.unsqueeze.default), MOVED),
    **dict.fromkeys(
        (aten.squeeze.dim, aten.squeeze.dims, aten.permute.default, aten.expand.default), MOVED
    ),
    **dict.fromkeys(
        (aten.t.default, aten.transpose.int, aten.clone.default, aten.alias.default), MOVED
    ),
    **dict.fromkeys(
        (aten.cat.default, aten.slice.Tensor, aten.select.int, aten.constant_pad_nd.default), MOVED
    ),
    **dict.fromkeys(
        (aten.detach.default, aten.flip.default, aten.repeat.default, aten._to_copy.default), MOVED
    ),
    # values from nothing
    **dict.fromkeys((aten.scalar_tensor.default, aten.full.default, aten.full_like.default), MOVED),
    **dict.fromkeys((aten.zeros.default, aten.ones.default), MOVED),
    **dict.fromkeys((aten.arange.default, aten.arange.start, aten.arange.start_step), NUMBERS),
}

_MIXED = frozenset({aten.where.self})
_COMPARISONS = frozenset(
    {
        *(getattr(aten, name).Scalar for name in ("eq", "ne", "lt", "le", "gt", "ge")),
        *(aten.clamp.default, aten.clamp_min.default, aten.clamp_max.default),
    }
)

# Elements above which eager is faster: one scalar library call for each, one copy that eager makes
# on several threads.
MAX_FUNCTION = 1024
MAX_CAT = 16384


def explain_refusal(node: fx.Node, *, exported: bool = False) -> str | None:
    """Why host lowering does not take a node of a re-traced graph; None if it does. exported: that
    eager is faster is no reason, and rows may be read at positions, which were made valid."""
    if node.op in ("placeholder", "output", "get_attr"):
        return None
    where = f" at {location}" if (location := source_location(node)) else ""
    if exported and node.target is aten.index_select.default and _reads(node) <= MOVED:
        return None
    types = ALLOWED.get(node.target)
    if types is None:
        return f"{node.target}{where} is not in the list of verified operators"
    operands = [n.meta["val"] for n in node.all_input_nodes]
    dtypes = {value.dtype for value in operands} if operands else {node.meta["val"].dtype}
    if not dtypes <= types | (BOOL if node.target in _MIXED else frozenset()):
        return f"{node.target}{where} is not verified for {_names(dtypes)}"
    if len(dtypes - BOOL) > 1:
        return f"{node.target}{where} mixes {_names(dtypes)}"
    reason = _explain_details(node, operands, where)
    return reason if reason or exported else _explain_size(node, operands, where)


def _explain_details(node: fx.Node, operands: list[torch.Tensor], where: str) -> str | None:
    result = node.meta["val"]
    if result.dtype not in MOVED:
        return f"{node.target}{where} makes {_names({result.dtype})}"
    if (
        node.target is aten._to_copy.default
        and operands[0].is_floating_point()
        and not result.is_floating_point()
    ):
        return (
            f"{node.target}{where} converts floats to {_names({result.dtype})}, undefined for NaN"
        )
    numbers = [number for number in node.args[1:] if isinstance(number, float)]
    if node.target in _COMPARISONS and numbers and not operands[0].is_floating_point():
        return f"{node.target}{where} compares integers with the float {numbers[0]}"
    return None


def _explain_size(node: fx.Node, operands: list[torch.Tensor], where: str) -> str | None:
    result = node.meta["val"]
    count = max([result.numel(), *(operand.numel() for operand in operands)])
    if node.target in _FUNCTIONS and result.dtype is torch.float64 and count > MAX_FUNCTION:
        return (
            f"{node.target}{where} has {count} scalar calls, eager is faster above {MAX_FUNCTION}"
        )
    if node.target is aten.cat.default and count > MAX_CAT:
        return f"{node.target}{where} has {count} elements to move, eager is faster above {MAX_CAT}"
    return None


def _reads(node: fx.Node) -> set[torch.dtype]:
    return {operand.meta["val"].dtype for operand in node.all_input_nodes}


def _names(dtypes: set[torch.dtype]) -> str:
    return ", ".join(sorted(str(dtype).removeprefix("torch.") for dtype in dtypes))
