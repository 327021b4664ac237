// RUN: %npu-opt %s --split-input-file --verify-diagnostics

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @conv_rank(%x: memref<12x12x8xf32, #sram>, %w: memref<2x3x3x8x4xf32, #sram>, %a: memref<1x10x10x2x4xf32, #acc>) {
  // expected-error @below {{'npu.conv2d' op input must have rank 4, got rank 3: memref<12x12x8xf32}}
  "npu.conv2d"(%x, %w, %a) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (memref<12x12x8xf32, #sram>, memref<2x3x3x8x4xf32, #sram>, memref<1x10x10x2x4xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @conv_input_in_dram(%x: memref<1x12x12x8xf32>, %w: memref<2x3x3x8x4xf32, #sram>, %a: memref<1x10x10x2x4xf32, #acc>) {
  // expected-error @below {{'npu.conv2d' op input must be in sram, got dram}}
  "npu.conv2d"(%x, %w, %a) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (memref<1x12x12x8xf32>, memref<2x3x3x8x4xf32, #sram>, memref<1x10x10x2x4xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
func.func @conv_accumulator_in_sram(%x: memref<1x12x12x8xf32, #sram>, %w: memref<2x3x3x8x4xf32, #sram>, %a: memref<1x10x10x2x4xf32, #sram>) {
  // expected-error @below {{'npu.conv2d' op accumulator must be in acc, got sram}}
  "npu.conv2d"(%x, %w, %a) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (memref<1x12x12x8xf32, #sram>, memref<2x3x3x8x4xf32, #sram>, memref<1x10x10x2x4xf32, #sram>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @conv_element_types(%x: memref<1x12x12x8xf32, #sram>, %w: memref<2x3x3x8x4xf16, #sram>, %a: memref<1x10x10x2x4xf32, #acc>) {
  // expected-error @below {{'npu.conv2d' op weights has element type f16, but input has f32}}
  "npu.conv2d"(%x, %w, %a) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (memref<1x12x12x8xf32, #sram>, memref<2x3x3x8x4xf16, #sram>, memref<1x10x10x2x4xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @conv_accumulator_type(%x: memref<1x12x12x8xi8, #sram>, %w: memref<2x3x3x8x4xi8, #sram>, %a: memref<1x10x10x2x4xf32, #acc>) {
  // expected-error @below {{'npu.conv2d' op accumulator of i8 products must hold i8 or i32, got f32}}
  "npu.conv2d"(%x, %w, %a) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (memref<1x12x12x8xi8, #sram>, memref<2x3x3x8x4xi8, #sram>, memref<1x10x10x2x4xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @conv_batch(%x: memref<2x12x12x8xf32, #sram>, %w: memref<2x3x3x8x4xf32, #sram>, %a: memref<1x10x10x2x4xf32, #acc>) {
  // expected-error @below {{'npu.conv2d' op batch of input and accumulator differ: 2 vs 1}}
  "npu.conv2d"(%x, %w, %a) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (memref<2x12x12x8xf32, #sram>, memref<2x3x3x8x4xf32, #sram>, memref<1x10x10x2x4xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @conv_channels(%x: memref<1x12x12x16xf32, #sram>, %w: memref<2x3x3x8x4xf32, #sram>, %a: memref<1x10x10x2x4xf32, #acc>) {
  // expected-error @below {{'npu.conv2d' op channels of input and weights differ: 16 vs 8}}
  "npu.conv2d"(%x, %w, %a) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (memref<1x12x12x16xf32, #sram>, memref<2x3x3x8x4xf32, #sram>, memref<1x10x10x2x4xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @conv_blocks(%x: memref<1x12x12x8xf32, #sram>, %w: memref<4x3x3x8x4xf32, #sram>, %a: memref<1x10x10x2x4xf32, #acc>) {
  // expected-error @below {{'npu.conv2d' op channel blocks of weights and accumulator differ: 4 vs 2}}
  "npu.conv2d"(%x, %w, %a) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (memref<1x12x12x8xf32, #sram>, memref<4x3x3x8x4xf32, #sram>, memref<1x10x10x2x4xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @conv_block_size(%x: memref<1x12x12x8xf32, #sram>, %w: memref<2x3x3x8x8xf32, #sram>, %a: memref<1x10x10x2x4xf32, #acc>) {
  // expected-error @below {{'npu.conv2d' op block size of weights and accumulator differ: 8 vs 4}}
  "npu.conv2d"(%x, %w, %a) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (memref<1x12x12x8xf32, #sram>, memref<2x3x3x8x8xf32, #sram>, memref<1x10x10x2x4xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @conv_halo(%x: memref<1x12x14x8xf32, #sram>, %w: memref<2x3x3x8x4xf32, #sram>, %a: memref<1x6x5x2x4xf32, #acc>) {
  // expected-error @below {{'npu.conv2d' op input extent along y is 12, but 6 outputs of a window of 3 (stride 2, dilation 1) read 13}}
  "npu.conv2d"(%x, %w, %a) {strides = array<i64: 2, 2>, dilations = array<i64: 1, 2>}
    : (memref<1x12x14x8xf32, #sram>, memref<2x3x3x8x4xf32, #sram>, memref<1x6x5x2x4xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @conv_strides(%x: memref<1x12x12x8xf32, #sram>, %w: memref<2x3x3x8x4xf32, #sram>, %a: memref<1x10x10x2x4xf32, #acc>) {
  // expected-error @below {{'npu.conv2d' op 'strides' must be 2 positive integers, got [1, 0]}}
  "npu.conv2d"(%x, %w, %a) {strides = array<i64: 1, 0>, dilations = array<i64: 1, 1>}
    : (memref<1x12x12x8xf32, #sram>, memref<2x3x3x8x4xf32, #sram>, memref<1x10x10x2x4xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @conv_dilations(%x: memref<1x12x12x8xf32, #sram>, %w: memref<2x3x3x8x4xf32, #sram>, %a: memref<1x10x10x2x4xf32, #acc>) {
  // expected-error @below {{'npu.conv2d' op 'dilations' must be 2 positive integers, got [1]}}
  "npu.conv2d"(%x, %w, %a) {strides = array<i64: 1, 1>, dilations = array<i64: 1>}
    : (memref<1x12x12x8xf32, #sram>, memref<2x3x3x8x4xf32, #sram>, memref<1x10x10x2x4xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @depthwise_weights(%x: memref<1x12x12x8xf32, #sram>, %w: memref<3x3x4xf32, #sram>, %a: memref<1x10x10x8xf32, #acc>) {
  // expected-error @below {{'npu.depthwise_conv2d' op channels of input and weights differ: 8 vs 4}}
  "npu.depthwise_conv2d"(%x, %w, %a) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (memref<1x12x12x8xf32, #sram>, memref<3x3x4xf32, #sram>, memref<1x10x10x8xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @depthwise_channels(%x: memref<1x12x12x8xf32, #sram>, %w: memref<3x3x8xf32, #sram>, %a: memref<1x10x10x16xf32, #acc>) {
  // expected-error @below {{'npu.depthwise_conv2d' op channels of input and accumulator differ: 8 vs 16}}
  "npu.depthwise_conv2d"(%x, %w, %a) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (memref<1x12x12x8xf32, #sram>, memref<3x3x8xf32, #sram>, memref<1x10x10x16xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @depthwise_batch(%x: memref<2x12x12x8xf32, #sram>, %w: memref<3x3x8xf32, #sram>, %a: memref<1x10x10x8xf32, #acc>) {
  // expected-error @below {{'npu.depthwise_conv2d' op batch of input and accumulator differ: 2 vs 1}}
  "npu.depthwise_conv2d"(%x, %w, %a) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (memref<2x12x12x8xf32, #sram>, memref<3x3x8xf32, #sram>, memref<1x10x10x8xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @depthwise_halo(%x: memref<1x12x11x8xf32, #sram>, %w: memref<3x3x8xf32, #sram>, %a: memref<1x10x10x8xf32, #acc>) {
  // expected-error @below {{'npu.depthwise_conv2d' op input extent along x is 11, but 10 outputs of a window of 3 (stride 1, dilation 1) read 12}}
  "npu.depthwise_conv2d"(%x, %w, %a) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (memref<1x12x11x8xf32, #sram>, memref<3x3x8xf32, #sram>, memref<1x10x10x8xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @matmul_rank(%x: memref<4x8xf32, #sram>, %w: memref<8x16xf32, #sram>, %a: memref<4x3x16xf32, #acc>) {
  // expected-error @below {{'npu.matmul' op rhs must have rank 3, got rank 2}}
  "npu.matmul"(%x, %w, %a) : (memref<4x8xf32, #sram>, memref<8x16xf32, #sram>, memref<4x3x16xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @matmul_rows(%x: memref<5x8xf32, #sram>, %w: memref<3x8x16xf32, #sram>, %a: memref<4x3x16xf32, #acc>) {
  // expected-error @below {{'npu.matmul' op rows of lhs and accumulator differ: 5 vs 4}}
  "npu.matmul"(%x, %w, %a) : (memref<5x8xf32, #sram>, memref<3x8x16xf32, #sram>, memref<4x3x16xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @matmul_depth(%x: memref<4x9xf32, #sram>, %w: memref<3x8x16xf32, #sram>, %a: memref<4x3x16xf32, #acc>) {
  // expected-error @below {{'npu.matmul' op depth of lhs and rhs differ: 9 vs 8}}
  "npu.matmul"(%x, %w, %a) : (memref<4x9xf32, #sram>, memref<3x8x16xf32, #sram>, memref<4x3x16xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @matmul_blocks(%x: memref<4x8xf32, #sram>, %w: memref<2x8x16xf32, #sram>, %a: memref<4x3x16xf32, #acc>) {
  // expected-error @below {{'npu.matmul' op column blocks of rhs and accumulator differ: 2 vs 3}}
  "npu.matmul"(%x, %w, %a) : (memref<4x8xf32, #sram>, memref<2x8x16xf32, #sram>, memref<4x3x16xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @matmul_block_size(%x: memref<4x8xf32, #sram>, %w: memref<3x8x8xf32, #sram>, %a: memref<4x3x16xf32, #acc>) {
  // expected-error @below {{'npu.matmul' op block size of rhs and accumulator differ: 8 vs 16}}
  "npu.matmul"(%x, %w, %a) : (memref<4x8xf32, #sram>, memref<3x8x8xf32, #sram>, memref<4x3x16xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @pool_kind(%x: memref<1x9x9x8xf32, #sram>, %a: memref<1x4x4x8xf32, #acc>) {
  // expected-error @below {{'npu.pool2d' op 'kind' must be one of max, sum, got 'min'}}
  "npu.pool2d"(%x, %a) {kind = "min", window = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>}
    : (memref<1x9x9x8xf32, #sram>, memref<1x4x4x8xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @pool_kind_type(%x: memref<1x9x9x8xf32, #sram>, %a: memref<1x4x4x8xf32, #acc>) {
  // expected-error @below {{'npu.pool2d' op 'kind' must be a string, got 3 : i64}}
  "npu.pool2d"(%x, %a) {kind = 3, window = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>}
    : (memref<1x9x9x8xf32, #sram>, memref<1x4x4x8xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @pool_window(%x: memref<1x9x9x8xf32, #sram>, %a: memref<1x4x4x8xf32, #acc>) {
  // expected-error @below {{'npu.pool2d' op 'window' must be 2 positive integers, got [3, 3, 1]}}
  "npu.pool2d"(%x, %a) {kind = "max", window = array<i64: 3, 3, 1>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>}
    : (memref<1x9x9x8xf32, #sram>, memref<1x4x4x8xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @pool_batch(%x: memref<2x9x9x8xf32, #sram>, %a: memref<1x4x4x8xf32, #acc>) {
  // expected-error @below {{'npu.pool2d' op batch of input and accumulator differ: 2 vs 1}}
  "npu.pool2d"(%x, %a) {kind = "max", window = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>}
    : (memref<2x9x9x8xf32, #sram>, memref<1x4x4x8xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @pool_channels(%x: memref<1x9x9x8xf32, #sram>, %a: memref<1x4x4x4xf32, #acc>) {
  // expected-error @below {{'npu.pool2d' op channels of input and accumulator differ: 8 vs 4}}
  "npu.pool2d"(%x, %a) {kind = "max", window = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>}
    : (memref<1x9x9x8xf32, #sram>, memref<1x4x4x4xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @pool_halo(%x: memref<1x8x9x8xf32, #sram>, %a: memref<1x4x4x8xf32, #acc>) {
  // expected-error @below {{'npu.pool2d' op input extent along y is 8, but 4 outputs of a window of 3 (stride 2, dilation 1) read 9}}
  "npu.pool2d"(%x, %a) {kind = "max", window = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>}
    : (memref<1x8x9x8xf32, #sram>, memref<1x4x4x8xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @matmul_of_vectors(%x: memref<4x8xvector<4xf32>, #sram>, %w: memref<3x8x16xvector<4xf32>, #sram>, %a: memref<4x3x16xvector<4xf32>, #acc>) {
  // expected-error @below {{'npu.matmul' op lhs must hold integers or floats, got vector<4xf32>}}
  "npu.matmul"(%x, %w, %a) : (memref<4x8xvector<4xf32>, #sram>, memref<3x8x16xvector<4xf32>, #sram>, memref<4x3x16xvector<4xf32>, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @batch_matmul_rank(%x: memref<5x4x8xf32, #sram>, %w: memref<3x8x16xf32, #sram>, %a: memref<5x4x3x16xf32, #acc>) {
  // expected-error @below {{'npu.batch_matmul' op rhs must have rank 4, got rank 3}}
  "npu.batch_matmul"(%x, %w, %a) : (memref<5x4x8xf32, #sram>, memref<3x8x16xf32, #sram>, memref<5x4x3x16xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @batch_matmul_memory(%x: memref<5x4x8xf32, #sram>, %w: memref<5x3x8x16xf32, #sram>, %a: memref<5x4x3x16xf32, #sram>) {
  // expected-error @below {{'npu.batch_matmul' op accumulator must be in acc, got sram}}
  "npu.batch_matmul"(%x, %w, %a) : (memref<5x4x8xf32, #sram>, memref<5x3x8x16xf32, #sram>, memref<5x4x3x16xf32, #sram>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @batch_matmul_batch(%x: memref<5x4x8xf32, #sram>, %w: memref<4x3x8x16xf32, #sram>, %a: memref<5x4x3x16xf32, #acc>) {
  // expected-error @below {{'npu.batch_matmul' op batch of lhs and rhs differ: 5 vs 4}}
  "npu.batch_matmul"(%x, %w, %a) : (memref<5x4x8xf32, #sram>, memref<4x3x8x16xf32, #sram>, memref<5x4x3x16xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @batch_matmul_accumulator_batch(%x: memref<5x4x8xf32, #sram>, %w: memref<5x3x8x16xf32, #sram>, %a: memref<6x4x3x16xf32, #acc>) {
  // expected-error @below {{'npu.batch_matmul' op batch of lhs and accumulator differ: 5 vs 6}}
  "npu.batch_matmul"(%x, %w, %a) : (memref<5x4x8xf32, #sram>, memref<5x3x8x16xf32, #sram>, memref<6x4x3x16xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @batch_matmul_rows(%x: memref<5x3x8xf32, #sram>, %w: memref<5x3x8x16xf32, #sram>, %a: memref<5x4x3x16xf32, #acc>) {
  // expected-error @below {{'npu.batch_matmul' op rows of lhs and accumulator differ: 3 vs 4}}
  "npu.batch_matmul"(%x, %w, %a) : (memref<5x3x8xf32, #sram>, memref<5x3x8x16xf32, #sram>, memref<5x4x3x16xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @batch_matmul_depth(%x: memref<5x4x9xf32, #sram>, %w: memref<5x3x8x16xf32, #sram>, %a: memref<5x4x3x16xf32, #acc>) {
  // expected-error @below {{'npu.batch_matmul' op depth of lhs and rhs differ: 9 vs 8}}
  "npu.batch_matmul"(%x, %w, %a) : (memref<5x4x9xf32, #sram>, memref<5x3x8x16xf32, #sram>, memref<5x4x3x16xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @batch_matmul_blocks(%x: memref<5x4x8xf32, #sram>, %w: memref<5x2x8x16xf32, #sram>, %a: memref<5x4x3x16xf32, #acc>) {
  // expected-error @below {{'npu.batch_matmul' op column blocks of rhs and accumulator differ: 2 vs 3}}
  "npu.batch_matmul"(%x, %w, %a) : (memref<5x4x8xf32, #sram>, memref<5x2x8x16xf32, #sram>, memref<5x4x3x16xf32, #acc>) -> ()
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @batch_matmul_block_size(%x: memref<5x4x8xf32, #sram>, %w: memref<5x3x8x8xf32, #sram>, %a: memref<5x4x3x16xf32, #acc>) {
  // expected-error @below {{'npu.batch_matmul' op block size of rhs and accumulator differ: 8 vs 16}}
  "npu.batch_matmul"(%x, %w, %a) : (memref<5x4x8xf32, #sram>, memref<5x3x8x8xf32, #sram>, memref<5x4x3x16xf32, #acc>) -> ()
  return
}
