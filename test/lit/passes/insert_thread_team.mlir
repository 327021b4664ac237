// RUN: %npu-opt %s --split-input-file --pass-pipeline='builtin.module(insert-thread-team)' | filecheck %s --check-prefixes=CHECK,TEAM
// RUN: %npu-opt %s --split-input-file --pass-pipeline='builtin.module(insert-thread-team,insert-thread-team)' | filecheck %s --check-prefixes=CHECK,TEAM
// RUN: %npu-opt %s --split-input-file --pass-pipeline='builtin.module(insert-thread-team{serial=true})' | filecheck %s --check-prefixes=CHECK,SERIAL

// Every thread runs its share with its own scratch memory; alone, the kernel calls the chunk itself.
// CHECK-LABEL: llvm.func @k_chunk
// SERIAL: llvm.func @k(
// SERIAL: llvm.call @k_chunk
// SERIAL-NOT: GOMP_parallel
// TEAM: llvm.func @GOMP_parallel
// TEAM: llvm.func @k(%[[X:.*]]: !llvm.ptr, %[[S:.*]]: !llvm.ptr) attributes {sym_visibility = "private"}
// TEAM: llvm.call @omp_get_max_threads
// TEAM: llvm.cond_br
// TEAM: llvm.call @k_chunk(%[[X]], %[[S]],
// TEAM: llvm.mlir.addressof @k_team
// TEAM: llvm.mlir.constant(3 : i32)
// TEAM: llvm.call @GOMP_parallel
// TEAM: llvm.func internal @k_team
// TEAM: llvm.call @omp_get_thread_num
// TEAM: llvm.mlir.constant(8 : i64)
// TEAM: llvm.mlir.constant(64 : i64)
// TEAM: %[[OWN:.*]] = llvm.getelementptr {{.*}} i8
// TEAM: llvm.call @k_chunk(%{{.*}}, %[[OWN]],
module attributes {npu.num_threads = 3 : i64} {
  llvm.func @k_chunk(%x: !llvm.ptr, %scratch: !llvm.ptr, %lo: i64, %hi: i64) {
    llvm.return
  }
  llvm.func @k(%x: !llvm.ptr, %scratch: !llvm.ptr)
      attributes {sym_visibility = "private", npu.team = {chunk = @k_chunk, iterations = 8 : i64, scratch = 1 : i64, scratch_bytes = 64 : i64}} {
    %lo = llvm.mlir.constant(0 : i64) : i64
    %hi = llvm.mlir.constant(8 : i64) : i64
    llvm.call @k_chunk(%x, %scratch, %lo, %hi) : (!llvm.ptr, !llvm.ptr, i64, i64) -> ()
    llvm.return
  }
}

// -----

// One thread, or no marked kernel: nothing is generated.
// CHECK-LABEL: npu.num_threads = 1
// CHECK-NOT: GOMP_parallel
// CHECK: llvm.func @k(
// CHECK: llvm.call @k_chunk
// CHECK-NOT: GOMP_parallel
module attributes {npu.num_threads = 1 : i64} {
  llvm.func @k_chunk(%x: !llvm.ptr, %lo: i64, %hi: i64) {
    llvm.return
  }
  llvm.func @k(%x: !llvm.ptr) attributes {npu.team = {chunk = @k_chunk, iterations = 8 : i64}} {
    %lo = llvm.mlir.constant(0 : i64) : i64
    %hi = llvm.mlir.constant(8 : i64) : i64
    llvm.call @k_chunk(%x, %lo, %hi) : (!llvm.ptr, i64, i64) -> ()
    llvm.return
  }
}

// -----

// CHECK-LABEL: llvm.func @unmarked
// CHECK-NEXT: llvm.return
// CHECK-NOT: llvm.func
llvm.func @unmarked(%x: !llvm.ptr) {
  llvm.return
}
