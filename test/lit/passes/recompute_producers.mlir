// RUN: %npu-opt %s --pass-pipeline='builtin.module(recompute-producers)' | filecheck %s
// RUN: %npu-opt %s --pass-pipeline='builtin.module(recompute-producers,recompute-producers)' | filecheck %s

#whole = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// The conversion and the difference go into the sum, the squares and the result: three reads of x.
// CHECK-LABEL: func.func @normalisation
// CHECK-SAME: (%[[X:[^:]*]]: tensor<8x768xbf16>, %[[Z:[^:]*]]: tensor<8xf32>)
// CHECK: %[[S:.*]] = linalg.generic {{.*}}"reduction"]} ins(%[[X]] : tensor<8x768xbf16>)
// CHECK: arith.extf
// CHECK: arith.addf
// CHECK: %[[V:.*]] = linalg.generic {{.*}}"reduction"]} ins(%[[X]], %[[S]] : tensor<8x768xbf16>, tensor<8xf32>)
// CHECK: arith.extf
// CHECK: arith.subf
// CHECK: arith.mulf
// CHECK: linalg.generic {{.*}}"parallel"]} ins(%[[X]], %[[S]], %[[V]] : tensor<8x768xbf16>, tensor<8xf32>, tensor<8xf32>)
// CHECK: arith.extf
// CHECK: arith.subf
// CHECK: arith.mulf
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @normalisation(%x: tensor<8x768xbf16>, %z: tensor<8xf32>) -> tensor<8x768xf32> {
  %e = tensor.empty() : tensor<8x768xf32>
  %f = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x768xbf16>) outs(%e : tensor<8x768xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %0 = arith.extf %a : bf16 to f32
    linalg.yield %0 : f32
  } -> tensor<8x768xf32>
  %s = linalg.generic {indexing_maps = [#whole, #row], iterator_types = ["parallel", "reduction"]}
      ins(%f : tensor<8x768xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %a, %o : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  %d = linalg.generic {indexing_maps = [#whole, #row, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%f, %s : tensor<8x768xf32>, tensor<8xf32>) outs(%e : tensor<8x768xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %0 = arith.subf %a, %m : f32
    linalg.yield %0 : f32
  } -> tensor<8x768xf32>
  %v = linalg.generic {indexing_maps = [#whole, #row], iterator_types = ["parallel", "reduction"]}
      ins(%d : tensor<8x768xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.mulf %a, %a : f32
    %1 = arith.addf %0, %o : f32
    linalg.yield %1 : f32
  } -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#whole, #row, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%d, %v : tensor<8x768xf32>, tensor<8xf32>) outs(%e : tensor<8x768xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %0 = arith.mulf %a, %m : f32
    linalg.yield %0 : f32
  } -> tensor<8x768xf32>
  return %r : tensor<8x768xf32>
}

// A user that reads it in another order has the operands in that order.
// CHECK-LABEL: func.func @transposed
// CHECK: linalg.generic {{.*}} ins(%arg0, %arg1 :
// CHECK: arith.subf
// CHECK: arith.negf
// CHECK: linalg.generic
// CHECK: arith.subf
// CHECK: math.absf
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @transposed(%x: tensor<64x48xf32>, %m: tensor<64xf32>) -> (tensor<48x64xf32>, tensor<64x48xf32>) {
  %e = tensor.empty() : tensor<64x48xf32>
  %t = tensor.empty() : tensor<48x64xf32>
  %d = linalg.generic {indexing_maps = [#whole, #row, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<64x48xf32>, tensor<64xf32>) outs(%e : tensor<64x48xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<64x48xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%d : tensor<64x48xf32>) outs(%t : tensor<48x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  } -> tensor<48x64xf32>
  %q = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%d : tensor<64x48xf32>) outs(%e : tensor<64x48xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.absf %a : f32
    linalg.yield %0 : f32
  } -> tensor<64x48xf32>
  return %r, %q : tensor<48x64xf32>, tensor<64x48xf32>
}

// Two large operands are more to read than one, a product could be contracted with what follows, a
// quotient is costly, and what is returned is written anyway.
// CHECK-LABEL: func.func @kept
// CHECK-COUNT-8: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @kept(%x: tensor<8x768xf32>, %y: tensor<8x768xf32>, %h: tensor<8x768xbf16>, %z: tensor<8xf32>)
    -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x768xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8x768xf32>
  %p = linalg.generic {indexing_maps = [#whole, #whole, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<8x768xf32>, tensor<8x768xf32>) outs(%e : tensor<8x768xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<8x768xf32>
  %q = linalg.generic {indexing_maps = [#whole, #row, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%x, %z : tensor<8x768xf32>, tensor<8xf32>) outs(%e : tensor<8x768xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<8x768xf32>
  %d = linalg.generic {indexing_maps = [#whole, #row, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%x, %z : tensor<8x768xf32>, tensor<8xf32>) outs(%e : tensor<8x768xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.divf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<8x768xf32>
  %f = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%h : tensor<8x768xbf16>) outs(%e : tensor<8x768xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %0 = arith.extf %a : bf16 to f32
    linalg.yield %0 : f32
  } -> tensor<8x768xf32>
  %r0 = linalg.generic {indexing_maps = [#whole, #row], iterator_types = ["parallel", "reduction"]}
      ins(%p : tensor<8x768xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %a, %o : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  %r1 = linalg.generic {indexing_maps = [#whole, #row], iterator_types = ["parallel", "reduction"]}
      ins(%q : tensor<8x768xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %a, %o : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  %r2 = linalg.generic {indexing_maps = [#whole, #row], iterator_types = ["parallel", "reduction"]}
      ins(%d : tensor<8x768xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %a, %o : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  %r3 = linalg.generic {indexing_maps = [#whole, #row], iterator_types = ["parallel", "reduction"]}
      ins(%f : tensor<8x768xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %a, %o : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  return %r0, %r1, %r2, %f, %r3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x768xf32>, tensor<8xf32>
}

// What repeats a row stays apart from a sum of it, which could not tell how often it is added up.
// CHECK-LABEL: func.func @sum_of_a_broadcast
// CHECK: %[[B:.*]] = linalg.generic {{.*}}"parallel"]} ins(%{{.*}} : tensor<8xf32>)
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%[[B]] : tensor<8x6xf32>)
func.func @sum_of_a_broadcast(%x: tensor<8xf32>, %z: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8x6xf32>
  %b = linalg.generic {indexing_maps = [#row, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8xf32>) outs(%e : tensor<8x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  } -> tensor<8x6xf32>
  %r = linalg.generic {indexing_maps = [#whole, #row], iterator_types = ["parallel", "reduction"]}
      ins(%b : tensor<8x6xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %a, %o : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}
