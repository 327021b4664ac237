"""The algorithms are right in exact arithmetic, and chosen where they save time."""

from fractions import Fraction

import numpy as np
import pytest

from mlir_npu.passes.analysis.winograd import algorithm, choose_outputs

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


@pytest.mark.parametrize(
    "height, width, depth, channels, images, chosen",
    [
        (56, 56, 64, 64, 1, 4),
        (28, 28, 128, 128, 1, 4),
        (14, 14, 256, 256, 1, 2),  # windows of 4 would do 16 x 16
        (7, 7, 512, 512, 1, None),
        (55, 55, 64, 64, 1, 4),
        (56, 56, 3, 64, 1, None),
        (4, 4, 512, 512, 1, None),  # more time for the weights than for the products
        (4, 4, 512, 512, 64, 4),
    ],
)
def test_choice(height, width, depth, channels, images, chosen):
    assert choose_outputs(height, width, depth, channels, images) == chosen
