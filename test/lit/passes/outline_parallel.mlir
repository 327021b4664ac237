// RUN: %npu-opt %s --pass-pipeline='builtin.module(outline-parallel)' | filecheck %s
// RUN: %npu-opt %s --pass-pipeline='builtin.module(outline-parallel,outline-parallel)' | filecheck %s

// The kernel calls its chunk for all iterations of the flattened loop and says so in npu.team.
// CHECK-LABEL: func.func private @tiled(%arg0: memref<8x6xf32>, %arg1: memref<64xi8> {npu.role = "scratch"})
// CHECK-SAME: npu.team = {chunk = @tiled_chunk, iterations = 12 : i64, scratch = 1 : i64, scratch_bytes = 64 : i64}
// CHECK: %[[LO:.*]] = arith.constant 0 : index
// CHECK: %[[HI:.*]] = arith.constant 12 : index
// CHECK: call @tiled_chunk(%arg0, %arg1, %[[LO]], %[[HI]])
// CHECK-NEXT: return
// CHECK-LABEL: func.func private @tiled_chunk
// CHECK-SAME: (%[[X:.*]]: memref<8x6xf32>, %[[S:.*]]: memref<64xi8> {npu.role = "scratch"}, %[[LO:.*]]: index, %[[HI:.*]]: index)
// CHECK-NOT: npu.team
// CHECK: memref.view %[[S]]
// CHECK: scf.for %[[T:.*]] = %[[LO]] to %[[HI]] step
// CHECK: %[[J:.*]] = arith.remui %[[T]],
// CHECK: %[[Q:.*]] = arith.divui %[[T]],
// CHECK: arith.remui %[[Q]],
// CHECK-NOT: scf.forall
// CHECK: memref.store
// CHECK-LABEL: func.func @main
func.func private @tiled(%x: memref<8x6xf32>, %scratch: memref<64xi8> {npu.role = "scratch"})
    attributes {npu.kernel = "eltwise", npu.schedule = {parallel = true}} {
  %c0 = arith.constant 0 : index
  %v = memref.view %scratch[%c0][] : memref<64xi8> to memref<16xf32>
  scf.forall (%i, %j) = (0, 0) to (8, 6) step (2, 2) {
    %e = memref.load %v[%c0] : memref<16xf32>
    memref.store %e, %x[%i, %j] : memref<8x6xf32>
  }
  return
}
func.func @main(%x: memref<8x6xf32>, %scratch: memref<64xi8>) {
  call @tiled(%x, %scratch) : (memref<8x6xf32>, memref<64xi8>) -> ()
  return
}

// A schedule that is not parallel, work beside the loop, a single iteration, no kernel: left alone.
// CHECK-LABEL: func.func private @serial
// CHECK: scf.forall
// CHECK-NOT: _chunk
func.func private @serial(%x: memref<8xf32>) attributes {npu.kernel = "eltwise", npu.schedule = {parallel = false}} {
  %f = arith.constant 0.0 : f32
  scf.forall (%i) in (8) {
    memref.store %f, %x[%i] : memref<8xf32>
  }
  return
}
func.func private @beside(%x: memref<8xf32>) attributes {npu.kernel = "eltwise"} {
  %f = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  memref.store %f, %x[%c0] : memref<8xf32>
  scf.forall (%i) in (8) {
    memref.store %f, %x[%i] : memref<8xf32>
  }
  return
}
func.func private @once(%x: memref<8xf32>) attributes {npu.kernel = "eltwise"} {
  %f = arith.constant 0.0 : f32
  scf.forall (%i) in (1) {
    memref.store %f, %x[%i] : memref<8xf32>
  }
  return
}
func.func @no_kernel(%x: memref<8xf32>) {
  %f = arith.constant 0.0 : f32
  scf.forall (%i) in (8) {
    memref.store %f, %x[%i] : memref<8xf32>
  }
  return
}
