// RUN: %npu-opt %s --target=%inputs/avx2.toml --pass-pipeline='builtin.module(convert-conv-to-winograd)' | filecheck %s
// RUN: %npu-opt %s --target=%inputs/avx2.toml --pass-pipeline='builtin.module(convert-conv-to-winograd,convert-conv-to-winograd)' | filecheck %s
// RUN: %npu-opt %s --target=%inputs/avx2.toml --pass-pipeline='builtin.module(convert-conv-to-winograd{enabled=false})' | filecheck %s --check-prefix=PLAIN
// RUN: %npu-opt %s --target=edge --pass-pipeline='builtin.module(convert-conv-to-winograd)' | filecheck %s --check-prefix=PLAIN

// CHECK-DAG: #[[IMAGE:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7, d8, d9, d10, d11) -> (d0, d1 * 4 + d9, d3 * 4 + d10, d11)>
// CHECK-DAG: #[[WEIGHTS:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7, d8, d9, d10, d11) -> (d7, d8, d5, d11, d6)>

// The weights are transformed by themselves; an output of 56 x 56 is 14 x 14 windows of 4 x 4.
// CHECK-LABEL: func.func @windows_of_4
// CHECK: %[[G:.*]] = arith.constant dense<{{.*}}> : tensor<6x3xf32>
// CHECK: %[[ROWS:.*]] = linalg.generic {{.*}} ins(%[[G]], %arg1 : tensor<6x3xf32>, tensor<3x3x64x64xf32>) outs({{.*}} : tensor<6x3x64x64xf32>)
// CHECK: %[[ALL:.*]] = linalg.generic {{.*}} ins(%[[G]], %[[ROWS]] : tensor<6x3xf32>, tensor<6x3x64x64xf32>) outs({{.*}} : tensor<6x6x64x64xf32>)
// CHECK: %[[PACKED:.*]] = linalg.transpose {{.*}} outs({{.*}} : tensor<{{.*}}>) permutation
// CHECK: %[[B:.*]] = arith.constant dense<{{.*}}> : tensor<6x6xf32>
// CHECK: %[[A:.*]] = arith.constant dense<{{.*}}> : tensor<4x6xf32>
// CHECK: linalg.generic {indexing_maps = [#[[IMAGE]], #[[WEIGHTS]], {{.*}}]{{.*}}} ins(%arg0, %{{.*}}, %[[B]], %[[B]], %[[A]], %[[A]] : {{.*}}) outs({{.*}} : tensor<1x14x4x14x4x8x8xf32>) attrs = {npu.op = "winograd_conv2d", npu.outputs = 4 : i64}
// CHECK: tensor.collapse_shape {{.*}} : tensor<1x14x4x14x4x8x8xf32> into tensor<1x56x56x64xf32>
// CHECK-NOT: linalg.conv_2d
// PLAIN-LABEL: func.func @windows_of_4
// PLAIN: linalg.conv_2d_nhwc_hwcf
func.func @windows_of_4(%x: tensor<1x58x58x64xf32>, %w: tensor<3x3x64x64xf32> {npu.role = "parameter"}) -> tensor<1x56x56x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x56x56x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32>
  %r = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x58x58x64xf32>, tensor<3x3x64x64xf32>) outs(%f : tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32>
  return %r : tensor<1x56x56x64xf32>
}

// 4 does not divide 10, and the weights are large.
// CHECK-LABEL: func.func @windows_of_2
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<1x5x2x5x2x64x8xf32>) attrs = {npu.op = "winograd_conv2d", npu.outputs = 2 : i64}
func.func @windows_of_2(%x: tensor<1x12x12x512xf32>, %w: tensor<3x3x512x512xf32> {npu.role = "parameter"}) -> tensor<1x10x10x512xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x10x10x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x10x10x512xf32>) -> tensor<1x10x10x512xf32>
  %r = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x12x12x512xf32>, tensor<3x3x512x512xf32>) outs(%f : tensor<1x10x10x512xf32>) -> tensor<1x10x10x512xf32>
  return %r : tensor<1x10x10x512xf32>
}

// The last windows reach beyond an output of 55 x 55: one pad for both, and a slice of the result.
// CHECK-LABEL: func.func @odd
// CHECK: %[[WIDE:.*]] = tensor.pad %arg0 low[0, 1, 1, 0] high[0, 2, 2, 0]
// CHECK: linalg.generic {{.*}} ins(%[[WIDE]], {{.*}}) outs({{.*}} : tensor<1x14x4x14x4x8x8xf32>) attrs = {npu.op = "winograd_conv2d", npu.outputs = 4 : i64}
// CHECK: %[[ALL:.*]] = tensor.collapse_shape {{.*}} into tensor<1x56x56x64xf32>
// CHECK: tensor.extract_slice %[[ALL]][0, 0, 0, 0] [1, 55, 55, 64] [1, 1, 1, 1]
func.func @odd(%x: tensor<1x55x55x64xf32>, %w: tensor<3x3x64x64xf32> {npu.role = "parameter"}) -> tensor<1x55x55x64xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<1x55x55x64xf32> to tensor<1x57x57x64xf32>
  %e = tensor.empty() : tensor<1x55x55x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x55x55x64xf32>) -> tensor<1x55x55x64xf32>
  %r = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%p, %w : tensor<1x57x57x64xf32>, tensor<3x3x64x64xf32>) outs(%f : tensor<1x55x55x64xf32>) -> tensor<1x55x55x64xf32>
  return %r : tensor<1x55x55x64xf32>
}

