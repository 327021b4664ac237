// RUN: %npu-opt %s --pass-pipeline='builtin.module(results-to-out-params)' --split-input-file --verify-diagnostics

// expected-error @below {{'scalar' returns f32, not a static memref}}
func.func @scalar(%x: f32) -> f32 {
  return %x : f32
}

// -----

// expected-error @below {{'dynamic' returns memref<?xf32>, not a static memref}}
func.func @dynamic(%x: memref<?xf32>) -> memref<?xf32> {
  return %x : memref<?xf32>
}
