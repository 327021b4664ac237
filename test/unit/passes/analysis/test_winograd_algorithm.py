"""The algorithms are right in exact arithmetic, and chosen where they save time."""

from fractions import Fraction

import numpy as np
import pytest

from mlir_npu.passes.analysis.winograd import (
    MANY_WEIGHTS,
    SAVING,
    algorithm,
    choose_outputs,
    taps_on_data,
)

BOTH = pytest.mark.parametrize("outputs", [2, 4])


def product(a, b):
    columns = list(zip(*b))
    return [[sum((x * y for x, y in zip(row, c)), Fraction(0)) for c in columns] for row in a]


def transposed(a):
    return [list(row) for row in zip(*a)]


def sandwich(matrix, value):
    return product(product(matrix, value), transposed(matrix))


def integers(rng, rows, columns):
    return [[Fraction(int(v)) for v in row] for row in rng.integers(-9, 10, (rows, columns))]


@BOTH
def test_outputs_are_the_sums_of_products_exactly(outputs):
    rng, method = np.random.default_rng(outputs), algorithm(outputs)
    image, taps = integers(rng, outputs + 2, outputs + 2), integers(rng, 3, 3)
    left, right = sandwich(method.filter, taps), sandwich(method.input, image)
    products = [[a * b for a, b in zip(*rows)] for rows in zip(left, right)]
    for y, row in enumerate(sandwich(method.output, products)):
        for x, value in enumerate(row):
            assert value == sum(image[y + r][x + s] * taps[r][s] for r, s in np.ndindex(3, 3))


@BOTH
def test_transforms_of_images_are_exact_in_f32(outputs):
    method = algorithm(outputs)
    for matrix in (method.input, method.output):
        for entry in (entry for row in matrix for entry in row):
            assert Fraction(float(np.float32(float(entry)))) == entry


def test_rounding_stays_within_the_bound_of_a_plain_sum():
    rng, method, depth = np.random.default_rng(0), algorithm(4), 64
    into, spread, back = (
        np.array([[float(entry) for entry in row] for row in matrix], np.float32)
        for matrix in (method.input, method.filter, method.output)
    )
    image = rng.standard_normal((200, 6, 6, depth)).astype(np.float32)
    taps = (rng.standard_normal((3, 3, depth, 8)) / 24).astype(np.float32)
    u = np.einsum("ar,bs,rsck->abck", spread, spread, taps)
    v = np.einsum("bj,tajc->tabc", into, np.einsum("ai,tijc->tajc", into, image))
    products = np.einsum("tabc,abck->tabk", v, u)
    result = np.einsum("xb,tybk->tyxk", back, np.einsum("ya,tabk->tybk", back, products))
    exact = np.zeros(result.shape)
    for r, s in np.ndindex(3, 3):
        exact += image[:, r : r + 4, s : s + 4].astype(np.float64) @ taps[r, s].astype(np.float64)
    bound = 9 * depth * np.finfo(np.float32).eps * np.abs(exact).mean()
    assert np.abs(result - exact).max() < bound / 4


# Input and output channels, side of the padded image; ms of plain sums and of windows of 2 and 4 on
# one AVX-512 core.
MEASURED = [
    (64, 64, 56, 2.073, 1.133, 0.695),
    (128, 128, 28, 1.948, 1.019, 0.653),
    (256, 256, 14, 1.880, 1.024, 0.938),
    (512, 512, 7, 1.736, 1.652, 1.752),
    (256, 256, 56, 32.393, 16.820, 11.047),
    (512, 512, 28, 31.754, 16.620, 10.190),
    (512, 512, 14, 7.537, 4.264, 3.967),
    (16, 64, 55, 0.543, 0.378, 0.256),
    (32, 128, 27, 0.491, 0.288, 0.196),
    (48, 192, 13, 0.233, 0.164, 0.133),
    (64, 256, 13, 0.412, 0.278, 0.234),
    (32, 32, 112, 2.200, 1.347, 0.832),
    (256, 512, 14, 3.746, 2.199, 2.151),
    (64, 64, 28, 0.517, 0.281, 0.198),
    (128, 128, 10, 0.241, 0.143, 0.124),
    (384, 384, 12, 3.044, 1.767, 1.236),
    (512, 512, 10, 3.741, 2.307, 2.613),
]


@pytest.mark.parametrize("depth, channels, side, plain, by_2, by_4", MEASURED)
def test_the_fastest_is_taken_where_it_saves_enough(depth, channels, side, plain, by_2, by_4):
    worth = 1 - SAVING if 9 * depth * channels >= MANY_WEIGHTS else 1
    best, time = (4, by_4) if by_4 <= worth * by_2 else (2, by_2)
    saves = time <= (1 - SAVING) * plain
    on_data = taps_on_data(side, 1, 1) ** 2
    chosen = choose_outputs(side, side, depth, channels, 1, on_data)
    assert chosen == (best if saves else None)


def test_layers_with_few_channels_or_mostly_weights_stay_plain():
    assert choose_outputs(56, 56, 3, 64, 1) is None
    assert choose_outputs(4, 4, 512, 512, 1) is None
    assert choose_outputs(4, 4, 512, 512, 64) == 4


def test_share_of_taps_on_data():
    for low, high, outputs in ((0, 0, 5), (1, 1, 7), (2, 0, 4), (0, 3, 6), (1, 2, 9)):
        size = outputs + 2 - low - high
        taps = [0 <= y + tap - low < size for y in range(outputs) for tap in range(3)]
        assert taps_on_data(outputs, low, high) == Fraction(sum(taps), len(taps))
