// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(narrow-contractions)' | filecheck %s
// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(narrow-contractions,narrow-contractions)' | filecheck %s

#whole = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>

// The zero point around the image is an 8-bit number too; sums are made in 32 bits.
// CHECK-LABEL: func.func @padded
// CHECK: %[[ZERO:.*]] = arith.constant -6 : i8
// CHECK: %[[PADDED:.*]] = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1]
// CHECK: tensor.yield %[[ZERO]] : i8
// CHECK: %[[SUMS:.*]] = linalg.conv_2d_nchw_fchw
// CHECK-SAME: ins(%[[PADDED]], %arg1 : tensor<1x4x8x8xi8>, tensor<5x4x3x3xi8>)
// CHECK-SAME: -> tensor<1x5x6x6xi32>
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[SUMS]] : tensor<1x5x6x6xi32>)
// CHECK: arith.extsi %{{.*}} : i32 to i64
func.func @padded(%x: tensor<1x4x6x6xi8>, %w: tensor<5x4x3x3xi8>) -> tensor<1x5x6x6xi64> {
  %point = arith.constant -6 : i32
  %zero = arith.constant 0 : i64
  %e0 = tensor.empty() : tensor<1x4x6x6xi32>
  %a = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<1x4x6x6xi8>) outs(%e0 : tensor<1x4x6x6xi32>) {
  ^bb0(%in: i8, %out: i32):
    %wide = arith.extsi %in : i8 to i32
    linalg.yield %wide : i32
  } -> tensor<1x4x6x6xi32>
  %p = tensor.pad %a low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %point : i32
  } : tensor<1x4x6x6xi32> to tensor<1x4x8x8xi32>
  %e1 = tensor.empty() : tensor<5x4x3x3xi32>
  %b = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%w : tensor<5x4x3x3xi8>) outs(%e1 : tensor<5x4x3x3xi32>) {
  ^bb0(%in: i8, %out: i32):
    %wide = arith.extsi %in : i8 to i32
    linalg.yield %wide : i32
  } -> tensor<5x4x3x3xi32>
  %e2 = tensor.empty() : tensor<1x5x6x6xi64>
  %f = linalg.fill ins(%zero : i64) outs(%e2 : tensor<1x5x6x6xi64>) -> tensor<1x5x6x6xi64>
  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%p, %b : tensor<1x4x8x8xi32>, tensor<5x4x3x3xi32>) outs(%f : tensor<1x5x6x6xi64>) -> tensor<1x5x6x6xi64>
  return %c : tensor<1x5x6x6xi64>
}

// -----

#rows = affine_map<(d0, d1) -> (d0, d1)>

// A transpose of weights is one of 8-bit numbers.
// CHECK-LABEL: func.func @matmul
// CHECK: %[[T:.*]] = linalg.transpose ins(%arg1 : tensor<6x8xi8>)
// CHECK: linalg.matmul ins(%arg0, %[[T]] : tensor<4x8xi8>, tensor<8x6xi8>)
// CHECK-SAME: -> tensor<4x6xi32>
func.func @matmul(%x: tensor<4x8xi8>, %w: tensor<6x8xi8>) -> tensor<4x6xi64> {
  %zero = arith.constant 0 : i64
  %e0 = tensor.empty() : tensor<4x8xi32>
  %a = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xi8>) outs(%e0 : tensor<4x8xi32>) {
  ^bb0(%in: i8, %out: i32):
    %wide = arith.extsi %in : i8 to i32
    linalg.yield %wide : i32
  } -> tensor<4x8xi32>
  %e1 = tensor.empty() : tensor<6x8xi32>
  %b = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<6x8xi8>) outs(%e1 : tensor<6x8xi32>) {
  ^bb0(%in: i8, %out: i32):
    %wide = arith.extsi %in : i8 to i32
    linalg.yield %wide : i32
  } -> tensor<6x8xi32>
  %e2 = tensor.empty() : tensor<8x6xi32>
  %t = linalg.transpose ins(%b : tensor<6x8xi32>) outs(%e2 : tensor<8x6xi32>) permutation = [1, 0]
  %e3 = tensor.empty() : tensor<4x6xi64>
  %f = linalg.fill ins(%zero : i64) outs(%e3 : tensor<4x6xi64>) -> tensor<4x6xi64>
  %c = linalg.matmul ins(%a, %t : tensor<4x8xi32>, tensor<8x6xi32>) outs(%f : tensor<4x6xi64>) -> tensor<4x6xi64>
  return %c : tensor<4x6xi64>
}

