// RUN: %npu-opt %s --split-input-file --pass-pipeline='builtin.module(cse)' | filecheck %s
// RUN: not %npu-opt %S/Inputs/second_chunk_fails.mlir --split-input-file > %t 2>&1
// RUN: filecheck %s --check-prefix=FAILS < %t

// Chunks are modules of their own; one that fails does not keep the others from being printed.

// CHECK: func.func @same_name
// CHECK: // -----
// CHECK: func.func @same_name
// CHECK-NOT: // -----

// FAILS: second_chunk_fails.mlir:7:{{.*}} error: 'npu.dma_wait' op takes at least one token
// FAILS: func.func @first
// FAILS: // -----
// FAILS: func.func @third
func.func @same_name() {
  return
}
// -----
func.func @same_name() {
  return
}
