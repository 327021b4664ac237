// RUN: %npu-opt %s --pass-pipeline='builtin.module(align-stacks)' | filecheck %s
// RUN: %npu-opt %s --pass-pipeline='builtin.module(align-stacks,align-stacks)' | filecheck %s

// CHECK-LABEL: llvm.func @wide
// CHECK-SAME: passthrough = ["stackrealign"]
llvm.func @wide(%p: !llvm.ptr) {
  %0 = llvm.load %p : !llvm.ptr -> vector<16xf32>
  llvm.store %0, %p : vector<16xf32>, !llvm.ptr
  llvm.return
}

// Vectors of 128 bits suit an ordinary frame, and other functions have none.
// CHECK-LABEL: llvm.func @narrow
// CHECK-NOT: passthrough
llvm.func @narrow(%p: !llvm.ptr) {
  %0 = llvm.load %p : !llvm.ptr -> vector<4xf32>
  llvm.store %0, %p : vector<4xf32>, !llvm.ptr
  llvm.return
}

// CHECK-LABEL: llvm.func @declared
// CHECK-NOT: passthrough
llvm.func @declared(!llvm.ptr)
