// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(convert-layout)' | filecheck %s
// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(convert-layout,convert-layout)' | filecheck %s

// Convolution, pad, bias and relu: one transpose of the input, one of the weights, one of the result.
// CHECK-LABEL: func.func @convolution
// CHECK-SAME: (%[[X:.*]]: tensor<2x8x6x6xf32>, %[[W:.*]]: tensor<16x8x3x3xf32>, %[[B:.*]]: tensor<16xf32>)
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[X]] {{.*}} permutation = [0, 2, 3, 1]
// CHECK: %[[P:.*]] = tensor.pad %[[T]] low[0, 1, 1, 0] high[0, 1, 1, 0]
// CHECK: tensor<2x6x6x8xf32> to tensor<2x8x8x8xf32>
// CHECK: %[[V:.*]] = linalg.transpose ins(%[[W]] {{.*}} permutation = [2, 3, 1, 0]
// CHECK: %[[F:.*]] = linalg.fill {{.*}} -> tensor<2x6x6x16xf32>
// CHECK: %[[C:.*]] = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%[[P]], %[[V]] {{.*}} outs(%[[F]]
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[C]], %[[B]] : tensor<2x6x6x16xf32>, tensor<16xf32>)
// CHECK: %[[Y:.*]] = linalg.transpose ins(%[[R]] {{.*}} permutation = [0, 3, 1, 2]
// CHECK-NOT: linalg.transpose
// CHECK: return %[[Y]]
func.func @convolution(%x: tensor<2x8x6x6xf32>, %w: tensor<16x8x3x3xf32>, %b: tensor<16xf32>) -> tensor<2x16x6x6xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<2x8x6x6xf32> to tensor<2x8x8x8xf32>
  %e = tensor.empty() : tensor<2x16x6x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x16x6x6xf32>) -> tensor<2x16x6x6xf32>
  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%p, %w : tensor<2x8x8x8xf32>, tensor<16x8x3x3xf32>) outs(%f : tensor<2x16x6x6xf32>) -> tensor<2x16x6x6xf32>
  %b4 = tensor.expand_shape %b [[0, 1, 2, 3]] output_shape [1, 16, 1, 1] : tensor<16xf32> into tensor<1x16x1x1xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (0, c, 0, 0)>, affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%c, %b4 : tensor<2x16x6x6xf32>, tensor<1x16x1x1xf32>) outs(%e : tensor<2x16x6x6xf32>) {
  ^bb0(%a: f32, %d: f32, %o: f32):
    %s = arith.addf %a, %d : f32
    %m = arith.maximumf %s, %zero : f32
    linalg.yield %m : f32
  } -> tensor<2x16x6x6xf32>
  return %r : tensor<2x16x6x6xf32>
}

// -----

// Caller's memory is channels last already: nothing is left of the transposes.
// CHECK-LABEL: func.func @transposes_cancel
// CHECK-NOT: linalg.transpose
// CHECK: %[[M:.*]] = linalg.pooling_nhwc_max {{.*}} ins(%arg0, %{{.*}} : tensor<2x6x8x4xf32>, tensor<2x2xf32>)
// CHECK-NEXT: return %[[M]] : tensor<2x3x4x4xf32>
func.func @transposes_cancel(%x: tensor<2x6x8x4xf32>) -> tensor<2x3x4x4xf32> {
  %lowest = arith.constant 0xFF800000 : f32
  %e0 = tensor.empty() : tensor<2x4x6x8xf32>
  %t = linalg.transpose ins(%x : tensor<2x6x8x4xf32>) outs(%e0 : tensor<2x4x6x8xf32>) permutation = [0, 3, 1, 2]
  %window = tensor.empty() : tensor<2x2xf32>
  %e1 = tensor.empty() : tensor<2x4x3x4xf32>
  %f = linalg.fill ins(%lowest : f32) outs(%e1 : tensor<2x4x3x4xf32>) -> tensor<2x4x3x4xf32>
  %m = linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}
      ins(%t, %window : tensor<2x4x6x8xf32>, tensor<2x2xf32>) outs(%f : tensor<2x4x3x4xf32>) -> tensor<2x4x3x4xf32>
  %e2 = tensor.empty() : tensor<2x3x4x4xf32>
  %r = linalg.transpose ins(%m : tensor<2x4x3x4xf32>) outs(%e2 : tensor<2x3x4x4xf32>) permutation = [0, 2, 3, 1]
  return %r : tensor<2x3x4x4xf32>
}

