// RUN: %npu-opt %s --split-input-file --verify-diagnostics
// RUN: not %npu-opt %S/Inputs/wrong_expectations.mlir --split-input-file --verify-diagnostics 2>&1 | filecheck %s

// What expected-error comments may look like, and each way in which they can be wrong.

// CHECK: wrong_expectations.mlir:1: expected error 'something' was not produced
// CHECK: unexpected {{.*}}wrong_expectations.mlir:8:{{.*}} error: 'npu.dma_wait' op takes at least one token
// CHECK: wrong_expectations.mlir:8: expected error 'takes two tokens' was not produced
// CHECK: unexpected {{.*}}wrong_expectations.mlir:15:{{.*}} error: 'npu.dma_wait' op takes at least one token
// CHECK: wrong_expectations.mlir:14: expected error 'takes at least one token' was not produced
// CHECK: wrong_expectations.mlir:20: expected-warning is not one of error, note

func.func @below() {
  // expected-error @below {{'npu.dma_wait' op takes at least one token}}
  "npu.dma_wait"() : () -> ()
  return
}
// -----
func.func @offset() -> f32 {
  // expected-error @+3 {{has 0 operands, but enclosing function (@offset) returns 1}}
  // expected-note @+2 {{see current operation}}

  return
}
// -----
func.func @above() {
  "npu.dma_wait"() : () -> ()
  // expected-error @above {{takes at least}}
  return
}
// -----
func.func @same_line() {
  "npu.dma_wait"() : () -> () // expected-error {{takes at least}}
  return
}
// -----
func.func @no_error() {
  return
}
