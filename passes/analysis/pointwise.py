"""Whether a 1 x 1 convolution is faster on images with channels first, as they lie in memory.

With channels last its vectors run over output channels, and the image and the result are
transposed. With channels first they run over pixels: nothing is transposed, but pixels do not
always fill vectors. Fitted to measured layers (see the test).
"""

from __future__ import annotations

# What transposes cost, in the time of a vector's multiply-adds per element.
TRANSPOSE_COST = 16
# A vector that is partly filled costs this share of a full one.
PARTIAL_COST = 0.5
# Share of the time that is lost where rows of pixels begin within lines and do not stay in cache.
STRADDLING_COST = 0.08


def gains_channels_first(
    inputs: int, outputs: int, pixels: int, lanes: int, cache_bytes: int
) -> bool:
    """Whether an f32 layer of `inputs` to `outputs` channels on one image of `pixels` gains."""
    if pixels < lanes:
        return False
    full, rest = divmod(pixels, lanes)
    vectors = full + PARTIAL_COST * rest.bit_count()
    first = vectors * lanes / pixels
    if rest and 4 * inputs * pixels > cache_bytes // 2:
        first += STRADDLING_COST
    return first < 1 + TRANSPOSE_COST * (1 / inputs + 1 / outputs)
