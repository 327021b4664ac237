// RUN: %npu-opt %s --pass-pipeline='builtin.module(protect-arguments)' | filecheck %s
// RUN: %npu-opt %s --pass-pipeline='builtin.module(protect-arguments,protect-arguments)' | filecheck %s

// Arguments of kernels are values that the region made; they may be reused.
// CHECK-LABEL: func.func private @kernel(%arg0: tensor<8xf32>, %arg1: tensor<4xf32>)
func.func private @kernel(%x: tensor<8xf32>, %y: tensor<4xf32>) -> tensor<8xf32> attributes {npu.kernel = "copy"} {
  %0 = tensor.insert_slice %y into %x[2] [4] [1] : tensor<4xf32> into tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg0: tensor<8xf32> {bufferization.writable = false, npu.role = "input"}
// CHECK-SAME: %arg1: tensor<4xf32> {bufferization.writable = false}
func.func @main(%x: tensor<8xf32> {npu.role = "input"}, %y: tensor<4xf32>) -> tensor<8xf32> {
  %0 = call @kernel(%x, %y) : (tensor<8xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
