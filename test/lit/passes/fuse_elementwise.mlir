// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(fuse-elementwise)' | filecheck %s
// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(fuse-elementwise,fuse-elementwise)' | filecheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>

// A chain through two uses of one value (x * sigmoid(x)) becomes one generic with one operand per tensor.
// CHECK-LABEL: func.func @chain
// CHECK: linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<4x6xf32>, tensor<6xf32>)
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT: %[[E:.*]] = math.exp %[[S]]
// CHECK-NEXT: %[[M:.*]] = arith.mulf %[[S]], %[[E]]
// CHECK-NEXT: linalg.yield %[[M]]
// CHECK-NOT: linalg.generic
func.func @chain(%x: tensor<4x6xf32>, %b: tensor<6xf32>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<4x6xf32>
  %s = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %b : tensor<4x6xf32>, tensor<6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %0 = arith.addf %a, %c : f32
    linalg.yield %0 : f32
  } -> tensor<4x6xf32>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<4x6xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%s, %t : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %0 = arith.mulf %a, %c : f32
    linalg.yield %0 : f32
  } -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

#id3 = affine_map<(i, j, k) -> (i, j, k)>

// An elementwise generic behind a reshape takes the shape of the product that it follows.
// CHECK-LABEL: func.func @before_the_reshape
// CHECK: %[[M:.*]] = linalg.matmul
// CHECK: %[[G:.*]] = linalg.generic {{.*}} ins(%[[M]] : tensor<6x4xf32>) outs(%{{.*}} : tensor<6x4xf32>)
// CHECK: tensor.expand_shape %[[G]] {{\[\[}}0, 1], [2]] output_shape [2, 3, 4]
// CHECK-NOT: linalg.generic
func.func @before_the_reshape(%x: tensor<6x5xf32>, %w: tensor<5x4xf32>, %init: tensor<6x4xf32>) -> tensor<2x3x4xf32> {
  %m = linalg.matmul ins(%x, %w : tensor<6x5xf32>, tensor<5x4xf32>) outs(%init : tensor<6x4xf32>) -> tensor<6x4xf32>
  %v = tensor.expand_shape %m [[0, 1], [2]] output_shape [2, 3, 4] : tensor<6x4xf32> into tensor<2x3x4xf32>
  %e = tensor.empty() : tensor<2x3x4xf32>
  %r = linalg.generic {indexing_maps = [#id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%v : tensor<2x3x4xf32>) outs(%e : tensor<2x3x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.tanh %a : f32
    linalg.yield %0 : f32
  } -> tensor<2x3x4xf32>
  return %r : tensor<2x3x4xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// A filled operand is a scalar of the body.
// CHECK-LABEL: func.func @filled_operand
// CHECK: linalg.generic {{.*}} ins(%arg0 : tensor<4x6xf32>)
// CHECK: arith.addf %{{.*}}, %cst : f32
func.func @filled_operand(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %f = linalg.fill ins(%two : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %f : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %0 = arith.addf %a, %c : f32
    linalg.yield %0 : f32
  } -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// A tensor that is read twice is one operand.
// CHECK-LABEL: func.func @same_operand
// CHECK: linalg.generic {{.*}} ins(%arg0 : tensor<4x6xf32>)
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: arith.addf %[[A]], %[[A]]
func.func @same_operand(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<4x6xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %x : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// A value with two users is computed once.
// CHECK-LABEL: func.func @two_users
// CHECK: %[[S:.*]] = linalg.generic
// CHECK: math.exp
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[S]]
// CHECK: return %[[S]], %[[R]]
func.func @two_users(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %e = tensor.empty() : tensor<4x6xf32>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<4x6xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  } -> tensor<4x6xf32>
  return %s, %r : tensor<4x6xf32>, tensor<4x6xf32>
}

// -----

#one = affine_map<(j) -> (j)>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>

// What one row needs is not computed again for every row.
// CHECK-LABEL: func.func @broadcast_producer
// CHECK: %[[S:.*]] = linalg.generic
// CHECK: math.rsqrt
// CHECK: linalg.generic {{.*}} ins(%arg0, %[[S]] : tensor<4x6xf32>, tensor<6xf32>)
func.func @broadcast_producer(%x: tensor<4x6xf32>, %v: tensor<6xf32>) -> tensor<4x6xf32> {
  %e1 = tensor.empty() : tensor<6xf32>
  %s = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%v : tensor<6xf32>) outs(%e1 : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.rsqrt %a : f32
    linalg.yield %0 : f32
  } -> tensor<6xf32>
  %e = tensor.empty() : tensor<4x6xf32>
  %r = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<4x6xf32>, tensor<6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %0 = arith.mulf %a, %c : f32
    linalg.yield %0 : f32
  } -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// What parameters alone determine is computed once, not in every run.
// CHECK-LABEL: func.func @parameters_apart
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%arg1 :
// CHECK: math.exp
// CHECK: linalg.generic {{.*}} ins(%arg0, %[[S]] :
func.func @parameters_apart(%x: tensor<4x6xf32> {npu.role = "input"}, %p: tensor<4x6xf32> {npu.role = "parameter"}) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<4x6xf32>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<4x6xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %0 = arith.mulf %a, %c : f32
    linalg.yield %0 : f32
  } -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#out = affine_map<(i, j) -> (i)>

