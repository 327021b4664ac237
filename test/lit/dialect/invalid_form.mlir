// RUN: %npu-opt %s --split-input-file --verify-diagnostics

// What an op must consist of, checked before any rule about its meaning.

func.func @operand_count(%x: memref<4xf32>) {
  // expected-error @below {{'npu.dma_start' op takes the operands (source, target, low...), got 1}}
  %0 = "npu.dma_start"(%x) {permutation = array<i64: 0>} : (memref<4xf32>) -> !npu.token
  return
}

// -----

func.func @too_many_operands(%x: memref<4xf32, #npu.space<"sram">>) {
  // expected-error @below {{'npu.fill' op takes the operands (target), got 2}}
  "npu.fill"(%x, %x) {value = 0.0 : f32} : (memref<4xf32, #npu.space<"sram">>, memref<4xf32, #npu.space<"sram">>) -> ()
  return
}

// -----

func.func @missing_attribute(%x: memref<4xf32>) {
  // expected-error @below {{'npu.dma_start' op needs the attribute 'permutation'}}
  %0 = "npu.dma_start"(%x, %x) : (memref<4xf32>, memref<4xf32>) -> !npu.token
  return
}

// -----

func.func @kind_of_attribute(%x: memref<4xf32>) {
  // expected-error @below {{'npu.dma_start' op 'permutation' must be of the form array<i64: ...>, got array<i32: 0>}}
  %0 = "npu.dma_start"(%x, %x) {permutation = array<i32: 0>} : (memref<4xf32>, memref<4xf32>) -> !npu.token
  return
}

// -----

func.func @misspelt_attribute(%x: memref<4xf32>) {
  // expected-error @below {{'npu.dma_start' op has no attribute 'pad'; it has permutation, pad_value}}
  %0 = "npu.dma_start"(%x, %x) {permutation = array<i64: 0>, pad = 0.0 : f32} : (memref<4xf32>, memref<4xf32>) -> !npu.token
  return
}

// -----

// Attributes with a dialect prefix belong to others.
func.func @foreign_attribute() {
  "npu.barrier"() {npu.note = "kept"} : () -> ()
  // expected-error @below {{'npu.barrier' op has no attribute 'note'; it has none}}
  "npu.barrier"() {note = 1} : () -> ()
  return
}

// -----

func.func @results() {
  // expected-error @below {{'npu.barrier' op has 0 results, got 1}}
  %0 = "npu.barrier"() : () -> !npu.token
  return
}

// -----

func.func @regions() {
  // expected-error @below {{'npu.barrier' op has 0 regions, got 1}}
  "npu.barrier"() ({}) : () -> ()
  return
}

// -----

func.func @unknown_op() {
  // expected-error @below {{unregistered operation 'npu.launch'}}
  "npu.launch"() : () -> ()
  return
}

// -----

func.func @token_type(%x: memref<4xf32>) {
  // expected-error @below {{expected base type 'npu.token' but got 'builtin.memref'}}
  "npu.dma_wait"(%x) : (memref<4xf32>) -> ()
  return
}
