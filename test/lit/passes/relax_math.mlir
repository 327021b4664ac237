// RUN: %npu-opt %s --pass-pipeline='builtin.module(relax-math)' | filecheck %s
// RUN: %npu-opt %s --pass-pipeline='builtin.module(relax-math,relax-math)' | filecheck %s

// Through arithmetic to bfloat16.
// CHECK-LABEL: func.func @rounded
// CHECK: math.erf %{{.*}} fastmath<afn> : vector<8xf32>
func.func @rounded(%x: vector<8xf32>) -> vector<8xbf16> {
  %0 = math.erf %x : vector<8xf32>
  %1 = arith.addf %0, %x : vector<8xf32>
  %2 = arith.mulf %1, %x : vector<8xf32>
  %3 = arith.truncf %2 : vector<8xf32> to vector<8xbf16>
  return %3 : vector<8xbf16>
}

// One of several uses sees all digits.
// CHECK-LABEL: func.func @seen
// CHECK: math.erf %{{.*}} : vector<8xf32>
func.func @seen(%x: vector<8xf32>) -> (vector<8xf32>, vector<8xbf16>) {
  %0 = math.erf %x : vector<8xf32>
  %1 = arith.truncf %0 : vector<8xf32> to vector<8xbf16>
  return %0, %1 : vector<8xf32>, vector<8xbf16>
}

// float16 has more digits; a quotient may have fewer than its operands; other functions have no
// shorter form.
// CHECK-LABEL: func.func @others
// CHECK: math.erf %{{.*}} : vector<8xf32>
// CHECK: math.erf %{{.*}} : vector<8xf32>
// CHECK: math.exp %{{.*}} : vector<8xf32>
func.func @others(%x: vector<8xf32>) -> (vector<8xf16>, vector<8xbf16>, vector<8xbf16>) {
  %0 = math.erf %x : vector<8xf32>
  %1 = arith.truncf %0 : vector<8xf32> to vector<8xf16>
  %2 = math.erf %x : vector<8xf32>
  %3 = arith.divf %x, %2 : vector<8xf32>
  %4 = arith.truncf %3 : vector<8xf32> to vector<8xbf16>
  %5 = math.exp %x : vector<8xf32>
  %6 = arith.truncf %5 : vector<8xf32> to vector<8xbf16>
  return %1, %4, %6 : vector<8xf16>, vector<8xbf16>, vector<8xbf16>
}

// One number divides all elements: its reciprocal is taken once.
// CHECK-LABEL: func.func @quotients
// CHECK-SAME: %[[S:[a-z0-9]+]]: f32
// CHECK: %[[SCALED:.*]] = arith.mulf %[[S]], %[[SCALE:.*]] : f32
// CHECK: %[[R:.*]] = arith.divf %{{.*}}, %[[SCALED]] : f32
// CHECK-DAG: %[[VS:.*]] = vector.broadcast %[[SCALE]] : f32 to vector<8xf32>
// CHECK-DAG: %[[VR:.*]] = vector.broadcast %[[R]] : f32 to vector<8xf32>
// CHECK: %[[A:.*]] = arith.mulf %{{.*}}, %[[VS]] : vector<8xf32>
// CHECK: %[[Q:.*]] = arith.mulf %[[A]], %[[VR]] : vector<8xf32>
// CHECK: arith.truncf %[[Q]]
// CHECK: arith.mulf %{{.*}}, %[[VS]] : vector<8xf32>
// CHECK-NOT: arith.divf
// CHECK: return
func.func @quotients(%x: vector<8xf32>, %y: vector<8xf32>, %s: f32) -> (vector<8xbf16>, vector<8xbf16>) {
  %0 = vector.broadcast %s : f32 to vector<8xf32>
  %1 = arith.divf %x, %0 : vector<8xf32>
  %2 = arith.truncf %1 : vector<8xf32> to vector<8xbf16>
  %3 = arith.divf %y, %0 : vector<8xf32>
  %4 = arith.truncf %3 : vector<8xf32> to vector<8xbf16>
  return %2, %4 : vector<8xbf16>, vector<8xbf16>
}

// Sums may cancel digits, and f32 shows them all.
// CHECK-LABEL: func.func @exact_quotients
// CHECK-COUNT-2: arith.divf {{.*}} : vector<8xf32>
func.func @exact_quotients(%x: vector<8xf32>, %s: f32) -> (vector<8xbf16>, vector<8xf32>) {
  %0 = vector.broadcast %s : f32 to vector<8xf32>
  %1 = arith.divf %x, %0 : vector<8xf32>
  %2 = arith.subf %1, %x : vector<8xf32>
  %3 = arith.truncf %2 : vector<8xf32> to vector<8xbf16>
  %4 = arith.divf %x, %0 : vector<8xf32>
  return %3, %4 : vector<8xbf16>, vector<8xf32>
}
