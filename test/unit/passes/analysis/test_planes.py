"""What vectors of convolutions run over, for layers whose both orders were measured."""

import pytest

from mlir_npu.passes.analysis.planes import gains_planes

LANES = 16
# inputs, terms, columns, stride; shares of the peak over channels and over columns
MEASURED = [
    (3, 27, 224, 1, 66, 87),
    (3, 27, 111, 2, 75, 84),
    (3, 27, 112, 2, 73, 78),
    (3, 147, 112, 2, 94, 90),
]


@pytest.mark.parametrize("inputs, terms, columns, stride, channels, planes", MEASURED)
def test_the_faster_order_is_taken(inputs, terms, columns, stride, channels, planes):
    taken = gains_planes(inputs, terms, columns, stride, LANES)
    assert taken == (planes > channels)


def test_columns_that_fill_no_vector_cost_more_than_transposes():
    taken = [gains_planes(3, 27, columns, 1, LANES) for columns in (15, 16, 17, 32, 40, 47)]
    assert taken == [False, True, False, True, True, True]


def test_only_strides_that_vectors_are_loaded_with():
    assert [gains_planes(3, 27, 64, stride, LANES) for stride in (1, 2, 3)] == [
        True,
        True,
        False,
    ]
