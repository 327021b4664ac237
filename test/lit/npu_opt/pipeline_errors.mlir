// Mistakes in a pipeline are found before anything runs; the exit code is 2 and nothing is printed.

// RUN: not %npu-opt %s --pass-pipeline='builtin.module(cse,strip-memory-space)' 2>&1 | filecheck %s --check-prefix=NEAR
// NEAR-NOT: module
// NEAR: npu-opt: error: no pass is called 'strip-memory-space'; did you mean 'strip-memory-spaces'?

// RUN: not %npu-opt %s --pass-pipeline='builtin.module(frobnicate)' 2>&1 | filecheck %s --check-prefix=UNKNOWN
// UNKNOWN: npu-opt: error: no pass is called 'frobnicate', neither ours (--list-passes) nor upstream's

// RUN: not %npu-opt %s --pass-pipeline='builtin.module(strip-memory-spaces{fast})' 2>&1 | filecheck %s --check-prefix=OPTION
// OPTION: npu-opt: error: pass 'strip-memory-spaces' has no options, got 'fast'

// RUN: not %npu-opt %s --pass-pipeline='builtin.module(canonicalize{max-iteration=2})' 2>&1 | filecheck %s --check-prefix=UPSTREAM
// UPSTREAM: npu-opt: error: 'canonicalize': {{.*}}no such option max-iteration

// RUN: not %npu-opt %s --pass-pipeline='cse' 2>&1 | filecheck %s --check-prefix=ANCHOR
// ANCHOR: npu-opt: error: a pipeline has the form builtin.module(pass,...), got: cse

// RUN: not %npu-opt %s --pass-pipeline='builtin.module(cse' 2>&1 | filecheck %s --check-prefix=PAREN
// PAREN: npu-opt: error: expected ')' at position 18 of: builtin.module(cse

// RUN: not %npu-opt %s --pass-pipeline='builtin.module(canonicalize{a)' 2>&1 | filecheck %s --check-prefix=BRACE
// BRACE: npu-opt: error: missing '}' after position 27 of: builtin.module(canonicalize{a)

// RUN: not %npu-opt %s --pass-pipeline='builtin.module(cse,,cse)' 2>&1 | filecheck %s --check-prefix=NAME
// NAME: npu-opt: error: expected a pass name at position 19 of: builtin.module(cse,,cse)

// RUN: not %npu-opt %s --pass-pipeline='builtin.module(cse)) ' 2>&1 | filecheck %s --check-prefix=REST
// REST: npu-opt: error: unexpected ')' at position 19 of: builtin.module(cse))

func.func @f() {
  return
}
