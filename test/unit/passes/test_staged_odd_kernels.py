"""Kernels of unusual form: no loops, no inputs, constants, two results, arguments passed through."""

import numpy as np
import pytest
from staged.kernel_text import Kernel, module
from staged.run import check, compile_to, interpret

from mlir_npu.passes.kernels.walk import nested

ODD = {
    "scalar": (
        "eltwise",
        """%e = tensor.empty() : tensor<f32>
  %result = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>],
    iterator_types = []} ins(%arg0 : tensor<f32>) outs(%e : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<f32>""",
        ((),),
        (),
        lambda x: -x,
    ),
    "sum of everything": (
        "reduce",
        """%e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %result = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>],
    iterator_types = ["reduction", "reduction"]}
    ins(%arg0 : tensor<64x96xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<f32>""",
        ((64, 96),),
        (),
        lambda x: x.sum(),
    ),
    "fill": (
        "eltwise",
        """%two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %result = linalg.fill ins(%two : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>""",
        (),
        (64, 128),
        lambda: np.full((64, 128), 2, np.float32),
    ),
    "broadcast": (
        "copy",
        """%e = tensor.empty() : tensor<4x8x6xf32>
  %result = linalg.broadcast ins(%arg0 : tensor<4x6xf32>) outs(%e : tensor<4x8x6xf32>)
    dimensions = [1]""",
        ((4, 6),),
        (4, 8, 6),
        lambda x: np.broadcast_to(x[:, None], (4, 8, 6)),
    ),
    "constant operand": (
        "eltwise",
        """%k = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %e = tensor.empty() : tensor<3x4xf32>
  %result = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
    ins(%arg0, %k : tensor<3x4xf32>, tensor<4xf32>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<3x4xf32>""",
        ((3, 4),),
        (3, 4),
        lambda x: x + np.arange(1, 5, dtype=np.float32),
    ),
    "argument passed through": ("copy", "", ((4, 6),), (4, 6), lambda x: x),
    "slice": (
        "copy",
        """%result = tensor.extract_slice %arg0[1, 2] [2, 3] [1, 1]
    : tensor<4x6xf32> to tensor<2x3xf32>""",
        ((4, 6),),
        (2, 3),
        lambda x: x[1:3, 2:5],
    ),
    "transposed operand": (
        "eltwise",
        """%e = tensor.empty() : tensor<8x12xf32>
  %result = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
    ins(%arg0 : tensor<12x8xf32>) outs(%e : tensor<8x12xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<8x12xf32>""",
        ((12, 8),),
        (8, 12),
        lambda x: -x.T,
    ),
    "outputs into the pad of a concatenation": (
        "copy",
        """%e = tensor.empty() : tensor<4x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %a = tensor.insert_slice %arg0 into %f[0, 0] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<4x6xf32>
  %result = tensor.insert_slice %arg1 into %a[2, 3] [2, 3] [1, 1]
    : tensor<2x3xf32> into tensor<4x6xf32>""",
        ((2, 3), (2, 3)),
        (4, 6),
        lambda x, y: np.block([[x, np.zeros((2, 3))], [np.zeros((2, 3)), y]]),
    ),
}


def kernel_of(name: str) -> Kernel:
    kind, body, inputs, output, reference = ODD[name]
    text = module(kind, body, inputs, output)
    if not body:
        text = text.replace("%result", "%arg0")
    return Kernel(text, inputs, output, reference)


@pytest.mark.parametrize("target", ["edge", "small", "host"])
@pytest.mark.parametrize("name", [name for name in ODD if not name.startswith("outputs")])
def test_odd_kernel_is_exact(name, target):
    check(kernel_of(name), target)


def test_several_boxes_in_a_filled_tensor():
    """The first move pads, the others overwrite; elements may be written twice."""
    kernel = kernel_of("outputs into the pad of a concatenation")
    arrays = kernel.arrays(0)
    allocated = compile_to(kernel, "allocate", "edge")
    result = interpret(kernel, allocated, arrays, counted=False)
    np.testing.assert_array_equal(result, kernel.reference(*arrays))
    assert len(nested(allocated.operation, "npu.dma_start")) == 2
