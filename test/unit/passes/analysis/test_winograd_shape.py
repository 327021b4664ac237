"""To tile choice a Winograd convolution is the plain one with fewer products, and transforms."""

from fractions import Fraction
from math import prod
from pathlib import Path

import numpy as np
import pytest

from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.dialect.target import load_target, set_target
from mlir_npu.passes.analysis.footprint import KernelShape
from mlir_npu.passes.analysis.tile_choice import choose_tile
from mlir_npu.passes.analysis.tile_grid import elements
from mlir_npu.passes.kernels.describe import describe
from mlir_npu.passes.kernels.walk import kernels, string
from mlir_npu.passes.run_stages import run_stages

AVX2 = load_target(Path(__file__).resolve().parents[3] / "lit" / "Inputs" / "avx2.toml")
TEXT = """
func.func @main(%x: tensor<1x{p}x{p}x64xf32> {{npu.role = "input"}},
                %w: tensor<3x3x64x64xf32> {{npu.role = "parameter"}}) -> tensor<1x{o}x{o}x64xf32> {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x{o}x{o}x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x{o}x{o}x64xf32>) -> tensor<1x{o}x{o}x64xf32>
  %r = linalg.conv_2d_nhwc_hwcf {{dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}}
    ins(%x, %w : tensor<1x{p}x{p}x64xf32>, tensor<3x3x64x64xf32>)
    outs(%f : tensor<1x{o}x{o}x64xf32>) -> tensor<1x{o}x{o}x64xf32>
  return %r : tensor<1x{o}x{o}x64xf32>
}}"""


def shape_of(kind: str, extent: int) -> KernelShape:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(TEXT.format(o=extent, p=extent + 2))
        set_target(module.operation, AVX2)
        run_stages(module, last="normalise", winograd=kind == "winograd_conv2d")
        found = kernels(module.operation)
        (kernel,) = (kernel for kernel in found if string(kernel, "npu.kernel") == kind)
        return describe(kernel, AVX2.vector.lanes)


@pytest.mark.parametrize("extent, outputs", [(56, 4), (6, 2)])
def test_it_counts_like_the_plain_convolution(extent, outputs):
    fast, plain = shape_of("winograd_conv2d", extent), shape_of("conv2d", extent)
    assert prod(fast.extents) == prod(plain.extents)
    whole = [elements(s.accesses[0], np.array([s.extents])) for s in (fast, plain)]
    assert whole[0] == whole[1] == (extent + 2) ** 2 * 64
    values, windows = (outputs + 2) ** 2, (extent // outputs) ** 2
    assert fast.transforms.products == Fraction(values, 9 * outputs**2)
    for scratch in fast.transforms.scratch:
        held = elements(scratch, np.array([fast.extents])) * scratch.element_bytes
        assert held == values * windows * 64 * 4
    assert plain.transforms is None


def test_tiles_are_whole_windows():
    tile = choose_tile(shape_of("winograd_conv2d", 56), AVX2).tile
    assert tile[2] == tile[4] == 4
