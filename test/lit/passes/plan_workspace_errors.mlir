// RUN: %npu-opt %s --pass-pipeline='builtin.module(plan-workspace)' --verify-diagnostics

func.func @dynamic(%n: index) {
  // expected-error @below {{a buffer must have a static shape, got memref<?xf32>}}
  %a = memref.alloc(%n) : memref<?xf32>
  return
}
