// RUN: npu-opt %s --target small --split-input-file --pass-pipeline='builtin.module(form-kernels)' | filecheck %s
// RUN: npu-opt %s --target small --split-input-file --pass-pipeline='builtin.module(form-kernels,form-kernels)' | filecheck %s
// RUN: npu-opt %s --target host --split-input-file --pass-pipeline='builtin.module(form-kernels)' | filecheck %s --check-prefix CACHE

#image = affine_map<(n, y, x, ko, ki, r, s, c) -> (n, y + r, x + s, c)>
#weights = affine_map<(n, y, x, ko, ki, r, s, c) -> (ko, r, s, c, ki)>
#acc = affine_map<(n, y, x, ko, ki, r, s, c) -> (n, y, x, ko, ki)>

// Channels first at both ends: the kernel takes in the transpose of its padded image, and that of its
// result, which changes places with the reshape of its channels. Weights are transposed by a kernel.
// CHECK-LABEL: func.func @convolution
// CHECK-SAME: (%[[X:.*]]: tensor<1x8x4x4xf32>, %[[W:.*]]: tensor<2x4x8x3x3xf32>)
// CHECK: %[[P:.*]] = call @copy_0
// CHECK: %[[V:.*]] = tensor.expand_shape %[[P]]
// CHECK: %[[C:.*]] = call @conv2d_0(%[[X]], %[[V]]) : (tensor<1x8x4x4xf32>, tensor<2x3x3x8x4xf32>) -> tensor<1x2x4x4x4xf32>
// CHECK: %[[R:.*]] = tensor.collapse_shape %[[C]] {{\[\[}}0], [1, 2], [3], [4]]
// CHECK: return %[[R]]
// CHECK: func.func private @conv2d_0(%[[A:.*]]: tensor<1x8x4x4xf32>, %[[B:.*]]: tensor<2x3x3x8x4xf32>)
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[A]] {{.*}} permutation = [0, 2, 3, 1]
// CHECK: %[[D:.*]] = tensor.pad %[[T]]
// CHECK: %[[G:.*]] = linalg.generic {{.*}} ins(%[[D]], %[[B]]
// CHECK: %[[S:.*]] = linalg.transpose ins(%[[G]] {{.*}} permutation = [0, 3, 4, 1, 2]
// CHECK: return %[[S]]
func.func @convolution(%x: tensor<1x8x4x4xf32>, %w: tensor<2x4x8x3x3xf32>) -> tensor<1x8x4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %xe = tensor.empty() : tensor<1x4x4x8xf32>
  %xt = linalg.transpose ins(%x : tensor<1x8x4x4xf32>) outs(%xe : tensor<1x4x4x8xf32>) permutation = [0, 2, 3, 1]
  %p = tensor.pad %xt low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x4x4x8xf32> to tensor<1x6x6x8xf32>
  %we = tensor.empty() : tensor<2x3x3x8x4xf32>
  %wt = linalg.transpose ins(%w : tensor<2x4x8x3x3xf32>) outs(%we : tensor<2x3x3x8x4xf32>) permutation = [0, 3, 4, 2, 1]
  %e = tensor.empty() : tensor<1x4x4x2x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x4x2x4xf32>) -> tensor<1x4x4x2x4xf32>
  %c = linalg.generic {indexing_maps = [#image, #weights, #acc], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%p, %wt : tensor<1x6x6x8xf32>, tensor<2x3x3x8x4xf32>) outs(%f : tensor<1x4x4x2x4xf32>) attrs = {npu.op = "conv2d", npu.strides = array<i64: 1, 1>, npu.dilations = array<i64: 1, 1>} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x4x4x2x4xf32>
  %v = tensor.collapse_shape %c [[0], [1], [2], [3, 4]] : tensor<1x4x4x2x4xf32> into tensor<1x4x4x8xf32>
  %re = tensor.empty() : tensor<1x8x4x4xf32>
  %r = linalg.transpose ins(%v : tensor<1x4x4x8xf32>) outs(%re : tensor<1x8x4x4xf32>) permutation = [0, 3, 1, 2]
  return %r : tensor<1x8x4x4xf32>
}

// -----

#id = affine_map<(n, h, w, c) -> (n, h, w, c)>

// Three kernels read one transposed operand: a scratchpad makes three moves of it, a cache one copy.
// What else than a kernel reads is a copy, and so is what is returned in both orders.
// CHECK-LABEL: func.func @readers
// CHECK-NOT: call @copy
// CHECK: call @eltwise_0(%arg0)
// CHECK: call @eltwise_1(%arg0)
// CHECK: call @eltwise_2(%arg0)
// CHECK: func.func private @eltwise_0
// CHECK: linalg.transpose
// CACHE-LABEL: func.func @readers
// CACHE: call @copy_0
func.func @readers(%x: tensor<1x8x4x4xf32>) -> (tensor<1x4x4x8xf32>, tensor<1x4x4x8xf32>, tensor<1x4x4x8xf32>) {
  %e = tensor.empty() : tensor<1x4x4x8xf32>
  %t = linalg.transpose ins(%x : tensor<1x8x4x4xf32>) outs(%e : tensor<1x4x4x8xf32>) permutation = [0, 2, 3, 1]
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%t : tensor<1x4x4x8xf32>) outs(%e : tensor<1x4x4x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %0 = math.exp %i : f32
    linalg.yield %0 : f32
  } -> tensor<1x4x4x8xf32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%t : tensor<1x4x4x8xf32>) outs(%e : tensor<1x4x4x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %0 = math.log %i : f32
    linalg.yield %0 : f32
  } -> tensor<1x4x4x8xf32>
  %c = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%t : tensor<1x4x4x8xf32>) outs(%e : tensor<1x4x4x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %0 = math.sqrt %i : f32
    linalg.yield %0 : f32
  } -> tensor<1x4x4x8xf32>
  return %a, %b, %c : tensor<1x4x4x8xf32>, tensor<1x4x4x8xf32>, tensor<1x4x4x8xf32>
}

