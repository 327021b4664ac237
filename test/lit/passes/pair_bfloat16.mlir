// RUN: %npu-opt %s --pass-pipeline='builtin.module(pair-bfloat16)' | filecheck %s
// RUN: %npu-opt %s --pass-pipeline='builtin.module(pair-bfloat16,pair-bfloat16)' | filecheck %s

// Two vectors in a row become one vector of words, their results too. A value that is rounded in
// between stays in its lane.
// CHECK-LABEL: func.func @pair
// CHECK: vector.load %{{.*}}[%[[I:.*]]] : memref<64xbf16>, vector<16xbf16>
// CHECK: %[[WORDS:.*]] = vector.bitcast %{{.*}} : vector<16xbf16> to vector<8xi32>
// CHECK: arith.shli %[[WORDS]]
// CHECK: arith.andi %[[WORDS]]
// CHECK-NOT: arith.extf
// CHECK-NOT: arith.truncf
// CHECK: math.exp
// CHECK: arith.mulf
// CHECK: math.exp
// CHECK: arith.mulf
// CHECK: arith.ori
// CHECK: vector.store %{{.*}}, %{{.*}}[%[[I]]] : memref<64xbf16>, vector<16xbf16>
// CHECK-NOT: vector.store
// CHECK: return
func.func @pair(%x: memref<64xbf16>, %y: memref<64xbf16>, %i: index) {
  %c8 = arith.constant 8 : index
  %0 = vector.load %x[%i] : memref<64xbf16>, vector<8xbf16>
  %1 = arith.extf %0 : vector<8xbf16> to vector<8xf32>
  %2 = math.exp %1 : vector<8xf32>
  %3 = arith.truncf %2 : vector<8xf32> to vector<8xbf16>
  %4 = arith.extf %3 : vector<8xbf16> to vector<8xf32>
  %5 = arith.mulf %4, %1 : vector<8xf32>
  %6 = arith.truncf %5 : vector<8xf32> to vector<8xbf16>
  vector.store %6, %y[%i] : memref<64xbf16>, vector<8xbf16>
  %j = arith.addi %i, %c8 : index
  %7 = vector.load %x[%j] : memref<64xbf16>, vector<8xbf16>
  %8 = arith.extf %7 : vector<8xbf16> to vector<8xf32>
  %9 = math.exp %8 : vector<8xf32>
  %10 = arith.truncf %9 : vector<8xf32> to vector<8xbf16>
  %11 = arith.extf %10 : vector<8xbf16> to vector<8xf32>
  %12 = arith.mulf %11, %8 : vector<8xf32>
  %13 = arith.truncf %12 : vector<8xf32> to vector<8xbf16>
  vector.store %13, %y[%j] : memref<64xbf16>, vector<8xbf16>
  return
}

// Constants and scalars are the same in all lanes.
// CHECK-LABEL: func.func @invariant
// CHECK: vector.store %{{.*}} : memref<64xbf16>, vector<16xbf16>
// CHECK-NOT: vector.store
// CHECK: return
func.func @invariant(%x: memref<64xbf16>, %y: memref<64xbf16>, %s: f32) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %scalar = vector.broadcast %s : f32 to vector<8xf32>
  %half = arith.constant dense<0.5> : vector<8xf32>
  %same = arith.constant dense<0.5> : vector<8xf32>
  %0 = vector.load %x[%c0] : memref<64xbf16>, vector<8xbf16>
  %1 = arith.extf %0 : vector<8xbf16> to vector<8xf32>
  %2 = arith.mulf %1, %scalar : vector<8xf32>
  %3 = arith.addf %2, %half : vector<8xf32>
  %4 = arith.truncf %3 : vector<8xf32> to vector<8xbf16>
  vector.store %4, %y[%c0] : memref<64xbf16>, vector<8xbf16>
  %5 = vector.load %x[%c8] : memref<64xbf16>, vector<8xbf16>
  %6 = arith.extf %5 : vector<8xbf16> to vector<8xf32>
  %7 = arith.mulf %6, %scalar : vector<8xf32>
  %8 = arith.addf %7, %same : vector<8xf32>
  %9 = arith.truncf %8 : vector<8xf32> to vector<8xbf16>
  vector.store %9, %y[%c8] : memref<64xbf16>, vector<8xbf16>
  return
}

// The two do not do the same.
// CHECK-LABEL: func.func @differ
// CHECK-COUNT-2: vector.store %{{.*}} : memref<64xbf16>, vector<8xbf16>
func.func @differ(%x: memref<64xbf16>, %y: memref<64xbf16>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %a = arith.constant dense<0.5> : vector<8xf32>
  %b = arith.constant dense<0.25> : vector<8xf32>
  %0 = vector.load %x[%c0] : memref<64xbf16>, vector<8xbf16>
  %1 = arith.extf %0 : vector<8xbf16> to vector<8xf32>
  %2 = arith.mulf %1, %a : vector<8xf32>
  %3 = arith.truncf %2 : vector<8xf32> to vector<8xbf16>
  vector.store %3, %y[%c0] : memref<64xbf16>, vector<8xbf16>
  %4 = vector.load %x[%c8] : memref<64xbf16>, vector<8xbf16>
  %5 = arith.extf %4 : vector<8xbf16> to vector<8xf32>
  %6 = arith.mulf %5, %b : vector<8xf32>
  %7 = arith.truncf %6 : vector<8xf32> to vector<8xbf16>
  vector.store %7, %y[%c8] : memref<64xbf16>, vector<8xbf16>
  return
}

