// RUN: %npu-opt %s --target small --pass-pipeline='builtin.module(double-buffer,canonicalize,cse)' | filecheck %s
// RUN: %npu-opt %s --target small --pass-pipeline='builtin.module(double-buffer,double-buffer,canonicalize,cse)' | filecheck %s
// RUN: %npu-opt %s --target host --pass-pipeline='builtin.module(double-buffer)' | filecheck %s --check-prefix=CACHED

// CACHED-NOT: npu.dma_none

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
#id = affine_map<(d0) -> (d0)>

// A load is started one iteration ahead, a store waited for where its buffer is made again.
// CHECK-LABEL: func.func private @stream
// CHECK-DAG: %[[X0:.*]] = memref.alloc() : memref<4xf32, #npu.space<"sram">>
// CHECK: %[[X1:.*]] = memref.alloc() : memref<4xf32, #npu.space<"sram">>
// CHECK: %[[FIRST:.*]] = "npu.dma_start"(%{{.*}}, %[[X0]])
// CHECK: %[[O0:.*]] = memref.alloc()
// CHECK-NEXT: %[[O1:.*]] = memref.alloc()
// CHECK-NEXT: %[[NONE0:.*]] = "npu.dma_none"()
// CHECK-NEXT: %[[NONE1:.*]] = "npu.dma_none"()
// CHECK-NEXT: %[[LAST:.*]]:3 = scf.for %[[I:.*]] = %c0 to %c16 step %c4 iter_args(%[[T:.*]] = %[[FIRST]], %[[S2:.*]] = %[[NONE0]], %[[S1:.*]] = %[[NONE1]])
// CHECK: %[[NUMBER:.*]] = arith.divui %[[I]], %c4
// CHECK: %[[BIT:.*]] = arith.remui %[[NUMBER]], %c2
// CHECK: %[[ODD:.*]] = arith.cmpi eq, %[[BIT]], %c1
// CHECK-NEXT: %[[X:.*]] = arith.select %[[ODD]], %[[X1]], %[[X0]]
// CHECK-NEXT: %[[NEXT:.*]] = arith.select %[[ODD]], %[[X0]], %[[X1]]
// CHECK-NEXT: "npu.dma_wait"(%[[T]])
// CHECK-NEXT: %[[FOLLOWING:.*]] = arith.addi %[[NUMBER]], %c1
// CHECK-NEXT: %[[MORE:.*]] = arith.cmpi ult, %[[FOLLOWING]], %c4
// CHECK-NEXT: %[[U:.*]] = scf.if %[[MORE]]
// CHECK: "npu.dma_start"(%{{.*}}, %[[NEXT]])
// CHECK: else
// CHECK-NEXT: "npu.dma_none"
// CHECK: "npu.dma_wait"(%[[S2]])
// CHECK-NEXT: %[[O:.*]] = arith.select %[[ODD]], %[[O1]], %[[O0]]
// CHECK-NEXT: "npu.eltwise"(%[[X]], %[[O]])
// CHECK: %[[S:.*]] = "npu.dma_start"(%[[O]],
// CHECK-NEXT: scf.yield %[[U]], %[[S1]], %[[S]]
// CHECK: "npu.dma_wait"(%[[LAST]]#1, %[[LAST]]#2)
// CHECK-NEXT: "npu.dma_wait"(%[[LAST]]#0)
func.func private @stream(%x: memref<16xf32>, %out: memref<16xf32>) attributes {npu.kernel = "eltwise", npu.schedule = {buffers = 2 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %c16 step %c4 {
    %abox = memref.subview %x[%i] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
    %a = memref.alloc() : memref<4xf32, #sram>
    %t = "npu.dma_start"(%abox, %a) {permutation = array<i64: 0>} : (memref<4xf32, strided<[1], offset: ?>>, memref<4xf32, #sram>) -> !npu.token
    "npu.dma_wait"(%t) : (!npu.token) -> ()
    %b = memref.alloc() : memref<4xf32, #sram>
    "npu.eltwise"(%a, %b) ({
    ^bb0(%v: f32, %old: f32):
      "npu.yield"(%v) : (f32) -> ()
    }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>} : (memref<4xf32, #sram>, memref<4xf32, #sram>) -> ()
    %bbox = memref.subview %out[%i] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
    %s = "npu.dma_start"(%b, %bbox) {permutation = array<i64: 0>} : (memref<4xf32, #sram>, memref<4xf32, strided<[1], offset: ?>>) -> !npu.token
    "npu.dma_wait"(%s) : (!npu.token) -> ()
  }
  return
}

// Iterations are counted across both loops; the token crosses both.
// CHECK-LABEL: func.func private @nest
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%[[T:.*]] =
// CHECK-NEXT: %[[INNER:.*]] = scf.for %[[J:.*]] = {{.*}} iter_args(%{{.*}} = %[[T]])
// CHECK-NEXT: %[[ROWS:.*]] = arith.muli %[[I]], %c4
// CHECK-NEXT: arith.addi %[[ROWS]], %[[J]]
// CHECK: arith.cmpi ult, %{{.*}}, %c8
// CHECK: arith.remui %{{.*}}, %c4
// CHECK: scf.yield %[[INNER]]
func.func private @nest(%x: memref<16xf32>, %out: memref<16xf32>) attributes {npu.kernel = "eltwise", npu.schedule = {buffers = 2 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %c2 step %c1 {
  scf.for %j = %c0 to %c4 step %c1 {
    %abox = memref.subview %x[%j] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
    %a = memref.alloc() : memref<4xf32, #sram>
    %t = "npu.dma_start"(%abox, %a) {permutation = array<i64: 0>} : (memref<4xf32, strided<[1], offset: ?>>, memref<4xf32, #sram>) -> !npu.token
    "npu.dma_wait"(%t) : (!npu.token) -> ()
    %b = memref.alloc() : memref<4xf32, #sram>
    "npu.eltwise"(%a, %b) ({
    ^bb0(%v: f32, %old: f32):
      "npu.yield"(%v) : (f32) -> ()
    }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>} : (memref<4xf32, #sram>, memref<4xf32, #sram>) -> ()
  }
  }
  return
}

// Accumulators take turns too, if the schedule gives them two buffers.
// CHECK-LABEL: func.func private @accumulators
// CHECK-COUNT-2: memref.alloc() : memref<4xf32, #npu.space<"acc">>
// CHECK: scf.for
// CHECK: %[[A:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : memref<4xf32, #npu.space<"acc">>
// CHECK-NEXT: "npu.fill"(%[[A]])
// CHECK: "npu.drain"(%[[A]],
func.func private @accumulators(%out: memref<16xf32>) attributes {npu.kernel = "eltwise", npu.schedule = {buffers = 2 : i64, acc_buffers = 2 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %a = memref.alloc() : memref<4xf32, #acc>
    "npu.fill"(%a) {value = 0.0 : f32} : (memref<4xf32, #acc>) -> ()
    %b = memref.alloc() : memref<4xf32, #sram>
    "npu.drain"(%a, %b) ({
    ^bb0(%v: f32, %old: f32):
      "npu.yield"(%v) : (f32) -> ()
    }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>} : (memref<4xf32, #acc>, memref<4xf32, #sram>) -> ()
    %bbox = memref.subview %out[%i] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
    %s = "npu.dma_start"(%b, %bbox) {permutation = array<i64: 0>} : (memref<4xf32, #sram>, memref<4xf32, strided<[1], offset: ?>>) -> !npu.token
    "npu.dma_wait"(%s) : (!npu.token) -> ()
  }
  return
}

// CHECK-LABEL: func.func private @one_accumulator
// CHECK-NOT: memref.alloc() : memref<4xf32, #npu.space<"acc">>
// CHECK: scf.for
// CHECK: memref.alloc() : memref<4xf32, #npu.space<"acc">>
func.func private @one_accumulator(%out: memref<16xf32>) attributes {npu.kernel = "eltwise", npu.schedule = {buffers = 2 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %a = memref.alloc() : memref<4xf32, #acc>
    "npu.fill"(%a) {value = 0.0 : f32} : (memref<4xf32, #acc>) -> ()
    %b = memref.alloc() : memref<4xf32, #sram>
    "npu.drain"(%a, %b) ({
    ^bb0(%v: f32, %old: f32):
      "npu.yield"(%v) : (f32) -> ()
    }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>} : (memref<4xf32, #acc>, memref<4xf32, #sram>) -> ()
    %bbox = memref.subview %out[%i] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
    %s = "npu.dma_start"(%b, %bbox) {permutation = array<i64: 0>} : (memref<4xf32, #sram>, memref<4xf32, strided<[1], offset: ?>>) -> !npu.token
    "npu.dma_wait"(%s) : (!npu.token) -> ()
  }
  return
}

// CHECK-LABEL: func.func private @serial
// CHECK-NOT: iter_args
// CHECK: return
func.func private @serial(%x: memref<16xf32>, %out: memref<16xf32>) attributes {npu.kernel = "eltwise", npu.schedule = {buffers = 1 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %abox = memref.subview %x[%i] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
    %a = memref.alloc() : memref<4xf32, #sram>
    %t = "npu.dma_start"(%abox, %a) {permutation = array<i64: 0>} : (memref<4xf32, strided<[1], offset: ?>>, memref<4xf32, #sram>) -> !npu.token
    "npu.dma_wait"(%t) : (!npu.token) -> ()
    %b = memref.alloc() : memref<4xf32, #sram>
    "npu.eltwise"(%a, %b) ({
    ^bb0(%v: f32, %old: f32):
      "npu.yield"(%v) : (f32) -> ()
    }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>} : (memref<4xf32, #sram>, memref<4xf32, #sram>) -> ()
    %bbox = memref.subview %out[%i] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
    %s = "npu.dma_start"(%b, %bbox) {permutation = array<i64: 0>} : (memref<4xf32, #sram>, memref<4xf32, strided<[1], offset: ?>>) -> !npu.token
    "npu.dma_wait"(%s) : (!npu.token) -> ()
  }
  return
}

// What may not take turns says why.
// CHECK-LABEL: func.func private @opted_out
// CHECK: memref.alloc() {npu.single_buffer = "a loop around it has 'npu.single_buffer'"}
func.func private @opted_out(%x: memref<16xf32>) attributes {npu.kernel = "eltwise", npu.schedule = {buffers = 2 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %abox = memref.subview %x[%i] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
    %a = memref.alloc() : memref<4xf32, #sram>
    %t = "npu.dma_start"(%abox, %a) {permutation = array<i64: 0>} : (memref<4xf32, strided<[1], offset: ?>>, memref<4xf32, #sram>) -> !npu.token
    "npu.dma_wait"(%t) : (!npu.token) -> ()
  } {npu.single_buffer}
  return
}

// CHECK-LABEL: func.func private @written_twice
// CHECK: memref.alloc() {npu.single_buffer = "its buffer is also written by another op"}
func.func private @written_twice(%x: memref<16xf32>) attributes {npu.kernel = "eltwise", npu.schedule = {buffers = 2 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %abox = memref.subview %x[%i] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
    %a = memref.alloc() : memref<4xf32, #sram>
    %t = "npu.dma_start"(%abox, %a) {permutation = array<i64: 0>} : (memref<4xf32, strided<[1], offset: ?>>, memref<4xf32, #sram>) -> !npu.token
    "npu.dma_wait"(%t) : (!npu.token) -> ()
    "npu.fill"(%a) {value = 0.0 : f32} : (memref<4xf32, #sram>) -> ()
  }
  return
}

// CHECK-LABEL: func.func private @in_place
// CHECK: memref.alloc() {npu.single_buffer = "what it reads is written in the loop"}
func.func private @in_place(%x: memref<16xf32>) attributes {npu.kernel = "eltwise", npu.schedule = {buffers = 2 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %abox = memref.subview %x[%i] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
    %a = memref.alloc() : memref<4xf32, #sram>
    %t = "npu.dma_start"(%abox, %a) {permutation = array<i64: 0>} : (memref<4xf32, strided<[1], offset: ?>>, memref<4xf32, #sram>) -> !npu.token
    "npu.dma_wait"(%t) : (!npu.token) -> ()
    %b = memref.alloc() : memref<4xf32, #sram>
    "npu.eltwise"(%a, %b) ({
    ^bb0(%v: f32, %old: f32):
      "npu.yield"(%v) : (f32) -> ()
    }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>} : (memref<4xf32, #sram>, memref<4xf32, #sram>) -> ()
    %bbox = memref.subview %x[%i] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
    %s = "npu.dma_start"(%b, %bbox) {permutation = array<i64: 0>} : (memref<4xf32, #sram>, memref<4xf32, strided<[1], offset: ?>>) -> !npu.token
    "npu.dma_wait"(%s) : (!npu.token) -> ()
  }
  return
}

// CHECK-LABEL: func.func private @carried
// CHECK: memref.alloc() {npu.single_buffer = "a loop around it carries values"}
func.func private @carried(%x: memref<16xf32>, %sum: memref<index>) attributes {npu.kernel = "eltwise", npu.schedule = {buffers = 2 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %n = scf.for %i = %c0 to %c4 step %c1 iter_args(%m = %c0) -> (index) {
    %abox = memref.subview %x[%i] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
    %a = memref.alloc() : memref<4xf32, #sram>
    %t = "npu.dma_start"(%abox, %a) {permutation = array<i64: 0>} : (memref<4xf32, strided<[1], offset: ?>>, memref<4xf32, #sram>) -> !npu.token
    "npu.dma_wait"(%t) : (!npu.token) -> ()
    %o = arith.addi %m, %i : index
    scf.yield %o : index
  }
  memref.store %n, %sum[] : memref<index>
  return
}

// CHECK-LABEL: func.func private @unknown_bound
// CHECK: memref.alloc() {npu.single_buffer = "a loop around it has bounds that are not constant"}
func.func private @unknown_bound(%x: memref<16xf32>, %n: index) attributes {npu.kernel = "eltwise", npu.schedule = {buffers = 2 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %n step %c1 {
    %abox = memref.subview %x[%i] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
    %a = memref.alloc() : memref<4xf32, #sram>
    %t = "npu.dma_start"(%abox, %a) {permutation = array<i64: 0>} : (memref<4xf32, strided<[1], offset: ?>>, memref<4xf32, #sram>) -> !npu.token
    "npu.dma_wait"(%t) : (!npu.token) -> ()
  }
  return
}

// CHECK-LABEL: func.func private @too_large
// CHECK: memref.alloc() {npu.single_buffer = "two buffers need 24064 of 16384 bytes of sram"}
func.func private @too_large(%x: memref<6000xf32>) attributes {npu.kernel = "eltwise", npu.schedule = {buffers = 2 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %c2 step %c1 {
    %abox = memref.subview %x[%i] [3000] [1] : memref<6000xf32> to memref<3000xf32, strided<[1], offset: ?>>
    %a = memref.alloc() : memref<3000xf32, #sram>
    %t = "npu.dma_start"(%abox, %a) {permutation = array<i64: 0>} : (memref<3000xf32, strided<[1], offset: ?>>, memref<3000xf32, #sram>) -> !npu.token
    "npu.dma_wait"(%t) : (!npu.token) -> ()
  }
  return
}

// CHECK-LABEL: func.func private @waited_later
// CHECK: memref.alloc() {npu.single_buffer = "is not waited for at once"}
func.func private @waited_later(%x: memref<16xf32>) attributes {npu.kernel = "eltwise", npu.schedule = {buffers = 2 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %c2 step %c1 {
    %abox = memref.subview %x[%i] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
    %a = memref.alloc() : memref<4xf32, #sram>
    %t = "npu.dma_start"(%abox, %a) {permutation = array<i64: 0>} : (memref<4xf32, strided<[1], offset: ?>>, memref<4xf32, #sram>) -> !npu.token
    "npu.barrier"() : () -> ()
    "npu.dma_wait"(%t) : (!npu.token) -> ()
  }
  return
}

// A sum that goes on over the iterations has one buffer.
// CHECK-LABEL: func.func private @running_sum
// CHECK: memref.alloc() : memref<4xf32, #npu.space<"acc">>
// CHECK-NOT: memref.alloc() : memref<4xf32, #npu.space<"acc">>
// CHECK: scf.for
// CHECK: "npu.reduce"
func.func private @running_sum(%x: memref<16xf32>, %out: memref<16xf32>) attributes {npu.kernel = "eltwise", npu.schedule = {buffers = 2 : i64, acc_buffers = 2 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
    %a = memref.alloc() : memref<4xf32, #acc>
    "npu.fill"(%a) {value = 0.0 : f32} : (memref<4xf32, #acc>) -> ()
  scf.for %i = %c0 to %c4 step %c1 {
    %bbox = memref.subview %x[%i] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
    %b = memref.alloc() : memref<4xf32, #sram>
    %t = "npu.dma_start"(%bbox, %b) {permutation = array<i64: 0>} : (memref<4xf32, strided<[1], offset: ?>>, memref<4xf32, #sram>) -> !npu.token
    "npu.dma_wait"(%t) : (!npu.token) -> ()
    "npu.reduce"(%b, %a) ({
    ^bb0(%v: f32, %old: f32):
      %s = arith.addf %v, %old : f32
      "npu.yield"(%s) : (f32) -> ()
    }) {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>} : (memref<4xf32, #sram>, memref<4xf32, #acc>) -> ()
  }
  return
}
