// RUN: %npu-opt %s --pass-pipeline='builtin.module(order-tiles)' | filecheck %s
// RUN: %npu-opt %s --pass-pipeline='builtin.module(order-tiles,order-tiles)' | filecheck %s

// The second tiled loop comes first; the loop that is not tiled has no counter.
// CHECK-LABEL: func.func private @ordered
// CHECK: scf.for %[[K:.*]] = %c0{{.*}} to %c4{{.*}} step %c1
// CHECK: scf.for %[[Y:.*]] = %c0{{.*}} to %c7{{.*}} step %c1
// CHECK: memref.store %{{.*}}, %arg0[%[[Y]], %[[K]]]
// CHECK-NOT: scf.forall
func.func private @ordered(%x: memref<7x4xf32>) attributes {npu.kernel = "eltwise",
    npu.schedule = {tile = array<i64: 2, 0, 16>, order = array<i64: 2, 1, 0>}} {
  %zero = arith.constant 0.0 : f32
  scf.forall (%y, %k) in (7, 4) {
    memref.store %zero, %x[%y, %k] : memref<7x4xf32>
  }
  return
}

// CHECK-LABEL: func.func private @no_order
// CHECK: scf.forall
func.func private @no_order(%x: memref<7xf32>) attributes {npu.kernel = "eltwise",
    npu.schedule = {tile = array<i64: 1>}} {
  %zero = arith.constant 0.0 : f32
  scf.forall (%y) in (7) {
    memref.store %zero, %x[%y] : memref<7xf32>
  }
  return
}

// CHECK-LABEL: func.func private @untiled
// CHECK-NOT: scf.for
func.func private @untiled(%x: memref<7xf32>) attributes {npu.kernel = "copy",
    npu.schedule = {tile = array<i64: 0>, order = array<i64: 0>}} {
  return
}
