"""Vectors of bfloat16 as words of two each."""

from __future__ import annotations

from collections.abc import Sequence

from mlir_npu.dialect.bindings import arith, ir, vector

UPPER, NAN = -0x10000, 0x7FC00000


def split(memory: ir.Value, index: ir.Value, half: ir.VectorType) -> tuple[ir.Value, ir.Value]:
    """Load two vectors of the type `half`: those in even places, and those in odd ones, as f32."""
    (lanes,) = half.shape
    wide = vector.LoadOp(ir.VectorType.get([2 * lanes], half.element_type), memory, [index])
    words = vector.BitCastOp(_vector(lanes, _word()), wide.result).result
    low = arith.ShLIOp(words, _constant(lanes, 16)).result
    high = arith.AndIOp(words, _constant(lanes, UPPER)).result
    return _as_float(low), _as_float(high)


def rounded_in_place(value: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Of f32: words whose upper half is the nearest bfloat16, the even one of two, and that as
    f32."""
    (lanes,) = ir.VectorType(value.type).shape
    words = arith.BitcastOp(_vector(lanes, _word()), value).result
    shifted = arith.ShRUIOp(words, _constant(lanes, 16)).result
    odd = arith.AndIOp(shifted, _constant(lanes, 1)).result
    half = arith.AddIOp(odd, _constant(lanes, 0x7FFF)).result
    total = arith.AddIOp(words, half).result
    is_nan = arith.CmpFOp(arith.CmpFPredicate.UNO, value, value).result
    words = arith.SelectOp(is_nan, _constant(lanes, NAN), total).result
    return words, _as_float(arith.AndIOp(words, _constant(lanes, UPPER)).result)


def join(parts: Sequence[ir.Value], memory: ir.Value, index: ir.Value) -> None:
    """Store the upper halves of two vectors of words, in even and in odd places."""
    low, high = parts
    (lanes,) = ir.VectorType(low.type).shape
    low = arith.ShRUIOp(low, _constant(lanes, 16)).result
    high = arith.AndIOp(high, _constant(lanes, UPPER)).result
    words = arith.OrIOp(low, high).result
    halves = vector.BitCastOp(_vector(2 * lanes, ir.BF16Type.get()), words).result
    vector.StoreOp(halves, memory, [index])


def _word() -> ir.Type:
    return ir.IntegerType.get_signless(32)


def _vector(lanes: int, element: ir.Type) -> ir.VectorType:
    return ir.VectorType.get([lanes], element)


def _constant(lanes: int, number: int) -> ir.Value:
    splat = ir.DenseElementsAttr.get_splat(
        _vector(lanes, _word()), ir.IntegerAttr.get(_word(), number)
    )
    return arith.ConstantOp(_vector(lanes, _word()), splat).result


def _as_float(words: ir.Value) -> ir.Value:
    (lanes,) = ir.VectorType(words.type).shape
    return arith.BitcastOp(_vector(lanes, ir.F32Type.get()), words).result
