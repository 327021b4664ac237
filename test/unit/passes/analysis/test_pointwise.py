"""Which order 1 x 1 convolutions take, for layers whose both orders were measured."""

import pytest

from mlir_npu.passes.analysis.pointwise import gains_channels_first, orders_weights_in_calls

CACHE, LANES = 1 << 20, 16
# inputs, outputs, side of the image; GFLOP/s with channels last and first, one AVX-512 core
MEASURED = [
    (64, 256, 56, 82, 108),
    (64, 64, 56, 83, 104),
    (256, 64, 56, 88, 110),
    (128, 512, 28, 95, 111),
    (512, 128, 28, 95, 107),
    (256, 1024, 14, 94, 108),
    (1024, 256, 14, 97, 107),
    (1024, 512, 14, 96, 106),
    (512, 2048, 7, 78, 111),
    (2048, 512, 7, 84, 113),
    (320, 1280, 7, 113, 111),
    (960, 320, 7, 93, 112),
    (576, 160, 7, 107, 112),
    (160, 960, 7, 110, 109),
    (960, 160, 7, 107, 112),
    (512, 1000, 13, 90, 112),
    (64, 256, 13, 85, 109),
    (16, 64, 55, 58, 106),
    (16, 96, 112, 63, 90),
]


@pytest.mark.parametrize("inputs, outputs, side, last, first", MEASURED)
def test_the_faster_order_is_taken(inputs, outputs, side, last, first):
    taken = gains_channels_first(inputs, outputs, side * side, LANES, CACHE)
    assert taken == (first > last)


@pytest.mark.parametrize(
    "inputs, outputs, side, last, first",
    [(256, 512, 28, 90, 103), (512, 1024, 14, 88, 104), (1024, 2048, 7, 79, 91)],
)
def test_layers_with_strides(inputs, outputs, side, last, first):
    taken = gains_channels_first(inputs, outputs, side * side, LANES, CACHE, gathers=True)
    assert taken == (first > last)
    assert not gains_channels_first(128, 16, side * side, LANES, CACHE, gathers=True)


def test_an_image_of_less_than_a_vector_keeps_channels_last():
    assert not gains_channels_first(64, 64, LANES - 1, LANES, CACHE)
    assert gains_channels_first(64, 64, LANES, LANES, CACHE)


@pytest.mark.parametrize(
    "inputs, outputs, side, in_calls",
    [(2048, 512, 7, True), (256, 1024, 14, True), (320, 1280, 7, False), (128, 512, 14, False)],
)
def test_large_weights_are_not_copied_where_ordering_them_takes_little_of_the_time(
    inputs, outputs, side, in_calls
):
    assert orders_weights_in_calls(4 * inputs * outputs, side * side) == in_calls