// -----

#id = affine_map<(n, h, w, c) -> (n, h, w, c)>

// Returned in both orders: the second is a copy. A transpose of what nothing computes is one too.
// CHECK-LABEL: func.func @both_orders
// CHECK: %[[E:.*]] = call @eltwise_0(%arg0)
// CHECK: call @copy_0
// CHECK: return %[[E]]
// CHECK: func.func private @eltwise_0
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @both_orders(%x: tensor<1x4x4x8xf32>) -> (tensor<1x4x4x8xf32>, tensor<1x8x4x4xf32>) {
  %e = tensor.empty() : tensor<1x4x4x8xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<1x4x4x8xf32>) outs(%e : tensor<1x4x4x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %0 = math.exp %i : f32
    linalg.yield %0 : f32
  } -> tensor<1x4x4x8xf32>
  %te = tensor.empty() : tensor<1x8x4x4xf32>
  %t = linalg.transpose ins(%a : tensor<1x4x4x8xf32>) outs(%te : tensor<1x8x4x4xf32>) permutation = [0, 3, 1, 2]
  return %a, %t : tensor<1x4x4x8xf32>, tensor<1x8x4x4xf32>
}

// -----

#image = affine_map<(m, no, ni, c) -> (m, c)>
#weights = affine_map<(m, no, ni, c) -> (no, c, ni)>
#acc = affine_map<(m, no, ni, c) -> (m, no, ni)>

