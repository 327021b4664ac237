// RUN: %npu-opt %s --target edge --pass-pipeline='builtin.module(split-dma)' | filecheck %s
// RUN: %npu-opt %s --target edge --pass-pipeline='builtin.module(split-dma,split-dma)' | filecheck %s
// RUN: %npu-opt %s --target %inputs/two_channels.toml --pass-pipeline='builtin.module(split-dma)' | filecheck %s --check-prefix=SHARED
// RUN: %npu-opt %s --target %inputs/two_channels.toml --pass-pipeline='builtin.module(split-dma,split-dma)' | filecheck %s --check-prefix=SHARED
// RUN: %npu-opt %s --target host --pass-pipeline='builtin.module(split-dma)' | filecheck %s --check-prefix=CACHED

// CACHED-NOT: npu.dma_join

// The loop runs over the shortest dimension, the last of the source and the first of the target.
// CHECK-LABEL: func.func private @transpose
// CHECK: %[[NONE:.*]] = "npu.dma_none"
// CHECK: %[[ALL:.*]] = scf.for %[[I:.*]] = %c0{{.*}} to %c2{{.*}} step %c1{{.*}} iter_args(%[[BEFORE:.*]] = %[[NONE]])
// CHECK-NEXT: %[[FROM:.*]] = memref.subview %arg0[0, 0, 0, 0, %[[I]]] [8, 7, 6, 5, 1] [1, 1, 1, 1, 1]
// CHECK-NEXT: %[[TO:.*]] = memref.subview %arg1[%[[I]], 0, 0, 0, 0] [1, 5, 6, 7, 8] [1, 1, 1, 1, 1]
// CHECK-NEXT: %[[TOKEN:.*]] = "npu.dma_start"(%[[FROM]], %[[TO]]) {permutation = array<i64: 4, 3, 2, 1, 0>}
// CHECK-NEXT: %[[JOINED:.*]] = "npu.dma_join"(%[[BEFORE]], %[[TOKEN]])
// CHECK-NEXT: scf.yield %[[JOINED]]
// CHECK-NEXT: }
// CHECK-NEXT: "npu.dma_wait"(%[[ALL]])
// CHECK-NEXT: return
func.func private @transpose(%x: memref<8x7x6x5x2xf32>, %y: memref<2x5x6x7x8xf32>) attributes {npu.kernel = "copy"} {
  %t = "npu.dma_start"(%x, %y) {permutation = array<i64: 4, 3, 2, 1, 0>} : (memref<8x7x6x5x2xf32>, memref<2x5x6x7x8xf32>) -> !npu.token
  "npu.dma_wait"(%t) : (!npu.token) -> ()
  return
}

// Six dimensions, of which two go to loops; shorter ones first, in the order of the target.
// CHECK-LABEL: func.func private @two_loops
// CHECK: %[[ALL:.*]] = scf.for %[[I:.*]] = %c0{{.*}} to %c3{{.*}} step
// CHECK: %[[ROW:.*]] = scf.for %[[J:.*]] = %c0{{.*}} to %c2{{.*}} step
// CHECK-NEXT: memref.subview %arg0[0, 0, %[[I]], %[[J]], 0, 0] [4, 4, 1, 1, 4, 4]
// CHECK-NEXT: memref.subview %arg1[0, 0, %[[I]], 0, %[[J]], 0] [4, 4, 1, 4, 1, 4]
// CHECK: scf.yield %[[ROW]]
// CHECK: "npu.dma_wait"(%[[ALL]])
func.func private @two_loops(%x: memref<4x4x3x2x4x4xf32>, %y: memref<4x4x3x4x2x4xf32>) attributes {npu.kernel = "copy"} {
  %t = "npu.dma_start"(%x, %y) {permutation = array<i64: 1, 5, 2, 4, 3, 0>} : (memref<4x4x3x2x4x4xf32>, memref<4x4x3x4x2x4xf32>) -> !npu.token
  "npu.dma_wait"(%t) : (!npu.token) -> ()
  return
}

