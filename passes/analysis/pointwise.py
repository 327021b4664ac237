"""What order 1 x 1 convolutions want their image and their weights in, where sram is a cache.

With channels last, vectors run over output channels: the weights are put in order, and an image and
a result that have channels first are transposed. With channels first, vectors run over positions:
nothing is put in order, but positions do not always fill vectors. The costs are shares of the time
of the multiply-adds, fitted to measured layers (see the test).
"""

from __future__ import annotations

# Weights from this size on are not copied, or from a larger one for few positions of the image:
# putting them in order takes as long as multiplying them with some positions, which is little from
# the first number of positions on; up to the second one tile has all.
LARGE_WEIGHTS, LARGE_PRODUCT = 1 << 20, 1 << 27  # bytes; bytes times positions
POSITIONS_OF_ONE_TILE = range(48, 257)
ORDERING_POSITIONS = 10
# Transposes of image and result, per channel of the other one.
TRANSPOSE_COST = 9
# A vector that is partly filled costs this share of a full one. A position that is left alone costs
# less if vectors of input channels can be read, and the sum of such a vector as much as some steps.
PARTIAL_COST, SINGLE_COST, SUM_STEPS = 0.5, 0.15, 20
# Rows of positions that begin within cache lines, in an image that takes up the cache.
STRADDLING_COST = 0.05
# A copy of the positions that count, per output channel.
GATHER_COST = 24
F32_BYTES = 4


def orders_weights_in_calls(weight_bytes: int, positions: int) -> bool:
    """Whether a kernel with channels last puts its weights in order whenever it is called."""
    is_large = weight_bytes >= max(LARGE_WEIGHTS, LARGE_PRODUCT // positions)
    return is_large and positions in POSITIONS_OF_ONE_TILE


def gains_channels_first(
    inputs: int,
    outputs: int,
    positions: int,
    lanes: int,
    cache_bytes: int,
    gathers: bool = False,
) -> bool:
    """Whether an f32 layer of `inputs` to `outputs` channels is faster with channels first.

    positions: of one result, which has channels first, as the image has. lanes: of a vector.
    gathers: whether the positions of the image that count do not lie side by side.
    """
    full, rest = divmod(positions, lanes)
    if not full:
        return False
    first = (full + _rest_cost(rest, inputs, lanes)) * lanes / positions
    if rest and F32_BYTES * inputs * positions > cache_bytes // 2:
        first += STRADDLING_COST
    if gathers:
        first += GATHER_COST / outputs
    last = 1 + TRANSPOSE_COST * (1 / inputs + 1 / outputs)
    if orders_weights_in_calls(F32_BYTES * inputs * outputs, positions):
        last += ORDERING_POSITIONS / positions
    return first < last


def _rest_cost(rest: int, inputs: int, lanes: int) -> float:
    """Of positions that fill no vector, in vectors."""
    if rest % 2 and inputs % lanes == 0:
        return SINGLE_COST + SUM_STEPS / inputs + PARTIAL_COST * (rest - 1).bit_count()
    return PARTIAL_COST * rest.bit_count()
