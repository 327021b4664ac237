// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(outline-prepare)' | filecheck %s
// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(outline-prepare,outline-prepare)' | filecheck %s

// @scale feeds @shift and @main; the packed weights reach @main through a reshape, which stays there.
// CHECK: func.func @prepare(%[[W:.*]]: tensor<4x6xf32> {npu.role = "parameter"}, %[[V:.*]]: tensor<4xf32> {npu.role = "parameter"}) -> (tensor<6x4xf32>, tensor<4xf32>)
// CHECK-NEXT: %[[P:.*]] = call @pack(%[[W]])
// CHECK-NEXT: %[[S:.*]] = call @scale(%[[V]])
// CHECK-NEXT: %[[T:.*]] = call @shift(%[[V]], %[[S]])
// CHECK-NEXT: return %[[P]], %[[T]]
// CHECK: func.func @main(%[[PW:.*]]: tensor<4x6xf32> {npu.role = "parameter"}, %[[X:.*]]: tensor<2x6xf32> {npu.role = "input"}, %[[PV:.*]]: tensor<4xf32> {npu.role = "parameter"}, %[[A:.*]]: tensor<6x4xf32> {npu.role = "prepared"}, %[[B:.*]]: tensor<4xf32> {npu.role = "prepared"})
// CHECK-NEXT: %[[E:.*]] = tensor.expand_shape %[[A]]
// CHECK-NEXT: %[[M:.*]] = call @matmul(%[[X]], %[[E]], %[[B]], %[[PV]])
// CHECK-NEXT: return %[[M]]
func.func @main(%w: tensor<4x6xf32> {npu.role = "parameter"}, %x: tensor<2x6xf32> {npu.role = "input"}, %v: tensor<4xf32> {npu.role = "parameter"}) -> tensor<2x4xf32> {
  %p = call @pack(%w) : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %e = tensor.expand_shape %p [[0, 1], [2]] output_shape [1, 6, 4] : tensor<6x4xf32> into tensor<1x6x4xf32>
  %s = call @scale(%v) : (tensor<4xf32>) -> tensor<4xf32>
  %t = call @shift(%v, %s) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %m = call @matmul(%x, %e, %t, %v) : (tensor<2x6xf32>, tensor<1x6x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %m : tensor<2x4xf32>
}
func.func private @pack(tensor<4x6xf32>) -> tensor<6x4xf32> attributes {npu.kernel = "copy"}
func.func private @scale(tensor<4xf32>) -> tensor<4xf32> attributes {npu.kernel = "eltwise"}
func.func private @shift(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> attributes {npu.kernel = "eltwise"}
func.func private @matmul(tensor<2x6xf32>, tensor<1x6x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32> attributes {npu.kernel = "matmul"}

// -----

// Constants and reshaped parameters travel along; a prepared value that is returned is one like others.
// CHECK: func.func @prepare
// CHECK-DAG: %[[C:.*]] = arith.constant dense
// CHECK-DAG: %[[F:.*]] = tensor.collapse_shape %arg0
// CHECK: %[[R:.*]] = call @mix(%[[F]], %[[C]])
// CHECK: return %[[R]]
// CHECK: func.func @main({{.*}}, %[[P:.*]]: tensor<4xf32> {npu.role = "prepared"})
// CHECK-NEXT: return %[[P]]
func.func @main(%w: tensor<2x2xf32> {npu.role = "parameter"}) -> tensor<4xf32> {
  %c = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %f = tensor.collapse_shape %w [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
  %r = call @mix(%f, %c) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func private @mix(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> attributes {npu.kernel = "eltwise"}

// -----

// Nothing depends on parameters alone.
// CHECK-NOT: @prepare
// CHECK: func.func @main(%[[X:.*]]: tensor<4xf32> {npu.role = "input"}, %[[W:.*]]: tensor<2x2xf32> {npu.role = "parameter"}) -> tensor<4xf32>
// CHECK: tensor.collapse_shape %[[W]]
// CHECK: call @mix
func.func @main(%x: tensor<4xf32> {npu.role = "input"}, %w: tensor<2x2xf32> {npu.role = "parameter"}) -> tensor<4xf32> {
  %f = tensor.collapse_shape %w [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
  %r = call @mix(%x, %f) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func private @mix(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> attributes {npu.kernel = "eltwise"}
