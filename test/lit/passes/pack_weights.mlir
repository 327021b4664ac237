// RUN: npu-opt %s --split-input-file --target %inputs/avx2.toml --pass-pipeline='builtin.module(pack-weights)' | filecheck %s
// RUN: npu-opt %s --split-input-file --target %inputs/avx2.toml --pass-pipeline='builtin.module(pack-weights,pack-weights)' | filecheck %s

// CHECK-DAG: #[[IMAGE:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1 * 2 + d5, d2 + d6 * 3, d7)>
// CHECK-DAG: #[[WEIGHTS:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d3, d5, d6, d7, d4)>
// CHECK-DAG: #[[OUT:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d2, d3, d4)>

// One transpose from the parameter's order to the packed one; bias and residual follow in blocks.
// CHECK-LABEL: func.func @convolution
// CHECK: %[[V:.*]] = tensor.expand_shape %arg1 {{\[\[}}0, 1], [2], [3], [4]] output_shape [[[KO:[0-9]+]], [[KI:[0-9]+]], 8, 3, 3]
// CHECK: %[[W:.*]] = linalg.transpose ins(%[[V]] {{.*}} permutation = [0, 3, 4, 2, 1]
// CHECK-NOT: linalg.transpose
// CHECK: %[[C:.*]] = linalg.generic {indexing_maps = [#[[IMAGE]], #[[WEIGHTS]], #[[OUT]]], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%arg0, %[[W]]
// CHECK-SAME: attrs = {npu.dilations = array<i64: 1, 3>, npu.op = "conv2d", npu.strides = array<i64: 2, 1>}
// CHECK: %[[B:.*]] = tensor.expand_shape %arg2 {{\[\[}}0, 1]] output_shape [[[KO]], [[KI]]]
// CHECK: %[[R:.*]] = tensor.expand_shape %arg3 {{\[\[}}0], [1], [2], [3, 4]]
// CHECK: %[[E:.*]] = linalg.generic {{.*}} ins(%[[C]], %[[B]], %[[R]]
// CHECK: %[[Y:.*]] = tensor.collapse_shape %[[E]] {{\[\[}}0], [1], [2], [3, 4]]
// CHECK: return %[[Y]] : tensor<1x3x3x32xf32>
func.func @convolution(%x: tensor<1x7x9x8xf32>, %p: tensor<32x8x3x3xf32>, %b: tensor<32xf32>, %r: tensor<1x3x3x32xf32>) -> tensor<1x3x3x32xf32> {
  %zero = arith.constant 0.0 : f32
  %ew = tensor.empty() : tensor<3x3x8x32xf32>
  %w = linalg.transpose ins(%p : tensor<32x8x3x3xf32>) outs(%ew : tensor<3x3x8x32xf32>) permutation = [2, 3, 1, 0]
  %e = tensor.empty() : tensor<1x3x3x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x3x3x32xf32>) -> tensor<1x3x3x32xf32>
  %c = linalg.conv_2d_nhwc_hwcf {dilations = dense<[1, 3]> : vector<2xi64>, strides = dense<[2, 1]> : vector<2xi64>}
      ins(%x, %w : tensor<1x7x9x8xf32>, tensor<3x3x8x32xf32>) outs(%f : tensor<1x3x3x32xf32>) -> tensor<1x3x3x32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, h, w, k) -> (n, h, w, k)>, affine_map<(n, h, w, k) -> (k)>, affine_map<(n, h, w, k) -> (n, h, w, k)>, affine_map<(n, h, w, k) -> (n, h, w, k)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%c, %b, %r : tensor<1x3x3x32xf32>, tensor<32xf32>, tensor<1x3x3x32xf32>) outs(%e : tensor<1x3x3x32xf32>) {
  ^bb0(%i: f32, %j: f32, %k: f32, %o: f32):
    %0 = arith.addf %i, %j : f32
    %1 = arith.addf %0, %k : f32
    linalg.yield %1 : f32
  } -> tensor<1x3x3x32xf32>
  return %y : tensor<1x3x3x32xf32>
}

