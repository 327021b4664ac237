"""Permutations and shape groups against numpy, which moves the elements."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlir_npu.passes.analysis.permutation import (
    Group,
    coalesce,
    compose,
    groups,
    inverse,
    is_channels_first,
    is_channels_last,
    is_identity,
    keeps_order,
    permuted,
)

shapes = st.lists(st.integers(1, 4), min_size=1, max_size=5)


@st.composite
def shape_and_permutations(draw):
    shape = draw(shapes)
    order = st.permutations(range(len(shape)))
    return shape, tuple(draw(order)), tuple(draw(order))


def numbered(shape):
    return np.arange(int(np.prod(shape))).reshape(shape)


@given(shape_and_permutations())
def test_compose_and_inverse_move_what_numpy_moves(case):
    shape, first, then = case
    x = numbered(shape)
    np.testing.assert_array_equal(
        x.transpose(compose(first, then)), x.transpose(first).transpose(then)
    )
    assert is_identity(compose(first, inverse(first)))
    assert permuted(shape, first) == x.transpose(first).shape


@given(shape_and_permutations())
def test_keeps_order_if_and_only_if_no_element_moves(case):
    shape, permutation, _ = case
    moved = numbered(shape).transpose(permutation).ravel()
    assert keeps_order(shape, permutation) == bool((moved == np.arange(moved.size)).all())


@given(shape_and_permutations())
def test_coalesce_moves_the_same_elements_with_fewer_dimensions(case):
    shape, permutation, _ = case
    extents, fewer = coalesce(shape, permutation)
    x = numbered(shape)
    np.testing.assert_array_equal(
        x.reshape(extents).transpose(fewer).ravel(), x.transpose(permutation).ravel()
    )
    assert len(fewer) <= len(permutation)
    assert 1 not in extents
    assert not any(b == a + 1 for a, b in pairwise(fewer))


@given(shapes, st.data())
def test_groups_pair_equal_counts_in_order(source, data):
    target = (
        data.draw(st.permutations(source)) if data.draw(st.booleans()) else [int(np.prod(source))]
    )
    found = groups(source, target)
    assert found is not None
    for group in found:
        assert np.prod([source[d] for d in group.source]) == np.prod(
            [target[d] for d in group.target]
        )
    assert [d for group in found for d in group.source] == list(range(len(source)))
    assert [d for group in found for d in group.target] == list(range(len(target)))


def test_groups_are_as_small_as_they_can_be():
    assert groups((2, 6, 5), (2, 2, 3, 5)) == (
        Group((0,), (0,)),
        Group((1,), (1, 2)),
        Group((2,), (3,)),
    )
    assert groups((2, 1, 1, 16), (2, 16, 1, 1)) == (Group((0,), (0,)), Group((1, 2, 3), (1, 2, 3)))


@pytest.mark.parametrize(
    "source, target", [((2, 3), (5,)), ((0, 3), (0, 2)), ((), (1,)), ((1,), ())]
)
def test_no_groups_of_shapes_that_do_not_correspond(source, target):
    assert groups(source, target) is None


def test_layouts_by_their_permutation():
    assert is_channels_first((0, 3, 1, 2)) and not is_channels_first((0, 2, 3, 1))
    assert is_channels_last((0, 2, 3, 1)) and not is_channels_last((0, 3, 1, 2))
    assert is_channels_first((0, 3, 4, 1, 2)) and is_channels_last((0, 3, 4, 1, 2))
    assert is_channels_first((0, 2, 1)) and not is_channels_first((1, 0))