// -----

// A sum over space reads the channels-last image; a 1x1 image changes layout by a reshape.
// CHECK-LABEL: func.func @pooled_then_flat
// CHECK: %[[F:.*]] = linalg.fill {{.*}} -> tensor<2x4xf32>
// CHECK: %[[S:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "reduction", "reduction", "parallel"]} ins(%arg0 : tensor<2x3x5x4xf32>) outs(%[[F]] : tensor<2x4xf32>)
// CHECK-NOT: linalg.transpose
// CHECK: return %[[S]] : tensor<2x4xf32>
func.func @pooled_then_flat(%x: tensor<2x3x5x4xf32>) -> tensor<2x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<2x4x3x5xf32>
  %t = linalg.transpose ins(%x : tensor<2x3x5x4xf32>) outs(%e0 : tensor<2x4x3x5xf32>) permutation = [0, 3, 1, 2]
  %e1 = tensor.empty() : tensor<2x4x1x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<2x4x1x1xf32>) -> tensor<2x4x1x1xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, 0, 0)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%t : tensor<2x4x3x5xf32>) outs(%f : tensor<2x4x1x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %add = arith.addf %o, %a : f32
    linalg.yield %add : f32
  } -> tensor<2x4x1x1xf32>
  %r = tensor.collapse_shape %s [[0], [1, 2, 3]] : tensor<2x4x1x1xf32> into tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// Flattening an image of several pixels counts them channel by channel: the transpose stays.
// CHECK-LABEL: func.func @flatten_needs_order
// CHECK: %[[T:.*]] = linalg.transpose ins(%arg0 {{.*}} permutation = [0, 3, 1, 2]
// CHECK: tensor.collapse_shape %[[T]] {{\[\[}}0], [1, 2, 3]]
func.func @flatten_needs_order(%x: tensor<2x3x5x4xf32>) -> tensor<2x60xf32> {
  %e = tensor.empty() : tensor<2x4x3x5xf32>
  %t = linalg.transpose ins(%x : tensor<2x3x5x4xf32>) outs(%e : tensor<2x4x3x5xf32>) permutation = [0, 3, 1, 2]
  %r = tensor.collapse_shape %t [[0], [1, 2, 3]] : tensor<2x4x3x5xf32> into tensor<2x60xf32>
  return %r : tensor<2x60xf32>
}

// -----

// Groups are split off the last dimension; slices and concatenations of channels move there too.
// CHECK-LABEL: func.func @channels_in_parts
// CHECK: %[[G:.*]] = tensor.expand_shape %arg0 {{\[\[}}0], [1], [2], [3, 4]] output_shape [1, 5, 5, 2, 3]
// CHECK: %[[C:.*]] = linalg.conv_2d_nhwgc_gfhwc {{.*}} ins(%[[G]], %{{.*}} : tensor<1x5x5x2x3xf32>, tensor<2x4x1x1x3xf32>)
// CHECK: %[[V:.*]] = tensor.collapse_shape %[[C]] {{\[\[}}0], [1], [2], [3, 4]]
// CHECK: %[[S:.*]] = tensor.extract_slice %[[V]][0, 0, 0, 2] [1, 5, 5, 3] [1, 1, 1, 1]
// CHECK: %[[K:.*]] = tensor.concat dim(3) %[[S]], %[[V]]
// CHECK: linalg.transpose ins(%[[K]] {{.*}} permutation = [0, 3, 1, 2]
func.func @channels_in_parts(%x: tensor<1x5x5x6xf32>, %w: tensor<2x4x3x1x1xf32>) -> tensor<1x11x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<1x6x5x5xf32>
  %t = linalg.transpose ins(%x : tensor<1x5x5x6xf32>) outs(%e0 : tensor<1x6x5x5xf32>) permutation = [0, 3, 1, 2]
  %g = tensor.expand_shape %t [[0], [1, 2], [3], [4]] output_shape [1, 2, 3, 5, 5] : tensor<1x6x5x5xf32> into tensor<1x2x3x5x5xf32>
  %e1 = tensor.empty() : tensor<1x2x4x5x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1x2x4x5x5xf32>) -> tensor<1x2x4x5x5xf32>
  %c = linalg.conv_2d_ngchw_gfchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%g, %w : tensor<1x2x3x5x5xf32>, tensor<2x4x3x1x1xf32>) outs(%f : tensor<1x2x4x5x5xf32>) -> tensor<1x2x4x5x5xf32>
  %v = tensor.collapse_shape %c [[0], [1, 2], [3], [4]] : tensor<1x2x4x5x5xf32> into tensor<1x8x5x5xf32>
  %s = tensor.extract_slice %v[0, 2, 0, 0] [1, 3, 5, 5] [1, 1, 1, 1] : tensor<1x8x5x5xf32> to tensor<1x3x5x5xf32>
  %r = tensor.concat dim(1) %s, %v : (tensor<1x3x5x5xf32>, tensor<1x8x5x5xf32>) -> tensor<1x11x5x5xf32>
  return %r : tensor<1x11x5x5xf32>
}

