// RUN: %npu-opt %s --target %inputs/avx2.toml --pass-pipeline='builtin.module(plan-scratchpad)' | filecheck %s
// RUN: %npu-opt %s --target %inputs/avx2.toml --pass-pipeline='builtin.module(plan-scratchpad,plan-scratchpad)' | filecheck %s
// RUN: %npu-opt %s --target small --pass-pipeline='builtin.module(plan-scratchpad)' | filecheck %s --check-prefix=SHARED

// On a CPU the code of a compute op stands at its drain, so the drain's output lies apart from what
// the compute op reads. On other machines the one follows the other.
// CHECK-LABEL: func.func private @kernel
// CHECK-SAME: sram_bytes = 256 : i64
// SHARED-LABEL: func.func private @kernel
// SHARED-SAME: sram_bytes = 128 : i64

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
#id = affine_map<(m, n, i) -> (m, n, i)>
func.func private @kernel(%x: memref<8x4xf32>, %w: memref<1x8x8xf32, #sram>, %out: memref<8x1x4xf32>) attributes {npu.kernel = "matmul"} {
  %a = memref.alloc() : memref<4x8xf32, #sram>
  %0 = "npu.dma_start"(%x, %a) {operandSegmentSizes = array<i32: 1, 1, 0>, permutation = array<i64: 1, 0>} : (memref<8x4xf32>, memref<4x8xf32, #sram>) -> !npu.token
  "npu.dma_wait"(%0) {operandSegmentSizes = array<i32: 1>} : (!npu.token) -> ()
  %s = memref.alloc() : memref<4x1x8xf32, #acc>
  "npu.fill"(%s) {value = 0.0 : f32} : (memref<4x1x8xf32, #acc>) -> ()
  "npu.matmul"(%a, %w, %s) : (memref<4x8xf32, #sram>, memref<1x8x8xf32, #sram>, memref<4x1x8xf32, #acc>) -> ()
  %b = memref.alloc() : memref<4x1x8xf32, #sram>
  "npu.drain"(%s, %b) ({
  ^bb0(%v: f32, %o: f32):
    "npu.yield"(%v) : (f32) -> ()
  }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x1x8xf32, #acc>, memref<4x1x8xf32, #sram>) -> ()
  %1 = "npu.dma_start"(%b, %out) {operandSegmentSizes = array<i32: 1, 1, 0>, permutation = array<i64: 2, 1, 0>} : (memref<4x1x8xf32, #sram>, memref<8x1x4xf32>) -> !npu.token
  "npu.dma_wait"(%1) {operandSegmentSizes = array<i32: 1>} : (!npu.token) -> ()
  return
}
