// RUN: %npu-opt %s --pass-pipeline='builtin.module(cse,canonicalize,loop-invariant-code-motion,cse)' | filecheck %s

// Upstream clean-up must see what npu ops do to memory.

#id = affine_map<(d0) -> (d0)>
#sram = #npu.space<"sram">

// Moves whose token nobody waits for, fills and compute are not dead.
// CHECK-LABEL: func.func @kept
// CHECK: "npu.dma_start"
// CHECK: "npu.fill"
// CHECK: "npu.matmul"
// CHECK: "npu.drain"
// CHECK: "npu.barrier"
func.func @kept(%x: memref<4x8xf32>, %w: memref<3x8x16xf32, #sram>, %o: memref<4x3x16xf32, #sram>) {
  %t = memref.alloc() : memref<4x8xf32, #sram>
  %a = memref.alloc() : memref<4x3x16xf32, #npu.space<"acc">>
  %0 = "npu.dma_start"(%x, %t) {permutation = array<i64: 0, 1>} : (memref<4x8xf32>, memref<4x8xf32, #sram>) -> !npu.token
  "npu.fill"(%a) {value = 0.0 : f32} : (memref<4x3x16xf32, #npu.space<"acc">>) -> ()
  "npu.matmul"(%t, %w, %a) : (memref<4x8xf32, #sram>, memref<3x8x16xf32, #sram>, memref<4x3x16xf32, #npu.space<"acc">>) -> ()
  "npu.drain"(%a, %o) ({
  ^bb0(%v: f32, %old: f32):
    "npu.yield"(%v) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x3x16xf32, #npu.space<"acc">>, memref<4x3x16xf32, #sram>) -> ()
  "npu.barrier"() : () -> ()
  return
}

// Equal moves and fills are not merged, a read between them may see the difference.
// CHECK-LABEL: func.func @repeated
// CHECK-COUNT-2: "npu.fill"
// CHECK-COUNT-2: "npu.dma_start"
// CHECK: "npu.dma_wait"
func.func @repeated(%x: memref<4xf32>, %t: memref<4xf32, #sram>) {
  "npu.fill"(%t) {value = 0.0 : f32} : (memref<4xf32, #sram>) -> ()
  "npu.fill"(%t) {value = 0.0 : f32} : (memref<4xf32, #sram>) -> ()
  %0 = "npu.dma_start"(%t, %x) {permutation = array<i64: 0>} : (memref<4xf32, #sram>, memref<4xf32>) -> !npu.token
  %1 = "npu.dma_start"(%t, %x) {permutation = array<i64: 0>} : (memref<4xf32, #sram>, memref<4xf32>) -> !npu.token
  "npu.dma_wait"(%0, %1) : (!npu.token, !npu.token) -> ()
  return
}

// Loads on two sides of a write stay two loads.
// CHECK-LABEL: func.func @written_between
// CHECK: memref.load
// CHECK: "npu.eltwise"
// CHECK: memref.load
func.func @written_between(%x: memref<4xf32, #sram>, %i: index) -> (f32, f32) {
  %0 = memref.load %x[%i] : memref<4xf32, #sram>
  "npu.eltwise"(%x, %x) ({
  ^bb0(%v: f32, %old: f32):
    %s = arith.addf %v, %v : f32
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>} : (memref<4xf32, #sram>, memref<4xf32, #sram>) -> ()
  %1 = memref.load %x[%i] : memref<4xf32, #sram>
  return %0, %1 : f32, f32
}

// A wait is a border for everything: the load after it must not move before it.
// CHECK-LABEL: func.func @waited_between
// CHECK: memref.load
// CHECK: "npu.dma_wait"
// CHECK: memref.load
func.func @waited_between(%x: memref<4xf32, #sram>, %i: index, %t: !npu.token) -> (f32, f32) {
  %0 = memref.load %x[%i] : memref<4xf32, #sram>
  "npu.dma_wait"(%t) : (!npu.token) -> ()
  %1 = memref.load %x[%i] : memref<4xf32, #sram>
  return %0, %1 : f32, f32
}

// What is invariant but writes stays in its loop; scalar code of a region may leave it.
// CHECK-LABEL: func.func @loop
// CHECK: %[[ONE:.*]] = arith.constant 1.0
// CHECK: scf.for
// CHECK-NEXT: "npu.fill"
// CHECK-NEXT: "npu.reduce"
// CHECK: arith.addf %{{.*}}, %[[ONE]]
func.func @loop(%x: memref<4xf32, #sram>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    "npu.fill"(%x) {value = 0.0 : f32} : (memref<4xf32, #sram>) -> ()
    "npu.reduce"(%x, %x) ({
    ^bb0(%v: f32, %old: f32):
      %one = arith.constant 1.0 : f32
      %s = arith.addf %v, %one : f32
      "npu.yield"(%s) : (f32) -> ()
    }) {indexing_maps = [#id, #id], iterator_types = ["parallel"], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>} : (memref<4xf32, #sram>, memref<4xf32, #sram>) -> ()
  }
  return
}
