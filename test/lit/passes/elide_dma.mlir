// RUN: %npu-opt %s --split-input-file --target %inputs/avx2.toml --pass-pipeline='builtin.module(elide-dma)' | filecheck %s
// RUN: %npu-opt %s --split-input-file --target %inputs/avx2.toml --pass-pipeline='builtin.module(elide-dma,elide-dma)' | filecheck %s
// RUN: %npu-opt %s --split-input-file --target edge --pass-pipeline='builtin.module(elide-dma)' | filecheck %s --check-prefix=ONCHIP

// Plain copies in and out disappear: the op reads and writes dram in place. The address of the output
// moves up to its first use.
// CHECK-LABEL: func.func @both_ends
// CHECK-SAME: (%[[X:.*]]: memref<16xf32>, %[[O:.*]]: memref<16xf32>, %[[I:.*]]: index)
// CHECK-NOT: npu.dma
// CHECK-DAG: %[[IN:.*]] = memref.memory_space_cast %{{.*}} : memref<8xf32, strided<[1], offset: ?>> to memref<8xf32, strided<[1], offset: ?>, #npu.space<"sram">>
// CHECK-DAG: %[[BOX:.*]] = memref.subview %[[O]][%[[I]]]
// CHECK-DAG: %[[OUT:.*]] = memref.memory_space_cast %[[BOX]]
// CHECK: "npu.eltwise"(%[[IN]], %[[OUT]])
// CHECK-NOT: npu.dma
// CHECK: return
// ONCHIP-LABEL: func.func @both_ends
// ONCHIP: npu.dma_start
// ONCHIP: npu.eltwise
// ONCHIP: npu.dma_start
func.func @both_ends(%x: memref<16xf32>, %o: memref<16xf32>, %i: index) {
  %a = memref.alloc() : memref<8xf32, #npu.space<"sram">>
  %b = memref.alloc() : memref<8xf32, #npu.space<"sram">>
  %s = memref.subview %x[%i] [8] [1] : memref<16xf32> to memref<8xf32, strided<[1], offset: ?>>
  %t = "npu.dma_start"(%s, %a) {permutation = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 0>}
    : (memref<8xf32, strided<[1], offset: ?>>, memref<8xf32, #npu.space<"sram">>) -> !npu.token
  "npu.dma_wait"(%t) : (!npu.token) -> ()
  "npu.eltwise"(%a, %b) ({
  ^bb0(%v: f32, %old: f32):
    "npu.yield"(%v) : (f32) -> ()
  }) {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>],
      operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<8xf32, #npu.space<"sram">>, memref<8xf32, #npu.space<"sram">>) -> ()
  %d = memref.subview %o[%i] [8] [1] : memref<16xf32> to memref<8xf32, strided<[1], offset: ?>>
  %u = "npu.dma_start"(%b, %d) {permutation = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 0>}
    : (memref<8xf32, #npu.space<"sram">>, memref<8xf32, strided<[1], offset: ?>>) -> !npu.token
  "npu.dma_wait"(%u) : (!npu.token) -> ()
  return
}

// -----

// Moves that re-lay-out or pad stay.
// CHECK-LABEL: func.func @working_moves
// CHECK-COUNT-2: npu.dma_start
func.func @working_moves(%x: memref<4x8xf32>, %o: memref<32xf32>) {
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<8x4xf32, #npu.space<"sram">>
  %b = memref.alloc() : memref<6x10xf32, #npu.space<"sram">>
  %t = "npu.dma_start"(%x, %a) {permutation = array<i64: 1, 0>, operandSegmentSizes = array<i32: 1, 1, 0>}
    : (memref<4x8xf32>, memref<8x4xf32, #npu.space<"sram">>) -> !npu.token
  %u = "npu.dma_start"(%x, %b, %c1, %c1) {permutation = array<i64: 0, 1>, pad_value = 0.0 : f32, operandSegmentSizes = array<i32: 1, 1, 2>}
    : (memref<4x8xf32>, memref<6x10xf32, #npu.space<"sram">>, index, index) -> !npu.token
  "npu.dma_wait"(%t, %u) : (!npu.token, !npu.token) -> ()
  return
}

// -----

// A tile that is changed after it was loaded is not its dram box any more.
// CHECK-LABEL: func.func @changed_tile
// CHECK: npu.dma_start
// CHECK: npu.reduce
func.func @changed_tile(%x: memref<8xf32>, %y: memref<8xf32, #npu.space<"sram">>) {
  %a = memref.alloc() : memref<8xf32, #npu.space<"sram">>
  %t = "npu.dma_start"(%x, %a) {permutation = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 0>}
    : (memref<8xf32>, memref<8xf32, #npu.space<"sram">>) -> !npu.token
  "npu.dma_wait"(%t) : (!npu.token) -> ()
  "npu.reduce"(%y, %a) ({
  ^bb0(%v: f32, %acc: f32):
    %s = arith.addf %v, %acc : f32
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"],
      operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<8xf32, #npu.space<"sram">>, memref<8xf32, #npu.space<"sram">>) -> ()
  return
}

// -----

// The function writes the memory that the tile was loaded from: the copy keeps the old values.
// CHECK-LABEL: func.func @written_source
// CHECK: npu.dma_start
// CHECK: npu.dma_start
func.func @written_source(%x: memref<8xf32>, %y: memref<8xf32>, %o: memref<8xf32, #npu.space<"sram">>) {
  %a = memref.alloc() : memref<8xf32, #npu.space<"sram">>
  %t = "npu.dma_start"(%x, %a) {permutation = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 0>}
    : (memref<8xf32>, memref<8xf32, #npu.space<"sram">>) -> !npu.token
  "npu.dma_wait"(%t) : (!npu.token) -> ()
  %u = "npu.dma_start"(%y, %x) {permutation = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 0>}
    : (memref<8xf32>, memref<8xf32>) -> !npu.token
  "npu.dma_wait"(%u) : (!npu.token) -> ()
  "npu.eltwise"(%a, %o) ({
  ^bb0(%v: f32, %old: f32):
    "npu.yield"(%v) : (f32) -> ()
  }) {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>],
      operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<8xf32, #npu.space<"sram">>, memref<8xf32, #npu.space<"sram">>) -> ()
  return
}

// -----

// A view of the tile is made of the dram box instead, with the box's strides.
// CHECK-LABEL: func.func @view_of_tile
// CHECK-NOT: npu.dma
// CHECK: memref.collapse_shape %{{.*}} {{\[}}[0], [1, 2], [3]]
// CHECK-SAME: memref<4x5x1x3xf32, strided<[60, 12, 6, 1], offset: 3>, #npu.space<"sram">> into memref<4x5x3xf32, strided<[60, 12, 1], offset: 3>, #npu.space<"sram">>
// CHECK: npu.eltwise
func.func @view_of_tile(%x: memref<4x5x2x6xf32>, %o: memref<4x5x3xf32, #npu.space<"sram">>) {
  %a = memref.alloc() : memref<4x5x1x3xf32, #npu.space<"sram">>
  %s = memref.subview %x[0, 0, 0, 3] [4, 5, 1, 3] [1, 1, 1, 1]
    : memref<4x5x2x6xf32> to memref<4x5x1x3xf32, strided<[60, 12, 6, 1], offset: 3>>
  %t = "npu.dma_start"(%s, %a) {permutation = array<i64: 0, 1, 2, 3>, operandSegmentSizes = array<i32: 1, 1, 0>}
    : (memref<4x5x1x3xf32, strided<[60, 12, 6, 1], offset: 3>>, memref<4x5x1x3xf32, #npu.space<"sram">>) -> !npu.token
  "npu.dma_wait"(%t) : (!npu.token) -> ()
  %v = memref.collapse_shape %a [[0], [1, 2], [3]] : memref<4x5x1x3xf32, #npu.space<"sram">> into memref<4x5x3xf32, #npu.space<"sram">>
  "npu.eltwise"(%v, %o) ({
  ^bb0(%e: f32, %old: f32):
    "npu.yield"(%e) : (f32) -> ()
  }) {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
      operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x5x3xf32, #npu.space<"sram">>, memref<4x5x3xf32, #npu.space<"sram">>) -> ()
  return
}

// -----

// The same tile is dense, but the box's rows are not: a view that joins them cannot be made of it.
// CHECK-LABEL: func.func @no_view_of_box
// CHECK: npu.dma_start
func.func @no_view_of_box(%x: memref<4x6xf32>, %o: memref<12xf32, #npu.space<"sram">>) {
  %a = memref.alloc() : memref<4x3xf32, #npu.space<"sram">>
  %s = memref.subview %x[0, 3] [4, 3] [1, 1] : memref<4x6xf32> to memref<4x3xf32, strided<[6, 1], offset: 3>>
  %t = "npu.dma_start"(%s, %a) {permutation = array<i64: 0, 1>, operandSegmentSizes = array<i32: 1, 1, 0>}
    : (memref<4x3xf32, strided<[6, 1], offset: 3>>, memref<4x3xf32, #npu.space<"sram">>) -> !npu.token
  "npu.dma_wait"(%t) : (!npu.token) -> ()
  %v = memref.collapse_shape %a [[0, 1]] : memref<4x3xf32, #npu.space<"sram">> into memref<12xf32, #npu.space<"sram">>
  "npu.eltwise"(%v, %o) ({
  ^bb0(%e: f32, %old: f32):
    "npu.yield"(%e) : (f32) -> ()
  }) {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>],
      operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<12xf32, #npu.space<"sram">>, memref<12xf32, #npu.space<"sram">>) -> ()
  return
}
