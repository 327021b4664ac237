// Passes that come before those that they build on say which.

// RUN: not %npu-opt %s --target small --pass-pipeline='builtin.module(choose-tiles)' 2>&1 | filecheck %s --check-prefix=KERNELS
// RUN: not %npu-opt %s --target small --pass-pipeline='builtin.module(tile-kernels)' 2>&1 | filecheck %s --check-prefix=KERNELS
// RUN: not %npu-opt %s --target small --pass-pipeline='builtin.module(form-kernels,tile-kernels)' 2>&1 | filecheck %s --check-prefix=SCHEDULE
// RUN: not %npu-opt %s --target small --pass-pipeline='builtin.module(form-kernels,order-tiles)' 2>&1 | filecheck %s --check-prefix=SCHEDULE
// RUN: not %npu-opt %s --target small --pass-pipeline='builtin.module(form-kernels,double-buffer)' 2>&1 | filecheck %s --check-prefix=SCHEDULE
// RUN: not %npu-opt %s --target small --pass-pipeline='builtin.module(assign-memory-spaces)' 2>&1 | filecheck %s --check-prefix=BUFFERS
// RUN: not %npu-opt %s --target small --pass-pipeline='builtin.module(insert-dma)' 2>&1 | filecheck %s --check-prefix=BUFFERS
// RUN: not %npu-opt %s --target small --pass-pipeline='builtin.module(convert-linalg-to-npu)' 2>&1 | filecheck %s --check-prefix=BUFFERS
// RUN: not %npu-opt %s --target small --pass-pipeline='builtin.module(plan-scratchpad)' 2>&1 | filecheck %s --check-prefix=BUFFERS

// KERNELS: error: 'linalg.exp' stands outside of a kernel; run form-kernels first
// SCHEDULE: error: kernel 'eltwise_0' has no schedule; run choose-tiles first
// BUFFERS: error: 'linalg.exp' works on tensors; run one-shot-bufferize first

func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.exp ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
