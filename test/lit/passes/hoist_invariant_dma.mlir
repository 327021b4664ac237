// RUN: %npu-opt %s --pass-pipeline='builtin.module(hoist-invariant-dma)' | filecheck %s
// RUN: %npu-opt %s --pass-pipeline='builtin.module(hoist-invariant-dma,hoist-invariant-dma)' | filecheck %s

#row = affine_map<(d0) -> (d0 * 2)>

// What depends on no loop leaves all of them, with its addresses; what depends on the outer loop
// leaves the inner one; what depends on the inner loop stays.
// CHECK-LABEL: func.func private @levels
// CHECK: %[[ALL:.*]] = memref.alloc() : memref<4xf32, #npu.space<"sram">>
// CHECK-NEXT: %[[T:.*]] = "npu.dma_start"(%{{.*}}, %[[ALL]])
// CHECK-NEXT: "npu.dma_wait"(%[[T]])
// CHECK-NEXT: scf.for %[[I:.*]] =
// CHECK: %[[ROW:.*]] = affine.apply #{{.*}}(%[[I]])
// CHECK-NEXT: %[[BOX:.*]] = memref.subview %arg0[%[[ROW]]] [4]
// CHECK-NEXT: %[[OUTER:.*]] = memref.alloc() : memref<4xf32, #npu.space<"sram">>
// CHECK-NEXT: %[[U:.*]] = "npu.dma_start"(%[[BOX]], %[[OUTER]])
// CHECK-NEXT: "npu.dma_wait"(%[[U]])
// CHECK-NEXT: scf.for %[[J:.*]] =
// CHECK-NEXT: memref.subview %arg0[%[[J]]]
// CHECK-NEXT: memref.alloc()
// CHECK-NEXT: "npu.dma_start"
// CHECK-NEXT: "npu.dma_wait"
// CHECK-NEXT: memref.alloc()
// CHECK-NEXT: "npu.eltwise"
func.func private @levels(%x: memref<16xf32>, %w: memref<8xf32>) attributes {npu.kernel = "eltwise"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  scf.for %i = %c0 to %c3 step %c1 {
    scf.for %j = %c0 to %c3 step %c1 {
      %half = memref.subview %w[4] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
      %all = memref.alloc() : memref<4xf32, #npu.space<"sram">>
      %t = "npu.dma_start"(%half, %all) {permutation = array<i64: 0>} : (memref<4xf32, strided<[1], offset: 4>>, memref<4xf32, #npu.space<"sram">>) -> !npu.token
      "npu.dma_wait"(%t) : (!npu.token) -> ()
      %row = affine.apply #row(%i)
      %box = memref.subview %x[%row] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
      %outer = memref.alloc() : memref<4xf32, #npu.space<"sram">>
      %u = "npu.dma_start"(%box, %outer) {permutation = array<i64: 0>} : (memref<4xf32, strided<[1], offset: ?>>, memref<4xf32, #npu.space<"sram">>) -> !npu.token
      "npu.dma_wait"(%u) : (!npu.token) -> ()
      %near = memref.subview %x[%j] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
      %inner = memref.alloc() : memref<4xf32, #npu.space<"sram">>
      %v = "npu.dma_start"(%near, %inner) {permutation = array<i64: 0>} : (memref<4xf32, strided<[1], offset: ?>>, memref<4xf32, #npu.space<"sram">>) -> !npu.token
      "npu.dma_wait"(%v) : (!npu.token) -> ()
      %o = memref.alloc() : memref<4xf32, #npu.space<"sram">>
      "npu.eltwise"(%all, %outer, %inner, %o) ({
      ^bb0(%a: f32, %b: f32, %c: f32, %old: f32):
        "npu.yield"(%a) : (f32) -> ()
      }) {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>} : (memref<4xf32, #npu.space<"sram">>, memref<4xf32, #npu.space<"sram">>, memref<4xf32, #npu.space<"sram">>, memref<4xf32, #npu.space<"sram">>) -> ()
    }
  }
  return
}

// A tile that is changed after its load, a source that the loop writes, and a load whose token goes
// elsewhere stay where they are.
// CHECK-LABEL: func.func private @stays
// CHECK-NOT: npu.dma_start
// CHECK: scf.for
// CHECK-NEXT: memref.alloc
// CHECK-NEXT: "npu.dma_start"
// CHECK-NEXT: "npu.dma_wait"
// CHECK-NEXT: "npu.fill"
// CHECK-NEXT: memref.alloc
// CHECK-NEXT: "npu.dma_start"
// CHECK-NEXT: "npu.dma_wait"
// CHECK-NEXT: "npu.dma_start"
func.func private @stays(%x: memref<4xf32>, %y: memref<4xf32>) attributes {npu.kernel = "eltwise"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  scf.for %i = %c0 to %c3 step %c1 {
    %a = memref.alloc() : memref<4xf32, #npu.space<"sram">>
    %t = "npu.dma_start"(%x, %a) {permutation = array<i64: 0>} : (memref<4xf32>, memref<4xf32, #npu.space<"sram">>) -> !npu.token
    "npu.dma_wait"(%t) : (!npu.token) -> ()
    "npu.fill"(%a) {value = 0.0 : f32} : (memref<4xf32, #npu.space<"sram">>) -> ()
    %b = memref.alloc() : memref<4xf32, #npu.space<"sram">>
    %u = "npu.dma_start"(%y, %b) {permutation = array<i64: 0>} : (memref<4xf32>, memref<4xf32, #npu.space<"sram">>) -> !npu.token
    "npu.dma_wait"(%u) : (!npu.token) -> ()
    %s = "npu.dma_start"(%b, %y) {permutation = array<i64: 0>} : (memref<4xf32, #npu.space<"sram">>, memref<4xf32>) -> !npu.token
    "npu.dma_wait"(%s) : (!npu.token) -> ()
  }
  return
}

// A loop that does not run loads nothing.
// CHECK-LABEL: func.func private @never
// CHECK: scf.for
// CHECK-NEXT: memref.alloc
func.func private @never(%x: memref<4xf32>) attributes {npu.kernel = "eltwise"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %c0 step %c1 {
    %a = memref.alloc() : memref<4xf32, #npu.space<"sram">>
    %t = "npu.dma_start"(%x, %a) {permutation = array<i64: 0>} : (memref<4xf32>, memref<4xf32, #npu.space<"sram">>) -> !npu.token
    "npu.dma_wait"(%t) : (!npu.token) -> ()
  }
  return
}