// A reduction takes in what feeds it, except the epilogue of a product.
// CHECK-LABEL: func.func @reductions
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%arg0
// CHECK: math.exp
// CHECK-NEXT: arith.addf
// CHECK: %[[M:.*]] = linalg.matmul
// CHECK: %[[T:.*]] = linalg.generic {{.*}} ins(%[[M]]
// CHECK: math.tanh
// CHECK-NEXT: linalg.yield
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%[[T]]
func.func @reductions(%x: tensor<4x6xf32>, %w: tensor<6x6xf32>, %init: tensor<4x6xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %e1 = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<4x6xf32>
  %r = linalg.generic {indexing_maps = [#id, #out], iterator_types = ["parallel", "reduction"]} ins(%s : tensor<4x6xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %m = linalg.matmul ins(%x, %w : tensor<4x6xf32>, tensor<6x6xf32>) outs(%init : tensor<4x6xf32>) -> tensor<4x6xf32>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.tanh %a : f32
    linalg.yield %0 : f32
  } -> tensor<4x6xf32>
  %q = linalg.generic {indexing_maps = [#id, #out], iterator_types = ["parallel", "reduction"]} ins(%t : tensor<4x6xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %r, %q : tensor<4xf32>, tensor<4xf32>
}

// -----

#id = affine_map<(i) -> (i)>

// Python numbers arrive as f64 and are rounded here.
// CHECK-LABEL: func.func @double_constant
// CHECK-NOT: arith.truncf
// CHECK: arith.constant 1.000000e-01 : f32
func.func @double_constant(%x: tensor<4xf32>) -> tensor<4xf32> {
  %tenth = arith.constant 1.000000e-01 : f64
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.truncf %tenth : f64 to f32
    %0 = arith.mulf %a, %c : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

#id = affine_map<(i) -> (i)>

// Sixteen tensors fit into one op of the npu dialect.
// CHECK-LABEL: func.func @sixteen_inputs
// CHECK: linalg.generic
// CHECK-NOT: linalg.generic
func.func @sixteen_inputs(%x0: tensor<4xf32>, %x1: tensor<4xf32>, %x2: tensor<4xf32>, %x3: tensor<4xf32>, %x4: tensor<4xf32>, %x5: tensor<4xf32>, %x6: tensor<4xf32>, %x7: tensor<4xf32>, %x8: tensor<4xf32>, %x9: tensor<4xf32>, %x10: tensor<4xf32>, %x11: tensor<4xf32>, %x12: tensor<4xf32>, %x13: tensor<4xf32>, %x14: tensor<4xf32>, %x15: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %p = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id, #id, #id, #id, #id, #id], iterator_types = ["parallel"]} ins(%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7, %x8 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a0: f32, %a1: f32, %a2: f32, %a3: f32, %a4: f32, %a5: f32, %a6: f32, %a7: f32, %a8: f32, %o: f32):
    %1 = arith.addf %a0, %a1 : f32
    %2 = arith.addf %1, %a2 : f32
    %3 = arith.addf %2, %a3 : f32
    %4 = arith.addf %3, %a4 : f32
    %5 = arith.addf %4, %a5 : f32
    %6 = arith.addf %5, %a6 : f32
    %7 = arith.addf %6, %a7 : f32
    %8 = arith.addf %7, %a8 : f32
    linalg.yield %8 : f32
  } -> tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id, #id, #id, #id, #id], iterator_types = ["parallel"]} ins(%p, %x9, %x10, %x11, %x12, %x13, %x14, %x15 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a0: f32, %a1: f32, %a2: f32, %a3: f32, %a4: f32, %a5: f32, %a6: f32, %a7: f32, %o: f32):
    %1 = arith.addf %a0, %a1 : f32
    %2 = arith.addf %1, %a2 : f32
    %3 = arith.addf %2, %a3 : f32
    %4 = arith.addf %3, %a4 : f32
    %5 = arith.addf %4, %a5 : f32
    %6 = arith.addf %5, %a6 : f32
    %7 = arith.addf %6, %a7 : f32
    linalg.yield %7 : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

#id = affine_map<(i) -> (i)>

// Seventeen do not.
// CHECK-LABEL: func.func @seventeen_inputs
// CHECK: linalg.generic
// CHECK: linalg.generic
func.func @seventeen_inputs(%x0: tensor<4xf32>, %x1: tensor<4xf32>, %x2: tensor<4xf32>, %x3: tensor<4xf32>, %x4: tensor<4xf32>, %x5: tensor<4xf32>, %x6: tensor<4xf32>, %x7: tensor<4xf32>, %x8: tensor<4xf32>, %x9: tensor<4xf32>, %x10: tensor<4xf32>, %x11: tensor<4xf32>, %x12: tensor<4xf32>, %x13: tensor<4xf32>, %x14: tensor<4xf32>, %x15: tensor<4xf32>, %x16: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %p = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id, #id, #id, #id, #id, #id], iterator_types = ["parallel"]} ins(%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7, %x8 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a0: f32, %a1: f32, %a2: f32, %a3: f32, %a4: f32, %a5: f32, %a6: f32, %a7: f32, %a8: f32, %o: f32):
    %1 = arith.addf %a0, %a1 : f32
    %2 = arith.addf %1, %a2 : f32
    %3 = arith.addf %2, %a3 : f32
    %4 = arith.addf %3, %a4 : f32
    %5 = arith.addf %4, %a5 : f32
    %6 = arith.addf %5, %a6 : f32
    %7 = arith.addf %6, %a7 : f32
    %8 = arith.addf %7, %a8 : f32
    linalg.yield %8 : f32
  } -> tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id, #id, #id, #id, #id, #id], iterator_types = ["parallel"]} ins(%p, %x9, %x10, %x11, %x12, %x13, %x14, %x15, %x16 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a0: f32, %a1: f32, %a2: f32, %a3: f32, %a4: f32, %a5: f32, %a6: f32, %a7: f32, %a8: f32, %o: f32):
    %1 = arith.addf %a0, %a1 : f32
    %2 = arith.addf %1, %a2 : f32
    %3 = arith.addf %2, %a3 : f32
    %4 = arith.addf %3, %a4 : f32
    %5 = arith.addf %4, %a5 : f32
    %6 = arith.addf %5, %a6 : f32
    %7 = arith.addf %6, %a7 : f32
    %8 = arith.addf %7, %a8 : f32
    linalg.yield %8 : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

#one = affine_map<(i) -> (i)>
#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (i)>

// A broadcast stays apart from the reduction of what it repeats: of the row alone, nobody could tell
// how often it is added up.
// CHECK-LABEL: func.func @sum_of_a_broadcast
// CHECK: %[[B:.*]] = linalg.generic {{.*}}"parallel"]} ins(%arg0 : tensor<4xf32>)
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%[[B]] : tensor<4x6xf32>) outs(%arg1 : tensor<4xf32>)
func.func @sum_of_a_broadcast(%x: tensor<4xf32>, %z: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4x6xf32>
  %b = linalg.generic {indexing_maps = [#column, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4x6xf32>
  %r = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["parallel", "reduction"]} ins(%b : tensor<4x6xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
