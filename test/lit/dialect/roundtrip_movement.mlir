// RUN: %npu-opt %s | %npu-opt | filecheck %s
// RUN: %npu-opt %s --mlir-print-op-generic | %npu-opt | filecheck %s

#sram = #npu.space<"sram">

// A plain move, here one that changes the layout on its way.
// CHECK-LABEL: func.func @move
// CHECK: %[[T:.*]] = "npu.dma_start"(%arg0, %arg1) {permutation = array<i64: 0, 2, 3, 1>} :
// CHECK-SAME: (memref<1x3x8x8xf32>, memref<1x8x8x3xf32, #npu.space<"sram">>) -> !npu.token
// CHECK: "npu.dma_wait"(%[[T]]) : (!npu.token) -> ()
func.func @move(%nchw: memref<1x3x8x8xf32>, %nhwc: memref<1x8x8x3xf32, #sram>) {
  %0 = "npu.dma_start"(%nchw, %nhwc) {permutation = array<i64: 0, 2, 3, 1>}
    : (memref<1x3x8x8xf32>, memref<1x8x8x3xf32, #sram>) -> !npu.token
  "npu.dma_wait"(%0) : (!npu.token) -> ()
  return
}

// The source lands inside the target, the rest of the target is padding.
// CHECK-LABEL: func.func @padded_move
// CHECK: "npu.dma_start"(%arg0, %arg1, %arg2, %{{.*}}) {pad_value = 0xFF800000 : f32, permutation = array<i64: 0, 1>}
func.func @padded_move(%valid: memref<?x4xf32, strided<[8, 1], offset: ?>>,
                       %tile: memref<6x6xf32, #sram>, %at: index) {
  %one = arith.constant 1 : index
  %0 = "npu.dma_start"(%valid, %tile, %at, %one) {pad_value = 0xFF800000 : f32, permutation = array<i64: 0, 1>}
    : (memref<?x4xf32, strided<[8, 1], offset: ?>>, memref<6x6xf32, #sram>, index, index) -> !npu.token
  "npu.dma_wait"(%0) : (!npu.token) -> ()
  return
}

// Moves in both directions and inside dram; one wait for all of them.
// CHECK-LABEL: func.func @directions
// CHECK: "npu.dma_wait"(%{{.*}}, %{{.*}}, %{{.*}}) : (!npu.token, !npu.token, !npu.token) -> ()
func.func @directions(%a: memref<8xi8>, %b: memref<8xi8>, %tile: memref<8xi8, #sram>, %other: memref<8xi8, #npu.space<"dram">>) {
  %0 = "npu.dma_start"(%tile, %a) {permutation = array<i64: 0>} : (memref<8xi8, #sram>, memref<8xi8>) -> !npu.token
  %1 = "npu.dma_start"(%a, %b) {permutation = array<i64: 0>} : (memref<8xi8>, memref<8xi8>) -> !npu.token
  %2 = "npu.dma_start"(%other, %tile) {permutation = array<i64: 0>} : (memref<8xi8, #npu.space<"dram">>, memref<8xi8, #sram>) -> !npu.token
  "npu.dma_wait"(%0, %1, %2) : (!npu.token, !npu.token, !npu.token) -> ()
  return
}

// CHECK-LABEL: func.func @fill
// CHECK: "npu.fill"(%arg0) {value = 0.000000e+00 : f32} : (memref<4xf32, #npu.space<"sram">>) -> ()
// CHECK: "npu.fill"(%arg1) {value = -128 : i8} : (memref<?xi8, #npu.space<"acc">>) -> ()
// CHECK: "npu.barrier"() : () -> ()
func.func @fill(%tile: memref<4xf32, #sram>, %accumulator: memref<?xi8, #npu.space<"acc">>) {
  "npu.fill"(%tile) {value = 0.0 : f32} : (memref<4xf32, #sram>) -> ()
  "npu.fill"(%accumulator) {value = -128 : i8} : (memref<?xi8, #npu.space<"acc">>) -> ()
  "npu.barrier"() : () -> ()
  return
}

// The token of no move, for an iteration that has none to wait for.
// CHECK-LABEL: func.func @no_move
// CHECK: %[[T:.*]] = "npu.dma_none"() : () -> !npu.token
// CHECK: "npu.dma_wait"(%[[T]]) : (!npu.token) -> ()
func.func @no_move() {
  %0 = "npu.dma_none"() : () -> !npu.token
  "npu.dma_wait"(%0) : (!npu.token) -> ()
  return
}

// One token for two moves.
// CHECK-LABEL: func.func @joined
// CHECK: %[[T:.*]] = "npu.dma_join"(%arg0, %arg1) : (!npu.token, !npu.token) -> !npu.token
// CHECK: "npu.dma_wait"(%[[T]]) : (!npu.token) -> ()
func.func @joined(%a: !npu.token, %b: !npu.token) {
  %0 = "npu.dma_join"(%a, %b) : (!npu.token, !npu.token) -> !npu.token
  "npu.dma_wait"(%0) : (!npu.token) -> ()
  return
}
