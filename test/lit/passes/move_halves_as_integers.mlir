// RUN: %npu-opt %s --pass-pipeline='builtin.module(move-halves-as-integers)' | filecheck %s
// RUN: %npu-opt %s --pass-pipeline='builtin.module(move-halves-as-integers,move-halves-as-integers)' | filecheck %s

// A copy computes nothing: no bfloat16 is left.
// CHECK-LABEL: llvm.func @copy
// CHECK-NOT: bf16
// CHECK: llvm.store %{{.*}} : vector<2xi16>, !llvm.ptr
llvm.func @copy(%from: !llvm.ptr, %to: !llvm.ptr) {
  %0 = llvm.load %from : !llvm.ptr -> vector<4xbf16>
  %1 = llvm.shufflevector %0, %0 [3, 0] : vector<4xbf16>
  llvm.store %1, %to : vector<2xbf16>, !llvm.ptr
  llvm.return
}

// CHECK-LABEL: llvm.func @constants
// CHECK: %[[ONE:.*]] = llvm.mlir.constant(1.000000e+00 : bf16) : bf16
// CHECK: %[[BITS:.*]] = llvm.bitcast %[[ONE]] : bf16 to i16
// CHECK: llvm.store %[[BITS]], %{{.*}} : i16, !llvm.ptr
llvm.func @constants(%to: !llvm.ptr) {
  %one = llvm.mlir.constant(1.0 : bf16) : bf16
  llvm.store %one, %to : bf16, !llvm.ptr
  llvm.return
}

// What computes sees bfloat16, also across blocks.
// CHECK-LABEL: llvm.func @compute
// CHECK: %[[IN:.*]] = llvm.load %{{.*}} -> vector<4xi16>
// CHECK: %[[HALVES:.*]] = llvm.bitcast %[[IN]] : vector<4xi16> to vector<4xbf16>
// CHECK: %[[WIDE:.*]] = llvm.fpext %[[HALVES]] : vector<4xbf16> to vector<4xf32>
// CHECK: %[[SUM:.*]] = llvm.fadd %[[WIDE]], %[[WIDE]]
// CHECK: %[[ROUNDED:.*]] = llvm.fptrunc %[[SUM]] : vector<4xf32> to vector<4xbf16>
// CHECK: %[[OUT:.*]] = llvm.bitcast %[[ROUNDED]] : vector<4xbf16> to vector<4xi16>
// CHECK: llvm.br ^bb1(%[[OUT]] : vector<4xi16>)
// CHECK: ^bb1(%[[CARRIED:.*]]: vector<4xi16>):
// CHECK: llvm.store %[[CARRIED]], %{{.*}} : vector<4xi16>, !llvm.ptr
llvm.func @compute(%p: !llvm.ptr) {
  %0 = llvm.load %p : !llvm.ptr -> vector<4xbf16>
  %1 = llvm.fpext %0 : vector<4xbf16> to vector<4xf32>
  %2 = llvm.fadd %1, %1 : vector<4xf32>
  %3 = llvm.fptrunc %2 : vector<4xf32> to vector<4xbf16>
  llvm.br ^bb1(%3 : vector<4xbf16>)
^bb1(%4: vector<4xbf16>):
  llvm.store %4, %p : vector<4xbf16>, !llvm.ptr
  llvm.return
}

// Other types stay.
// CHECK-LABEL: llvm.func @single
// CHECK: llvm.load %{{.*}} -> vector<4xf32>
// CHECK-NOT: bitcast
llvm.func @single(%from: !llvm.ptr, %to: !llvm.ptr) {
  %0 = llvm.load %from : !llvm.ptr -> vector<4xf32>
  llvm.store %0, %to : vector<4xf32>, !llvm.ptr
  llvm.return
}

llvm.func @declared(!llvm.ptr)
