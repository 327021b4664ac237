"""The comparison that the conformance run relies on finds every kind of difference."""

from __future__ import annotations

import pytest
import torch
from opinfo_compare import Run, as_exact, difference, has_layout_of

BASE = torch.arange(6.0).reshape(2, 3)


def run(result: object, *inputs: torch.Tensor, gradients: tuple = ()) -> Run:
    return Run(result, inputs, gradients)


def test_equal_runs() -> None:
    assert difference(run((BASE, 1)), run((BASE.clone(), 1))) is None


def test_rounding_is_no_difference() -> None:
    assert difference(run(BASE * (1 + 1e-6)), run(BASE)) is None


@pytest.mark.parametrize(
    ("actual", "expected", "words"),
    [
        (BASE + 1, BASE, "values differ"),
        (BASE.double(), BASE, "dtype is torch.float64"),
        (BASE[:1], BASE, "shape is"),
        (BASE.t().contiguous().t(), BASE, "strides are (1, 2), not (3, 1)"),
        ((BASE,), BASE, "result is"),
        (BASE, 1, "is a Tensor, not a int"),
        (2, 1, "is 2, not 1"),
        (BASE.clone().requires_grad_(), BASE, "requires_grad is True"),
        (BASE.to_sparse(), BASE, "layout is torch.sparse_coo"),
        (torch.tensor(float("nan")), torch.tensor(1.0), "values differ"),
    ],
)
def test_results_differ(actual: object, expected: object, words: str) -> None:
    assert words in difference(run(actual), run(expected))


def test_strides_of_unit_dimensions_mean_nothing() -> None:
    assert difference(run(BASE.as_strided((1, 3), (7, 1))), run(BASE[:1])) is None
    assert "strides" in difference(run(BASE.as_strided((2, 2), (1, 3))), run(BASE[:, :2]))


def test_strides_may_be_left_out() -> None:
    transposed = BASE.t().contiguous().t()
    assert difference(run(transposed), run(BASE), strides=False) is None
    assert "values" in difference(run(transposed + 1), run(BASE), strides=False)
    assert has_layout_of(run(transposed), transposed + 1)
    assert not has_layout_of(run(transposed), BASE)


def test_values_of_undefined_results_are_not_compared() -> None:
    assert difference(run(BASE + 1), run(BASE), values=False) is None
    assert "shape" in difference(run(BASE[:1]), run(BASE), values=False)


def test_input_that_was_overwritten() -> None:
    found = difference(run(None, BASE + 1), run(None, BASE))
    assert found.startswith("input 0 afterwards: values differ")


def test_gradients_differ() -> None:
    assert difference(run(None, gradients=(BASE,)), run(None, gradients=(BASE + 1,)))
    assert difference(run(None, gradients=(None,)), run(None, gradients=(BASE,)))


def test_result_that_no_longer_is_a_view_of_the_input() -> None:
    assert "share memory" in difference(run(BASE.clone(), BASE), run(BASE[:], BASE))


def test_results_that_no_longer_share_memory() -> None:
    shared, other = BASE.clone(), BASE.clone()
    found = difference(run((shared, other)), run((shared, shared[:])))
    assert "share memory" in found


def test_result_that_no_longer_is_the_input_itself() -> None:
    assert "same objects" in difference(run(BASE[:], BASE), run(BASE, BASE))


def test_rounding_like_that_of_eager_is_as_exact() -> None:
    exact = run(torch.zeros(2, dtype=torch.float64))
    eager = run(torch.tensor([0.0, 1e-3]))
    assert as_exact(run(torch.tensor([-1e-3, 0.0])), eager, exact)
    assert not as_exact(run(torch.tensor([-1e-2, 0.0])), eager, exact)


def test_what_is_not_finite_must_be_the_same() -> None:
    exact = run(torch.tensor([0.0, float("inf")], dtype=torch.float64))
    eager = run(torch.tensor([1e-3, float("inf")]))
    assert as_exact(run(torch.tensor([-1e-3, float("inf")])), eager, exact)
    assert not as_exact(run(torch.tensor([0.0, -float("inf")])), eager, exact)
    assert not as_exact(run(torch.tensor([float("nan"), float("inf")])), eager, exact)
