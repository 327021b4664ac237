// RUN: npu-opt %s --target small --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(form-kernels)'

func.func @loop(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{'scf.for' has no kernel form; run this operation on the host (host_ops)}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %x) -> tensor<4xf32> {
    scf.yield %acc : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// The npu computes without knowing where it is.
func.func @asks_for_indices(%e: tensor<4xi64>) -> tensor<4xi64> {
  // expected-error @+1 {{'linalg.generic' has no kernel form; run this operation on the host (host_ops)}}
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<4xi64>) {
  ^bb0(%o: i64):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i64
    linalg.yield %j : i64
  } -> tensor<4xi64>
  return %r : tensor<4xi64>
}
