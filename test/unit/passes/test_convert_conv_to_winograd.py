"""The generic that stands for a Winograd convolution computes the convolution, op by op."""

import numpy as np
import pytest
import tensor_jit
from jit import AVX2, target_with

from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.dialect.target import set_target
from mlir_npu.passes.pass_manager import run_pipeline

TEXT = """
func.func @main(%x: tensor<{n}x{h2}x{w2}x{c}xf32> {{npu.role = "input"}},
                %w: tensor<3x3x{c}x{k}xf32> {{npu.role = "parameter"}}) -> tensor<{n}x{h}x{w}x{k}xf32> {{
  %start = arith.constant {start} : f32
  %e = tensor.empty() : tensor<{n}x{h}x{w}x{k}xf32>
  %f = linalg.fill ins(%start : f32) outs(%e : tensor<{n}x{h}x{w}x{k}xf32>) -> tensor<{n}x{h}x{w}x{k}xf32>
  %r = linalg.conv_2d_nhwc_hwcf {{dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}}
    ins(%x, %w : tensor<{n}x{h2}x{w2}x{c}xf32>, tensor<3x3x{c}x{k}xf32>)
    outs(%f : tensor<{n}x{h}x{w}x{k}xf32>) -> tensor<{n}x{h}x{w}x{k}xf32>
  return %r : tensor<{n}x{h}x{w}x{k}xf32>
}}
"""


@pytest.mark.parametrize(
    "n, h, w, c, k, start, outputs",
    [
        (1, 16, 12, 16, 24, 0.0, 4),
        (2, 6, 6, 32, 48, 0.0, 2),
        (3, 9, 11, 32, 16, 0.5, 4),
        (4, 8, 8, 20, 16, 1.5, 4),
    ],
)
def test_it_computes_the_convolution(n, h, w, c, k, start, outputs):
    text = TEXT.format(n=n, h=h, w=w, h2=h + 2, w2=w + 2, c=c, k=k, start=start)
    rng = np.random.default_rng(h)
    image = rng.standard_normal((n, h + 2, w + 2, c)).astype(np.float32)
    weights = (rng.standard_normal((3, 3, c, k)) / np.sqrt(9 * c)).astype(np.float32)
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        set_target(module.operation, target_with(AVX2))
        run_pipeline(module, "builtin.module(convert-conv-to-winograd)")
        assert f"npu.outputs = {outputs}" in module.operation.get_asm()
        (result,) = tensor_jit.run(module, [image, weights])
    expected = np.full((n, h, w, k), start)
    for r, s in np.ndindex(3, 3):
        expected += image[:, r : r + h, s : s + w].astype(np.float64) @ weights[r, s]
    np.testing.assert_allclose(result, expected, atol=1e-4)
