"""The merged description of a move addresses the same elements in the same order."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlir_npu.dialect.target import Dma
from mlir_npu.passes.analysis.move_shape import (
    Dim,
    dim_to_share,
    dims_to_loop_over,
    effective_dims,
    move_dims,
    worth_sharing,
)
from mlir_npu.passes.analysis.permutation import permuted


def row_major(extents):
    strides = [1]
    for extent in reversed(extents[1:]):
        strides.append(strides[-1] * extent)
    return tuple(reversed(strides)) if extents else ()


def addresses(shape, source_strides, target_strides):
    """(source, target) address of every element, in the order of the target's counters."""
    return [
        tuple(
            sum(i * s for i, s in zip(point, strides))
            for strides in (source_strides, target_strides)
        )
        for point in itertools.product(*map(range, shape))
    ]


@st.composite
def moves(draw):
    """A box of a source and one of a target, and the permutation between them."""
    rank = draw(st.integers(0, 5))
    shape = draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    order = draw(st.permutations(range(rank)))
    margins = st.lists(st.integers(0, 1), min_size=rank, max_size=rank)
    source = row_major([n + m for n, m in zip(shape, draw(margins))])
    landing = permuted(shape, order)
    target = row_major([n + m for n, m in zip(landing, draw(margins))])
    return shape, source, target, order


@given(moves())
def test_merged_dims_address_the_same_elements_in_the_same_order(move):
    shape, source, target, order = move
    dims = move_dims(*move)
    merged = addresses(
        [d.extent for d in dims], [d.source_stride for d in dims], [d.target_stride for d in dims]
    )
    assert merged == addresses(permuted(shape, order), permuted(source, order), target)


@given(moves())
def test_nothing_is_left_to_merge(move):
    dims = move_dims(*move)
    assert all(d.extent > 1 for d in dims)
    again = (
        effective_dims(*zip(*[(d.extent, d.source_stride, d.target_stride) for d in dims]))
        if dims
        else ()
    )
    assert len(again) == len(dims)


@given(moves(), st.integers(1, 4))
def test_moves_in_loops_have_the_rank_that_is_asked_for(move, max_rank):
    shape, source, target, order = move
    looped = dims_to_loop_over(move_dims(*move), max_rank)
    inside = [1 if dim in looped else n for dim, n in enumerate(permuted(shape, order))]
    assert len(effective_dims(inside, permuted(source, order), target)) <= max_rank


@pytest.mark.parametrize(
    "move, rank",
    [
        (((4, 4), (4, 1), (4, 1), (0, 1)), 1),
        (((4, 4), (4, 1), (4, 1), (1, 0)), 2),
        (((4, 1, 4), (9, 9, 1), (4, 4, 1), (1, 0, 2)), 2),  # a box of one column
        (((2, 56, 56, 64), (200704, 3584, 64, 1), (200704, 3136, 56, 1), (0, 3, 1, 2)), 3),
        (((), (), (), ()), 0),
    ],
)
def test_rank(move, rank):
    assert len(move_dims(*move)) == rank


def test_unknown_extents_and_strides_are_not_merged():
    assert effective_dims([4, None, 8], [64, 8, 1], [32, 8, 1]) == (
        Dim(4, 64, 32, (0,)),
        Dim(None, 1, 1, (1, 2)),  # whatever the extent, its steps are as long as what is inside
    )
    assert len(effective_dims([2, None, 8], [None, 9, 1], [32, 8, 1])) == 3
    assert len(effective_dims([2, 4], [None, 1], [4, 1])) == 2


def test_loops_run_over_the_fewest_elements():
    dims = effective_dims([8, 2, 3, 2], [1, 100, 8, 1000], [12, 6, 2, 1])
    assert [d.dims for d in dims] == [(0,), (1,), (2,), (3,)]
    assert dims_to_loop_over(dims, 4) == ()
    assert dims_to_loop_over(dims, 3) == (1,)
    assert dims_to_loop_over(dims, 2) == (1, 3)
    assert dims_to_loop_over(dims, 3, fixed=[1]) == (3,)
    assert dims_to_loop_over(dims, 3, fixed=[0, 1, 2, 3]) is None


def test_loops_run_over_all_parts_of_a_merged_dimension():
    dims = effective_dims([2, 3, 5, 7], [3, 1, 700, 50], [105, 35, 7, 1])
    assert [d.dims for d in dims] == [(0, 1), (2,), (3,)]
    assert dims_to_loop_over(dims, 1) == (0, 1, 2)


def test_channels_share_the_dimension_with_the_most_parts():
    extents = [3, 4, 6, 8]
    dims = effective_dims(extents, [1000, 100, 10, 1], [192, 48, 8, 1])
    assert [d.dims for d in dims] == [(0,), (1,), (2,), (3,)]
    assert dim_to_share(dims, extents, 1) is None
    assert dim_to_share(dims, extents, 2) == (1, 2)  # the outermost of equals
    assert dim_to_share(dims, extents, 2, fixed=[1]) == (2, 2)
    assert dim_to_share(dims, extents, 3) == (0, 3)
    assert dim_to_share(dims, extents, 8) == (3, 8)
    assert dim_to_share(dims, extents, 5) is None


def test_only_the_outermost_of_merged_dimensions_is_shared():
    extents = [3, 4, 8]
    dims = effective_dims(extents, [32, 8, 1], [32, 8, 1])
    assert dim_to_share(dims, extents, 2) is None and dim_to_share(dims, extents, 6) == (0, 3)


def test_a_move_is_shared_if_it_takes_longer_than_the_setups():
    dma = Dma(channels=2, setup_cycles=100, bytes_per_cycle=32, max_rank=4)
    assert worth_sharing(6400, dma) and not worth_sharing(6399, dma)
