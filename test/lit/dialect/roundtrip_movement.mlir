// RUN: npu-opt %s | npu-opt | filecheck %s

// CHECK-LABEL: func.func @moves
// CHECK: %[[T:.*]] = "npu.dma_start"(%arg0, %arg1) {operandSegmentSizes = array<i32: 1, 1, 0>, permutation = array<i64: 0, 2, 3, 1>}
// CHECK-SAME: -> !npu.token
// CHECK: %[[P:.*]] = "npu.dma_start"(%arg2, %arg3, %{{.*}}) {operandSegmentSizes = array<i32: 1, 1, 2>, pad_value = 0xFF800000 : f32, permutation = array<i64: 0, 1>}
// CHECK: "npu.dma_wait"(%[[T]], %[[P]]) : (!npu.token, !npu.token) -> ()
// CHECK: "npu.barrier"() : () -> ()
func.func @moves(%nchw: memref<1x3x8x8xf32>, %nhwc: memref<1x8x8x3xf32, #npu.space<"sram">>,
                 %valid: memref<?x4xf32, strided<[8, 1], offset: ?>>, %tile: memref<6x6xf32, #npu.space<"sram">>,
                 %at: index) {
  %one = arith.constant 1 : index
  %0 = "npu.dma_start"(%nchw, %nhwc) {operandSegmentSizes = array<i32: 1, 1, 0>, permutation = array<i64: 0, 2, 3, 1>}
    : (memref<1x3x8x8xf32>, memref<1x8x8x3xf32, #npu.space<"sram">>) -> !npu.token
  %1 = "npu.dma_start"(%valid, %tile, %at, %one) {operandSegmentSizes = array<i32: 1, 1, 2>, pad_value = 0xFF800000 : f32, permutation = array<i64: 0, 1>}
    : (memref<?x4xf32, strided<[8, 1], offset: ?>>, memref<6x6xf32, #npu.space<"sram">>, index, index) -> !npu.token
  "npu.dma_wait"(%0, %1) : (!npu.token, !npu.token) -> ()
  "npu.barrier"() : () -> ()
  return
}

// Moves, fills and compute survive clean-up: their effects are known, and waits are never moved.
// CHECK-LABEL: func.func @region_ops
// CHECK: "npu.eltwise"(%arg1, %arg2, %arg3)
// CHECK: "npu.yield"(%{{.*}}) : (f32) -> ()
// CHECK: "npu.drain"(%arg0, %arg1, %arg3)
// CHECK: "npu.reduce"(%arg1, %arg2)
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
func.func @region_ops(%a: memref<4x8xf32, #npu.space<"acc">>, %x: memref<4x8xf32, #npu.space<"sram">>,
                      %v: memref<8xf32, #npu.space<"sram">>, %o: memref<4x8xf32, #npu.space<"sram">>) {
  "npu.eltwise"(%x, %v, %o) ({
  ^bb0(%l: f32, %r: f32, %old: f32):
    %s = arith.addf %l, %r : f32
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [#id, #row, #id], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #npu.space<"sram">>, memref<8xf32, #npu.space<"sram">>, memref<4x8xf32, #npu.space<"sram">>) -> ()
  "npu.drain"(%a, %x, %o) ({
  ^bb0(%acc: f32, %l: f32, %old: f32):
    %s = arith.addf %acc, %l : f32
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [#id, #id, #id], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #npu.space<"acc">>, memref<4x8xf32, #npu.space<"sram">>, memref<4x8xf32, #npu.space<"sram">>) -> ()
  "npu.reduce"(%x, %v) ({
  ^bb0(%l: f32, %old: f32):
    %s = arith.addf %l, %old : f32
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [#id, #row], iterator_types = ["reduction", "parallel"], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #npu.space<"sram">>, memref<8xf32, #npu.space<"sram">>) -> ()
  return
}
