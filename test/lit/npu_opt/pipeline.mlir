// RUN: %npu-opt %s --pass-pipeline='builtin.module(strip-memory-spaces, func.func(cse , canonicalize{max-iterations=2}),cse)' | filecheck %s
// RUN: %npu-opt %s | filecheck %s --check-prefix=UNCHANGED
// RUN: %npu-opt < %s | filecheck %s --check-prefix=UNCHANGED
// RUN: %npu-opt %s -o %t && filecheck %s --check-prefix=UNCHANGED < %t

// Our passes and upstream's in one pipeline, nested or not, with and without options.

// CHECK-LABEL: func.func @f
// CHECK-SAME: memref<4xf32>
// CHECK: %[[SUM:.*]] = arith.addf
// CHECK-NOT: arith.addf
// CHECK: return %[[SUM]], %[[SUM]]

// UNCHANGED-LABEL: func.func @f
// UNCHANGED-SAME: memref<4xf32, #npu.space<"sram">>
// UNCHANGED-COUNT-2: arith.addf
func.func @f(%x: memref<4xf32, #npu.space<"sram">>, %a: f32) -> (f32, f32) {
  %0 = arith.addf %a, %a : f32
  %1 = arith.addf %a, %a : f32
  return %0, %1 : f32, f32
}
