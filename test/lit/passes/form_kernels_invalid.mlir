// RUN: npu-opt %s --verify-diagnostics --pass-pipeline='builtin.module(form-kernels)'

func.func @no_kernel_form(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{'scf.for' has no kernel form; run this operation on the host (host_ops)}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %x) -> tensor<4xf32> {
    scf.yield %acc : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