// -----

#whole = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>

// The sum over windows of 8-bit numbers.
// CHECK-LABEL: func.func @pool
// CHECK: linalg.pooling_nchw_sum
// CHECK-SAME: ins(%arg0, %{{.*}} : tensor<1x3x6x6xi8>, tensor<2x2xi8>)
// CHECK-SAME: -> tensor<1x3x3x3xi32>
func.func @pool(%x: tensor<1x3x6x6xi8>) -> tensor<1x3x3x3xi32> {
  %zero = arith.constant 0 : i32
  %e0 = tensor.empty() : tensor<1x3x6x6xi32>
  %a = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<1x3x6x6xi8>) outs(%e0 : tensor<1x3x6x6xi32>) {
  ^bb0(%in: i8, %out: i32):
    %wide = arith.extsi %in : i8 to i32
    linalg.yield %wide : i32
  } -> tensor<1x3x6x6xi32>
  %e1 = tensor.empty() : tensor<1x3x3x3xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e1 : tensor<1x3x3x3xi32>) -> tensor<1x3x3x3xi32>
  %window = tensor.empty() : tensor<2x2xi32>
  %c = linalg.pooling_nchw_sum {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}
      ins(%a, %window : tensor<1x3x6x6xi32>, tensor<2x2xi32>) outs(%f : tensor<1x3x3x3xi32>) -> tensor<1x3x3x3xi32>
  return %c : tensor<1x3x3x3xi32>
}

// -----

#rows = affine_map<(d0, d1) -> (d0, d1)>

// One factor of 32 bits: nothing to gain. A padding that 8 bits do not hold, or numbers without a
// sign: nothing that would be the same.
// CHECK-LABEL: func.func @unchanged
// CHECK: linalg.matmul ins(%arg0, %{{.*}} : tensor<4x8xi32>, tensor<8x6xi32>)
// CHECK: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<4x8xi32>, tensor<8x6xi32>)
// CHECK: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<4x8xi32>, tensor<8x6xi32>)
func.func @unchanged(%x: tensor<4x8xi32>, %y: tensor<4x7xi8>, %z: tensor<4x8xi8>, %w: tensor<8x6xi8>)
    -> (tensor<4x6xi64>, tensor<4x6xi64>, tensor<4x6xi64>) {
  %zero = arith.constant 0 : i64
  %large = arith.constant 200 : i32
  %e1 = tensor.empty() : tensor<8x6xi32>
  %b = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<8x6xi8>) outs(%e1 : tensor<8x6xi32>) {
  ^bb0(%in: i8, %out: i32):
    %wide = arith.extsi %in : i8 to i32
    linalg.yield %wide : i32
  } -> tensor<8x6xi32>
  %e3 = tensor.empty() : tensor<4x6xi64>
  %f = linalg.fill ins(%zero : i64) outs(%e3 : tensor<4x6xi64>) -> tensor<4x6xi64>
  %c = linalg.matmul ins(%x, %b : tensor<4x8xi32>, tensor<8x6xi32>) outs(%f : tensor<4x6xi64>) -> tensor<4x6xi64>
  %e4 = tensor.empty() : tensor<4x7xi32>
  %a = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<4x7xi8>) outs(%e4 : tensor<4x7xi32>) {
  ^bb0(%in: i8, %out: i32):
    %wide = arith.extsi %in : i8 to i32
    linalg.yield %wide : i32
  } -> tensor<4x7xi32>
  %p = tensor.pad %a low[0, 1] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %large : i32
  } : tensor<4x7xi32> to tensor<4x8xi32>
  %d = linalg.matmul ins(%p, %b : tensor<4x8xi32>, tensor<8x6xi32>) outs(%f : tensor<4x6xi64>) -> tensor<4x6xi64>
  %e5 = tensor.empty() : tensor<4x8xi32>
  %u = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%z : tensor<4x8xi8>) outs(%e5 : tensor<4x8xi32>) {
  ^bb0(%in: i8, %out: i32):
    %wide = arith.extui %in : i8 to i32
    linalg.yield %wide : i32
  } -> tensor<4x8xi32>
  %e = linalg.matmul ins(%u, %b : tensor<4x8xi32>, tensor<8x6xi32>) outs(%f : tensor<4x6xi64>) -> tensor<4x6xi64>
  return %c, %d, %e : tensor<4x6xi64>, tensor<4x6xi64>, tensor<4x6xi64>
}
