"""Random kernels and tiles as machine code are exact, with every move made or copies left out."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from jit import AVX2, AVX512, SSE, target_with
from native import run_native
from test_staged_random import channelwise, convolutions, grouped, others, unscheduled

from mlir_npu.dialect.target import load_target

pytestmark = pytest.mark.usefixtures("one_thread")
EXAMPLES = 6
UNITS = st.sampled_from([AVX512, AVX2, SSE])


def cached(unit):
    """Sram is a cache: copies are elided, micro-kernels fuse."""
    return target_with(unit)


def with_memories(unit):
    """Every tile is moved for real."""
    vector = replace(load_target("edge").vector, lanes=unit.lanes, registers=unit.registers)
    return replace(load_target("edge"), vector=vector)


TARGETS = st.builds(lambda make, unit: make(unit), st.sampled_from([cached, with_memories]), UNITS)


def check(kernel, target, seed, threads=1):
    arrays = kernel.arrays(seed)
    result = run_native(kernel, target, arrays, threads)
    np.testing.assert_array_equal(result, kernel.reference(*arrays))


@settings(max_examples=2 * EXAMPLES, deadline=None)
@given(convolutions(), TARGETS, st.integers(0, 99))
def test_convolutions(kernel, target, seed):
    check(kernel, target, seed)


@settings(max_examples=2 * EXAMPLES, deadline=None)
@given(channelwise(), TARGETS, st.integers(0, 99))
def test_windows_over_channels(kernel, target, seed):
    check(kernel, target, seed)


@settings(max_examples=EXAMPLES, deadline=None)
@given(grouped(), TARGETS, st.integers(0, 99))
def test_grouped_convolutions(kernel, target, seed):
    check(kernel, target, seed)


@settings(max_examples=2 * EXAMPLES, deadline=None)
@given(others(), TARGETS, st.integers(0, 99))
def test_other_kernels(kernel, target, seed):
    check(kernel, target, seed)


@settings(max_examples=EXAMPLES, deadline=None)
@given(unscheduled(), TARGETS, st.integers(0, 99))
def test_chosen_tiles(kernel, target, seed):
    check(kernel, target, seed)


@settings(max_examples=EXAMPLES, deadline=None)
@given(unscheduled(), TARGETS, st.integers(0, 99))
def test_two_threads(kernel, target, seed):
    torch.set_num_threads(2)
    parallel = replace(kernel, text=kernel.text.replace("parallel = false", "parallel = true"))
    check(parallel, target, seed, threads=2)
