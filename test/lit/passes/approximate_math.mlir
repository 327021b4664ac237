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
// CHECK-NEXT: math.sin %{{.*}} : vector<8xf32>
// CHECK-NEXT: return
func.func @others(%s: f32, %d: vector<4xf64>, %v: vector<8xf32>) -> (f32, vector<4xf64>, vector<8xf32>, vector<8xf32>) {
  %0 = math.exp %s : f32
  %1 = math.exp %d : vector<4xf64>
  %2 = math.sqrt %v : vector<8xf32>
  %3 = math.sin %v : vector<8xf32>
  return %0, %1, %2, %3 : f32, vector<4xf64>, vector<8xf32>, vector<8xf32>
}
