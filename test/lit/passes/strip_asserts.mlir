// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(strip-asserts)' | filecheck %s
// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(strip-asserts,strip-asserts)' | filecheck %s

// The check of a reciprocal goes, with what only it needed.
// CHECK-LABEL: func.func @in_a_body
// CHECK: ^bb0(%[[IN:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[Y:.*]] = arith.divf %{{.*}}, %[[IN]] : f32
// CHECK-NEXT: linalg.yield %[[Y]] : f32
func.func @in_a_body(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %ok = arith.cmpf one, %in, %zero : f32
    cf.assert %ok, "unimplemented: tensor with zero element"
    %y = arith.divf %one, %in : f32
    linalg.yield %y : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// A condition that the result needs too stays.
// CHECK-LABEL: func.func @shared_condition
// CHECK: arith.cmpf
// CHECK-NOT: cf.assert
// CHECK: arith.select
func.func @shared_condition(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %ok = arith.cmpf one, %in, %zero : f32
    cf.assert %ok, "zero"
    %y = arith.select %ok, %in, %zero : f32
    linalg.yield %y : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// Checks outside of a body go only if they cannot fail.
// CHECK-LABEL: func.func @outside
// CHECK-NOT: "always"
// CHECK: cf.assert %arg0, "caller"
// CHECK: cf.assert %{{.*}}, "never"
func.func @outside(%c: i1) {
  %true = arith.constant true
  %false = arith.constant false
  cf.assert %true, "always"
  cf.assert %c, "caller"
  cf.assert %false, "never"
  return
}
