// RUN: npu-opt %s --split-input-file --verify-diagnostics

func.func @unknown_space(%x: memref<4xf32>, %t: memref<4xf32, #npu.space<"l1">>) {
  // expected-error @below {{target has unknown memory space l1}}
  %0 = "npu.dma_start"(%x, %t) {operandSegmentSizes = array<i32: 1, 1, 0>, permutation = array<i64: 0>} : (memref<4xf32>, memref<4xf32, #npu.space<"l1">>) -> !npu.token
  return
}
// -----
func.func @no_segments(%x: memref<4xf32>, %t: memref<4xf32, #npu.space<"sram">>) {
  // expected-error @below {{needs 'operandSegmentSizes = array<i32: ...>' with 3 entries}}
  %0 = "npu.dma_start"(%x, %t) {permutation = array<i64: 0>} : (memref<4xf32>, memref<4xf32, #npu.space<"sram">>) -> !npu.token
  return
}
// -----
func.func @ranks(%x: memref<4x4xf32>, %t: memref<4xf32, #npu.space<"sram">>) {
  // expected-error @below {{target must have rank 2, got rank 1}}
  %0 = "npu.dma_start"(%x, %t) {operandSegmentSizes = array<i32: 1, 1, 0>, permutation = array<i64: 0>} : (memref<4x4xf32>, memref<4xf32, #npu.space<"sram">>) -> !npu.token
  return
}
// -----
func.func @element_types(%x: memref<4xf64>, %t: memref<4xf32, #npu.space<"sram">>) {
  // expected-error @below {{target has element type f32, but source has f64}}
  %0 = "npu.dma_start"(%x, %t) {operandSegmentSizes = array<i32: 1, 1, 0>, permutation = array<i64: 0>} : (memref<4xf64>, memref<4xf32, #npu.space<"sram">>) -> !npu.token
  return
}
// -----
func.func @from_acc(%x: memref<4xf32, #npu.space<"acc">>, %t: memref<4xf32, #npu.space<"sram">>) {
  // expected-error @below {{source must be in dram or sram, got acc}}
  %0 = "npu.dma_start"(%x, %t) {operandSegmentSizes = array<i32: 1, 1, 0>, permutation = array<i64: 0>} : (memref<4xf32, #npu.space<"acc">>, memref<4xf32, #npu.space<"sram">>) -> !npu.token
  return
}
// -----
func.func @permutation(%x: memref<4x4xf32>, %t: memref<4x4xf32, #npu.space<"sram">>) {
  // expected-error @below {{'permutation' must be a permutation of 0..1, got [0, 0]}}
  %0 = "npu.dma_start"(%x, %t) {operandSegmentSizes = array<i32: 1, 1, 0>, permutation = array<i64: 0, 0>} : (memref<4x4xf32>, memref<4x4xf32, #npu.space<"sram">>) -> !npu.token
  return
}
// -----
func.func @extents(%x: memref<4x8xf32>, %t: memref<4x8xf32, #npu.space<"sram">>) {
  // expected-error @below {{source and target differ in target dimension 0: 8 vs 4}}
  %0 = "npu.dma_start"(%x, %t) {operandSegmentSizes = array<i32: 1, 1, 0>, permutation = array<i64: 1, 0>} : (memref<4x8xf32>, memref<4x8xf32, #npu.space<"sram">>) -> !npu.token
  return
}
// -----
func.func @low_count(%x: memref<4x8xf32>, %t: memref<6x8xf32, #npu.space<"sram">>, %i: index) {
  // expected-error @below {{needs 0 or 2 'low' operands, got 1}}
  %0 = "npu.dma_start"(%x, %t, %i) {operandSegmentSizes = array<i32: 1, 1, 1>, pad_value = 0.0 : f32, permutation = array<i64: 0, 1>} : (memref<4x8xf32>, memref<6x8xf32, #npu.space<"sram">>, index) -> !npu.token
  return
}
// -----
func.func @pad_value_missing(%x: memref<4xf32>, %t: memref<6xf32, #npu.space<"sram">>, %i: index) {
  // expected-error @below {{needs 'pad_value' exactly when it has 'low' operands}}
  %0 = "npu.dma_start"(%x, %t, %i) {operandSegmentSizes = array<i32: 1, 1, 1>, permutation = array<i64: 0>} : (memref<4xf32>, memref<6xf32, #npu.space<"sram">>, index) -> !npu.token
  return
}
// -----
func.func @pad_value_type(%x: memref<4xf32>, %t: memref<6xf32, #npu.space<"sram">>, %i: index) {
  // expected-error @below {{'pad_value' must be of type f32, got 0 : i64}}
  %0 = "npu.dma_start"(%x, %t, %i) {operandSegmentSizes = array<i32: 1, 1, 1>, pad_value = 0, permutation = array<i64: 0>} : (memref<4xf32>, memref<6xf32, #npu.space<"sram">>, index) -> !npu.token
  return
}
// -----
func.func @lands_outside(%x: memref<4xf32>, %t: memref<6xf32, #npu.space<"sram">>) {
  %i = arith.constant 3 : index
  // expected-error @below {{source of extent 4 at 3 exceeds target extent 6 in dimension 0}}
  %0 = "npu.dma_start"(%x, %t, %i) {operandSegmentSizes = array<i32: 1, 1, 1>, pad_value = 0.0 : f32, permutation = array<i64: 0>} : (memref<4xf32>, memref<6xf32, #npu.space<"sram">>, index) -> !npu.token
  return
}
// -----
func.func @wait_for_nothing() {
  // expected-error @below {{needs at least one token}}
  "npu.dma_wait"() : () -> ()
  return
}
// -----
func.func @fill_dram(%x: memref<4xf32>) {
  // expected-error @below {{target must be in sram or acc, got dram}}
  "npu.fill"(%x) {value = 0.0 : f32} : (memref<4xf32>) -> ()
  return
}
// -----
func.func @fill_type(%x: memref<4xf32, #npu.space<"acc">>) {
  // expected-error @below {{'value' must be of type f32, got 0 : i64}}
  "npu.fill"(%x) {value = 0} : (memref<4xf32, #npu.space<"acc">>) -> ()
  return
}
