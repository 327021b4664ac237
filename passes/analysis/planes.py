"""Whether a convolution is faster with vectors over columns than over output channels.

Between an image and a result that have channels first, vectors over channels need a transpose at
both ends, and vectors over columns need none, but columns do not always fill vectors. Costs are in
multiply-adds of a result; that of the transposes is fitted to measured layers (see the test).
"""

from __future__ import annotations

# Both transposes, per element of the result.
TRANSPOSE_TERMS = 6
# Sums of more terms take so long that transposes hardly count.
MOST_TERMS = 64
# Planes of the image that are read at the same time; far apart, they share sets of the cache.
MOST_INPUTS = 8
# Distances of columns that vectors are loaded from.
STRIDES = (1, 2)


def gains_planes(inputs: int, terms: int, columns: int, stride: int, lanes: int) -> bool:
    """Whether a layer of `inputs` channels, with sums of `terms` products, gains.

    columns: of the result, which are `stride` apart in the image; lanes: of a vector.
    """
    if inputs > MOST_INPUTS or terms > MOST_TERMS or stride not in STRIDES or columns < lanes:
        return False
    idle = -columns % lanes
    return terms * idle < TRANSPOSE_TERMS * columns
