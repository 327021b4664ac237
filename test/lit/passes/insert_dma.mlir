// RUN: %npu-opt %s --pass-pipeline='builtin.module(insert-dma)' | filecheck %s
// RUN: %npu-opt %s --pass-pipeline='builtin.module(insert-dma,insert-dma)' | filecheck %s

// CHECK-DAG: #[[FROM:.*]] = affine_map<(d0) -> (d0 - 1, 0)>
// CHECK-DAG: #[[LOW:.*]] = affine_map<(d0) -> (-d0 + 1, 0)>
// CHECK-DAG: #[[END:.*]] = affine_map<(d0) -> (d0 + 3, 8)>

// The padded buffer is gone: rows are clamped where a tile meets the border, columns have constant
// borders, channels have none.
// CHECK-LABEL: func.func private @padded_tiles
// CHECK-NOT: memref<1x10x10x4xf32>
// CHECK: scf.forall
// CHECK: %[[SOURCE:.*]] = affine.max #[[FROM]](%[[O:.*]])
// CHECK: %[[LANDING:.*]] = affine.max #[[LOW]](%[[O]])
// CHECK: %[[STOP:.*]] = affine.min #[[END]](%[[O]])
// CHECK: %[[ROWS:.*]] = affine.apply #{{.*}}(%[[STOP]], %[[SOURCE]])
// CHECK: memref.subview %arg0[0, %[[SOURCE]], 0, 0] [1, %[[ROWS]], 8, 4] [1, 1, 1, 1]
// CHECK: %[[TOKEN:.*]] = "npu.dma_start"(%{{.*}}, %{{.*}}, %c0{{.*}}, %[[LANDING]], %c1{{.*}}, %c0{{.*}}) {{.*}}pad_value = 0.000000e+00 : f32, permutation = array<i64: 0, 1, 2, 3>
// CHECK-NEXT: "npu.dma_wait"(%[[TOKEN]])
func.func private @padded_tiles(%x: memref<1x8x8x4xf32>) attributes {npu.kernel = "conv2d"} {
  %zero = arith.constant 0.0 : f32
  %p = memref.alloc() : memref<1x10x10x4xf32>
  linalg.map outs(%p : memref<1x10x10x4xf32>) (%init: f32) {
    linalg.yield %zero : f32
  }
  %interior = memref.subview %p[0, 1, 1, 0] [1, 8, 8, 4] [1, 1, 1, 1] : memref<1x10x10x4xf32> to memref<1x8x8x4xf32, strided<[400, 40, 4, 1], offset: 44>>
  memref.copy %x, %interior : memref<1x8x8x4xf32> to memref<1x8x8x4xf32, strided<[400, 40, 4, 1], offset: 44>>
  scf.forall (%i) in (4) {
    %o = affine.apply affine_map<(d0) -> (d0 * 2)>(%i)
    %rows = memref.subview %p[0, %o, 0, 0] [1, 4, 10, 4] [1, 1, 1, 1] : memref<1x10x10x4xf32> to memref<1x4x10x4xf32, strided<[400, 40, 4, 1], offset: ?>>
    %tile = memref.alloc() : memref<1x4x10x4xf32, #npu.space<"sram">>
    memref.copy %rows, %tile : memref<1x4x10x4xf32, strided<[400, 40, 4, 1], offset: ?>> to memref<1x4x10x4xf32, #npu.space<"sram">>
  }
  return
}

// A pad of a result that nothing else writes pads in place.
// CHECK-LABEL: func.func private @pad_only
// CHECK: "npu.dma_start"(%arg0, %arg1, %c2{{.*}}) {{.*}}pad_value = 0.000000e+00 : f32
// CHECK-NOT: linalg.fill
// CHECK: return
func.func private @pad_only(%x: memref<4xf32>, %out: memref<9xf32>) attributes {npu.kernel = "copy"} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%out : memref<9xf32>)
  %interior = memref.subview %out[2] [4] [1] : memref<9xf32> to memref<4xf32, strided<[1], offset: 2>>
  memref.copy %x, %interior : memref<4xf32> to memref<4xf32, strided<[1], offset: 2>>
  return
}

// CHECK-LABEL: func.func private @transpose
// CHECK: "npu.dma_start"(%arg0, %arg1) {{.*}}permutation = array<i64: 1, 0>
// CHECK-NEXT: "npu.dma_wait"
func.func private @transpose(%x: memref<4x8xf32>, %out: memref<8x4xf32>) attributes {npu.kernel = "copy"} {
  linalg.transpose ins(%x : memref<4x8xf32>) outs(%out : memref<8x4xf32>) permutation = [1, 0]
  return
}

// A copy out of acc is no move but a drain; fills without a copy into them are left.
// CHECK-LABEL: func.func private @drained
// CHECK-NEXT: arith.constant
// CHECK-NEXT: linalg.fill
// CHECK-NEXT: memref.copy %arg0, %arg1
// CHECK-NEXT: "npu.dma_start"(%arg1, %arg2)
func.func private @drained(%a: memref<4xf32, #npu.space<"acc">>, %s: memref<4xf32, #npu.space<"sram">>, %out: memref<4xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%a : memref<4xf32, #npu.space<"acc">>)
  memref.copy %a, %s : memref<4xf32, #npu.space<"acc">> to memref<4xf32, #npu.space<"sram">>
  memref.copy %s, %out : memref<4xf32, #npu.space<"sram">> to memref<4xf32>
  return
}