// What follows an output of 55 x 55 works on all of the windows, and the excess is cut off last.
// CHECK-LABEL: func.func @odd_with_epilogue
// CHECK: %[[ALL:.*]] = tensor.collapse_shape {{.*}} into tensor<1x56x56x64xf32>
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[ALL]], %arg2 : tensor<1x56x56x64xf32>, tensor<64xf32>) outs({{.*}} : tensor<1x56x56x64xf32>)
// CHECK: tensor.extract_slice %[[SUM]][0, 0, 0, 0] [1, 55, 55, 64] [1, 1, 1, 1]
func.func @odd_with_epilogue(%x: tensor<1x57x57x64xf32>, %w: tensor<3x3x64x64xf32> {npu.role = "parameter"}, %b: tensor<64xf32>) -> tensor<1x55x55x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x55x55x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x55x55x64xf32>) -> tensor<1x55x55x64xf32>
  %r = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x57x57x64xf32>, tensor<3x3x64x64xf32>) outs(%f : tensor<1x55x55x64xf32>) -> tensor<1x55x55x64xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(n, y, x, c) -> (n, y, x, c)>, affine_map<(n, y, x, c) -> (c)>, affine_map<(n, y, x, c) -> (n, y, x, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%r, %b : tensor<1x55x55x64xf32>, tensor<64xf32>) outs(%e : tensor<1x55x55x64xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %sum = arith.addf %a, %c : f32
    linalg.yield %sum : f32
  } -> tensor<1x55x55x64xf32>
  return %s : tensor<1x55x55x64xf32>
}

// Something of 55 x 55 that is added keeps the cut where it was, and so does a second user.
// CHECK-LABEL: func.func @odd_with_sum
// CHECK: %[[CUT:.*]] = tensor.extract_slice {{.*}}[0, 0, 0, 0] [1, 55, 55, 64] [1, 1, 1, 1]
// CHECK: linalg.generic {{.*}} ins(%[[CUT]], %arg2 : tensor<1x55x55x64xf32>, tensor<1x55x55x64xf32>)
func.func @odd_with_sum(%x: tensor<1x57x57x64xf32>, %w: tensor<3x3x64x64xf32> {npu.role = "parameter"}, %b: tensor<1x55x55x64xf32>) -> tensor<1x55x55x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x55x55x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x55x55x64xf32>) -> tensor<1x55x55x64xf32>
  %r = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x57x57x64xf32>, tensor<3x3x64x64xf32>) outs(%f : tensor<1x55x55x64xf32>) -> tensor<1x55x55x64xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(n, y, x, c) -> (n, y, x, c)>, affine_map<(n, y, x, c) -> (n, y, x, c)>, affine_map<(n, y, x, c) -> (n, y, x, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%r, %b : tensor<1x55x55x64xf32>, tensor<1x55x55x64xf32>) outs(%e : tensor<1x55x55x64xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %sum = arith.addf %a, %c : f32
    linalg.yield %sum : f32
  } -> tensor<1x55x55x64xf32>
  return %s : tensor<1x55x55x64xf32>
}

// CHECK-LABEL: func.func @odd_used_twice
// CHECK: %[[CUT:.*]] = tensor.extract_slice {{.*}}[0, 0, 0, 0] [1, 55, 55, 64] [1, 1, 1, 1]
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[CUT]], %arg2 : tensor<1x55x55x64xf32>, tensor<64xf32>)
// CHECK: return %[[CUT]], %[[SUM]]
func.func @odd_used_twice(%x: tensor<1x57x57x64xf32>, %w: tensor<3x3x64x64xf32> {npu.role = "parameter"}, %b: tensor<64xf32>) -> (tensor<1x55x55x64xf32>, tensor<1x55x55x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x55x55x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x55x55x64xf32>) -> tensor<1x55x55x64xf32>
  %r = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x57x57x64xf32>, tensor<3x3x64x64xf32>) outs(%f : tensor<1x55x55x64xf32>) -> tensor<1x55x55x64xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(n, y, x, c) -> (n, y, x, c)>, affine_map<(n, y, x, c) -> (c)>, affine_map<(n, y, x, c) -> (n, y, x, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%r, %b : tensor<1x55x55x64xf32>, tensor<64xf32>) outs(%e : tensor<1x55x55x64xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %sum = arith.addf %a, %c : f32
    linalg.yield %sum : f32
  } -> tensor<1x55x55x64xf32>
  return %r, %s : tensor<1x55x55x64xf32>, tensor<1x55x55x64xf32>
}

// Strides, and weights that each call may change, stay plain.
// CHECK-LABEL: func.func @strided
// CHECK: linalg.conv_2d_nhwc_hwcf
func.func @strided(%x: tensor<1x57x57x64xf32>, %w: tensor<3x3x64x64xf32> {npu.role = "parameter"}) -> tensor<1x28x28x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x28x28x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x28x28x64xf32>) -> tensor<1x28x28x64xf32>
  %r = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%x, %w : tensor<1x57x57x64xf32>, tensor<3x3x64x64xf32>) outs(%f : tensor<1x28x28x64xf32>) -> tensor<1x28x28x64xf32>
  return %r : tensor<1x28x28x64xf32>
}

// CHECK-LABEL: func.func @changing_weights
// CHECK: linalg.conv_2d_nhwc_hwcf
func.func @changing_weights(%x: tensor<1x58x58x64xf32>, %w: tensor<3x3x64x64xf32> {npu.role = "input"}) -> tensor<1x56x56x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x56x56x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32>
  %r = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x58x58x64xf32>, tensor<3x3x64x64xf32>) outs(%f : tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32>
  return %r : tensor<1x56x56x64xf32>
}
