// RUN: %npu-opt %s --split-input-file --verify-diagnostics

#sram = #npu.space<"sram">
func.func @not_a_memref(%x: tensor<4xf32>, %t: memref<4xf32, #sram>) {
  // expected-error @below {{'npu.dma_start' op source must be a memref, got tensor<4xf32>}}
  %0 = "npu.dma_start"(%x, %t) {permutation = array<i64: 0>} : (tensor<4xf32>, memref<4xf32, #sram>) -> !npu.token
  return
}

// -----

func.func @unknown_space(%x: memref<4xf32>, %t: memref<4xf32, #npu.space<"l1">>) {
  // expected-error @below {{'npu.dma_start' op target must be in one of the memories dram, sram, acc, got l1}}
  %0 = "npu.dma_start"(%x, %t) {permutation = array<i64: 0>} : (memref<4xf32>, memref<4xf32, #npu.space<"l1">>) -> !npu.token
  return
}

// -----

func.func @foreign_space(%x: memref<4xf32, 3>) {
  // expected-error @below {{'npu.dma_start' op source must be in one of the memories dram, sram, acc, got 3 : i64}}
  %0 = "npu.dma_start"(%x, %x) {permutation = array<i64: 0>} : (memref<4xf32, 3>, memref<4xf32, 3>) -> !npu.token
  return
}

// -----

#sram = #npu.space<"sram">
func.func @ranks(%x: memref<4x4xf32>, %t: memref<4xf32, #sram>) {
  // expected-error @below {{target must have rank 2, got rank 1: memref<4xf32, #npu.space<"sram">>}}
  %0 = "npu.dma_start"(%x, %t) {permutation = array<i64: 0>} : (memref<4x4xf32>, memref<4xf32, #sram>) -> !npu.token
  return
}

// -----

#sram = #npu.space<"sram">
func.func @element_types(%x: memref<4xf64>, %t: memref<4xf32, #sram>) {
  // expected-error @below {{target has element type f32, but source has f64}}
  %0 = "npu.dma_start"(%x, %t) {permutation = array<i64: 0>} : (memref<4xf64>, memref<4xf32, #sram>) -> !npu.token
  return
}

// -----

#sram = #npu.space<"sram">
func.func @from_acc(%x: memref<4xf32, #npu.space<"acc">>, %t: memref<4xf32, #sram>) {
  // expected-error @below {{source must be in dram or sram, got acc}}
  %0 = "npu.dma_start"(%x, %t) {permutation = array<i64: 0>} : (memref<4xf32, #npu.space<"acc">>, memref<4xf32, #sram>) -> !npu.token
  return
}

// -----

func.func @into_acc(%x: memref<4xf32>, %t: memref<4xf32, #npu.space<"acc">>) {
  // expected-error @below {{target must be in dram or sram, got acc}}
  %0 = "npu.dma_start"(%x, %t) {permutation = array<i64: 0>} : (memref<4xf32>, memref<4xf32, #npu.space<"acc">>) -> !npu.token
  return
}

// -----

#sram = #npu.space<"sram">
func.func @permutation(%x: memref<4x4xf32>, %t: memref<4x4xf32, #sram>) {
  // expected-error @below {{'permutation' must hold each of 0..1 once, got [0, 0]}}
  %0 = "npu.dma_start"(%x, %t) {permutation = array<i64: 0, 0>} : (memref<4x4xf32>, memref<4x4xf32, #sram>) -> !npu.token
  return
}

// -----

#sram = #npu.space<"sram">
func.func @permutation_length(%x: memref<4x4xf32>, %t: memref<4x4xf32, #sram>) {
  // expected-error @below {{'permutation' must hold each of 0..1 once, got [0]}}
  %0 = "npu.dma_start"(%x, %t) {permutation = array<i64: 0>} : (memref<4x4xf32>, memref<4x4xf32, #sram>) -> !npu.token
  return
}

// -----

#sram = #npu.space<"sram">
func.func @extents(%x: memref<4x8xf32>, %t: memref<4x8xf32, #sram>) {
  // expected-error @below {{source dimension 1 and target dimension 0 differ: 8 vs 4}}
  %0 = "npu.dma_start"(%x, %t) {permutation = array<i64: 1, 0>} : (memref<4x8xf32>, memref<4x8xf32, #sram>) -> !npu.token
  return
}

// -----

#sram = #npu.space<"sram">
func.func @low_count(%x: memref<4x8xf32>, %t: memref<6x8xf32, #sram>, %i: index) {
  // expected-error @below {{takes no or 2 'low' operands, got 1}}
  %0 = "npu.dma_start"(%x, %t, %i) {pad_value = 0.0 : f32, permutation = array<i64: 0, 1>} : (memref<4x8xf32>, memref<6x8xf32, #sram>, index) -> !npu.token
  return
}

// -----

#sram = #npu.space<"sram">
func.func @low_type(%x: memref<4xf32>, %t: memref<6xf32, #sram>, %i: i64) {
  // expected-error @below {{expected base type 'builtin.index' but got 'builtin.integer'}}
  %0 = "npu.dma_start"(%x, %t, %i) {pad_value = 0.0 : f32, permutation = array<i64: 0>} : (memref<4xf32>, memref<6xf32, #sram>, i64) -> !npu.token
  return
}

// -----

#sram = #npu.space<"sram">
func.func @pad_value_missing(%x: memref<4xf32>, %t: memref<6xf32, #sram>, %i: index) {
  // expected-error @below {{takes 'pad_value' together with 'low' operands, or neither}}
  %0 = "npu.dma_start"(%x, %t, %i) {permutation = array<i64: 0>} : (memref<4xf32>, memref<6xf32, #sram>, index) -> !npu.token
  return
}

// -----

#sram = #npu.space<"sram">
func.func @low_missing(%x: memref<4xf32>, %t: memref<4xf32, #sram>) {
  // expected-error @below {{takes 'pad_value' together with 'low' operands, or neither}}
  %0 = "npu.dma_start"(%x, %t) {pad_value = 0.0 : f32, permutation = array<i64: 0>} : (memref<4xf32>, memref<4xf32, #sram>) -> !npu.token
  return
}

// -----

#sram = #npu.space<"sram">
func.func @pad_value_type(%x: memref<4xf32>, %t: memref<6xf32, #sram>, %i: index) {
  // expected-error @below {{'pad_value' must be of type f32, got 0 : i64}}
  %0 = "npu.dma_start"(%x, %t, %i) {pad_value = 0, permutation = array<i64: 0>} : (memref<4xf32>, memref<6xf32, #sram>, index) -> !npu.token
  return
}

// -----

#sram = #npu.space<"sram">
func.func @lands_outside(%x: memref<4xf32>, %t: memref<6xf32, #sram>) {
  %i = arith.constant 3 : index
  // expected-error @below {{source of extent 4 at 3 exceeds target extent 6 in dimension 0}}
  %0 = "npu.dma_start"(%x, %t, %i) {pad_value = 0.0 : f32, permutation = array<i64: 0>} : (memref<4xf32>, memref<6xf32, #sram>, index) -> !npu.token
  return
}

// -----

#sram = #npu.space<"sram">
func.func @never_fits(%x: memref<8xf32>, %t: memref<6xf32, #sram>, %i: index) {
  // expected-error @below {{source of extent 8 at 0 exceeds target extent 6 in dimension 0}}
  %0 = "npu.dma_start"(%x, %t, %i) {pad_value = 0.0 : f32, permutation = array<i64: 0>} : (memref<8xf32>, memref<6xf32, #sram>, index) -> !npu.token
  return
}

// -----

#sram = #npu.space<"sram">
func.func @lands_before(%x: memref<?xf32>, %t: memref<6xf32, #sram>) {
  %i = arith.constant -1 : index
  // expected-error @below {{'low' must not be negative, got -1 in dimension 0}}
  %0 = "npu.dma_start"(%x, %t, %i) {pad_value = 0.0 : f32, permutation = array<i64: 0>} : (memref<?xf32>, memref<6xf32, #sram>, index) -> !npu.token
  return
}

// -----

func.func @wait_for_nothing() {
  // expected-error @below {{'npu.dma_wait' op takes at least one token}}
  "npu.dma_wait"() : () -> ()
  return
}

// -----

func.func @fill_tensor(%x: tensor<4xf32>) {
  // expected-error @below {{'npu.fill' op target must be a memref, got tensor<4xf32>}}
  "npu.fill"(%x) {value = 0.0 : f32} : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @fill_dram(%x: memref<4xf32>) {
  // expected-error @below {{'npu.fill' op target must be in sram or acc, got dram}}
  "npu.fill"(%x) {value = 0.0 : f32} : (memref<4xf32>) -> ()
  return
}

// -----

func.func @fill_type(%x: memref<4xf32, #npu.space<"acc">>) {
  // expected-error @below {{'npu.fill' op 'value' must be of type f32, got 0 : i64}}
  "npu.fill"(%x) {value = 0} : (memref<4xf32, #npu.space<"acc">>) -> ()
  return
}

// -----

func.func @fill_with_text(%x: memref<4xf32, #npu.space<"acc">>) {
  // expected-error @below {{'npu.fill' op 'value' must be of type f32, got "zero"}}
  "npu.fill"(%x) {value = "zero"} : (memref<4xf32, #npu.space<"acc">>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
func.func @onto_itself(%x: memref<4x4xf32, #sram>) {
  // expected-error @below {{'npu.dma_start' op source and target are the same buffer: memref<4x4xf32, #npu.space<"sram">>}}
  %0 = "npu.dma_start"(%x, %x) {permutation = array<i64: 1, 0>} : (memref<4x4xf32, #sram>, memref<4x4xf32, #sram>) -> !npu.token
  return
}

// -----

func.func @not_numbers(%x: memref<4xindex>, %y: memref<4xindex>) {
  // expected-error @below {{'npu.dma_start' op source must hold integers or floats, got index}}
  %0 = "npu.dma_start"(%x, %y) {permutation = array<i64: 0>} : (memref<4xindex>, memref<4xindex>) -> !npu.token
  return
}

// -----

func.func @folded_layout(%x: memref<4xf32, affine_map<(d0) -> (d0 mod 2)>>, %y: memref<4xf32>) {
  // expected-error @below {{'npu.dma_start' op source must have a strided layout, got memref<4xf32, affine_map<(d0) -> (d0 mod 2)>>}}
  %0 = "npu.dma_start"(%x, %y) {permutation = array<i64: 0>} : (memref<4xf32, affine_map<(d0) -> (d0 mod 2)>>, memref<4xf32>) -> !npu.token
  return
}

// -----

func.func @no_move_of_something(%x: memref<4xf32>) {
  // expected-error @below {{'npu.dma_none' op takes the operands (), got 1}}
  %0 = "npu.dma_none"(%x) : (memref<4xf32>) -> !npu.token
  return
}

// -----

func.func @overlap(%x: memref<8x16xf32>) {
  %a = memref.subview %x[0, 0] [4, 8] [1, 1] : memref<8x16xf32> to memref<4x8xf32, strided<[16, 1]>>
  %b = memref.subview %x[3, 7] [4, 8] [1, 1] : memref<8x16xf32> to memref<4x8xf32, strided<[16, 1], offset: 55>>
  // expected-error @below {{source and target overlap in one buffer: memref<4x8xf32, strided<[16, 1]>>, memref<4x8xf32, strided<[16, 1], offset: 55>>}}
  %0 = "npu.dma_start"(%a, %b) {permutation = array<i64: 0, 1>} : (memref<4x8xf32, strided<[16, 1]>>, memref<4x8xf32, strided<[16, 1], offset: 55>>) -> !npu.token
  return
}

// -----

func.func @part_of_whole(%x: memref<8xf32>) {
  %a = memref.subview %x[2] [6] [1] : memref<8xf32> to memref<6xf32, strided<[1], offset: 2>>
  %b = memref.subview %a[1] [2] [2] : memref<6xf32, strided<[1], offset: 2>> to memref<2xf32, strided<[2], offset: 3>>
  %c = memref.subview %x[4] [2] [1] : memref<8xf32> to memref<2xf32, strided<[1], offset: 4>>
  // expected-error @below {{source and target overlap in one buffer}}
  %0 = "npu.dma_start"(%b, %c) {permutation = array<i64: 0>} : (memref<2xf32, strided<[2], offset: 3>>, memref<2xf32, strided<[1], offset: 4>>) -> !npu.token
  return
}

// -----

// Boxes that interleave, side by side, or at offsets that are not known, are no error.
func.func @apart(%x: memref<8x16xf32>, %i: index) {
  %a = memref.subview %x[0, 0] [4, 4] [1, 2] : memref<8x16xf32> to memref<4x4xf32, strided<[16, 2]>>
  %b = memref.subview %x[0, 1] [4, 4] [1, 2] : memref<8x16xf32> to memref<4x4xf32, strided<[16, 2], offset: 1>>
  %0 = "npu.dma_start"(%a, %b) {permutation = array<i64: 0, 1>} : (memref<4x4xf32, strided<[16, 2]>>, memref<4x4xf32, strided<[16, 2], offset: 1>>) -> !npu.token
  %c = memref.subview %x[%i, 0] [4, 4] [1, 2] : memref<8x16xf32> to memref<4x4xf32, strided<[16, 2], offset: ?>>
  %1 = "npu.dma_start"(%a, %c) {permutation = array<i64: 0, 1>} : (memref<4x4xf32, strided<[16, 2]>>, memref<4x4xf32, strided<[16, 2], offset: ?>>) -> !npu.token
  "npu.dma_wait"(%0, %1) : (!npu.token, !npu.token) -> ()
  return
}

// -----

func.func @join_nothing() {
  // expected-error @below {{'npu.dma_join' op takes at least one token}}
  %0 = "npu.dma_join"() : () -> !npu.token
  "npu.dma_wait"(%0) : (!npu.token) -> ()
  return
}
