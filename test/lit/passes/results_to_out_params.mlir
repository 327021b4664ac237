// RUN: %npu-opt %s --pass-pipeline='builtin.module(results-to-out-params)' | filecheck %s
// RUN: %npu-opt %s --pass-pipeline='builtin.module(results-to-out-params,results-to-out-params)' | filecheck %s

// A returned allocation becomes the argument.
// CHECK-LABEL: func.func private @kernel(%arg0: memref<8xf32>, %arg1: memref<8xf32>) attributes {npu.kernel = "eltwise"}
// CHECK-NEXT: linalg.copy ins(%arg0 : memref<8xf32>) outs(%arg1 : memref<8xf32>)
// CHECK-NEXT: return
func.func private @kernel(%x: memref<8xf32>) -> memref<8xf32> attributes {npu.kernel = "eltwise"} {
  %r = memref.alloc() : memref<8xf32>
  linalg.copy ins(%x : memref<8xf32>) outs(%r : memref<8xf32>)
  return %r : memref<8xf32>
}

// A returned view becomes the inverse view of the argument; what is not returned is allocated.
// CHECK-LABEL: func.func @view(%arg0: memref<8xf32>, %arg1: memref<2x4xf32> {npu.role = "output"})
// CHECK-NEXT: %[[OUT:.*]] = memref.collapse_shape %arg1 {{.*}} : memref<2x4xf32> into memref<8xf32>
// CHECK-NEXT: %[[TEMPORARY:.*]] = memref.alloc() {alignment = 64 : i64} : memref<8xf32>
// CHECK-NEXT: call @kernel(%arg0, %[[TEMPORARY]])
// CHECK-NEXT: call @kernel(%[[TEMPORARY]], %[[OUT]])
func.func @view(%x: memref<8xf32>) -> memref<2x4xf32> {
  %0 = call @kernel(%x) : (memref<8xf32>) -> memref<8xf32>
  %1 = call @kernel(%0) : (memref<8xf32>) -> memref<8xf32>
  %2 = memref.expand_shape %1 [[0, 1]] output_shape [2, 4] : memref<8xf32> into memref<2x4xf32>
  return %2 : memref<2x4xf32>
}

// A buffer that is returned twice is copied, so is an argument.
// CHECK-LABEL: func.func @copies(%arg0: memref<8xf32>, %arg1: memref<8xf32> {npu.role = "output"}, %arg2: memref<4x2xf32> {npu.role = "output"}, %arg3: memref<8xf32> {npu.role = "output"})
// CHECK-NEXT: call @kernel(%arg0, %arg1)
// CHECK-NEXT: %[[VIEW:.*]] = memref.expand_shape %arg1
// CHECK-NEXT: memref.copy %[[VIEW]], %arg2
// CHECK-NEXT: memref.copy %arg0, %arg3
// CHECK-NEXT: return
func.func @copies(%x: memref<8xf32>) -> (memref<8xf32>, memref<4x2xf32>, memref<8xf32>) {
  %0 = call @kernel(%x) : (memref<8xf32>) -> memref<8xf32>
  %1 = memref.expand_shape %0 [[0, 1]] output_shape [4, 2] : memref<8xf32> into memref<4x2xf32>
  return %0, %1, %x : memref<8xf32>, memref<4x2xf32>, memref<8xf32>
}

// CHECK-LABEL: func.func @nothing()
// CHECK-NEXT: return
func.func @nothing() {
  return
}