// Tiles of a padded, transposed image come from its source, and tiles of a result that is transposed
// afterwards go to the target; neither transposed buffer exists, not even one that holds both in turn.
// CHECK-LABEL: func.func private @transposed_edges
// CHECK-SAME: (%[[X:.*]]: memref<1x8x6x6xf32>, %[[O:.*]]: memref<1x8x6x6xf32>,
// CHECK-NOT: memref.alloc
// CHECK: scf.forall (%[[I:.*]]) in (3)
// CHECK: %[[VALID:.*]] = memref.subview %[[X]][0, 0, %{{.*}}, 0] [1, 8, %{{.*}}, 6] [1, 1, 1, 1]
// CHECK: "npu.dma_start"(%[[VALID]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {pad_value = 0.000000e+00 : f32, permutation = array<i64: 0, 2, 3, 1>}
// CHECK: %[[PART:.*]] = memref.subview %[[O]][0, 0, %{{.*}}, 0] [1, 8, 2, 6] [1, 1, 1, 1]
// CHECK: "npu.dma_start"(%{{.*}}, %[[PART]]) {permutation = array<i64: 0, 3, 1, 2>}
func.func private @transposed_edges(%x: memref<1x8x6x6xf32>, %out: memref<1x8x6x6xf32>, %tile: memref<1x4x8x8xf32, #npu.space<"sram">>, %result: memref<1x2x6x8xf32, #npu.space<"sram">>) attributes {npu.kernel = "pool2d"} {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<1x6x6x8xf32>
  linalg.transpose ins(%x : memref<1x8x6x6xf32>) outs(%t : memref<1x6x6x8xf32>) permutation = [0, 2, 3, 1]
  %p = memref.alloc() : memref<1x8x8x8xf32>
  linalg.fill ins(%zero : f32) outs(%p : memref<1x8x8x8xf32>)
  %inner = memref.subview %p[0, 1, 1, 0] [1, 6, 6, 8] [1, 1, 1, 1] : memref<1x8x8x8xf32> to memref<1x6x6x8xf32, strided<[512, 64, 8, 1], offset: 72>>
  memref.copy %t, %inner : memref<1x6x6x8xf32> to memref<1x6x6x8xf32, strided<[512, 64, 8, 1], offset: 72>>
  scf.forall (%i) in (3) {
    %row = affine.apply affine_map<(d0) -> (d0 * 2)>(%i)
    %from = memref.subview %p[0, %row, 0, 0] [1, 4, 8, 8] [1, 1, 1, 1] : memref<1x8x8x8xf32> to memref<1x4x8x8xf32, strided<[512, 64, 8, 1], offset: ?>>
    memref.copy %from, %tile : memref<1x4x8x8xf32, strided<[512, 64, 8, 1], offset: ?>> to memref<1x4x8x8xf32, #npu.space<"sram">>
    %to = memref.subview %t[0, %row, 0, 0] [1, 2, 6, 8] [1, 1, 1, 1] : memref<1x6x6x8xf32> to memref<1x2x6x8xf32, strided<[288, 48, 8, 1], offset: ?>>
    memref.copy %result, %to : memref<1x2x6x8xf32, #npu.space<"sram">> to memref<1x2x6x8xf32, strided<[288, 48, 8, 1], offset: ?>>
  }
  linalg.transpose ins(%t : memref<1x6x6x8xf32>) outs(%out : memref<1x8x6x6xf32>) permutation = [0, 3, 1, 2]
  return
}

// The result's buffer holds an operand first: what is read from there comes from the operand's source.
// CHECK-LABEL: func.func private @operand_in_the_result
// CHECK-SAME: (%[[X:.*]]: memref<8x6xf32>, %[[O:.*]]: memref<6x8xf32>,
// CHECK-NOT: memref.alloc
// CHECK: %[[FROM:.*]] = memref.subview %[[X]][0, %{{.*}}] [8, 2] [1, 1]
// CHECK: "npu.dma_start"(%[[FROM]], %{{.*}}) {permutation = array<i64: 1, 0>}
// CHECK: %[[TO:.*]] = memref.subview %[[O]][%{{.*}}, 0] [2, 8] [1, 1]
// CHECK: "npu.dma_start"(%{{.*}}, %[[TO]]) {permutation = array<i64: 1, 0>}
func.func private @operand_in_the_result(%x: memref<8x6xf32>, %out: memref<6x8xf32>, %tile: memref<2x8xf32, #npu.space<"sram">>, %result: memref<8x2xf32, #npu.space<"sram">>) attributes {npu.kernel = "eltwise"} {
  %t = memref.alloc() : memref<8x6xf32>
  linalg.transpose ins(%x : memref<8x6xf32>) outs(%out : memref<6x8xf32>) permutation = [1, 0]
  scf.forall (%i) in (3) {
    %row = affine.apply affine_map<(d0) -> (d0 * 2)>(%i)
    %from = memref.subview %out[%row, 0] [2, 8] [1, 1] : memref<6x8xf32> to memref<2x8xf32, strided<[8, 1], offset: ?>>
    memref.copy %from, %tile : memref<2x8xf32, strided<[8, 1], offset: ?>> to memref<2x8xf32, #npu.space<"sram">>
    %to = memref.subview %t[0, %row] [8, 2] [1, 1] : memref<8x6xf32> to memref<8x2xf32, strided<[6, 1], offset: ?>>
    memref.copy %result, %to : memref<8x2xf32, #npu.space<"sram">> to memref<8x2xf32, strided<[6, 1], offset: ?>>
  }
  linalg.transpose ins(%t : memref<8x6xf32>) outs(%out : memref<6x8xf32>) permutation = [1, 0]
  return
}
