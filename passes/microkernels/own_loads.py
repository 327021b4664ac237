"""A second reading of the image, for tiles whose two vectors differ in width.

With AVX-512 a scalar that one instruction uses is loaded by that instruction, into all lanes. A
scalar that two instructions use is loaded into a register first. Between a full vector and a
narrower one that costs more than a second load (a tenth of a layer of 24 channels). Two loads of
one address become one, though, so the narrow vector reads the image through an address that the
optimiser cannot tell to be the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir_npu.dialect.bindings import arith, ir
from mlir_npu.passes.analysis.loop_nest import Dim
from mlir_npu.passes.microkernels.emit import Offset, index_constant
from mlir_npu.passes.microkernels.streaming import with_stride

# Lanes from which on instructions load scalars into all lanes.
LANES = 16


def have_own_loads(widths: Sequence[int], lanes: int) -> bool:
    """Whether the vectors of a tile, of these widths, read the image one by one."""
    return lanes >= LANES and len(widths) == 2 and widths[0] > widths[1] > 1


def read_again(dims: Sequence[Dim], operand: int, at: int) -> tuple[Dim, ...]:
    """`dims` with a second reading of `operand` inserted at `at`."""
    return tuple(with_stride(dim, dim.strides[operand], at) for dim in dims)


def hidden_zero() -> Offset:
    """Zero, by an empty piece of assembly that the optimiser does not look into."""
    i64, index = ir.IntegerType.get_signless(64), ir.IndexType.get()
    zero = arith.IndexCastOp(i64, index_constant(0)).result
    hidden = ir.Operation.create(
        "llvm.inline_asm",
        results=[i64],
        operands=[zero],
        attributes={"asm_string": ir.StringAttr.get(""), "constraints": ir.StringAttr.get("=r,0")},
    )
    return Offset(arith.IndexCastOp(index, hidden.results[0]).result)
