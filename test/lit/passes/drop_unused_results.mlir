// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(drop-unused-results)' | filecheck %s
// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(drop-unused-results,drop-unused-results)' | filecheck %s

#whole = affine_map<(d0, d1) -> (d0, d1)>
#rows = affine_map<(d0, d1) -> (d0)>

// The position of a maximum goes, with the tensor that it starts from.
// CHECK-LABEL: func.func @maximum_only
// CHECK-NOT: i64
// CHECK: %[[M:.*]] = linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "reduction"]
// CHECK-SAME: ins(%arg0 : tensor<3x5xf32>) outs(%arg1 : tensor<3xf32>)
// CHECK-NEXT: ^bb0(%[[IN:.*]]: f32, %[[OUT:.*]]: f32):
// CHECK-NEXT: %[[MAX:.*]] = arith.maximumf %[[IN]], %[[OUT]]
// CHECK-NEXT: linalg.yield %[[MAX]] : f32
// CHECK: return %[[M]]
func.func @maximum_only(%x: tensor<3x5xf32>, %low: tensor<3xf32>) -> tensor<3xf32> {
  %zero = arith.constant 0 : i64
  %e = tensor.empty() : tensor<3xi64>
  %start = linalg.fill ins(%zero : i64) outs(%e : tensor<3xi64>) -> tensor<3xi64>
  %m:2 = linalg.generic {indexing_maps = [#whole, #rows, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<3x5xf32>) outs(%low, %start : tensor<3xf32>, tensor<3xi64>) {
  ^bb0(%in: f32, %out: f32, %at: i64):
    %i = linalg.index 1 : index
    %here = arith.index_cast %i : index to i64
    %max = arith.maximumf %in, %out : f32
    %new = arith.cmpf ogt, %in, %out : f32
    %position = arith.select %new, %here, %at : i64
    linalg.yield %max, %position : f32, i64
  } -> (tensor<3xf32>, tensor<3xi64>)
  return %m#0 : tensor<3xf32>
}

// -----

#whole = affine_map<(d0, d1) -> (d0, d1)>
#rows = affine_map<(d0, d1) -> (d0)>

// The position needs the maximum: both are accumulated.
// CHECK-LABEL: func.func @position_only
// CHECK: linalg.generic
// CHECK-SAME: outs(%arg1, %arg2 : tensor<3xf32>, tensor<3xi64>)
// CHECK: return %{{.*}}#1
func.func @position_only(%x: tensor<3x5xf32>, %low: tensor<3xf32>, %start: tensor<3xi64>) -> tensor<3xi64> {
  %m:2 = linalg.generic {indexing_maps = [#whole, #rows, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<3x5xf32>) outs(%low, %start : tensor<3xf32>, tensor<3xi64>) {
  ^bb0(%in: f32, %out: f32, %at: i64):
    %i = linalg.index 1 : index
    %here = arith.index_cast %i : index to i64
    %max = arith.maximumf %in, %out : f32
    %new = arith.cmpf ogt, %in, %out : f32
    %position = arith.select %new, %here, %at : i64
    linalg.yield %max, %position : f32, i64
  } -> (tensor<3xf32>, tensor<3xi64>)
  return %m#1 : tensor<3xi64>
}

// -----

#whole = affine_map<(d0) -> (d0)>

// Both results are read: unchanged.
// CHECK-LABEL: func.func @both
// CHECK: linalg.generic
// CHECK-SAME: outs(%arg1, %arg1 : tensor<4xf32>, tensor<4xf32>)
func.func @both(%x: tensor<4xf32>, %e: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r:2 = linalg.generic {indexing_maps = [#whole, #whole, #whole], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e, %e : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32, %other: f32):
    %double = arith.addf %in, %in : f32
    linalg.yield %double, %in : f32, f32
  } -> (tensor<4xf32>, tensor<4xf32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}
