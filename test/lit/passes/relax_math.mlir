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