// -----

// Groups keep a loop of their own; the pad moves next to the convolution that reads it.
// CHECK-LABEL: func.func @grouped
// CHECK: %[[G:.*]] = tensor.expand_shape %arg0 {{\[\[}}0], [1], [2], [3, 4]] output_shape [1, 4, 4, 2, 3]
// CHECK: %[[P:.*]] = tensor.pad %[[G]] low[0, 1, 1, 0, 0] high[0, 1, 1, 0, 0]
// CHECK: linalg.generic {{.*}} ins(%[[P]], %{{.*}} : tensor<1x6x6x2x3xf32>, tensor<2x1x3x3x3x8xf32>) outs(%{{.*}} : tensor<1x4x4x2x1x8xf32>)
// CHECK-SAME: npu.op = "grouped_conv2d"
// CHECK: tensor.collapse_shape
func.func @grouped(%x: tensor<1x4x4x6xf32>, %w: tensor<2x8x3x3x3xf32>) -> tensor<1x4x4x2x8xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x4x4x6xf32> to tensor<1x6x6x6xf32>
  %g = tensor.expand_shape %p [[0], [1], [2], [3, 4]] output_shape [1, 6, 6, 2, 3] : tensor<1x6x6x6xf32> into tensor<1x6x6x2x3xf32>
  %e = tensor.empty() : tensor<1x4x4x2x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x4x2x8xf32>) -> tensor<1x4x4x2x8xf32>
  %c = linalg.conv_2d_nhwgc_gfhwc {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%g, %w : tensor<1x6x6x2x3xf32>, tensor<2x8x3x3x3xf32>) outs(%f : tensor<1x4x4x2x8xf32>) -> tensor<1x4x4x2x8xf32>
  return %c : tensor<1x4x4x2x8xf32>
}

// -----

// CHECK-LABEL: func.func @matmul
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %{{.*}} : tensor<4x6xf32>, tensor<[[NO:[0-9]+]]x6x[[NI:[0-9]+]]xf32>) outs(%{{.*}} : tensor<4x[[NO]]x[[NI]]xf32>)
// CHECK-SAME: npu.op = "matmul"
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0], [1, 2]]
func.func @matmul(%x: tensor<4x6xf32>, %w: tensor<6x32xf32>) -> tensor<4x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32xf32>) -> tensor<4x32xf32>
  %m = linalg.matmul ins(%x, %w : tensor<4x6xf32>, tensor<6x32xf32>) outs(%f : tensor<4x32xf32>) -> tensor<4x32xf32>
  return %m : tensor<4x32xf32>
}

// -----

// A matrix product with other maps is not this product, and a depthwise convolution has no blocks.
// CHECK-LABEL: func.func @left_alone
// CHECK: linalg.matmul indexing_maps
// CHECK: linalg.depthwise_conv_2d_nhwc_hwc
// CHECK-NOT: npu.op
func.func @left_alone(%x: tensor<4x6xf32>, %w: tensor<32x6xf32>, %i: tensor<4x32xf32>, %a: tensor<1x5x5x4xf32>, %k: tensor<3x3x4xf32>, %j: tensor<1x3x3x4xf32>) -> (tensor<4x32xf32>, tensor<1x3x3x4xf32>) {
  %m = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %w : tensor<4x6xf32>, tensor<32x6xf32>) outs(%i : tensor<4x32xf32>) -> tensor<4x32xf32>
  %d = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%a, %k : tensor<1x5x5x4xf32>, tensor<3x3x4xf32>) outs(%j : tensor<1x3x3x4xf32>) -> tensor<1x3x3x4xf32>
  return %m, %d : tensor<4x32xf32>, tensor<1x3x3x4xf32>
}

// -----

