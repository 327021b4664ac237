// RUN: %npu-opt %s --pass-pipeline='builtin.module(assign-scratch)' | filecheck %s
// RUN: %npu-opt %s --pass-pipeline='builtin.module(assign-scratch,assign-scratch)' | filecheck %s

// CHECK-LABEL: func.func private @kernel
// CHECK: scf.forall
// CHECK: %[[S:.*]] = memref.alloc() {{.*}} : memref<8xf32, #npu.space<"sram">>
// CHECK: %[[A:.*]] = memref.memory_space_cast %[[S]] : memref<8xf32, #npu.space<"sram">> to memref<8xf32>
// CHECK: memref.copy %{{.*}}, %[[A]]
func.func private @kernel(%x: memref<8xf32>) attributes {npu.kernel = "loops"} {
  scf.forall (%i) in (2) {
    %a = memref.alloc() : memref<8xf32>
    memref.copy %x, %a : memref<8xf32> to memref<8xf32>
  }
  return
}

// Memory of functions that are not kernels is the workspace's.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: memref.alloc() : memref<8xf32>
// CHECK-NEXT: call @kernel
func.func @main() {
  %a = memref.alloc() : memref<8xf32>
  call @kernel(%a) : (memref<8xf32>) -> ()
  return
}
