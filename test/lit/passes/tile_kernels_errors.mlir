// RUN: %npu-opt %s --pass-pipeline='builtin.module(tile-kernels)' --split-input-file --verify-diagnostics

// expected-error @below {{kernel 'unscheduled' has no schedule; run choose-tiles first}}
func.func private @unscheduled(%x: tensor<4xf32>) -> tensor<4xf32> attributes {npu.kernel = "copy"} {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{schedule of 'ranks' has 3 tile sizes for 2 loops}}
func.func private @ranks(%x: tensor<4x8xf32>) -> tensor<8x4xf32>
    attributes {npu.kernel = "copy", npu.schedule = {tile = array<i64: 4, 1, 1>}} {
  %e = tensor.empty() : tensor<8x4xf32>
  %r = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  return %r : tensor<8x4xf32>
}

// -----

// expected-error @below {{schedule of 'divide': tile 3 does not divide the extent 8 of loop 0}}
func.func private @divide(%x: tensor<4x8xf32>) -> tensor<8x4xf32>
    attributes {npu.kernel = "copy", npu.schedule = {tile = array<i64: 3, 0>}} {
  %e = tensor.empty() : tensor<8x4xf32>
  %r = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  return %r : tensor<8x4xf32>
}
