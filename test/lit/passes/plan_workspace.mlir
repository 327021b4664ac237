// RUN: %npu-opt %s --pass-pipeline='builtin.module(plan-workspace)' | filecheck %s
// RUN: %npu-opt %s --pass-pipeline='builtin.module(plan-workspace,plan-workspace)' | filecheck %s

// CHECK-LABEL: func.func private @kernel(%arg0: memref<16xf32>, %arg1: memref<16xf32>, %arg2: memref<128xi8> {npu.role = "scratch"})
func.func private @kernel(%x: memref<16xf32>, %out: memref<16xf32>, %scratch: memref<128xi8> {npu.role = "scratch"}) attributes {npu.kernel = "eltwise"} {
  return
}

// Three intermediates in a chain need room for two; a view keeps what it views alive.
// CHECK-LABEL: func.func @main(%arg0: memref<16xf32> {npu.role = "input"}, %arg1: memref<16xf32> {npu.role = "output"}, %arg2: memref<128xi8> {npu.role = "workspace"}, %arg3: memref<128xi8> {npu.role = "scratch"})
// CHECK: %[[AT0:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[A:.*]] = memref.view %arg2[%[[AT0]]][] : memref<128xi8> to memref<16xf32>
// CHECK-NEXT: %[[AT1:.*]] = arith.constant 64 : index
// CHECK-NEXT: %[[B:.*]] = memref.view %arg2[%[[AT1]]][] : memref<128xi8> to memref<16xf32>
// CHECK-NEXT: %[[AT2:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[C:.*]] = memref.view %arg2[%[[AT2]]][] : memref<128xi8> to memref<16xf32>
// CHECK-NEXT: call @kernel(%arg0, %[[A]], %arg3)
// CHECK-NEXT: call @kernel(%[[A]], %[[B]], %arg3)
// CHECK: call @kernel(%{{.*}}, %[[C]], %arg3)
// CHECK-NEXT: call @kernel(%[[C]], %arg1, %arg3)
// CHECK-NEXT: return
func.func @main(%x: memref<16xf32> {npu.role = "input"}, %out: memref<16xf32> {npu.role = "output"}) {
  %scratch = memref.alloc() {npu.role = "scratch"} : memref<128xi8>
  %a = memref.alloc() : memref<16xf32>
  call @kernel(%x, %a, %scratch) : (memref<16xf32>, memref<16xf32>, memref<128xi8>) -> ()
  %b = memref.alloc() : memref<16xf32>
  call @kernel(%a, %b, %scratch) : (memref<16xf32>, memref<16xf32>, memref<128xi8>) -> ()
  %v = memref.expand_shape %b [[0, 1]] output_shape [4, 4] : memref<16xf32> into memref<4x4xf32>
  %f = memref.collapse_shape %v [[0, 1]] : memref<4x4xf32> into memref<16xf32>
  %c = memref.alloc() : memref<16xf32>
  call @kernel(%f, %c, %scratch) : (memref<16xf32>, memref<16xf32>, memref<128xi8>) -> ()
  call @kernel(%c, %out, %scratch) : (memref<16xf32>, memref<16xf32>, memref<128xi8>) -> ()
  return
}

// Both arguments exist even when nothing needs them.
// CHECK-LABEL: func.func @prepare(%arg0: memref<4xf32>, %arg1: memref<64xi8> {npu.role = "workspace"}, %arg2: memref<64xi8> {npu.role = "scratch"})
// CHECK-NEXT: return
func.func @prepare(%x: memref<4xf32>) {
  return
}
