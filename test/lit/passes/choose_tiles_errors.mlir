// RUN: %npu-opt %s --target nano --pass-pipeline='builtin.module(choose-tiles)' --split-input-file --verify-diagnostics

#lhs = affine_map<(m, no, ni, c) -> (m, c)>
#rhs = affine_map<(m, no, ni, c) -> (no, c, ni)>
#out = affine_map<(m, no, ni, c) -> (m, no, ni)>
// expected-error @below {{matmul kernel 'matmul' does not fit: the smallest tile needs 384 of 256 bytes of sram; largest buffers: argument 0 (128 bytes), argument 1 (128 bytes), result of linalg.generic (128 bytes); run it on the host}}
func.func private @matmul(%x: tensor<8x4xf32>, %w: tensor<2x4x32xf32>) -> tensor<8x2x32xf32> attributes {npu.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x2x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x2x32xf32>) -> tensor<8x2x32xf32>
  %r = linalg.generic {indexing_maps = [#lhs, #rhs, #out],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x4xf32>, tensor<2x4x32xf32>) outs(%f : tensor<8x2x32xf32>) attrs = {npu.op = "matmul"} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x2x32xf32>
  return %r : tensor<8x2x32xf32>
}

// -----

#half = affine_map<(i) -> (i floordiv 2)>
#id = affine_map<(i) -> (i)>
// expected-error @below {{kernel 'upsample' cannot be tiled: indexing expression 'd0 floordiv 2' is not linear}}
func.func private @upsample(%x: tensor<4xf32>) -> tensor<8xf32> attributes {npu.kernel = "eltwise"} {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#half, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// A schedule that is there already must be one for the loops.
// expected-error @below {{schedule of 'given': tile 3 does not divide the extent 8 of loop 0}}
func.func private @given(%x: tensor<4x8xf32>) -> tensor<8x4xf32>
    attributes {npu.kernel = "copy", npu.schedule = {tile = array<i64: 3, 0>}} {
  %e = tensor.empty() : tensor<8x4xf32>
  %r = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  return %r : tensor<8x4xf32>
}