// A tile that pads its columns, whose number differs from tile to tile, is split along another
// dimension, and `low` stays as it is.
// CHECK-LABEL: func.func private @padded
// CHECK: scf.for %[[I:.*]] = %c0{{.*}} to %c2{{.*}} step
// CHECK: %[[COLUMNS:.*]] = memref.dim %arg0, %c2{{.*}}
// CHECK: %[[FROM:.*]] = memref.subview %arg0[%[[I]], 0, 0, 0, 0] [1, 3, %[[COLUMNS]], 4, 4]
// CHECK: %[[TO:.*]] = memref.subview %alloc[%[[I]], 0, 0, 0, 0] [1, 3, 8, 4, 4]
// CHECK: "npu.dma_start"(%[[FROM]], %[[TO]], %c0{{.*}}, %c0{{.*}}, %arg1, %c0{{.*}}, %c0{{.*}}) {{.*}}pad_value = 0.000000e+00 : f32
func.func private @padded(%x: memref<2x3x?x4x4xf32, strided<[2000, 600, 64, 8, 1], offset: ?>>, %low: index) attributes {npu.kernel = "conv2d"} {
  %zero = arith.constant 0 : index
  %tile = memref.alloc() : memref<2x3x8x4x4xf32, #npu.space<"sram">>
  %t = "npu.dma_start"(%x, %tile, %zero, %zero, %low, %zero, %zero) {permutation = array<i64: 0, 1, 2, 3, 4>, pad_value = 0.0 : f32} : (memref<2x3x?x4x4xf32, strided<[2000, 600, 64, 8, 1], offset: ?>>, memref<2x3x8x4x4xf32, #npu.space<"sram">>, index, index, index, index, index) -> !npu.token
  "npu.dma_wait"(%t) : (!npu.token) -> ()
  return
}

// A box of a box is taken from the whole, since a box may be empty. Where the token goes does not
// matter: here a loop carries it.
// CHECK-LABEL: func.func private @ahead
// CHECK: %[[OUTER:.*]] = scf.for %[[N:.*]] = {{.*}} iter_args(%{{.*}} = %{{.*}})
// CHECK: %[[ALL:.*]] = scf.for %[[I:.*]] = %c0{{.*}} to %c2{{.*}} step
// CHECK-NEXT: %[[ROW:.*]] = arith.addi %[[N]], %[[I]]
// CHECK-NEXT: memref.subview %arg0[%[[ROW]], 0, 1, %arg2, 0] [1, 3, 3, 3, 3]
// CHECK: scf.yield %[[ALL]]
// CHECK: "npu.dma_wait"(%[[OUTER]])
func.func private @ahead(%x: memref<8x4x4x4x4xf32>, %y: memref<2x3x3x3x3xf32, #npu.space<"sram">>, %at: index) attributes {npu.kernel = "copy"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %first = "npu.dma_none"() : () -> !npu.token
  %last = scf.for %n = %c0 to %c4 step %c1 iter_args(%before = %first) -> !npu.token {
    "npu.dma_wait"(%before) : (!npu.token) -> ()
    %box = memref.subview %x[%n, 0, 1, %at, 0] [2, 3, 3, 3, 3] [1, 1, 1, 1, 1] : memref<8x4x4x4x4xf32> to memref<2x3x3x3x3xf32, strided<[256, 64, 16, 4, 1], offset: ?>>
    %t = "npu.dma_start"(%box, %y) {permutation = array<i64: 0, 1, 2, 3, 4>} : (memref<2x3x3x3x3xf32, strided<[256, 64, 16, 4, 1], offset: ?>>, memref<2x3x3x3x3xf32, #npu.space<"sram">>) -> !npu.token
    scf.yield %t : !npu.token
  }
  "npu.dma_wait"(%last) : (!npu.token) -> ()
  return
}

// A tile that is all padding has an empty source, here one that is known to be.
// CHECK-LABEL: func.func private @empty
// CHECK: scf.for %[[I:.*]] = %c0{{.*}} to %c2{{.*}} step
// CHECK: memref.subview %arg0[%[[I]], 0, 0, 0, 0] [1, 0, 3, 3, 3] {{.*}} : memref<2x4x4x4x4xf32> to memref<1x0x3x3x3xf32
func.func private @empty(%x: memref<2x4x4x4x4xf32>) attributes {npu.kernel = "conv2d"} {
  %zero = arith.constant 0 : index
  %tile = memref.alloc() : memref<2x1x3x3x3xf32, #npu.space<"sram">>
  %box = memref.subview %x[0, 0, 0, 0, 0] [2, 0, 3, 3, 3] [1, 1, 1, 1, 1] : memref<2x4x4x4x4xf32> to memref<2x0x3x3x3xf32, strided<[256, 64, 16, 4, 1]>>
  %cast = memref.cast %box : memref<2x0x3x3x3xf32, strided<[256, 64, 16, 4, 1]>> to memref<2x?x3x3x3xf32, strided<[256, 64, 16, 4, 1], offset: ?>>
  %t = "npu.dma_start"(%cast, %tile, %zero, %zero, %zero, %zero, %zero) {permutation = array<i64: 0, 1, 2, 3, 4>, pad_value = 0.0 : f32} : (memref<2x?x3x3x3xf32, strided<[256, 64, 16, 4, 1], offset: ?>>, memref<2x1x3x3x3xf32, #npu.space<"sram">>, index, index, index, index, index) -> !npu.token
  "npu.dma_wait"(%t) : (!npu.token) -> ()
  return
}

// What the engine can do stays: neighbours that are contiguous on both sides are one dimension, and
// dimensions of extent 1 are none. Two channels share the long move, not the short one.
// CHECK-LABEL: func.func private @allowed
// CHECK-NOT: scf.for
// CHECK: "npu.dma_start"(%arg0, %arg1)
// CHECK: "npu.dma_start"(%arg2, %arg3)
// CHECK: return
// SHARED-LABEL: func.func private @allowed
// SHARED: %[[ALL:.*]] = scf.for %[[I:.*]] = %c0{{.*}} to %c2{{.*}} step %c1{{.*}} iter_args
// SHARED-NEXT: memref.subview %arg0[%[[I]], 0, 0, 0, 0, 0] [1, 3, 4, 5, 6, 7]
// SHARED-NEXT: memref.subview %arg1[%[[I]], 0, 0, 0, 0, 0] [1, 3, 4, 5, 6, 7]
// SHARED: "npu.dma_wait"(%[[ALL]])
// SHARED-NOT: scf.for
// SHARED: "npu.dma_start"(%arg2, %arg3)
// SHARED: return
func.func private @allowed(%x: memref<2x3x4x5x6x7xf32>, %y: memref<2x3x4x5x6x7xf32>, %u: memref<2x3x4x1x5x6xf32>, %v: memref<6x4x1x2x3x5xf32>) attributes {npu.kernel = "copy"} {
  %t = "npu.dma_start"(%x, %y) {permutation = array<i64: 0, 1, 2, 3, 4, 5>} : (memref<2x3x4x5x6x7xf32>, memref<2x3x4x5x6x7xf32>) -> !npu.token
  "npu.dma_wait"(%t) : (!npu.token) -> ()
  %s = "npu.dma_start"(%u, %v) {permutation = array<i64: 5, 2, 3, 0, 1, 4>} : (memref<2x3x4x1x5x6xf32>, memref<6x4x1x2x3x5xf32>) -> !npu.token
  "npu.dma_wait"(%s) : (!npu.token) -> ()
  return
}
