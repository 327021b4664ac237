// RUN: %npu-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(insert-thread-team)'

// expected-error @+1 {{'func.func' is not in the LLVM dialect yet; run convert-func-to-llvm first}}
func.func @early(%x: memref<8xf32>) attributes {npu.team = {chunk = @k_chunk, iterations = 8 : i64}} {
  return
}

// -----

// expected-error @+1 {{npu.num_threads must be 0 (as torch is set) or positive, got -2}}
module attributes {npu.num_threads = -2 : i64} {
}

// -----

// expected-error @+1 {{arguments of a threaded kernel must be bare pointers, got i64}}
llvm.func @k(%x: i64) attributes {npu.team = {chunk = @k_chunk, iterations = 8 : i64}} {
  llvm.return
}
