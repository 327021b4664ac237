// RUN: %npu-opt %s --split-input-file --verify-diagnostics --target %inputs/avx2.toml --pass-pipeline='builtin.module(convert-npu-to-vector)'

func.func @not_linear(%x: memref<4xf32, #npu.space<"sram">>, %o: memref<8xf32, #npu.space<"sram">>) {
  // expected-error @+1 {{'npu.eltwise' cannot be lowered to vectors: indexing expression d0 floordiv 2 is not linear}}
  "npu.eltwise"(%x, %o) ({
  ^bb0(%a: f32, %old: f32):
    "npu.yield"(%a) : (f32) -> ()
  }) {indexing_maps = [affine_map<(a) -> (a floordiv 2)>, affine_map<(a) -> (a)>],
      operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4xf32, #npu.space<"sram">>, memref<8xf32, #npu.space<"sram">>) -> ()
  return
}

// -----

func.func @token_escapes(%x: memref<8xf32>, %o: memref<8xf32, #npu.space<"sram">>) -> !npu.token {
  // expected-error @+1 {{the token of 'npu.dma_start' is used by 'func.return'}}
  %t = "npu.dma_start"(%x, %o) {permutation = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 0>}
    : (memref<8xf32>, memref<8xf32, #npu.space<"sram">>) -> !npu.token
  return %t : !npu.token
}

// -----

func.func @wider_accumulator(%x: memref<4x8xf16, #npu.space<"sram">>, %w: memref<1x8x4xf16, #npu.space<"sram">>,
    %acc: memref<4x1x4xf32, #npu.space<"acc">>) {
  // expected-error @+1 {{'npu.matmul' on operands of f16, f16, f32 has no CPU code; it needs one float type for all, as in f32, f32, f32, or integers}}
  "npu.matmul"(%x, %w, %acc)
    : (memref<4x8xf16, #npu.space<"sram">>, memref<1x8x4xf16, #npu.space<"sram">>, memref<4x1x4xf32, #npu.space<"acc">>) -> ()
  return
}