// A MiB of weights, read by one tile: where sram is a cache, they are not copied.
// CHECK-LABEL: func.func @large_weights
// CHECK: call @copy_0
// CACHE-LABEL: func.func @large_weights
// CACHE-NOT: call @copy
// CACHE: call @matmul_0(%arg1, %arg0)
// CACHE: func.func private @matmul_0
// CACHE: linalg.transpose {{.*}} permutation = [0, 2, 1]
func.func @large_weights(%x: tensor<196x512xf32>, %w: tensor<32x16x512xf32>) -> tensor<196x32x16xf32> {
  %zero = arith.constant 0.0 : f32
  %we = tensor.empty() : tensor<32x512x16xf32>
  %wt = linalg.transpose ins(%w : tensor<32x16x512xf32>) outs(%we : tensor<32x512x16xf32>) permutation = [0, 2, 1]
  %e = tensor.empty() : tensor<196x32x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<196x32x16xf32>) -> tensor<196x32x16xf32>
  %c = linalg.generic {indexing_maps = [#image, #weights, #acc], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %wt : tensor<196x512xf32>, tensor<32x512x16xf32>) outs(%f : tensor<196x32x16xf32>) attrs = {npu.op = "matmul"} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s0 = arith.addf %o, %m : f32
    linalg.yield %s0 : f32
  } -> tensor<196x32x16xf32>
  return %c : tensor<196x32x16xf32>
}

// -----

#image = affine_map<(m, no, ni, c) -> (m, c)>
#weights = affine_map<(m, no, ni, c) -> (no, c, ni)>
#acc = affine_map<(m, no, ni, c) -> (m, no, ni)>

// Few positions use each weight: putting them in order in every call would take too long.
// CHECK-LABEL: func.func @few_positions
// CHECK: call @copy_0
// CACHE-LABEL: func.func @few_positions
// CACHE: call @copy_0
func.func @few_positions(%x: tensor<8x512xf32>, %w: tensor<32x16x512xf32>) -> tensor<8x32x16xf32> {
  %zero = arith.constant 0.0 : f32
  %we = tensor.empty() : tensor<32x512x16xf32>
  %wt = linalg.transpose ins(%w : tensor<32x16x512xf32>) outs(%we : tensor<32x512x16xf32>) permutation = [0, 2, 1]
  %e = tensor.empty() : tensor<8x32x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x32x16xf32>) -> tensor<8x32x16xf32>
  %c = linalg.generic {indexing_maps = [#image, #weights, #acc], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %wt : tensor<8x512xf32>, tensor<32x512x16xf32>) outs(%f : tensor<8x32x16xf32>) attrs = {npu.op = "matmul"} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s0 = arith.addf %o, %m : f32
    linalg.yield %s0 : f32
  } -> tensor<8x32x16xf32>
  return %c : tensor<8x32x16xf32>
}

// -----

#image = affine_map<(m, no, ni, c) -> (m, c)>
#weights = affine_map<(m, no, ni, c) -> (no, c, ni)>
#acc = affine_map<(m, no, ni, c) -> (m, no, ni)>

// Weights that are computed are in memory of ours anyway, in whatever order.
// CHECK-LABEL: func.func @computed_weights
// CHECK: call @eltwise_0
// CACHE-LABEL: func.func @computed_weights
// CACHE: call @matmul_0
// CACHE: func.func private @matmul_0
// CACHE-NOT: linalg.transpose
// CACHE: return
func.func @computed_weights(%x: tensor<196x512xf32>, %w: tensor<32x16x512xf32>) -> tensor<196x32x16xf32> {
  %zero = arith.constant 0.0 : f32
  %we = tensor.empty() : tensor<32x512x16xf32>
  %id = tensor.empty() : tensor<32x16x512xf32>
  %s = linalg.exp ins(%w : tensor<32x16x512xf32>) outs(%id : tensor<32x16x512xf32>) -> tensor<32x16x512xf32>
  %wt = linalg.transpose ins(%s : tensor<32x16x512xf32>) outs(%we : tensor<32x512x16xf32>) permutation = [0, 2, 1]
  %e = tensor.empty() : tensor<196x32x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<196x32x16xf32>) -> tensor<196x32x16xf32>
  %c = linalg.generic {indexing_maps = [#image, #weights, #acc], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %wt : tensor<196x512xf32>, tensor<32x512x16xf32>) outs(%f : tensor<196x32x16xf32>) attrs = {npu.op = "matmul"} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s0 = arith.addf %o, %m : f32
    linalg.yield %s0 : f32
  } -> tensor<196x32x16xf32>
  return %c : tensor<196x32x16xf32>
}
