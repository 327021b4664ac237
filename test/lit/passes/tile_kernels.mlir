// RUN: %npu-opt %s --pass-pipeline='builtin.module(tile-kernels)' | filecheck %s
// RUN: %npu-opt %s --pass-pipeline='builtin.module(tile-kernels,tile-kernels)' | filecheck %s

#image = affine_map<(n, y, x, ko, ki, r, s, c) -> (n, y * 2 + r, x * 2 + s, c)>
#weights = affine_map<(n, y, x, ko, ki, r, s, c) -> (ko, r, s, c, ki)>
#out = affine_map<(n, y, x, ko, ki, r, s, c) -> (n, y, x, ko, ki)>
#id = affine_map<(n, y, x, ko, ki) -> (n, y, x, ko, ki)>
#channel = affine_map<(n, y, x, ko, ki) -> (ko, ki)>

// The last op is tiled, root and fill are fused into the loop, the pad stays outside, the reduction
// over channels runs in a loop of its own. Four rows of stride 2 read nine rows.
// CHECK-LABEL: func.func private @conv
// CHECK: tensor.pad
// CHECK: scf.forall (%{{.*}}, %{{.*}}) in (2, 3)
// CHECK: tensor.extract_slice %{{.*}} [1, 9, 17, 8]
// CHECK: linalg.fill
// CHECK: scf.for
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<1x9x17x4xf32>, tensor<1x3x3x4x8xf32>) outs(%{{.*}} : tensor<1x4x8x1x8xf32>)
// CHECK: scf.yield
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<1x4x8x1x8xf32>, tensor<1x8xf32>)
// CHECK: tensor.parallel_insert_slice
// CHECK-NOT: npu.tile_role
// CHECK: return
func.func private @conv(%x: tensor<1x16x16x8xf32>, %w: tensor<3x3x3x8x8xf32>, %shift: tensor<3x8xf32>) -> tensor<1x8x8x3x8xf32>
    attributes {npu.kernel = "conv2d", npu.schedule = {tile = array<i64: 0, 4, 0, 1, 0>, reduction_tile = array<i64: 0, 0, 4>}} {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 1, 1, 0] high[0, 0, 0, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x16x16x8xf32> to tensor<1x17x17x8xf32>
  %e = tensor.empty() : tensor<1x8x8x3x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x8x3x8xf32>) -> tensor<1x8x8x3x8xf32>
  %c = linalg.generic {indexing_maps = [#image, #weights, #out],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%p, %w : tensor<1x17x17x8xf32>, tensor<3x3x3x8x8xf32>) outs(%f : tensor<1x8x8x3x8xf32>)
      attrs = {npu.op = "conv2d", npu.strides = array<i64: 2, 2>, npu.dilations = array<i64: 1, 1>} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x8x8x3x8xf32>
  %r = linalg.generic {indexing_maps = [#id, #channel, #id],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%c, %shift : tensor<1x8x8x3x8xf32>, tensor<3x8xf32>) outs(%e : tensor<1x8x8x3x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<1x8x8x3x8xf32>
  return %r : tensor<1x8x8x3x8xf32>
}

// Transpositions are tiled by the loops of their result.
// CHECK-LABEL: func.func private @transpose
// CHECK: scf.forall (%{{.*}}) in (2)
// CHECK: linalg.transpose ins(%{{.*}} : tensor<4x4xf32>) outs(%{{.*}} : tensor<4x4xf32>)
func.func private @transpose(%x: tensor<4x8xf32>) -> tensor<8x4xf32>
    attributes {npu.kernel = "copy", npu.schedule = {tile = array<i64: 4, 0>}} {
  %e = tensor.empty() : tensor<8x4xf32>
  %r = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  return %r : tensor<8x4xf32>
}

// A schedule of zeros leaves the kernel whole.
// CHECK-LABEL: func.func private @whole
// CHECK-NOT: scf.
// CHECK: return
func.func private @whole(%x: tensor<4x8xf32>) -> tensor<8x4xf32>
    attributes {npu.kernel = "copy", npu.schedule = {tile = array<i64: 0, 0>}} {
  %e = tensor.empty() : tensor<8x4xf32>
  %r = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  return %r : tensor<8x4xf32>
}

// A tile as large as its loop is the same as 0; the schedule says so, as no loop is left of it.
// CHECK-LABEL: func.func private @as_large_as_its_loop
// CHECK-SAME: tile = array<i64: 4, 0>
// CHECK: scf.forall (%{{.*}}) in (2)
func.func private @as_large_as_its_loop(%x: tensor<4x8xf32>) -> tensor<8x4xf32>
    attributes {npu.kernel = "copy", npu.schedule = {tile = array<i64: 4, 4>}} {
  %e = tensor.empty() : tensor<8x4xf32>
  %r = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  return %r : tensor<8x4xf32>
}
