"""Gradients of activations in host parts, on special values."""

import itertools

import torch
from host_calls import (
    NAN,
    SPECIAL_FLOATS,
    assert_matches,
    pairs,
)

aten = torch.ops.aten
BACKWARD = {
    "relu": lambda g, x: aten.threshold_backward(g, x, 0),
    "hardtanh": lambda g, x: aten.hardtanh_backward(g, x, -1, 1),
    "hardswish": lambda g, x: aten.hardswish_backward(g, x),
    "leaky_relu": lambda g, x: aten.leaky_relu_backward(g, x, 0.1, False),
}


def test_backward_of_activations():
    # eager treats NaN otherwise in the last elements that do not fill a vector: leave none over
    whole_vectors = [x.repeat(16) for x in pairs(SPECIAL_FLOATS, torch.float32)]
    assert_matches(BACKWARD, *whole_vectors, ulps=16)


def test_backward_of_bounded_activations():
    """Sigmoid and tanh are given results of theirs, which lie in [0, 1] and [-1, 1]."""
    calls = {"sigmoid": aten.sigmoid_backward, "tanh": aten.tanh_backward}
    calls["silu"] = aten.silu_backward
    results = [v for v in SPECIAL_FLOATS if 0 <= v <= 1] + [NAN]
    gradients = [v for v in SPECIAL_FLOATS if abs(v) < 1e5]
    both = list(itertools.product(gradients, results))
    assert_matches(calls, *(torch.tensor([b[i] for b in both]) for i in (0, 1)), ulps=16)
