"""Tiles for a CPU whose moves transpose: little arithmetic leaves the first level of cache free."""

from dataclasses import replace
from pathlib import Path

import pytest
from test_tile_choice import elementwise, with_memory

from mlir_npu.dialect.target import load_target
from mlir_npu.passes.analysis.cached_tiles import FIRST_LEVEL_BYTES
from mlir_npu.passes.analysis.tile_choice import choose_tile

AVX2 = load_target(Path(__file__).resolve().parents[3] / "lit" / "Inputs" / "avx2.toml")
CPU = replace(with_memory(AVX2, 1 << 20), cores=1)


@pytest.mark.parametrize("extents", [(960, 49), (576, 49)])
def test_both_sides_of_a_transpose_about_fit_the_first_level(extents):
    plain = elementwise(*extents)
    *inputs, out = plain.accesses
    turned = replace(plain, accesses=(*inputs, replace(out, order=(1, 0))))
    rows, columns = choose_tile(turned, CPU).tile
    assert 512 <= rows * columns <= 1.5 * FIRST_LEVEL_BYTES / (2 * 4)


def test_without_a_transpose_there_is_no_need_to_tile():
    assert choose_tile(elementwise(960, 49), CPU).tile == (960, 49)
