// RUN: %npu-opt %s --pass-pipeline='builtin.module(approximate-math)' | filecheck %s
// RUN: %npu-opt %s --pass-pipeline='builtin.module(approximate-math,approximate-math)' | filecheck %s

// CHECK-LABEL: func.func @functions
// CHECK-NOT: math.exp
// CHECK-NOT: math.log
// CHECK-NOT: math.tanh
// CHECK-NOT: math.erf
// CHECK-NOT: math.expm1
// CHECK: vector.fma {{.*}} : vector<8xf32>
// CHECK: return
func.func @functions(%x: vector<8xf32>) -> vector<8xf32> {
  %0 = math.exp %x : vector<8xf32>
  %1 = math.log %0 : vector<8xf32>
  %2 = math.log1p %1 : vector<8xf32>
  %3 = math.tanh %2 : vector<8xf32>
  %4 = math.erf %3 : vector<8xf32>
  %5 = math.expm1 %4 : vector<8xf32>
  return %5 : vector<8xf32>
}

// Scalars, other element types and functions without a polynomial stay.
// CHECK-LABEL: func.func @others
// CHECK-NEXT: math.exp %{{.*}} : f32
// CHECK-NEXT: math.exp %{{.*}} : vector<4xf64>
// CHECK-NEXT: math.sqrt %{{.*}} : vector<8xf32>
// CHECK-NEXT: math.atan %{{.*}} : vector<8xf32>
// CHECK-NEXT: return
func.func @others(%s: f32, %d: vector<4xf64>, %v: vector<8xf32>) -> (f32, vector<4xf64>, vector<8xf32>, vector<8xf32>) {
  %0 = math.exp %s : f32
  %1 = math.exp %d : vector<4xf64>
  %2 = math.sqrt %v : vector<8xf32>
  %3 = math.atan %v : vector<8xf32>
  return %0, %1, %2, %3 : f32, vector<4xf64>, vector<8xf32>, vector<8xf32>
}

// What is too large for f32 is reduced in f64, and what is too large for that goes to the library,
// lane by lane.
// CHECK-LABEL: func.func @trigonometry
// CHECK-NOT: math.sin %{{.*}} : vector
// CHECK: vector.reduction <or>
// CHECK: scf.if
// CHECK-COUNT-4: math.sin %{{.*}} : f32
// CHECK: else
// CHECK: vector.fma {{.*}} : vector<4xf64>
// CHECK: arith.truncf {{.*}} : vector<4xf64> to vector<4xf32>
// CHECK: else
// CHECK-NOT: f64
// CHECK: vector.fma {{.*}} : vector<4xf32>
// CHECK: return
func.func @trigonometry(%x: vector<4xf32>) -> vector<4xf32> {
  %0 = math.sin %x : vector<4xf32>
  return %0 : vector<4xf32>
}

// Whole exponents become floats; powers of f64 stay.
// CHECK-LABEL: func.func @powers
// CHECK-NOT: math.fpowi
// CHECK: vector.fma {{.*}} : vector<4xf64>
// CHECK: math.powf %{{.*}} : vector<4xf64>
// CHECK: return
func.func @powers(%x: vector<4xf32>, %d: vector<4xf64>, %n: vector<4xi64>) -> (vector<4xf32>, vector<4xf64>) {
  %0 = math.powf %x, %x : vector<4xf32>
  %1 = math.fpowi %d, %n : vector<4xf64>, vector<4xi64>
  return %0, %1 : vector<4xf32>, vector<4xf64>
}
