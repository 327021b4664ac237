// RUN: %npu-opt %s --split-input-file --verify-diagnostics

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @input_rank(%x: memref<2x10x14x8xf32, #sram>, %t: memref<6x6x12x8xf32, #sram>) {
  // expected-error @below {{'npu.winograd_input' op transformed must have rank 3, got rank 4}}
  "npu.winograd_input"(%x, %t) {outputs = 4 : i64} : (memref<2x10x14x8xf32, #sram>, memref<6x6x12x8xf32, #sram>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @input_memory(%x: memref<2x10x14x8xf32, #sram>, %t: memref<36x12x8xf32, #acc>) {
  // expected-error @below {{'npu.winograd_input' op transformed must be in sram, got acc}}
  "npu.winograd_input"(%x, %t) {outputs = 4 : i64} : (memref<2x10x14x8xf32, #sram>, memref<36x12x8xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @input_integers(%x: memref<2x10x14x8xi8, #sram>, %t: memref<36x12x8xi8, #sram>) {
  // expected-error @below {{'npu.winograd_input' op input must hold floats, got i8}}
  "npu.winograd_input"(%x, %t) {outputs = 4 : i64} : (memref<2x10x14x8xi8, #sram>, memref<36x12x8xi8, #sram>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @input_element_types(%x: memref<2x10x14x8xf32, #sram>, %t: memref<36x12x8xf16, #sram>) {
  // expected-error @below {{'npu.winograd_input' op transformed has element type f16, but input has f32}}
  "npu.winograd_input"(%x, %t) {outputs = 4 : i64} : (memref<2x10x14x8xf32, #sram>, memref<36x12x8xf16, #sram>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @input_outputs(%x: memref<2x10x14x8xf32, #sram>, %t: memref<36x12x8xf32, #sram>) {
  // expected-error @below {{'npu.winograd_input' op 'outputs' must be 2 or 4, got 3}}
  "npu.winograd_input"(%x, %t) {outputs = 3 : i64} : (memref<2x10x14x8xf32, #sram>, memref<36x12x8xf32, #sram>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @input_outputs_type(%x: memref<2x10x14x8xf32, #sram>, %t: memref<36x12x8xf32, #sram>) {
  // expected-error @below {{'npu.winograd_input' op 'outputs' must be an integer, got 4.000000e+00 : f64}}
  "npu.winograd_input"(%x, %t) {outputs = 4.0} : (memref<2x10x14x8xf32, #sram>, memref<36x12x8xf32, #sram>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @input_half_a_window(%x: memref<2x10x13x8xf32, #sram>, %t: memref<36x12x8xf32, #sram>) {
  // expected-error @below {{'npu.winograd_input' op input extent along x must be a multiple of 4, plus 2, got 13}}
  "npu.winograd_input"(%x, %t) {outputs = 4 : i64} : (memref<2x10x13x8xf32, #sram>, memref<36x12x8xf32, #sram>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @input_no_window(%x: memref<2x2x14x8xf32, #sram>, %t: memref<36x12x8xf32, #sram>) {
  // expected-error @below {{'npu.winograd_input' op input extent along y must be a multiple of 4, plus 2, got 2}}
  "npu.winograd_input"(%x, %t) {outputs = 4 : i64} : (memref<2x2x14x8xf32, #sram>, memref<36x12x8xf32, #sram>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @input_points(%x: memref<2x10x14x8xf32, #sram>, %t: memref<16x12x8xf32, #sram>) {
  // expected-error @below {{'npu.winograd_input' op points of transformed and 'outputs' differ: 16 vs 36}}
  "npu.winograd_input"(%x, %t) {outputs = 4 : i64} : (memref<2x10x14x8xf32, #sram>, memref<16x12x8xf32, #sram>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @input_windows(%x: memref<2x10x14x8xf32, #sram>, %t: memref<36x6x8xf32, #sram>) {
  // expected-error @below {{'npu.winograd_input' op windows of transformed and input differ: 6 vs 12}}
  "npu.winograd_input"(%x, %t) {outputs = 4 : i64} : (memref<2x10x14x8xf32, #sram>, memref<36x6x8xf32, #sram>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @input_channels(%x: memref<2x10x14x8xf32, #sram>, %t: memref<36x12x16xf32, #sram>) {
  // expected-error @below {{'npu.winograd_input' op channels of transformed and input differ: 16 vs 8}}
  "npu.winograd_input"(%x, %t) {outputs = 4 : i64} : (memref<2x10x14x8xf32, #sram>, memref<36x12x16xf32, #sram>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @output_rank(%p: memref<36x12x3x16xf32, #acc>, %a: memref<2x8x12x3x16xf32, #acc>) {
  // expected-error @below {{'npu.winograd_output' op accumulator must have rank 7, got rank 5}}
  "npu.winograd_output"(%p, %a) {outputs = 4 : i64} : (memref<36x12x3x16xf32, #acc>, memref<2x8x12x3x16xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @output_memory(%p: memref<36x12x3x16xf32, #sram>, %a: memref<2x2x4x3x4x3x16xf32, #acc>) {
  // expected-error @below {{'npu.winograd_output' op products must be in acc, got sram}}
  "npu.winograd_output"(%p, %a) {outputs = 4 : i64} : (memref<36x12x3x16xf32, #sram>, memref<2x2x4x3x4x3x16xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @output_element_types(%p: memref<36x12x3x16xf16, #acc>, %a: memref<2x2x4x3x4x3x16xf32, #acc>) {
  // expected-error @below {{'npu.winograd_output' op accumulator has element type f32, but products has f16}}
  "npu.winograd_output"(%p, %a) {outputs = 4 : i64} : (memref<36x12x3x16xf16, #acc>, memref<2x2x4x3x4x3x16xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @output_outputs(%p: memref<36x12x3x16xf32, #acc>, %a: memref<2x2x4x3x4x3x16xf32, #acc>) {
  // expected-error @below {{'npu.winograd_output' op 'outputs' must be 2 or 4, got 0}}
  "npu.winograd_output"(%p, %a) {outputs = 0 : i64} : (memref<36x12x3x16xf32, #acc>, memref<2x2x4x3x4x3x16xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @output_points(%p: memref<16x12x3x16xf32, #acc>, %a: memref<2x2x4x3x4x3x16xf32, #acc>) {
  // expected-error @below {{'npu.winograd_output' op points of products and 'outputs' differ: 16 vs 36}}
  "npu.winograd_output"(%p, %a) {outputs = 4 : i64} : (memref<16x12x3x16xf32, #acc>, memref<2x2x4x3x4x3x16xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @output_rows(%p: memref<36x12x3x16xf32, #acc>, %a: memref<2x2x2x3x4x3x16xf32, #acc>) {
  // expected-error @below {{'npu.winograd_output' op rows of a window and 'outputs' differ: 2 vs 4}}
  "npu.winograd_output"(%p, %a) {outputs = 4 : i64} : (memref<36x12x3x16xf32, #acc>, memref<2x2x2x3x4x3x16xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @output_columns(%p: memref<36x12x3x16xf32, #acc>, %a: memref<2x2x4x3x2x3x16xf32, #acc>) {
  // expected-error @below {{'npu.winograd_output' op columns of a window and 'outputs' differ: 2 vs 4}}
  "npu.winograd_output"(%p, %a) {outputs = 4 : i64} : (memref<36x12x3x16xf32, #acc>, memref<2x2x4x3x2x3x16xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @output_windows(%p: memref<36x12x3x16xf32, #acc>, %a: memref<2x2x4x2x4x3x16xf32, #acc>) {
  // expected-error @below {{'npu.winograd_output' op windows of products and accumulator differ: 12 vs 8}}
  "npu.winograd_output"(%p, %a) {outputs = 4 : i64} : (memref<36x12x3x16xf32, #acc>, memref<2x2x4x2x4x3x16xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @output_blocks(%p: memref<36x12x3x16xf32, #acc>, %a: memref<2x2x4x3x4x2x16xf32, #acc>) {
  // expected-error @below {{'npu.winograd_output' op channel blocks of products and accumulator differ: 3 vs 2}}
  "npu.winograd_output"(%p, %a) {outputs = 4 : i64} : (memref<36x12x3x16xf32, #acc>, memref<2x2x4x3x4x2x16xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @output_block_size(%p: memref<36x12x3x16xf32, #acc>, %a: memref<2x2x4x3x4x3x8xf32, #acc>) {
  // expected-error @below {{'npu.winograd_output' op block size of products and accumulator differ: 16 vs 8}}
  "npu.winograd_output"(%p, %a) {outputs = 4 : i64} : (memref<36x12x3x16xf32, #acc>, memref<2x2x4x3x4x3x8xf32, #acc>) -> ()
  return
}
