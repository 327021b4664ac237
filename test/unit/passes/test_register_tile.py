"""Register tiles: the rule, the block choice and the cover of a grid by tiles."""

from dataclasses import dataclass

import pytest

from mlir_npu.passes.analysis.register_tile import (
    RegisterTile,
    check_registers,
    choose_channel_block,
    choose_register_tile,
    lines_in_one_set,
    registers_needed,
    split,
    vector_pieces,
)


@dataclass(frozen=True)
class Unit:
    lanes: int
    registers: int


@dataclass(frozen=True)
class Machine:
    vector: Unit


AVX512, AVX2, NEON, SSE = (Unit(16, 32), Unit(8, 16), Unit(4, 32), Unit(4, 16))
UNITS = [AVX512, AVX2, NEON, SSE]


def test_rule_matches_the_measured_cliff_on_sixteen_registers():
    assert registers_needed(6, 2) == 15
    assert registers_needed(4, 3) == 16
    assert registers_needed(7, 2) == 17


def test_check_registers_names_the_numbers():
    check_registers(6, 2, AVX2)
    with pytest.raises(ValueError, match="7 pixels x 2 vectors needs 17 of 16 registers"):
        check_registers(7, 2, AVX2)


@pytest.mark.parametrize(
    ("extent", "lanes", "pieces"),
    [(16, 16, (16,)), (40, 16, (16, 16, 8)), (3, 16, (2, 1)), (13, 8, (8, 4, 1)), (1, 4, (1,))],
)
def test_vector_pieces(extent, lanes, pieces):
    assert vector_pieces(extent, lanes) == pieces


def test_vector_pieces_rejects_empty_extents():
    with pytest.raises(ValueError, match="positive"):
        vector_pieces(0, 16)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    "channels", [1, 2, 3, 8, 12, 16, 24, 32, 48, 64, 96, 100, 1000, 1001, 1009]
)
def test_channel_block_divides_and_fits(unit, channels):
    block = choose_channel_block(channels, Machine(unit))
    assert channels % block == 0
    check_registers(1, len(vector_pieces(block, unit.lanes)), unit)


def test_channel_block_prefers_full_vectors():
    assert choose_channel_block(64, Machine(AVX512)) == 16
    assert choose_channel_block(64, Machine(AVX2)) == 8
    assert choose_channel_block(24, Machine(AVX512)) == 24
    assert choose_channel_block(1000, Machine(AVX512)) == 40


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("rows", [1, 2, 7, 56])
@pytest.mark.parametrize("columns", [1, 3, 7, 14, 55])
@pytest.mark.parametrize(("blocks", "channels"), [(1, 16), (4, 16), (3, 24), (2, 5)])
def test_tiles_obey_the_rule(unit, rows, columns, blocks, channels):
    tile = choose_register_tile(rows, columns, blocks, channels, unit)
    vectors = tile.blocks * len(vector_pieces(channels, unit.lanes))
    check_registers(tile.pixels, vectors, unit)
    assert tile.rows <= rows and tile.columns <= columns and tile.blocks <= blocks


def test_tiles_divide_common_widths():
    for width in (56, 28, 14, 7):
        assert width % choose_register_tile(width, width, 4, 16, AVX512).columns == 0


def test_tiles_on_sixteen_registers_balance_scalars_and_vectors():
    """Wide tiles of one vector load a scalar per FMA; three or four vectors measure best."""
    assert choose_register_tile(56, 56, 8, 8, AVX2).blocks >= 2
    assert choose_register_tile(7, 7, 64, 8, AVX2).blocks >= 2


def test_small_images_use_several_rows():
    assert choose_register_tile(8, 4, 2, 16, AVX512).rows > 1


def test_pixels_that_share_a_cache_set_are_few():
    tile = choose_register_tile(1, 196, 2, 16, AVX512, (0, 1024 * 4))
    assert tile.pixels <= 7
    assert choose_register_tile(1, 196, 2, 16, AVX512, (0, 1040 * 4)).pixels > 7


def test_lines_in_one_set_counts_distinct_lines():
    assert lines_in_one_set(RegisterTile(1, 14, 2), (0, 4096)) == 14
    assert lines_in_one_set(RegisterTile(2, 7, 2), (4096 * 9, 2048)) == 8
    assert lines_in_one_set(RegisterTile(1, 14, 2), (0, 4)) == 1


def test_too_wide_a_block_is_an_error():
    with pytest.raises(ValueError, match="registers"):
        choose_register_tile(1, 1, 1, 64 * 16, AVX512)


@pytest.mark.parametrize("extent", range(1, 30))
@pytest.mark.parametrize("size", [1, 3, 7, 14])
def test_split_covers_every_element_once(extent, size):
    covered = [
        s.start + t * s.size + i
        for s in split(extent, size)
        for t in range(s.count)
        for i in range(s.size)
    ]
    assert covered == list(range(extent))
