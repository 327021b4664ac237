"""The reduction of a register tile of 8-bit integers, four steps at a time.

One instruction (x86: vpdpbusd) multiplies four unsigned by four signed bytes in every lane and adds
up all four products in 32 bits. Both factors here have a sign, so 128 is added to those of the
image, by flipping their highest bit, and sums of 128 * weights are taken off in the end: they are
those of one more pixel, whose values are all 0.

    weights of 4 channels x lanes -> interleaved: lane by lane, 4 channels each
    for every pixel: its 4 channels, in every lane; for every vector: sums += products
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir_npu.dialect.bindings import arith, ir, llvm, vector
from mlir_npu.passes.analysis.loop_nest import Dim
from mlir_npu.passes.microkernels.emit import Offset, loop
from mlir_npu.passes.microkernels.lanes import load_lanes
from mlir_npu.passes.microkernels.nest import Lane, Tile, advance
from mlir_npu.passes.microkernels.region import splat_constant, vector_type

INPUT, WEIGHTS = 0, 1
STEPS = 4
# Registers for sums of weights, their interleaving, and what is added to the image.
REGISTERS = 6
Step = Callable[[Tile, list[ir.Value]], list[ir.Value]]
# By lanes: the widths in bits of the registers that have the instruction.
_INSTRUCTION = {lanes: f"llvm.x86.avx512.vpdpbusd.{32 * lanes}" for lanes in (4, 8, 16)}
_SIGN = -128


def can_multiply_bytes(
    widths: Sequence[int], image: ir.Type, lanes: Dim, reduction: Sequence[Dim]
) -> bool:
    """Whether vectors of these widths exist, and what they take are neighbours in memory."""
    if not reduction or not all(width in _INSTRUCTION for width in widths):
        return False
    channels = reduction[-1]
    is_byte = isinstance(image, ir.IntegerType) and image.width == 8
    are_neighbours = channels.strides[INPUT] == 1 and lanes.strides[WEIGHTS] == 1
    return is_byte and are_neighbours and channels.extent >= STEPS


def reduce_bytes(
    dims: Sequence[Dim],
    pixels: Sequence[int],
    vectors: Sequence[Lane],
    tile: Tile,
    values: Sequence[ir.Value],
    step: Step,
) -> list[ir.Value]:
    """Sums after all steps, pixel by pixel. `pixels`: offsets in the image; `step(tile, sums)`: one
    step of the reduction alone, for those that four do not divide."""
    zeros = [splat_constant(_number(0, 32), lane.width) for lane in vectors]
    count = len(values)
    sums = _reduce(list(dims), pixels, vectors, tile, [*values, *zeros], step)
    corrections = sums[count:]
    return [
        arith.SubIOp(value, corrections[at % len(vectors)]).result
        for at, value in enumerate(sums[:count])
    ]


def _reduce(dims, pixels, vectors, tile: Tile, sums: list[ir.Value], step) -> list[ir.Value]:
    dim, *inner = dims
    if inner:

        def iteration(counter: Offset, carried: list[ir.Value]) -> Sequence[ir.Value]:
            moved = tile.at(advance(tile.cursor, dim, counter))
            return _reduce(inner, pixels, vectors, moved, carried, step)

        return loop(0, dim.extent, 1, iteration, sums)

    def four(counter: Offset, carried: list[ir.Value]) -> Sequence[ir.Value]:
        return _four(dim, pixels, vectors, tile.at(advance(tile.cursor, dim, counter)), carried)

    whole = dim.extent // STEPS * STEPS
    sums = loop(0, whole, STEPS, four, sums)
    products = len(pixels) * len(vectors)
    for rest in range(whole, dim.extent):
        moved = tile.at(advance(tile.cursor, dim, rest))
        sums = [*step(moved, sums[:products]), *sums[products:]]
    return sums


def _four(dim: Dim, pixels, vectors, tile: Tile, sums: list[ir.Value]) -> list[ir.Value]:
    weights = [_interleaved(tile, lane, dim.strides[WEIGHTS]) for lane in vectors]
    done = []
    for pixel in pixels:
        bytes_ = load_lanes(tile.operands[INPUT], tile.cursor[INPUT] + pixel, 1, STEPS)
        done += [(_in_every_lane(bytes_, lane.width), w) for lane, w in zip(vectors, weights)]
    done += [
        (splat_constant(_number(_SIGN, 8), STEPS * lane.width), w)
        for lane, w in zip(vectors, weights)
    ]
    return [_add_products(total, *pair) for total, pair in zip(sums, done, strict=True)]


def _interleaved(tile: Tile, lane: Lane, stride: int) -> ir.Value:
    """Four rows of weights, `stride` apart, as four values per lane."""
    width, first = lane.width, lane.offsets[WEIGHTS]
    order = [row * width + at for at in range(width) for row in range(STEPS)]
    if stride == width:
        rows = tile.load(WEIGHTS, first, STEPS * width)
        return _shuffled(rows, rows, order)
    one, two, three, four = (
        tile.load(WEIGHTS, first + row * stride, width) for row in range(STEPS)
    )
    joined = list(range(2 * width))
    return _shuffled(_shuffled(one, two, joined), _shuffled(three, four, joined), order)


def _shuffled(first: ir.Value, second: ir.Value, order: list[int]) -> ir.Value:
    type_ = vector_type(ir.VectorType(first.type).element_type, len(order))
    return vector.ShuffleOp(first, second, order, results=[type_]).result


def _in_every_lane(bytes_: ir.Value, width: int) -> ir.Value:
    """Four bytes, 128 added to each, `width` times."""
    i32, i8 = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(8)
    word = vector.BitCastOp(vector_type(i32, 1), bytes_).result
    words = vector.BroadcastOp(vector_type(i32, width), word).result
    spread = vector.BitCastOp(vector_type(i8, STEPS * width), words).result
    return arith.XOrIOp(spread, splat_constant(_number(_SIGN, 8), STEPS * width)).result


def _add_products(total: ir.Value, unsigned: ir.Value, signed: ir.Value) -> ir.Value:
    name = _INSTRUCTION[ir.VectorType(total.type).shape[0]]
    operands = [total, unsigned, signed]
    return llvm.CallIntrinsicOp(total.type, name, operands, [], []).operation.results[0]


def _number(value: int, width: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(width), value)