// One row uses each weight once: where sram is a cache, weights are read as they are stored.
// CHECK-LABEL: func.func @one_row
// CHECK-SAME: (%[[X:.*]]: tensor<1x256xf32>, %[[W:.*]]: tensor<8x256xf32>
// CHECK: %[[V:.*]] = tensor.collapse_shape %[[X]]
// CHECK: %[[S:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%[[W]], %[[V]] : tensor<8x256xf32>, tensor<256xf32>) outs(%{{.*}} : tensor<8xf32>)
// CHECK: tensor.expand_shape %[[S]] {{\[\[}}0, 1]] output_shape [1, 8]
func.func @one_row(%x: tensor<1x256xf32>, %w: tensor<8x256xf32>) -> tensor<1x8xf32> {
  %zero = arith.constant 0.0 : f32
  %we = tensor.empty() : tensor<256x8xf32>
  %wt = linalg.transpose ins(%w : tensor<8x256xf32>) outs(%we : tensor<256x8xf32>) permutation = [1, 0]
  %e = tensor.empty() : tensor<1x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8xf32>) -> tensor<1x8xf32>
  %m = linalg.matmul ins(%x, %wt : tensor<1x256xf32>, tensor<256x8xf32>) outs(%f : tensor<1x8xf32>) -> tensor<1x8xf32>
  return %m : tensor<1x8xf32>
}

// -----

// Short rows, weights stored the other way, and sums that do not start from zero are packed.
// CHECK-LABEL: func.func @packed_rows
// CHECK-COUNT-3: npu.op = "matmul"
func.func @packed_rows(%x: tensor<1x64xf32>, %y: tensor<1x256xf32>, %w: tensor<8x64xf32>, %s: tensor<256x8xf32>, %t: tensor<8x256xf32>, %i: tensor<1x8xf32>) -> (tensor<1x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %we = tensor.empty() : tensor<64x8xf32>
  %wt = linalg.transpose ins(%w : tensor<8x64xf32>) outs(%we : tensor<64x8xf32>) permutation = [1, 0]
  %te = tensor.empty() : tensor<256x8xf32>
  %tt = linalg.transpose ins(%t : tensor<8x256xf32>) outs(%te : tensor<256x8xf32>) permutation = [1, 0]
  %e = tensor.empty() : tensor<1x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8xf32>) -> tensor<1x8xf32>
  %a = linalg.matmul ins(%x, %wt : tensor<1x64xf32>, tensor<64x8xf32>) outs(%f : tensor<1x8xf32>) -> tensor<1x8xf32>
  %b = linalg.matmul ins(%y, %s : tensor<1x256xf32>, tensor<256x8xf32>) outs(%f : tensor<1x8xf32>) -> tensor<1x8xf32>
  %c = linalg.matmul ins(%y, %tt : tensor<1x256xf32>, tensor<256x8xf32>) outs(%i : tensor<1x8xf32>) -> tensor<1x8xf32>
  return %a, %b, %c : tensor<1x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>
}

// -----

// CHECK-DAG: #[[LHS:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4)>
// CHECK-DAG: #[[RHS:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2, d3)>
// CHECK-LABEL: func.func @batch
// CHECK: %[[Y:.*]] = tensor.expand_shape %arg1 {{.*}} : tensor<2x6x32xf32> into tensor<2x6x{{[0-9]+}}x{{[0-9]+}}xf32>
// CHECK: linalg.generic {indexing_maps = [#[[LHS]], #[[RHS]], {{.*}}]{{.*}}} ins(%arg0, %[[Y]] : {{.*}}npu.op = "batch_matmul"
func.func @batch(%x: tensor<2x4x6xf32>, %y: tensor<2x6x32xf32>) -> tensor<2x4x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x32xf32>) -> tensor<2x4x32xf32>
  %m = linalg.batch_matmul ins(%x, %y : tensor<2x4x6xf32>, tensor<2x6x32xf32>) outs(%f : tensor<2x4x32xf32>) -> tensor<2x4x32xf32>
  return %m : tensor<2x4x32xf32>
}
