// RUN: %npu-opt %s --target=%inputs/avx2.toml --stages=..tile | filecheck %s --check-prefix=TILE
// RUN: %npu-opt %s --target=edge --stages=normalise | %npu-opt --stages=schedule..allocate --mlir-print-ir-after-all 2>&1 >%t | filecheck %s --check-prefix=STAGES
// RUN: filecheck %s --check-prefix=ALLOCATE < %t
// RUN: %npu-opt %s --target=%inputs/avx2.toml --stages=.. | filecheck %s --check-prefix=LLVM
// RUN: not %npu-opt %s --target=edge --stages=tiling 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not %npu-opt %s --target=edge --stages=tile..schedule 2>&1 | filecheck %s --check-prefix=BACKWARDS
// RUN: not %npu-opt %s --target=edge --stages=pipeline 2>&1 | filecheck %s --check-prefix=CHECK

// TILE: npu.kernel = "eltwise"
// TILE: npu.schedule
// STAGES: IR Dump After schedule
// STAGES: IR Dump After tile
// STAGES: IR Dump After buffers
// STAGES: IR Dump After stage
// STAGES: IR Dump After pipeline
// STAGES: IR Dump After allocate
// ALLOCATE: "npu.dma_start"
// ALLOCATE: "npu.eltwise"
// LLVM: llvm.func @main
// UNKNOWN: npu-opt: error: no stage is called 'tiling'; there are normalise, schedule, tile, buffers, stage, pipeline, allocate, cpu, llvm
// BACKWARDS: npu-opt: error: stage 'tile' comes after stage 'schedule'

// A stage checks what it leaves behind, also when the module did not come through the ones before.
// CHECK: stages.mlir:28:8: error: 'linalg.exp' is left

func.func @main(%x: tensor<4x8xf32> {npu.role = "input"}) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.exp ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
