"""Groups of computations that share a loop."""

from mlir_npu.passes.analysis.loop_groups import Computation, Use, find_groups

SIZE = 64


def use(value, loop):
    return Use(value, (loop,), (SIZE,), 4)


def elementwise(read, written):
    return Computation((SIZE,), frozenset(), (use(read, 0),), (use(written, 0),))


def with_sum_of(read, summed, written):
    """Every element of `read` with the sum of another value."""
    reads = use(read, 0), use(summed, 1)
    return Computation((SIZE, SIZE), frozenset({1}), reads, (use(written, 0),))


def members(computations, before):
    return [group.members for group in find_groups(computations, list(map(frozenset, before)))]


def test_computations_that_read_the_same_share_a_loop():
    computations = [elementwise("x", "a"), elementwise("x", "b")]
    assert members(computations, [(), ()]) == [[0, 1]]


def test_two_groups_do_not_need_each_other():
    """The second group needs a, which the first one makes: the last computation, which needs c of
    the second group, cannot be in the first."""
    computations = [
        elementwise("x", "a"),
        elementwise("y", "c"),
        with_sum_of("y", "a", "d"),
        with_sum_of("x", "c", "e"),
    ]
    assert members(computations, [(), (), (0,), (1,)]) == [[0], [1, 2], [3]]
