"""How many cycles an op keeps its unit busy: the rates of the machine that every target describes.

The machine has a matrix unit of `rows` x `cols` cells that adds into the accumulator memory, a
vector unit of `lanes` elements, and DMA channels, each with a queue of its own. One control
processor issues ops in program order; a unit executes what it is given in order.

* Matrix unit: input channels lie along its rows, `macs_per_cell` of them in each cell, output
  channels along its columns. Each output pixel and tap of the window takes one cycle per block of
  rows and block of columns. A product passes through all rows and columns before it arrives, so
  every op takes rows + cols cycles more (the pipeline fill).
* Vector unit: a scalar op of the region takes one cycle for `lanes` points. A region without scalar
  ops, which only copies, takes one too. A Winograd transform takes one for each multiply-add.
* DMA channel: `setup_cycles`, then `bytes_per_cycle`. Bytes are those that cross the dram side:
  padding is made on chip and costs nothing.

All counts may be ints or NumPy arrays of ints; results are of the same kind. All divisions round
up: a unit that is partly used is busy.
"""

from collections.abc import Sequence

from mlir_npu.dialect.target import Dma, MatrixUnit


def ceil_divide(count, size):
    """count / size, rounded up."""
    return -(-count // size)


def contraction_cycles(outputs, taps, depth, channels, unit: MatrixUnit, macs_per_cell: int):
    """conv2d, matmul, and each product of a batch_matmul.

    outputs: pixels, or rows of a matmul; taps: of the window, 1 for a matmul; depth: input channels
    that are summed; channels: output channels, all blocks together.
    """
    row_blocks = ceil_divide(depth, unit.rows * macs_per_cell)
    column_blocks = ceil_divide(channels, unit.cols)
    return outputs * taps * row_blocks * column_blocks + unit.rows + unit.cols


def accumulator_fill_cycles(elements, unit: MatrixUnit):
    """fill of acc: every cell of the matrix unit writes one element per cycle."""
    return ceil_divide(elements, unit.rows * unit.cols)


def vector_cycles(points, operations: int, lanes: int):
    """eltwise, drain and reduce: points of the iteration space, scalar ops of the region.

    winograd_input and winograd_output: windows times channels, `transform_operations`.
    """
    return ceil_divide(points, lanes) * max(1, operations)


def transform_operations(matrix: Sequence[Sequence]) -> int:
    """Scalar multiply-adds of a transform M d M^T, for each window d and channel.

    M is applied to the columns of d, as many as M has, and then to as many rows as M has; entries
    of 0 cost nothing.
    """
    entries = sum(entry != 0 for row in matrix for entry in row)
    return entries * (len(matrix) + len(matrix[0]))


def window_cycles(outputs, taps, lanes: int):
    """depthwise_conv2d and pool2d: elements of the output, taps of the window."""
    return ceil_divide(outputs * taps, lanes)


def vector_fill_cycles(elements, lanes: int):
    """fill of sram."""
    return ceil_divide(elements, lanes)


def move_cycles(size, dma: Dma):
    """A move of `size` bytes on one channel."""
    return dma.setup_cycles + ceil_divide(size, dma.bytes_per_cycle)
