// RUN: %npu-opt %s --pass-pipeline='builtin.module(strip-memory-spaces)' | filecheck %s
// RUN: %npu-opt %s --pass-pipeline='builtin.module(strip-memory-spaces,strip-memory-spaces)' | filecheck %s

// CHECK-LABEL: func.func private @callee(memref<8xf32>)
func.func private @callee(memref<8xf32, #npu.space<"sram">>)

// Casts between spaces go, types of arguments, results, block arguments and the function lose theirs.
// CHECK-LABEL: func.func @spaces
// CHECK-SAME: (%[[X:.*]]: memref<8xf32>, %[[N:.*]]: index)
// CHECK-NOT: npu.space
// CHECK: call @callee(%[[X]]) : (memref<8xf32>) -> ()
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[X]]) -> (memref<8xf32>)
// CHECK: memref.subview {{.*}} : memref<8xf32> to memref<4xf32, strided<[1], offset: 2>>
// CHECK-NOT: npu.space
// CHECK: return
func.func @spaces(%x: memref<8xf32>, %n: index) {
  %s = memref.memory_space_cast %x : memref<8xf32> to memref<8xf32, #npu.space<"sram">>
  call @callee(%s) : (memref<8xf32, #npu.space<"sram">>) -> ()
  %r = scf.for %i = %n to %n step %n iter_args(%m = %s) -> (memref<8xf32, #npu.space<"sram">>) {
    scf.yield %m : memref<8xf32, #npu.space<"sram">>
  }
  %v = memref.subview %r[2] [4] [1] : memref<8xf32, #npu.space<"sram">> to memref<4xf32, strided<[1], offset: 2>, #npu.space<"sram">>
  %a = memref.alloc() : memref<2xf32, #npu.space<"acc">>
  return
}

// CHECK-LABEL: func.func @plain
// CHECK-SAME: memref<8x?xf32, strided<[?, 1], offset: ?>>
// CHECK-NEXT: return
func.func @plain(%x: memref<8x?xf32, strided<[?, 1], offset: ?>>) {
  return
}
