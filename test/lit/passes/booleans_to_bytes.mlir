// RUN: %npu-opt %s --pass-pipeline='builtin.module(booleans-to-bytes)' | filecheck %s
// RUN: %npu-opt %s --pass-pipeline='builtin.module(booleans-to-bytes,booleans-to-bytes)' | filecheck %s

#map = affine_map<(d0) -> (d0)>
#all = affine_map<(d0) -> ()>

// CHECK: memref.global "private" constant @mask : memref<3xi8> = dense<[1, 0, 1]>
memref.global "private" constant @mask : memref<3xi1> = dense<[true, false, true]>

// CHECK: func.func private @declared(memref<3xi8>)
func.func private @declared(memref<3xi1>)

// What is computed with stays a bit, what is in memory is a byte.
// CHECK-LABEL: func.func @elementwise
// CHECK-SAME: memref<3xi8>, %{{.*}}: memref<3xi8>
// CHECK: ^bb0(%[[A:.*]]: i8, %{{.*}}: i8):
// CHECK: %[[BIT:.*]] = arith.trunci %[[A]] : i8 to i1
// CHECK: %[[NOT:.*]] = arith.xori %[[BIT]], %{{.*}} : i1
// CHECK: %[[BYTE:.*]] = arith.extui %[[NOT]] : i1 to i8
// CHECK: linalg.yield %[[BYTE]] : i8
// CHECK: call @declared(%{{.*}}) : (memref<3xi8>) -> ()
func.func @elementwise(%x: memref<3xi1>, %y: memref<3xi1>) {
  %true = arith.constant true
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : memref<3xi1>) outs(%y : memref<3xi1>) {
  ^bb0(%a: i1, %b: i1):
    %0 = arith.xori %a, %true : i1
    linalg.yield %0 : i1
  }
  call @declared(%y) : (memref<3xi1>) -> ()
  return
}

// A reduction joins bytes, so that it can be seen to be one.
// CHECK-LABEL: func.func @any
// CHECK: linalg.fill ins(%{{.*}} : i8) outs(%{{.*}} : memref<i8>)
// CHECK: ^bb0(%{{.*}}: i8, %[[OUT:.*]]: i8):
// CHECK: %[[JOINED:.*]] = arith.ori %{{.*}}, %[[OUT]] : i8
// CHECK: linalg.yield %[[JOINED]] : i8
func.func @any(%x: memref<3xi1>, %y: memref<i1>) {
  %false = arith.constant false
  linalg.fill ins(%false : i1) outs(%y : memref<i1>)
  linalg.generic {indexing_maps = [#map, #all], iterator_types = ["reduction"]}
      ins(%x : memref<3xi1>) outs(%y : memref<i1>) {
  ^bb0(%a: i1, %b: i1):
    %0 = arith.ori %a, %b : i1
    linalg.yield %0 : i1
  }
  return
}

// CHECK-LABEL: func.func @element
// CHECK: %[[BYTE:.*]] = memref.load %{{.*}} : memref<3xi8>
// CHECK: %[[BIT:.*]] = arith.trunci %[[BYTE]] : i8 to i1
// CHECK: %[[BACK:.*]] = arith.extui %[[BIT]] : i1 to i8
// CHECK: memref.store %[[BACK]], %{{.*}} : memref<3xi8>
func.func @element(%x: memref<3xi1>, %i: index) {
  %0 = memref.load %x[%i] : memref<3xi1>
  memref.store %0, %x[%i] : memref<3xi1>
  return
}

// CHECK-LABEL: func.func @others
// CHECK-SAME: memref<3xf32>, %{{.*}}: i1
// CHECK-NEXT: return
func.func @others(%x: memref<3xf32>, %b: i1) {
  return
}