// -----

// What a convolution started from is added to it.
// CHECK-LABEL: func.func @start_is_a_tensor
// CHECK: %[[F:.*]] = linalg.fill
// CHECK: %[[C:.*]] = linalg.depthwise_conv_2d_nhwc_hwc {{.*}} outs(%[[F]]
// CHECK: %[[I:.*]] = linalg.transpose ins(%arg2 {{.*}} permutation = [0, 2, 3, 1]
// CHECK: linalg.generic {{.*}} ins(%[[C]], %[[I]]
// CHECK: arith.addf
func.func @start_is_a_tensor(%x: tensor<1x4x5x5xf32>, %w: tensor<4x3x3xf32>, %start: tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32> {
  %c = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%x, %w : tensor<1x4x5x5xf32>, tensor<4x3x3xf32>) outs(%start : tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  return %c : tensor<1x4x3x3xf32>
}

// -----

// Without images there is nothing to do; a transpose that nothing meets stays.
// CHECK-LABEL: func.func @matrices
// CHECK: %[[T:.*]] = linalg.transpose ins(%arg1 {{.*}} permutation = [1, 0]
// CHECK: linalg.matmul ins(%arg0, %[[T]]
func.func @matrices(%x: tensor<4x6xf32>, %w: tensor<5x6xf32>, %init: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %e = tensor.empty() : tensor<6x5xf32>
  %t = linalg.transpose ins(%w : tensor<5x6xf32>) outs(%e : tensor<6x5xf32>) permutation = [1, 0]
  %r = linalg.matmul ins(%x, %t : tensor<4x6xf32>, tensor<6x5xf32>) outs(%init : tensor<4x5xf32>) -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}

// -----

// A body that asks where it is keeps its loops, and gets the image in the order it knows.
// CHECK-LABEL: func.func @asks_for_indices
// CHECK: %[[T:.*]] = linalg.transpose ins(%arg0 {{.*}} permutation = [0, 3, 1, 2]
// CHECK: linalg.generic {{.*}} ins(%[[T]] : tensor<1x4x3x5xf32>)
// CHECK: linalg.index 1
func.func @asks_for_indices(%x: tensor<1x3x5x4xf32>) -> tensor<1x4x3x5xf32> {
  %e = tensor.empty() : tensor<1x4x3x5xf32>
  %t = linalg.transpose ins(%x : tensor<1x3x5x4xf32>) outs(%e : tensor<1x4x3x5xf32>) permutation = [0, 3, 1, 2]
  %r = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%t : tensor<1x4x3x5xf32>) outs(%e : tensor<1x4x3x5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i32
    %k = arith.sitofp %j : i32 to f32
    %s = arith.addf %a, %k : f32
    linalg.yield %s : f32
  } -> tensor<1x4x3x5xf32>
  return %r : tensor<1x4x3x5xf32>
}
