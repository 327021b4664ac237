"""Cycles of each unit, with the arithmetic in the comment."""

import numpy as np

from mlir_npu.dialect.target import load_target
from mlir_npu.passes.analysis.unit_cycles import (
    accumulator_fill_cycles,
    contraction_cycles,
    move_cycles,
    transform_operations,
    vector_cycles,
    vector_fill_cycles,
    window_cycles,
)

EDGE = load_target("edge")  # 16 x 16 cells, 64 lanes, 100 cycles + 32 bytes per cycle


def test_a_convolution_streams_pixels_and_taps_through_blocks_of_rows_and_columns():
    # 8 * 8 pixels * 9 taps * (64 / 16) row blocks * (32 / 16) column blocks + 16 + 16
    assert contraction_cycles(64, 9, 64, 32, EDGE.matrix, 1) == 4608 + 32


def test_partly_used_rows_and_columns_cost_as_much_as_full_ones():
    # 49 pixels * ceil(3 / 16) * ceil(17 / 16) + 32
    assert contraction_cycles(49, 1, 3, 17, EDGE.matrix, 1) == 98 + 32


def test_cells_that_multiply_four_at_once_take_four_channels_per_row():
    # 10 rows of a matmul * ceil(130 / (16 * 4)) * 1 + 32
    assert contraction_cycles(10, 1, 130, 16, EDGE.matrix, 4) == 30 + 32


def test_fills():
    assert accumulator_fill_cycles(257, EDGE.matrix) == 2  # 256 cells
    assert vector_fill_cycles(65, EDGE.vector.lanes) == 2


def test_the_vector_unit_takes_a_cycle_per_scalar_op_and_at_least_one():
    assert vector_cycles(130, 3, EDGE.vector.lanes) == 3 * 3
    assert vector_cycles(130, 0, EDGE.vector.lanes) == 3


def test_windows_on_the_vector_unit():
    assert window_cycles(100, 9, EDGE.vector.lanes) == 15  # 900 / 64 = 14.06


def test_a_transform_multiplies_by_each_entry_that_is_not_zero():
    # 3 entries, for 3 columns of the window and then 2 rows
    assert transform_operations([[1, 0, 2], [0, -1, 0]]) == 3 * (3 + 2)


def test_moves():
    assert move_cycles(4096, EDGE.dma) == 100 + 128
    assert move_cycles(1, EDGE.dma) == 101


def test_arrays_give_arrays():
    sizes = np.array([32, 33])
    assert move_cycles(sizes, EDGE.dma).tolist() == [101, 102]
    assert contraction_cycles(sizes, 9, 16, sizes, EDGE.matrix, 1).tolist() == [
        32 * 9 * 2 + 32,
        33 * 9 * 3 + 32,
    ]
    assert vector_cycles(sizes, 2, 16).tolist() == [4, 6]
