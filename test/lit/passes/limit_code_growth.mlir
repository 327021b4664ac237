// RUN: %npu-opt %s --pass-pipeline='builtin.module(limit-code-growth)' | filecheck %s
// RUN: %npu-opt %s --pass-pipeline='builtin.module(limit-code-growth,limit-code-growth)' | filecheck %s

// CHECK: #[[LOOP:.*]] = #llvm.loop_annotation<unroll =
// CHECK-LABEL: llvm.func @declared(!llvm.ptr)
// CHECK-NOT: no_inline
llvm.func @declared(!llvm.ptr)

// Only the branch back is a loop's; branches forward stay bare.
// CHECK-LABEL: llvm.func @loop
// CHECK-SAME: no_inline
// CHECK: llvm.br ^bb1(%{{.*}} : i64){{$}}
// CHECK: llvm.cond_br
// CHECK: llvm.br ^bb1(%{{.*}} : i64) {loop_annotation = #[[LOOP]]}
// CHECK: llvm.br ^bb4{{$}}
llvm.func @loop(%n: i64) {
  %one = llvm.mlir.constant(1 : i64) : i64
  llvm.br ^head(%one : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %n : i64
  llvm.cond_br %more, ^body, ^exit
^body:
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^exit:
  llvm.br ^end
^end:
  llvm.return
}
