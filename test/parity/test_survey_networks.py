"""Networks that nobody tuned the compiler for: as close to float64 as eager is, in inference and in
a training step, and where the page about them says they run."""

from __future__ import annotations

import functools

import pytest

pytest.importorskip("transformers")

from mlir_npu.scripts.networks.survey.collection import BY_NAME, ENTRIES
from mlir_npu.scripts.networks.survey.record import Placement, load, try_inference, try_training

# A training step takes longer to compile than a call.
FAST_TRAINING = {"3-D video network"}


def params(fast) -> list:
    """Names, those that are not fast marked slow."""
    return [name if fast(name) else pytest.param(name, marks=pytest.mark.slow) for name in BY_NAME]


@functools.cache
def inference(name: str) -> Placement:
    return try_inference(BY_NAME[name])


@pytest.mark.parametrize("name", params(lambda name: BY_NAME[name].fast))
def test_results_are_as_close_to_float64_as_those_of_eager(name):
    assert inference(name).failures == ()


@pytest.mark.parametrize("name", params(lambda name: BY_NAME[name].fast))
def test_the_page_says_where_it_runs(name):
    kept, found = load()[name].inference, inference(name)
    for what in ("graphs", "breaks", "regions", "macs", "npu_macs"):
        assert getattr(found, what) == getattr(kept, what), what


@pytest.mark.parametrize("name", params(FAST_TRAINING.__contains__))
def test_gradients_are_as_close_to_float64_as_those_of_eager(name):
    assert try_training(BY_NAME[name]).failures == ()


def test_the_page_has_networks_as_they_are_built():
    """Those that have not been tried yet, the page lists by name."""
    recipes = {entry.name: entry.recipe for entry in ENTRIES}
    kept = {name: result.recipe for name, result in load().items()}
    assert kept == {name: recipes.get(name) for name in kept}
    assert {name for name in recipes if BY_NAME[name].fast} <= kept.keys()


def test_no_region_of_the_page_failed_to_compile():
    for name, result in load().items():
        assert not [text for text in result.inference.failures if "not compile" in text], name
