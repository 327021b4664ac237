// RUN: %npu-opt %s --target small --pass-pipeline='builtin.module(plan-scratchpad)' | filecheck %s
// RUN: %npu-opt %s --target small --pass-pipeline='builtin.module(plan-scratchpad,plan-scratchpad)' | filecheck %s

#sram = #npu.space<"sram">
#id = affine_map<(i) -> (i)>

// Three buffers, of which the first and the last never live together; acc stands behind sram.
// CHECK-LABEL: func.func private @kernel
// CHECK-SAME: %arg2: memref<576xi8> {npu.role = "scratch"}
// CHECK-SAME: npu.memory = {acc_bytes = 32 : i64, acc_start = 512 : i64, sram_bytes = 512 : i64}
// CHECK: %[[SRAM:.*]] = memref.memory_space_cast %arg2 : memref<576xi8> to memref<576xi8, #npu.space<"sram">>
// CHECK: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK: %[[FIRST:.*]] = memref.view %[[SRAM]][%[[ZERO]]][] {{.*}} to memref<64xf32, #npu.space<"sram">>
// CHECK: %[[OTHER:.*]] = arith.constant 256 : index
// CHECK: memref.view %[[SRAM]][%[[OTHER]]][] {{.*}} to memref<64xf32, #npu.space<"sram">>
// CHECK: %[[AGAIN:.*]] = arith.constant 0 : index
// CHECK: memref.view %[[SRAM]][%[[AGAIN]]][] {{.*}} to memref<32xf32, #npu.space<"sram">>
// CHECK: %[[ACC:.*]] = memref.memory_space_cast %arg2 {{.*}} to memref<576xi8, #npu.space<"acc">>
// CHECK: %[[BEHIND:.*]] = arith.constant 512 : index
// CHECK: memref.view %[[ACC]][%[[BEHIND]]][]
// CHECK-NOT: memref.alloc
// CHECK: return
func.func private @kernel(%x: memref<64xf32>, %out: memref<64xf32>) attributes {npu.kernel = "eltwise"} {
  %a = memref.alloc() : memref<64xf32, #sram>
  %0 = "npu.dma_start"(%x, %a) {operandSegmentSizes = array<i32: 1, 1, 0>, permutation = array<i64: 0>} : (memref<64xf32>, memref<64xf32, #sram>) -> !npu.token
  "npu.dma_wait"(%0) {operandSegmentSizes = array<i32: 1>} : (!npu.token) -> ()
  %b = memref.alloc() : memref<64xf32, #sram>
  "npu.eltwise"(%a, %b) ({
  ^bb0(%v: f32, %o: f32):
    "npu.yield"(%v) {operandSegmentSizes = array<i32: 1>} : (f32) -> ()
  }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>} : (memref<64xf32, #sram>, memref<64xf32, #sram>) -> ()
  %c = memref.alloc() : memref<32xf32, #sram>
  "npu.fill"(%c) {value = 0.0 : f32} : (memref<32xf32, #sram>) -> ()
  %1 = "npu.dma_start"(%b, %out) {operandSegmentSizes = array<i32: 1, 1, 0>, permutation = array<i64: 0>} : (memref<64xf32, #sram>, memref<64xf32>) -> !npu.token
  "npu.dma_wait"(%1) {operandSegmentSizes = array<i32: 1>} : (!npu.token) -> ()
  %d = memref.alloc() : memref<8xf32, #npu.space<"acc">>
  "npu.fill"(%d) {value = 0.0 : f32} : (memref<8xf32, #npu.space<"acc">>) -> ()
  return
}

// A kernel without buffers takes the smallest scratchpad.
// CHECK-LABEL: func.func private @empty(%arg0: memref<64xf32>, %arg1: memref<64xi8> {npu.role = "scratch"})
// CHECK-NEXT: return
func.func private @empty(%x: memref<64xf32>) attributes {npu.kernel = "copy"} {
  return
}

// A move that is waited for outside of the loop or branch that starts it: its buffer is live until
// then, and apart from the one that is filled in between.
// CHECK-LABEL: func.func private @waited_outside
// CHECK-SAME: sram_bytes = 192 : i64
// CHECK: arith.constant 0 : index
// CHECK: memref.view {{.*}} to memref<16xf32, #npu.space<"sram">>
// CHECK: arith.constant 64 : index
// CHECK: memref.view {{.*}} to memref<16xf32, #npu.space<"sram">>
// CHECK: arith.constant 128 : index
// CHECK: memref.view {{.*}} to memref<16xf32, #npu.space<"sram">>
func.func private @waited_outside(%x: memref<16xf32>, %more: i1) attributes {npu.kernel = "eltwise"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %none = "npu.dma_none"() : () -> !npu.token
  %last = scf.for %i = %c0 to %c4 step %c1 iter_args(%before = %none) -> (!npu.token) {
    "npu.dma_wait"(%before) : (!npu.token) -> ()
    %a = memref.alloc() : memref<16xf32, #sram>
    %t = "npu.dma_start"(%x, %a) {permutation = array<i64: 0>} : (memref<16xf32>, memref<16xf32, #sram>) -> !npu.token
    scf.yield %t : !npu.token
  }
  %either = scf.if %more -> (!npu.token) {
    %b = memref.alloc() : memref<16xf32, #sram>
    %t = "npu.dma_start"(%x, %b) {permutation = array<i64: 0>} : (memref<16xf32>, memref<16xf32, #sram>) -> !npu.token
    scf.yield %t : !npu.token
  } else {
    %no = "npu.dma_none"() : () -> !npu.token
    scf.yield %no : !npu.token
  }
  %c = memref.alloc() : memref<16xf32, #sram>
  "npu.fill"(%c) {value = 0.0 : f32} : (memref<16xf32, #sram>) -> ()
  "npu.dma_wait"(%last, %either) : (!npu.token, !npu.token) -> ()
  return
}

// Blocks that jump to each other: a buffer is live in all of the function.
// CHECK-LABEL: func.func private @jumps
// CHECK-SAME: sram_bytes = 128 : i64
func.func private @jumps(%x: memref<16xf32>) attributes {npu.kernel = "eltwise"} {
  %a = memref.alloc() : memref<16xf32, #sram>
  cf.br ^next
^next:
  "npu.fill"(%a) {value = 0.0 : f32} : (memref<16xf32, #sram>) -> ()
  %b = memref.alloc() : memref<16xf32, #sram>
  "npu.fill"(%b) {value = 0.0 : f32} : (memref<16xf32, #sram>) -> ()
  return
}

// CHECK-LABEL: func.func @main
// CHECK: %[[BLOCK:.*]] = memref.alloc() {alignment = 64 : i64, npu.role = "scratch"} : memref<576xi8>
// CHECK-NEXT: call @kernel(%arg0, %arg1, %[[BLOCK]])
// CHECK-NEXT: %[[SMALL:.*]] = memref.reinterpret_cast %[[BLOCK]] to offset: [0], sizes: [64], strides: [1] : memref<576xi8> to memref<64xi8>
// CHECK-NEXT: call @empty(%arg0, %[[SMALL]])
func.func @main(%x: memref<64xf32>, %out: memref<64xf32>) {
  call @kernel(%x, %out) : (memref<64xf32>, memref<64xf32>) -> ()
  call @empty(%x) : (memref<64xf32>) -> ()
  return
}
