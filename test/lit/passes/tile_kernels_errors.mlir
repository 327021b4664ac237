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

// -----

// expected-error @below {{schedule of 'negative': tile must be an array<i64> of numbers of at least 0, got array<i64: 0, -4>}}
func.func private @negative(%x: tensor<4x8xf32>) -> tensor<8x4xf32>
    attributes {npu.kernel = "copy", npu.schedule = {tile = array<i64: 0, -4>}} {
  %e = tensor.empty() : tensor<8x4xf32>
  %r = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  return %r : tensor<8x4xf32>
}

// -----

// expected-error @below {{schedule of 'short' has 1 tile sizes for 2 loops}}
func.func private @short(%x: tensor<4x8xf32>) -> tensor<8x4xf32>
    attributes {npu.kernel = "copy", npu.schedule = {tile = array<i64: 0>}} {
  %e = tensor.empty() : tensor<8x4xf32>
  %r = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  return %r : tensor<8x4xf32>
}

// -----

// expected-error @below {{schedule of 'large': tile 16 does not divide the extent 8 of loop 0}}
func.func private @large(%x: tensor<4x8xf32>) -> tensor<8x4xf32>
    attributes {npu.kernel = "copy", npu.schedule = {tile = array<i64: 16, 0>}} {
  %e = tensor.empty() : tensor<8x4xf32>
  %r = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  return %r : tensor<8x4xf32>
}

// -----

// expected-error @below {{schedule of 'narrow': tile must be an array<i64> of numbers of at least 0, got array<i32: 4, 0>}}
func.func private @narrow(%x: tensor<4x8xf32>) -> tensor<8x4xf32>
    attributes {npu.kernel = "copy", npu.schedule = {tile = array<i32: 4, 0>}} {
  %e = tensor.empty() : tensor<8x4xf32>
  %r = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  return %r : tensor<8x4xf32>
}

// -----

// expected-error @below {{schedule of 'reduces' has 1 reduction_tile sizes for 0 reduction loops}}
func.func private @reduces(%x: tensor<4x8xf32>) -> tensor<8x4xf32>
    attributes {npu.kernel = "copy", npu.schedule = {tile = array<i64: 0, 0>, reduction_tile = array<i64: 2>}} {
  %e = tensor.empty() : tensor<8x4xf32>
  %r = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  return %r : tensor<8x4xf32>
}

// -----

// expected-error @below {{schedule of 'many': buffers must be 1 or 2, got 7 : i64}}
func.func private @many(%x: tensor<4x8xf32>) -> tensor<8x4xf32>
    attributes {npu.kernel = "copy", npu.schedule = {tile = array<i64: 4, 0>, buffers = 7 : i64}} {
  %e = tensor.empty() : tensor<8x4xf32>
  %r = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  return %r : tensor<8x4xf32>
}

// -----

// expected-error @below {{schedule of 'text': acc_buffers must be 1 or 2, got "two"}}
func.func private @text(%x: tensor<4x8xf32>) -> tensor<8x4xf32>
    attributes {npu.kernel = "copy", npu.schedule = {tile = array<i64: 4, 0>, acc_buffers = "two"}} {
  %e = tensor.empty() : tensor<8x4xf32>
  %r = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  return %r : tensor<8x4xf32>
}

// -----

// expected-error @below {{schedule of 'orders': order [0] does not name 2 loops}}
func.func private @orders(%x: tensor<4x8xf32>) -> tensor<8x4xf32>
    attributes {npu.kernel = "copy", npu.schedule = {tile = array<i64: 4, 0>, order = array<i64: 0>}} {
  %e = tensor.empty() : tensor<8x4xf32>
  %r = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  return %r : tensor<8x4xf32>
}

// -----

// expected-error @below {{schedule of 'no_dictionary' must be a dictionary, got 3 : i64}}
func.func private @no_dictionary() attributes {npu.kernel = "copy", npu.schedule = 3} {
  return
}
