// RUN: %npu-opt %s | %npu-opt | filecheck %s
// RUN: %npu-opt %s --mlir-print-op-generic | %npu-opt | filecheck %s

// CHECK-LABEL: func.func @convolution
// CHECK: "npu.fill"(%arg2) {value = 0.000000e+00 : f32} : (memref<1x10x10x2x4xf32, #npu.space<"acc">>) -> ()
// CHECK: "npu.conv2d"(%arg0, %arg1, %arg2) {dilations = array<i64: 1, 1>, strides = array<i64: 1, 1>}
func.func @convolution(%x: memref<1x12x12x8xf32, #npu.space<"sram">>,
                       %w: memref<2x3x3x8x4xf32, #npu.space<"sram">>,
                       %a: memref<1x10x10x2x4xf32, #npu.space<"acc">>) {
  "npu.fill"(%a) {value = 0.0 : f32} : (memref<1x10x10x2x4xf32, #npu.space<"acc">>) -> ()
  "npu.conv2d"(%x, %w, %a) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (memref<1x12x12x8xf32, #npu.space<"sram">>, memref<2x3x3x8x4xf32, #npu.space<"sram">>, memref<1x10x10x2x4xf32, #npu.space<"acc">>) -> ()
  return
}

// CHECK-LABEL: func.func @depthwise
// CHECK: "npu.depthwise_conv2d"(%arg0, %arg1, %arg2) {dilations = array<i64: 2, 2>, strides = array<i64: 2, 1>}
func.func @depthwise(%x: memref<1x11x9x8xf32, #npu.space<"sram">>,
                     %w: memref<3x3x8xf32, #npu.space<"sram">>,
                     %a: memref<1x4x5x8xf32, #npu.space<"acc">>) {
  "npu.depthwise_conv2d"(%x, %w, %a) {strides = array<i64: 2, 1>, dilations = array<i64: 2, 2>}
    : (memref<1x11x9x8xf32, #npu.space<"sram">>, memref<3x3x8xf32, #npu.space<"sram">>, memref<1x4x5x8xf32, #npu.space<"acc">>) -> ()
  return
}

// CHECK-LABEL: func.func @matmul
// CHECK: "npu.matmul"(%arg0, %arg1, %arg2) : (memref<4x8xf32, #npu.space<"sram">>
func.func @matmul(%x: memref<4x8xf32, #npu.space<"sram">>,
                  %w: memref<3x8x16xf32, #npu.space<"sram">>,
                  %a: memref<4x3x16xf32, #npu.space<"acc">>) {
  "npu.matmul"(%x, %w, %a) : (memref<4x8xf32, #npu.space<"sram">>, memref<3x8x16xf32, #npu.space<"sram">>, memref<4x3x16xf32, #npu.space<"acc">>) -> ()
  return
}

// CHECK-LABEL: func.func @batch_matmul
// CHECK: "npu.batch_matmul"(%arg0, %arg1, %arg2) : (memref<5x4x8xf32, #npu.space<"sram">>
func.func @batch_matmul(%x: memref<5x4x8xf32, #npu.space<"sram">>,
                        %w: memref<5x3x8x16xf32, #npu.space<"sram">>,
                        %a: memref<5x4x3x16xf32, #npu.space<"acc">>) {
  "npu.batch_matmul"(%x, %w, %a) : (memref<5x4x8xf32, #npu.space<"sram">>, memref<5x3x8x16xf32, #npu.space<"sram">>, memref<5x4x3x16xf32, #npu.space<"acc">>) -> ()
  return
}

// CHECK-LABEL: func.func @pool
// CHECK: "npu.pool2d"(%arg0, %arg1) {dilations = array<i64: 1, 1>, kind = "max", strides = array<i64: 2, 2>, window = array<i64: 3, 3>}
func.func @pool(%x: memref<1x9x9x8xf32, #npu.space<"sram">>, %a: memref<1x4x4x8xf32, #npu.space<"acc">>) {
  "npu.pool2d"(%x, %a) {kind = "max", window = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>}
    : (memref<1x9x9x8xf32, #npu.space<"sram">>, memref<1x4x4x8xf32, #npu.space<"acc">>) -> ()
  return
}

// Quantised operands accumulate in a wider type; extents may be dynamic.
// CHECK-LABEL: func.func @quantised
// CHECK: "npu.matmul"(%arg0, %arg1, %arg2) : (memref<?x8xi8, #npu.space<"sram">>, memref<3x8x16xi8, #npu.space<"sram">>, memref<?x3x16xi32, #npu.space<"acc">>) -> ()
func.func @quantised(%x: memref<?x8xi8, #npu.space<"sram">>,
                     %w: memref<3x8x16xi8, #npu.space<"sram">>,
                     %a: memref<?x3x16xi32, #npu.space<"acc">>) {
  "npu.matmul"(%x, %w, %a) : (memref<?x8xi8, #npu.space<"sram">>, memref<3x8x16xi8, #npu.space<"sram">>, memref<?x3x16xi32, #npu.space<"acc">>) -> ()
  return
}

// A strided tile may carry rows that no output reads.
// CHECK-LABEL: func.func @unused_tail
// CHECK: "npu.pool2d"
// CHECK-SAME: memref<1x10x9x8xf32
func.func @unused_tail(%x: memref<1x10x9x8xf32, #npu.space<"sram">>, %a: memref<1x4x4x8xf32, #npu.space<"acc">>) {
  "npu.pool2d"(%x, %a) {kind = "sum", window = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>}
    : (memref<1x10x9x8xf32, #npu.space<"sram">>, memref<1x4x4x8xf32, #npu.space<"acc">>) -> ()
  return
}
