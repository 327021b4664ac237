"""Loops and operands of a Winograd convolution as tile choice sees them.

Its loops count like those of the plain convolution that it computes, n y x k and r s c, with y and
x as windows of m outputs; the weights have (m + 2)^2 values for 9, and there are two intermediate
results of (m + 2)^2 values per window and channel.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from mlir_npu.passes.analysis.footprint import Access, Compute, KernelShape, Loop, Transforms
from mlir_npu.passes.analysis.winograd import TAPS, TRANSFORM_COST


def winograd_shape(shape: KernelShape, loop_of: Mapping[int, int], outputs: int) -> KernelShape:
    """`shape`, as read from the generic, with the loops of the plain convolution.

    loop_of: the kernel's loop of each loop (n ty y tx x ko ki | a b i j c) of the generic.
    """
    n, ty, y, tx, x, ko, ki, a, b, i, j, c = (loop_of[loop] for loop in range(12))
    values = (outputs + TAPS - 1) ** 2
    extents = {a: TAPS, b: TAPS, i: 1, j: 1}
    loops = tuple(
        Loop(loop.name, extents[number], reduction=True) if number in extents else loop
        for number, loop in enumerate(shape.loops)
    )
    image, weights, *rest = shape.accesses
    rows = ((ty, outputs), (y, 1), (a, 1))
    columns = ((tx, outputs), (x, 1), (b, 1))
    image = replace(image, dims=(((n, 1),), rows, columns, ((c, 1),)))
    size = weights.element_bytes * values
    weights = replace(weights, element_bytes=size // TAPS**2)
    windows = (((n, 1),), ((ty, 1),), ((tx, 1),))
    transforms = Transforms(
        Fraction(values, (TAPS * outputs) ** 2),
        (
            Compute("vector", (n, ty, tx, c), values * TRANSFORM_COST // 2),
            Compute("vector", (n, ty, tx, ko, ki), values * TRANSFORM_COST // 2),
        ),
        (
            Access("transformed image", (*windows, ((c, 1),)), size),
            Access("products", (*windows, ((ko, 1),), ((ki, 1),)), size),
        ),
    )
    return replace(shape, loops=loops, accesses=(image, weights, *rest), transforms=transforms)
