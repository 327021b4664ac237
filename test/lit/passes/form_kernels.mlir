// RUN: npu-opt %s --target small --split-input-file --pass-pipeline='builtin.module(form-kernels)' | filecheck %s
// RUN: npu-opt %s --target small --split-input-file --pass-pipeline='builtin.module(form-kernels,form-kernels)' | filecheck %s

#image = affine_map<(n, y, x, ko, ki, r, s, c) -> (n, y + r, x + s, c)>
#weights = affine_map<(n, y, x, ko, ki, r, s, c) -> (ko, r, s, c, ki)>
#acc = affine_map<(n, y, x, ko, ki, r, s, c) -> (n, y, x, ko, ki)>
#id = affine_map<(n, y, x, ko, ki) -> (n, y, x, ko, ki)>

// Pad, start, convolution and epilogue are one kernel; the residual is an operand of it.
// CHECK-LABEL: func.func @whole_convolution
// CHECK-SAME: (%[[X:.*]]: tensor<1x4x4x8xf32>, %[[W:.*]]: tensor<2x3x3x8x4xf32>, %[[R:.*]]: tensor<1x4x4x2x4xf32>)
// CHECK-NEXT: %[[C:.*]] = call @conv2d_0(%[[X]], %[[W]], %[[R]])
// CHECK-NEXT: return %[[C]]
// CHECK: func.func private @conv2d_0(%[[A:.*]]: tensor<1x4x4x8xf32>, %[[B:.*]]: tensor<2x3x3x8x4xf32>, %[[D:.*]]: tensor<1x4x4x2x4xf32>) -> tensor<1x4x4x2x4xf32> attributes {npu.kernel = "conv2d"}
// CHECK: %[[P:.*]] = tensor.pad %[[A]] low[0, 1, 1, 0] high[0, 1, 1, 0]
// CHECK: %[[F:.*]] = linalg.fill
// CHECK: %[[G:.*]] = linalg.generic {{.*}} ins(%[[P]], %[[B]] {{.*}} outs(%[[F]]
// CHECK: %[[E:.*]] = linalg.generic {{.*}} ins(%[[G]], %[[D]]
// CHECK: return %[[E]]
func.func @whole_convolution(%x: tensor<1x4x4x8xf32>, %w: tensor<2x3x3x8x4xf32>, %r: tensor<1x4x4x2x4xf32>) -> tensor<1x4x4x2x4xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x4x4x8xf32> to tensor<1x6x6x8xf32>
  %e = tensor.empty() : tensor<1x4x4x2x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x4x2x4xf32>) -> tensor<1x4x4x2x4xf32>
  %c = linalg.generic {indexing_maps = [#image, #weights, #acc], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%p, %w : tensor<1x6x6x8xf32>, tensor<2x3x3x8x4xf32>) outs(%f : tensor<1x4x4x2x4xf32>) attrs = {npu.op = "conv2d", npu.strides = array<i64: 1, 1>, npu.dilations = array<i64: 1, 1>} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x4x4x2x4xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%c, %r : tensor<1x4x4x2x4xf32>, tensor<1x4x4x2x4xf32>) outs(%e : tensor<1x4x4x2x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<1x4x4x2x4xf32>
  return %y : tensor<1x4x4x2x4xf32>
}

// -----

#id = affine_map<(n, h, w, c) -> (n, h, w, c)>

// The maxima have two users: what follows them is a kernel of its own. A pad that both a window and a
// caller read is in the pooling kernel and a kernel of its own.
// CHECK-LABEL: func.func @two_users
// CHECK: %[[P:.*]] = call @copy_0(%arg0)
// CHECK: %[[M:.*]] = call @pool2d_0(%arg0)
// CHECK: %[[E:.*]] = call @eltwise_0(%[[M]])
// CHECK: return %[[M]], %[[E]], %[[P]]
// CHECK-DAG: func.func private @copy_0({{.*}}npu.kernel = "copy"
// CHECK-DAG: func.func private @pool2d_0({{.*}}npu.kernel = "pool2d"
// CHECK-DAG: func.func private @eltwise_0({{.*}}npu.kernel = "eltwise"
func.func @two_users(%x: tensor<1x4x4x8xf32>) -> (tensor<1x4x4x8xf32>, tensor<1x4x4x8xf32>, tensor<1x6x6x8xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %p = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %low : f32
  } : tensor<1x4x4x8xf32> to tensor<1x6x6x8xf32>
  %window = tensor.empty() : tensor<3x3xf32>
  %e = tensor.empty() : tensor<1x4x4x8xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
  %m = linalg.pooling_nhwc_max {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%p, %window : tensor<1x6x6x8xf32>, tensor<3x3xf32>) outs(%f : tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%m : tensor<1x4x4x8xf32>) outs(%e : tensor<1x4x4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<1x4x4x8xf32>
  return %m, %r, %p : tensor<1x4x4x8xf32>, tensor<1x4x4x8xf32>, tensor<1x6x6x8xf32>
}

// -----

// Parts are written into one tensor; a slice and a transpose of the fewest dimensions are copies too.
// CHECK-LABEL: func.func @moves
// CHECK: call @copy_
// CHECK: call @copy_
// CHECK: %[[V:.*]] = tensor.collapse_shape %arg0 {{\[\[}}0, 1], [2]] : tensor<3x4x8xf32> into tensor<12x8xf32>
// CHECK: call @copy_{{[0-9]+}}(%[[V]]) : (tensor<12x8xf32>) -> tensor<8x12xf32>
// CHECK-DAG: tensor.insert_slice %{{.*}}[0, 2, 0] [3, 4, 8] [1, 1, 1]
// CHECK-DAG: tensor.extract_slice
// CHECK-DAG: linalg.transpose {{.*}} permutation = [1, 0]
// CHECK-NOT: tensor.concat
func.func @moves(%x: tensor<3x4x8xf32>, %y: tensor<3x2x8xf32>) -> (tensor<3x6x8xf32>, tensor<3x1x8xf32>, tensor<8x3x4xf32>) {
  %c = tensor.concat dim(1) %y, %x : (tensor<3x2x8xf32>, tensor<3x4x8xf32>) -> tensor<3x6x8xf32>
  %s = tensor.extract_slice %x[0, 1, 0] [3, 1, 8] [1, 1, 1] : tensor<3x4x8xf32> to tensor<3x1x8xf32>
  %e = tensor.empty() : tensor<8x3x4xf32>
  %t = linalg.transpose ins(%x : tensor<3x4x8xf32>) outs(%e : tensor<8x3x4xf32>) permutation = [2, 0, 1]
  return %c, %s, %t : tensor<3x6x8xf32>, tensor<3x1x8xf32>, tensor<8x3x4xf32>
}

// -----

// What is cut for a concatenation alone is cut by the copy of its part; what others use is not.
// CHECK-LABEL: func.func @parts_cut
// CHECK: %[[OWN:.*]] = call @copy_0(%arg1)
// CHECK: call @copy_1(%arg0, %[[OWN]])
// CHECK: func.func private @copy_1(%[[A:.*]]: tensor<3x4x8xf32>, %[[B:.*]]: tensor<3x2x8xf32>)
// CHECK: %[[CUT:.*]] = tensor.extract_slice %[[A]][0, 0, 0] [3, 3, 8]
// CHECK: tensor.insert_slice %[[CUT]] into
// CHECK: tensor.insert_slice %[[B]] into
func.func @parts_cut(%x: tensor<3x4x8xf32>, %y: tensor<3x4x8xf32>) -> (tensor<3x5x8xf32>, tensor<3x2x8xf32>) {
  %a = tensor.extract_slice %x[0, 0, 0] [3, 3, 8] [1, 1, 1] : tensor<3x4x8xf32> to tensor<3x3x8xf32>
  %b = tensor.extract_slice %y[0, 1, 0] [3, 2, 8] [1, 1, 1] : tensor<3x4x8xf32> to tensor<3x2x8xf32>
  %c = tensor.concat dim(1) %a, %b : (tensor<3x3x8xf32>, tensor<3x2x8xf32>) -> tensor<3x5x8xf32>
  return %c, %b : tensor<3x5x8xf32>, tensor<3x2x8xf32>
}

// -----

// A named operation that no kernel knows becomes a reduction; it does not write over its argument.
// CHECK-LABEL: func.func @unknown_name
// CHECK: call @reduce_0(%arg0, %arg1, %arg2)
// CHECK: func.func private @reduce_0(%[[A:.*]]: tensor<2x3x4xf32>, %[[B:.*]]: tensor<2x4x5xf32>, %[[I:.*]]: tensor<2x3x5xf32>)
// CHECK: %[[E:.*]] = tensor.empty() : tensor<2x3x5xf32>
// CHECK: %[[S:.*]] = linalg.copy {{.*}}ins(%[[I]] {{.*}} outs(%[[E]]
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%[[A]], %[[B]] {{.*}} outs(%[[S]]
func.func @unknown_name(%x: tensor<2x3x4xf32>, %y: tensor<2x4x5xf32>, %i: tensor<2x3x5xf32>) -> tensor<2x3x5xf32> {
  %r = linalg.batch_matmul ins(%x, %y : tensor<2x3x4xf32>, tensor<2x4x5xf32>) outs(%i : tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  return %r : tensor<2x3x5xf32>
}

// -----

// A tensor full of one value that is returned is computed by a kernel without arguments.
// CHECK-LABEL: func.func @only_a_fill
// CHECK: %[[F:.*]] = call @eltwise_0()
// CHECK: return %[[F]], %arg0, %cst
func.func @only_a_fill(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<2xf32>) {
  %two = arith.constant 2.0 : f32
  %dense = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%two : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %f, %x, %dense : tensor<4xf32>, tensor<4xf32>, tensor<2xf32>
}

// -----

// Reshapes are free and need no kernel.
// CHECK-LABEL: func.func @reshape_only
// CHECK-NEXT: tensor.collapse_shape
// CHECK-NEXT: return
// CHECK-NOT: func.func
func.func @reshape_only(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  %r = tensor.collapse_shape %x [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>
  return %r : tensor<6xf32>
}
