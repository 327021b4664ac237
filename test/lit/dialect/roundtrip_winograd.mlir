// RUN: %npu-opt %s | %npu-opt | filecheck %s
// RUN: %npu-opt %s --mlir-print-op-generic | %npu-opt | filecheck %s

// CHECK-LABEL: func.func @windows_of_4
// CHECK: "npu.winograd_input"(%arg0, %arg1) {outputs = 4 : i64} : (memref<2x10x14x8xf32, #npu.space<"sram">>, memref<36x12x8xf32, #npu.space<"sram">>) -> ()
// CHECK: "npu.winograd_output"(%arg2, %arg3) {outputs = 4 : i64} : (memref<36x12x3x16xf32, #npu.space<"acc">>, memref<2x2x4x3x4x3x16xf32, #npu.space<"acc">>) -> ()
func.func @windows_of_4(%x: memref<2x10x14x8xf32, #npu.space<"sram">>, %t: memref<36x12x8xf32, #npu.space<"sram">>,
                        %p: memref<36x12x3x16xf32, #npu.space<"acc">>, %a: memref<2x2x4x3x4x3x16xf32, #npu.space<"acc">>) {
  "npu.winograd_input"(%x, %t) {outputs = 4 : i64} : (memref<2x10x14x8xf32, #npu.space<"sram">>, memref<36x12x8xf32, #npu.space<"sram">>) -> ()
  "npu.winograd_output"(%p, %a) {outputs = 4 : i64} : (memref<36x12x3x16xf32, #npu.space<"acc">>, memref<2x2x4x3x4x3x16xf32, #npu.space<"acc">>) -> ()
  return
}

// Extents may be dynamic.
// CHECK-LABEL: func.func @windows_of_2
// CHECK: "npu.winograd_input"(%arg0, %arg1) {outputs = 2 : i64}
// CHECK: "npu.winograd_output"(%arg2, %arg3) {outputs = 2 : i64}
func.func @windows_of_2(%x: memref<1x?x10x8xf16, #npu.space<"sram">>, %t: memref<16x?x8xf16, #npu.space<"sram">>,
                        %p: memref<16x?x1x8xf16, #npu.space<"acc">>, %a: memref<1x?x2x4x2x1x8xf16, #npu.space<"acc">>) {
  "npu.winograd_input"(%x, %t) {outputs = 2 : i64} : (memref<1x?x10x8xf16, #npu.space<"sram">>, memref<16x?x8xf16, #npu.space<"sram">>) -> ()
  "npu.winograd_output"(%p, %a) {outputs = 2 : i64} : (memref<16x?x1x8xf16, #npu.space<"acc">>, memref<1x?x2x4x2x1x8xf16, #npu.space<"acc">>) -> ()
  return
}