// Their operands are exchanged, which subtraction minds.
// CHECK-LABEL: func.func @exchanged
// CHECK-COUNT-2: vector.store %{{.*}} : memref<64xbf16>, vector<8xbf16>
func.func @exchanged(%x: memref<64xbf16>, %y: memref<64xbf16>, %z: memref<64xbf16>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %0 = vector.load %x[%c0] : memref<64xbf16>, vector<8xbf16>
  %1 = vector.load %z[%c0] : memref<64xbf16>, vector<8xbf16>
  %2 = arith.extf %0 : vector<8xbf16> to vector<8xf32>
  %3 = arith.extf %1 : vector<8xbf16> to vector<8xf32>
  %4 = arith.subf %2, %3 : vector<8xf32>
  %5 = arith.truncf %4 : vector<8xf32> to vector<8xbf16>
  vector.store %5, %y[%c0] : memref<64xbf16>, vector<8xbf16>
  %6 = vector.load %x[%c8] : memref<64xbf16>, vector<8xbf16>
  %7 = vector.load %z[%c8] : memref<64xbf16>, vector<8xbf16>
  %8 = arith.extf %6 : vector<8xbf16> to vector<8xf32>
  %9 = arith.extf %7 : vector<8xbf16> to vector<8xf32>
  %10 = arith.subf %9, %8 : vector<8xf32>
  %11 = arith.truncf %10 : vector<8xf32> to vector<8xbf16>
  vector.store %11, %y[%c8] : memref<64xbf16>, vector<8xbf16>
  return
}

// Vectors of floats in memory, from around the block, and in a sum keep the order of their lanes.
// CHECK-LABEL: func.func @ordered
// CHECK-NOT: vector<16xbf16>
// CHECK: return
func.func @ordered(%x: memref<64xbf16>, %y: memref<64xbf16>, %f: memref<64xf32>, %v: vector<8xf32>) -> vector<8xf32> {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c24 = arith.constant 24 : index
  %0 = vector.load %x[%c0] : memref<64xbf16>, vector<8xbf16>
  %1 = arith.extf %0 : vector<8xbf16> to vector<8xf32>
  %2 = vector.load %f[%c0] : memref<64xf32>, vector<8xf32>
  %3 = arith.mulf %1, %2 : vector<8xf32>
  %4 = arith.truncf %3 : vector<8xf32> to vector<8xbf16>
  vector.store %4, %y[%c0] : memref<64xbf16>, vector<8xbf16>
  %5 = vector.load %x[%c8] : memref<64xbf16>, vector<8xbf16>
  %6 = arith.extf %5 : vector<8xbf16> to vector<8xf32>
  %7 = vector.load %f[%c8] : memref<64xf32>, vector<8xf32>
  %8 = arith.mulf %6, %7 : vector<8xf32>
  %9 = arith.truncf %8 : vector<8xf32> to vector<8xbf16>
  vector.store %9, %y[%c8] : memref<64xbf16>, vector<8xbf16>
  %10 = vector.load %x[%c16] : memref<64xbf16>, vector<8xbf16>
  %11 = arith.extf %10 : vector<8xbf16> to vector<8xf32>
  %12 = arith.mulf %11, %v : vector<8xf32>
  %13 = arith.truncf %12 : vector<8xf32> to vector<8xbf16>
  vector.store %13, %y[%c16] : memref<64xbf16>, vector<8xbf16>
  %14 = vector.load %x[%c24] : memref<64xbf16>, vector<8xbf16>
  %15 = arith.extf %14 : vector<8xbf16> to vector<8xf32>
  %16 = arith.mulf %15, %v : vector<8xf32>
  %17 = arith.truncf %16 : vector<8xf32> to vector<8xbf16>
  vector.store %17, %y[%c24] : memref<64xbf16>, vector<8xbf16>
  return %16 : vector<8xf32>
}

// What is stored is read before the second vector comes.
// CHECK-LABEL: func.func @read_between
// CHECK-NOT: vector<16xbf16>
// CHECK: return
func.func @read_between(%x: memref<64xbf16>, %y: memref<64xbf16>, %z: memref<64xbf16>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %0 = vector.load %x[%c0] : memref<64xbf16>, vector<8xbf16>
  %1 = arith.extf %0 : vector<8xbf16> to vector<8xf32>
  %2 = math.exp %1 : vector<8xf32>
  %3 = arith.truncf %2 : vector<8xf32> to vector<8xbf16>
  vector.store %3, %y[%c0] : memref<64xbf16>, vector<8xbf16>
  %4 = vector.load %y[%c0] : memref<64xbf16>, vector<8xbf16>
  %5 = arith.extf %4 : vector<8xbf16> to vector<8xf32>
  %6 = arith.negf %5 : vector<8xf32>
  %7 = arith.truncf %6 : vector<8xf32> to vector<8xbf16>
  vector.store %7, %z[%c0] : memref<64xbf16>, vector<8xbf16>
  %8 = vector.load %x[%c8] : memref<64xbf16>, vector<8xbf16>
  %9 = arith.extf %8 : vector<8xbf16> to vector<8xf32>
  %10 = math.exp %9 : vector<8xf32>
  %11 = arith.truncf %10 : vector<8xf32> to vector<8xbf16>
  vector.store %11, %y[%c8] : memref<64xbf16>, vector<8xbf16>
  return
}
