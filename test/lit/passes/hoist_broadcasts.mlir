// RUN: %npu-opt %s --pass-pipeline='builtin.module(hoist-broadcasts)' | filecheck %s
// RUN: %npu-opt %s --pass-pipeline='builtin.module(hoist-broadcasts,hoist-broadcasts)' | filecheck %s

#whole = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>

// One logarithm and one quotient for each row; the sum stays where it is.
// CHECK-LABEL: func.func @rows
// CHECK: %[[L:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<8xf32>, tensor<8xf32>)
// CHECK: math.log
// CHECK: arith.divf
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %[[L]] : tensor<8x768xf32>, tensor<768xf32>, tensor<8xf32>)
// CHECK-NOT: math.log
// CHECK: arith.subf
// CHECK: return
func.func @rows(%x: tensor<8x768xf32>, %s: tensor<8xf32>, %n: tensor<8xf32>, %b: tensor<768xf32>) -> tensor<8x768xf32> {
  %e = tensor.empty() : tensor<8x768xf32>
  %r = linalg.generic {indexing_maps = [#whole, #row, #row, #column, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s, %n, %b : tensor<8x768xf32>, tensor<8xf32>, tensor<8xf32>, tensor<768xf32>) outs(%e : tensor<8x768xf32>) {
  ^bb0(%a: f32, %c: f32, %d: f32, %f: f32, %o: f32):
    %0 = math.log %c : f32
    %1 = arith.divf %0, %d : f32
    %2 = arith.subf %a, %1 : f32
    %3 = arith.addf %2, %f : f32
    linalg.yield %3 : f32
  } -> tensor<8x768xf32>
  return %r : tensor<8x768xf32>
}

// What is cheap, or of few elements, stays.
// CHECK-LABEL: func.func @cheap
// CHECK-COUNT-2: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @cheap(%x: tensor<8x768xf32>, %s: tensor<8xf32>, %y: tensor<8x4xf32>) -> (tensor<8x768xf32>, tensor<8x4xf32>) {
  %e = tensor.empty() : tensor<8x768xf32>
  %r = linalg.generic {indexing_maps = [#whole, #row, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<8x768xf32>, tensor<8xf32>) outs(%e : tensor<8x768xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %0 = arith.mulf %c, %c : f32
    %1 = arith.subf %a, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<8x768xf32>
  %g = tensor.empty() : tensor<8x4xf32>
  %q = linalg.generic {indexing_maps = [#whole, #row, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%y, %s : tensor<8x4xf32>, tensor<8xf32>) outs(%g : tensor<8x4xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %0 = math.log %c : f32
    %1 = arith.subf %a, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<8x4xf32>
  return %r, %q : tensor<8x768xf32>, tensor<8x4xf32>
}
