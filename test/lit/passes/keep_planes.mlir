// RUN: %npu-opt %s --split-input-file --target %inputs/avx2.toml --pass-pipeline='builtin.module(keep-planes)' | filecheck %s
// RUN: %npu-opt %s --split-input-file --target %inputs/avx2.toml --pass-pipeline='builtin.module(keep-planes,keep-planes)' | filecheck %s
// RUN: %npu-opt %s --split-input-file --target %inputs/avx2.toml --pass-pipeline='builtin.module(keep-planes,elide-dma)' | filecheck %s --check-prefix=ELIDED
// RUN: %npu-opt %s --split-input-file --target edge --pass-pipeline='builtin.module(keep-planes)' | filecheck %s --check-prefix=ONCHIP

#all = affine_map<(n, y, x, k, i) -> (n, y, x, k, i)>
#channels = affine_map<(n, y, x, k, i) -> (k, i)>

// Image and result stay in planes, which the ops see through transposes. What is left of the last move
// only copies.
// CHECK-LABEL: func.func @first_layer
// CHECK-DAG: %[[IN:.*]] = memref.alloc() : memref<1x3x6x34xf32, #npu.space<"sram">>
// CHECK-DAG: %[[IMAGE:.*]] = memref.transpose %[[IN]] (d0, d1, d2, d3) -> (d0, d2, d3, d1)
// CHECK-DAG: %[[OUT:.*]] = memref.alloc() : memref<1x2x8x4x32xf32, #npu.space<"sram">>
// CHECK-DAG: %[[RESULT:.*]] = memref.transpose %[[OUT]] (d0, d1, d2, d3, d4) -> (d0, d3, d4, d1, d2)
// CHECK: "npu.dma_start"(%{{.*}}, %[[IN]], %[[ZERO:.*]], %[[ZERO]], %[[ONE:.*]], %[[ONE]]) {pad_value = 0.000000e+00 : f32, permutation = array<i64: 0, 1, 2, 3>}
// CHECK: "npu.conv2d"(%[[IMAGE]],
// CHECK: "npu.drain"(%{{.*}}, %[[RESULT]])
// CHECK: "npu.dma_start"(%[[OUT]], %{{.*}}) {permutation = array<i64: 0, 1, 2, 3, 4>}
// ELIDED-LABEL: func.func @first_layer
// ELIDED-COUNT-1: npu.dma_start
// ELIDED: %[[RESULT:.*]] = memref.transpose %{{.*}} (d0, d1, d2, d3, d4) -> (d0, d3, d4, d1, d2)
// ELIDED: "npu.drain"(%{{.*}}, %[[RESULT]])
// ELIDED-NOT: npu.dma_start
// ELIDED: return
// ONCHIP-LABEL: func.func @first_layer
// ONCHIP-NOT: memref.transpose
// ONCHIP: return
func.func @first_layer(%x: memref<1x3x4x32xf32>, %w: memref<2x3x3x3x8xf32, #npu.space<"sram">>,
                       %b: memref<2x8xf32, #npu.space<"sram">>, %o: memref<1x2x8x4x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %image = memref.alloc() : memref<1x6x34x3xf32, #npu.space<"sram">>
  %acc = memref.alloc() : memref<1x4x32x2x8xf32, #npu.space<"acc">>
  %result = memref.alloc() : memref<1x4x32x2x8xf32, #npu.space<"sram">>
  %t = "npu.dma_start"(%x, %image, %c0, %c1, %c1, %c0) {permutation = array<i64: 0, 2, 3, 1>, pad_value = 0.0 : f32}
    : (memref<1x3x4x32xf32>, memref<1x6x34x3xf32, #npu.space<"sram">>, index, index, index, index) -> !npu.token
  "npu.dma_wait"(%t) : (!npu.token) -> ()
  "npu.fill"(%acc) {value = 0.0 : f32} : (memref<1x4x32x2x8xf32, #npu.space<"acc">>) -> ()
  "npu.conv2d"(%image, %w, %acc) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (memref<1x6x34x3xf32, #npu.space<"sram">>, memref<2x3x3x3x8xf32, #npu.space<"sram">>, memref<1x4x32x2x8xf32, #npu.space<"acc">>) -> ()
  "npu.drain"(%acc, %b, %result) ({
  ^bb0(%a: f32, %bias: f32, %old: f32):
    %sum = arith.addf %a, %bias : f32
    "npu.yield"(%sum) : (f32) -> ()
  }) {indexing_maps = [#all, #channels, #all], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<1x4x32x2x8xf32, #npu.space<"acc">>, memref<2x8xf32, #npu.space<"sram">>, memref<1x4x32x2x8xf32, #npu.space<"sram">>) -> ()
  %u = "npu.dma_start"(%result, %o) {permutation = array<i64: 0, 3, 4, 1, 2>}
    : (memref<1x4x32x2x8xf32, #npu.space<"sram">>, memref<1x2x8x4x32xf32>) -> !npu.token
  "npu.dma_wait"(%u) : (!npu.token) -> ()
  return
}

// -----

#all = affine_map<(n, y, x, k, i) -> (n, y, x, k, i)>

// A second operand that has columns would be read across its planes: only the image stays in planes.
// CHECK-LABEL: func.func @second_operand
// CHECK: %[[IMAGE:.*]] = memref.transpose %{{.*}} (d0, d1, d2, d3) -> (d0, d2, d3, d1)
// CHECK-NOT: memref.transpose
// CHECK: "npu.dma_start"(%arg0, %{{.*}}) {permutation = array<i64: 0, 1, 2, 3>}
// CHECK: "npu.conv2d"(%[[IMAGE]],
// CHECK: "npu.dma_start"(%{{.*}}, %arg3) {permutation = array<i64: 0, 3, 4, 1, 2>}
// CHECK: return
func.func @second_operand(%x: memref<1x3x6x34xf32>, %w: memref<2x3x3x3x8xf32, #npu.space<"sram">>,
                          %b: memref<1x4x32x2x8xf32, #npu.space<"sram">>, %o: memref<1x2x8x4x32xf32>) {
  %image = memref.alloc() : memref<1x6x34x3xf32, #npu.space<"sram">>
  %acc = memref.alloc() : memref<1x4x32x2x8xf32, #npu.space<"acc">>
  %result = memref.alloc() : memref<1x4x32x2x8xf32, #npu.space<"sram">>
  %t = "npu.dma_start"(%x, %image) {permutation = array<i64: 0, 2, 3, 1>}
    : (memref<1x3x6x34xf32>, memref<1x6x34x3xf32, #npu.space<"sram">>) -> !npu.token
  "npu.dma_wait"(%t) : (!npu.token) -> ()
  "npu.fill"(%acc) {value = 0.0 : f32} : (memref<1x4x32x2x8xf32, #npu.space<"acc">>) -> ()
  "npu.conv2d"(%image, %w, %acc) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (memref<1x6x34x3xf32, #npu.space<"sram">>, memref<2x3x3x3x8xf32, #npu.space<"sram">>, memref<1x4x32x2x8xf32, #npu.space<"acc">>) -> ()
  "npu.drain"(%acc, %b, %result) ({
  ^bb0(%a: f32, %other: f32, %old: f32):
    %sum = arith.addf %a, %other : f32
    "npu.yield"(%sum) : (f32) -> ()
  }) {indexing_maps = [#all, #all, #all], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<1x4x32x2x8xf32, #npu.space<"acc">>, memref<1x4x32x2x8xf32, #npu.space<"sram">>, memref<1x4x32x2x8xf32, #npu.space<"sram">>) -> ()
  %u = "npu.dma_start"(%result, %o) {permutation = array<i64: 0, 3, 4, 1, 2>}
    : (memref<1x4x32x2x8xf32, #npu.space<"sram">>, memref<1x2x8x4x32xf32>) -> !npu.token
  "npu.dma_wait"(%u) : (!npu.token) -> ()
  return
}

// -----

#all = affine_map<(n, y, x, k, i) -> (n, y, x, k, i)>

// Channels last at one end: vectors run over channels, and the image is read where it lies.
// CHECK-LABEL: func.func @channels_last
// CHECK: %[[IMAGE:.*]] = memref.transpose %{{.*}} (d0, d1, d2, d3) -> (d0, d2, d3, d1)
// CHECK-NOT: memref.transpose
// CHECK: "npu.conv2d"(%[[IMAGE]],
// CHECK: return
// ELIDED-LABEL: func.func @channels_last
// ELIDED-NOT: npu.dma_start
// ELIDED: return
func.func @channels_last(%x: memref<1x3x6x34xf32>, %w: memref<2x3x3x3x8xf32, #npu.space<"sram">>,
                         %o: memref<1x4x32x2x8xf32>) {
  %image = memref.alloc() : memref<1x6x34x3xf32, #npu.space<"sram">>
  %acc = memref.alloc() : memref<1x4x32x2x8xf32, #npu.space<"acc">>
  %result = memref.alloc() : memref<1x4x32x2x8xf32, #npu.space<"sram">>
  %t = "npu.dma_start"(%x, %image) {permutation = array<i64: 0, 2, 3, 1>}
    : (memref<1x3x6x34xf32>, memref<1x6x34x3xf32, #npu.space<"sram">>) -> !npu.token
  "npu.dma_wait"(%t) : (!npu.token) -> ()
  "npu.fill"(%acc) {value = 0.0 : f32} : (memref<1x4x32x2x8xf32, #npu.space<"acc">>) -> ()
  "npu.conv2d"(%image, %w, %acc) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (memref<1x6x34x3xf32, #npu.space<"sram">>, memref<2x3x3x3x8xf32, #npu.space<"sram">>, memref<1x4x32x2x8xf32, #npu.space<"acc">>) -> ()
  "npu.drain"(%acc, %result) ({
  ^bb0(%a: f32, %old: f32):
    "npu.yield"(%a) : (f32) -> ()
  }) {indexing_maps = [#all, #all], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<1x4x32x2x8xf32, #npu.space<"acc">>, memref<1x4x32x2x8xf32, #npu.space<"sram">>) -> ()
  %u = "npu.dma_start"(%result, %o) {permutation = array<i64: 0, 1, 2, 3, 4>}
    : (memref<1x4x32x2x8xf32, #npu.space<"sram">>, memref<1x4x32x2x8xf32>) -> !npu.token
  "npu.dma_wait"(%u) : (!npu.token) -> ()
  return
}

// -----

#all = affine_map<(n, y, x, k, i) -> (n, y, x, k, i)>

// So many planes would be read at the same time that they push each other out of the cache.
// CHECK-LABEL: func.func @many_channels
// CHECK-NOT: memref.transpose
// CHECK: return
func.func @many_channels(%x: memref<1x9x6x34xf32>, %w: memref<2x3x3x9x8xf32, #npu.space<"sram">>,
                         %o: memref<1x4x32x2x8xf32>) {
  %image = memref.alloc() : memref<1x6x34x9xf32, #npu.space<"sram">>
  %acc = memref.alloc() : memref<1x4x32x2x8xf32, #npu.space<"acc">>
  %result = memref.alloc() : memref<1x4x32x2x8xf32, #npu.space<"sram">>
  %t = "npu.dma_start"(%x, %image) {permutation = array<i64: 0, 2, 3, 1>}
    : (memref<1x9x6x34xf32>, memref<1x6x34x9xf32, #npu.space<"sram">>) -> !npu.token
  "npu.dma_wait"(%t) : (!npu.token) -> ()
  "npu.fill"(%acc) {value = 0.0 : f32} : (memref<1x4x32x2x8xf32, #npu.space<"acc">>) -> ()
  "npu.conv2d"(%image, %w, %acc) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (memref<1x6x34x9xf32, #npu.space<"sram">>, memref<2x3x3x9x8xf32, #npu.space<"sram">>, memref<1x4x32x2x8xf32, #npu.space<"acc">>) -> ()
  "npu.drain"(%acc, %result) ({
  ^bb0(%a: f32, %old: f32):
    "npu.yield"(%a) : (f32) -> ()
  }) {indexing_maps = [#all, #all], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<1x4x32x2x8xf32, #npu.space<"acc">>, memref<1x4x32x2x8xf32, #npu.space<"sram">>) -> ()
  %u = "npu.dma_start"(%result, %o) {permutation = array<i64: 0, 1, 2, 3, 4>}
    : (memref<1x4x32x2x8xf32, #npu.space<"sram">>, memref<1x4x32x2x8xf32>) -> !npu.token
  "npu.dma_wait"(%u) : (!npu.token) -> ()
  return
}
