// RUN: %npu-opt %s --pass-pipeline='builtin.module(func.func(cse),strip-memory-spaces)' --mlir-print-ir-after-all 2>&1 >%t | filecheck %s
// RUN: filecheck %s --check-prefix=RESULT < %t

// CHECK: // -----// IR Dump After cse //----- //
// CHECK: memref<4xf32, #npu.space<"sram">>
// CHECK: // -----// IR Dump After strip-memory-spaces //----- //
// CHECK: memref<4xf32>

// RESULT-NOT: IR Dump
// RESULT: func.func @f(%arg0: memref<4xf32>)
func.func @f(%x: memref<4xf32, #npu.space<"sram">>) {
  return
}
