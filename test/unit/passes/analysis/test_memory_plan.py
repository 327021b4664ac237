"""The memory planner against its independent verifier, on hand-made and random lifetimes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlir_npu.passes.analysis.memory_plan import (
    Overflow,
    Request,
    align,
    peak_bytes,
    plan,
    verify,
)

ALIGNMENT = 16


@st.composite
def request_lists(draw):
    spans = draw(
        st.lists(st.tuples(st.integers(1, 300), st.integers(0, 12), st.integers(0, 8)), max_size=14)
    )
    return [Request(f"b{i}", size, first, first + n) for i, (size, first, n) in enumerate(spans)]


@given(request_lists(), st.sampled_from([1, 16, 64]))
def test_random_plans_verify_and_stay_between_peak_and_bump(requests, alignment):
    result = plan(requests, alignment)
    assert verify(requests, result.offsets, alignment, result.bytes) == []
    assert peak_bytes(requests) <= result.bytes <= sum(align(r.bytes, alignment) for r in requests)


@given(request_lists())
def test_plan_depends_on_the_requests_only(requests):
    assert plan(requests, ALIGNMENT) == plan(list(reversed(requests)), ALIGNMENT)


def test_disjoint_lives_share_memory():
    result = plan([Request("a", 100, 0, 1), Request("b", 80, 2, 3)], ALIGNMENT)
    assert result.bytes == 100 and set(result.offsets.values()) == {0}


def test_touching_lives_do_not_share_memory():
    result = plan([Request("a", 100, 0, 2), Request("b", 80, 2, 3)], ALIGNMENT)
    assert result.offsets == {"a": 0, "b": 112} and result.bytes == 192


def test_the_tightest_gap_is_taken():
    requests = [
        Request("low", 400, 0, 9),
        Request("wide", 304, 0, 0),
        Request("middle", 256, 0, 9),
        Request("narrow", 64, 0, 0),
        Request("high", 48, 0, 9),
        Request("late", 32, 1, 9),
    ]
    offsets = plan(requests, ALIGNMENT).offsets
    assert (offsets["wide"], offsets["narrow"]) == (400, 960)
    assert offsets["late"] == 960, "the gap of 64 bytes is tighter than that of 304"


def test_overflow_names_needed_available_and_largest():
    requests = [Request("a", 100, 0, 1), Request("b", 200, 1, 2), Request("late", 999, 5, 5)]
    with pytest.raises(Overflow) as error:
        plan(requests[:2], ALIGNMENT, capacity=256)
    assert (error.value.needed, error.value.available) == (308, 256)
    assert [r.name for r in error.value.largest] == ["b", "a"]
    assert "needs 308 of 256 bytes; largest buffers: b (200 bytes), a (100 bytes)" in str(
        error.value
    )


@pytest.mark.parametrize("size, first, last", [(0, 0, 1), (-4, 0, 1), (4, 2, 1)])
def test_impossible_requests_are_refused(size, first, last):
    with pytest.raises(ValueError, match="request 'x'"):
        Request("x", size, first, last)


def test_duplicate_names_are_refused():
    with pytest.raises(ValueError, match="duplicate"):
        plan([Request("x", 1, 0, 0), Request("x", 2, 1, 1)], ALIGNMENT)


@pytest.mark.parametrize(
    "offsets, fault",
    [
        ({"a": 0}, "'b' has no offset"),
        ({"a": 0, "b": 16}, "'b' and 'a' overlap"),
        ({"a": 0, "b": 40}, "not aligned"),
        ({"a": 0, "b": 112}, "'b' occupies [112, 144) of 128 bytes"),
    ],
)
def test_the_verifier_reports_each_fault(offsets, fault):
    requests = [Request("a", 32, 0, 1), Request("b", 32, 1, 2)]
    (found,) = verify(requests, offsets, ALIGNMENT, capacity=128)
    assert fault in found
