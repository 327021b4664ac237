"""What a contraction asks for while one piece is in use is the next piece, all of it, and little else."""

import itertools
from types import SimpleNamespace

import pytest

from mlir_npu.passes.analysis.loop_nest import Dim, merge
from mlir_npu.passes.analysis.register_tile import RegisterTile, split
from mlir_npu.passes.microkernels.buffers import Operand
from mlir_npu.passes.microkernels.streaming import (
    FEW_TILES,
    LARGEST_PIECE_BYTES,
    find_stream,
    with_linear_stride,
    with_stride,
)

F32 = SimpleNamespace(width=32)
LINE = 16


def operand(name):
    return Operand(name, 0, (), F32)


def product(pixels, steps, blocks, lanes=LINE):
    """Loops of a product of `pixels x steps` and `blocks x steps x lanes`: strides in both."""
    operands = (operand("image"), operand("weights"))
    return {
        "operands": operands,
        "pixels": merge([Dim(pixels, (steps, 0))]),
        "block": Dim(blocks, (0, steps * lanes)),
        "lanes": Dim(lanes, (0, 1)),
        "reduction": merge([Dim(steps, (1, lanes))]),
    }


def asked_for(loops, tile, stream, block):
    """Lines that the tiles of pixels of one tile of blocks ask for."""
    pixels = with_linear_stride(loops["pixels"], stream.pixel, 2)[0]
    steps = with_linear_stride(loops["reduction"], stream.step, 2)[0]
    block_dim = with_stride(loops["block"], stream.block, 2)
    begin = stream.ahead + block * block_dim.strides[2]
    lines = []
    for span in split(pixels.extent, tile.pixels):
        for number, step, line in itertools.product(
            range(span.count), range(steps.extent), stream.lines
        ):
            pixel = span.start + number * span.size
            at = begin + pixel * pixels.strides[2] + step * steps.strides[2] + line
            lines.append(at // LINE)
    return lines


@pytest.mark.parametrize(
    ("pixels", "steps", "blocks", "tile"),
    [(49, 160, 60, (12, 2)), (49, 64, 8, (14, 2)), (196, 96, 36, (6, 4)), (4, 128, 8, (4, 4))],
)
def test_weights_of_the_next_blocks(pixels, steps, blocks, tile):
    loops, tile = product(pixels, steps, blocks), RegisterTile(1, *tile)
    stream = find_stream(**loops, tile=tile)
    assert stream.source is loops["operands"][1]
    piece = tile.blocks * steps  # lines
    for block in (0, 2 * tile.blocks):
        following = range(block * steps + piece, block * steps + 2 * piece)
        lines = set(asked_for(loops, tile, stream, block))
        assert len(lines & set(following)) >= 0.95 * piece
        assert len(lines - set(following)) <= 0.3 * piece


def test_pixels_that_are_read_once():
    loops, tile = product(512, 256, 2), RegisterTile(1, 7, 2)
    stream = find_stream(**loops, tile=tile)
    assert stream.source is loops["operands"][0]
    assert set(asked_for(loops, tile, stream, 0)) >= set(range(7 * LINE, 512 * LINE))


def test_weights_that_a_move_makes_are_asked_for_where_it_takes_them_from():
    loops, tile, moved = product(49, 512, 8), RegisterTile(1, 12, 2), operand("dram")
    stream = find_stream(**loops, tile=tile, moved=moved)
    assert stream.source is moved
    lines = {
        line for block in range(0, 8, tile.blocks) for line in asked_for(loops, tile, stream, block)
    }
    following = set(range(8 * 512, 2 * 8 * 512))
    assert len(lines & following) >= 0.95 * len(following)


def test_an_arithmetic_step_asks_for_few_lines():
    stream = find_stream(**product(49, 160, 60), tile=RegisterTile(1, 12, 2))
    assert len(stream.lines) == 1


@pytest.mark.parametrize(
    ("pixels", "steps", "blocks"),
    [
        ((FEW_TILES + 1) * 12, 64, 8),  # many tiles use a block
        (49, LARGEST_PIECE_BYTES // 64, 8),  # a block fills the cache
        (12, 64, 2),  # nothing follows
    ],
)
def test_nothing_to_ask_for(pixels, steps, blocks):
    assert find_stream(**product(pixels, steps, blocks), tile=RegisterTile(1, 12, 2)) is None


def test_rows_of_a_matrix_as_weights_are_no_pieces():
    loops = product(49, 64, 8)
    loops["block"] = Dim(8, (0, LINE))
    loops["reduction"] = [Dim(64, (1, 8 * LINE))]
    assert find_stream(**loops, tile=RegisterTile(1, 12, 2)) is None
