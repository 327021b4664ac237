// A failure ends with a located diagnostic and exit code 1, and prints no module.

// RUN: not %npu-opt %s --pass-pipeline='builtin.module(choose-tiles)' > %t 2>&1
// RUN: filecheck %s --check-prefix=PASS < %t
// PASS-NOT: func.func
// PASS: failures.mlir:[[#]]:[[#]]: error: the module has no npu.target attribute; add one, or pass --target to npu-opt

// RUN: not %npu-opt %s --pass-pipeline='builtin.module(func.func(convert-linalg-to-parallel-loops),test-nothing)' 2>&1 | filecheck %s --check-prefix=BEFORE
// BEFORE: npu-opt: error: no pass is called 'test-nothing'

// RUN: not %npu-opt %S/Inputs/unparsable.mlir 2>&1 | filecheck %s --check-prefix=PARSE
// PARSE: unparsable.mlir:3:8: error: custom op 'arith.nothing' is unknown

// RUN: not %npu-opt %S/Inputs/absent.mlir 2>&1 | filecheck %s --check-prefix=ABSENT
// ABSENT: npu-opt: error: {{.*}}No such file or directory{{.*}}absent.mlir

// RUN: not %npu-opt %s --no-such-option 2>&1 | filecheck %s --check-prefix=USAGE
// USAGE: npu-opt: error: unrecognized arguments: --no-such-option

func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> attributes {npu.kernel = "eltwise"} {
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
