// RUN: npu-opt %s --verify-diagnostics --pass-pipeline='builtin.module(pack-weights)'

// Without a target there is no block size to choose.
// expected-error @+1 {{npu.target}}
module {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}
