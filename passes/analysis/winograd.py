"""Winograd's minimal filtering F(m x m, 3 x 3): m x m outputs from (m + 2) x (m + 2) inputs.

    Y = A^T [ (G g G^T) * (B^T d B) ] A        (* elementwise)

needs (m + 2)^2 multiplications where the sum of products takes 9 m^2: 4 times fewer for m = 4 and
2.25 times fewer for m = 2. The matrices follow from m + 1 points and infinity (Toom-Cook): with
N(x) the product of all (x - p), row p of B^T holds the coefficients of N(x) / (x - p), row p of G
the powers of p over N'(p), column p of A^T the powers of p.

The points decide the rounding error: with 0, 3/4, -3/4, 3/2, -3/2 it is four times smaller than
with the usual 0, 1, -1, 2, -2, and every entry of B^T and A^T is exact in f32.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

Matrix = tuple[tuple[Fraction, ...], ...]
TAPS = 3
POINTS = {2: ("0", "1", "-1"), 4: ("0", "3/4", "-3/4", "3/2", "-3/2")}
# What the algorithm costs beyond its products, in multiply-adds, fitted to measured layers (see the
# test): per value of a transform, and per element of the weights, which come from outside of the
# cache for every band of the image, large ones from memory.
TRANSFORM_COST = 10
WEIGHT_COST = 3.5
LARGE_WEIGHT_COST = 6.5
LARGE_WEIGHTS = 1 << 22  # elements
# What can be asked for: outputs along one axis, 0 for the plain sum of products.
CHOICES = (0, *POINTS)
# Share of the time of the plain sum of products that must be saved.
SAVING = 0.2
# Weights from this size on take much memory, and windows of 4 need 2.25 times as many as windows
# of 2: they must fit the image well, and multiply this much less (0.56 at best).
MANY_WEIGHTS = 1 << 18  # elements
PRODUCTS_WORTH_MEMORY = 0.7
# Channels from which a product of matrices is worth its transforms.
FEWEST_CHANNELS = 16


@dataclass(frozen=True)
class Algorithm:
    """F(outputs x outputs, 3 x 3); `input`, `filter`, `output`: B^T, G and A^T."""

    outputs: int
    input: Matrix
    filter: Matrix
    output: Matrix

    @property
    def points(self) -> int:
        """Inputs, and products, along one axis."""
        return self.outputs + TAPS - 1


def algorithm(outputs: int) -> Algorithm:
    """F(outputs x outputs, 3 x 3) for 2 or 4 outputs."""
    points = [Fraction(point) for point in POINTS[outputs]]
    size = outputs + TAPS - 1
    everything = _from_roots(points)
    others = [_from_roots([p for p in points if p != point]) for point in points]
    input_rows = [*(_padded(row, size) for row in others), _padded(everything, size)]
    filter_rows = [
        tuple(point**power / _value(row, point) for power in range(TAPS))
        for point, row in zip(points, others)
    ]
    filter_rows.append(_last(TAPS))
    output_columns = [tuple(point**power for power in range(outputs)) for point in points]
    output_columns.append(_last(outputs))
    return Algorithm(outputs, tuple(input_rows), tuple(filter_rows), tuple(zip(*output_columns)))


def choose_outputs(
    height: int,
    width: int,
    depth: int,
    channels: int,
    images: int,
    on_data: Fraction = Fraction(1),
) -> int | None:
    """The m that is expected to be worth its memory for this output, None for plain sums.

    height, width, channels: of the output; depth: input channels; images: batch. on_data: share of
    the taps of all windows that meet no padding; the plain sum leaves out the others.
    """
    if min(depth, channels) < FEWEST_CHANNELS:
        return None
    costs = {m: _cost(m, height, width, depth, channels, images) for m in POINTS}
    weights = TAPS**2 * depth * channels
    best = min(costs, key=costs.__getitem__)
    by_2, by_4 = (_windows(m, height, width) * (m + 2) ** 2 for m in (2, 4))
    if weights >= MANY_WEIGHTS and by_4 > PRODUCTS_WORTH_MEMORY * by_2:
        best = 2
    plain = weights * images * height * width * on_data + _weight_cost(weights)
    return best if costs[best] <= (1 - SAVING) * plain else None


def taps_on_data(outputs: int, low: int, high: int) -> Fraction:
    """Share of the taps of `outputs` windows along one axis that meet no padding."""
    padded = sum(min(i, TAPS) for side in (low, high) for i in range(1, side + 1))
    return 1 - Fraction(padded, TAPS * outputs)


def _windows(m: int, height: int, width: int) -> int:
    return -(-height // m) * -(-width // m)


def _cost(m: int, height: int, width: int, depth: int, channels: int, images: int) -> float:
    """Estimated time, in multiply-adds."""
    values = (m + 2) ** 2
    windows = images * _windows(m, height, width)
    products = windows * values * depth * channels
    transforms = windows * values * (depth + channels) * TRANSFORM_COST
    return products + transforms + _weight_cost(values * depth * channels)


def _weight_cost(elements: int) -> float:
    return elements * (WEIGHT_COST if elements < LARGE_WEIGHTS else LARGE_WEIGHT_COST)


def _from_roots(roots: list[Fraction]) -> tuple[Fraction, ...]:
    """Coefficients of the monic polynomial with these roots, constant first."""
    coefficients = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *coefficients]
        scaled = [*(-root * c for c in coefficients), Fraction(0)]
        coefficients = [a + b for a, b in zip(shifted, scaled)]
    return tuple(coefficients)


def _value(coefficients: tuple[Fraction, ...], point: Fraction) -> Fraction:
    return sum((c * point**power for power, c in enumerate(coefficients)), Fraction(0))


def _padded(row: tuple[Fraction, ...], size: int) -> tuple[Fraction, ...]:
    return (*row, *[Fraction(0)] * (size - len(row)))


def _last(size: int) -> tuple[Fraction, ...]:
    """The row of the point at infinity: the highest power alone."""
    return (*[Fraction(0)] * (size - 1), Fraction(1))
