// RUN: %npu-opt %s --target=%inputs/avx2.toml --pass-pipeline='builtin.module(convert-conv-to-matmul)' | filecheck %s
// RUN: %npu-opt %s --target=%inputs/avx2.toml --pass-pipeline='builtin.module(convert-conv-to-matmul,convert-conv-to-matmul)' | filecheck %s
// RUN: %npu-opt %s --target=edge --pass-pipeline='builtin.module(convert-conv-to-matmul)' | filecheck %s --check-prefix=LAST

// CHECK-DAG: #[[WEIGHTS:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d1, d4)>
// CHECK-DAG: #[[IMAGE:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2, d3)>
// CHECK-DAG: #[[RESULT:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
// CHECK-DAG: #[[ALL:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
// CHECK-DAG: #[[CHANNELS:.*]] = affine_map<(d0, d1, d2, d3) -> (d1)>

// Shift, residual and activation take on the order of the tensors.
// CHECK-LABEL: func.func @layer
// CHECK-NOT: linalg.transpose
// CHECK: %[[W:.*]] = tensor.collapse_shape %arg1 {{.*}} : tensor<32x8x1x1xf32> into tensor<32x8xf32>
// CHECK: %[[SUM:.*]] = linalg.generic {indexing_maps = [#[[WEIGHTS]], #[[IMAGE]], #[[RESULT]]], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%[[W]], %arg0 : tensor<32x8xf32>, tensor<2x8x6x6xf32>) outs({{.*}} : tensor<2x32x6x6xf32>) attrs = {npu.op = "pointwise_conv2d"}
// CHECK: %[[R:.*]] = linalg.generic {indexing_maps = [#[[ALL]], #[[CHANNELS]], #[[ALL]], #[[ALL]]]{{.*}}} ins(%[[SUM]], %arg2, %arg3 : {{.*}})
// CHECK-NOT: linalg.transpose
// CHECK: return %[[R]]
// LAST-LABEL: func.func @layer
// LAST: linalg.conv_2d_nhwc_hwcf
func.func @layer(%x: tensor<2x8x6x6xf32> {npu.role = "input"}, %w: tensor<32x8x1x1xf32> {npu.role = "parameter"}, %shift: tensor<32xf32> {npu.role = "parameter"}, %other: tensor<2x32x6x6xf32> {npu.role = "input"}) -> tensor<2x32x6x6xf32> {
  %zero = arith.constant 0.0 : f32
  %xe = tensor.empty() : tensor<2x6x6x8xf32>
  %xt = linalg.transpose ins(%x : tensor<2x8x6x6xf32>) outs(%xe : tensor<2x6x6x8xf32>) permutation = [0, 2, 3, 1]
  %we = tensor.empty() : tensor<1x1x8x32xf32>
  %wt = linalg.transpose ins(%w : tensor<32x8x1x1xf32>) outs(%we : tensor<1x1x8x32xf32>) permutation = [2, 3, 1, 0]
  %e = tensor.empty() : tensor<2x6x6x32xf32>
  %ot = linalg.transpose ins(%other : tensor<2x32x6x6xf32>) outs(%e : tensor<2x6x6x32xf32>) permutation = [0, 2, 3, 1]
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x6x6x32xf32>) -> tensor<2x6x6x32xf32>
  %c = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%xt, %wt : tensor<2x6x6x8xf32>, tensor<1x1x8x32xf32>) outs(%f : tensor<2x6x6x32xf32>) -> tensor<2x6x6x32xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, y, x, k) -> (n, y, x, k)>, affine_map<(n, y, x, k) -> (k)>, affine_map<(n, y, x, k) -> (n, y, x, k)>, affine_map<(n, y, x, k) -> (n, y, x, k)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%c, %shift, %ot : tensor<2x6x6x32xf32>, tensor<32xf32>, tensor<2x6x6x32xf32>) outs(%e : tensor<2x6x6x32xf32>) {
  ^bb0(%a: f32, %s: f32, %o: f32, %old: f32):
    %1 = arith.addf %a, %s : f32
    %2 = arith.addf %1, %o : f32
    %3 = arith.maximumf %2, %zero : f32
    linalg.yield %3 : f32
  } -> tensor<2x6x6x32xf32>
  %be = tensor.empty() : tensor<2x32x6x6xf32>
  %b = linalg.transpose ins(%r : tensor<2x6x6x32xf32>) outs(%be : tensor<2x32x6x6xf32>) permutation = [0, 3, 1, 2]
  return %b : tensor<2x32x6x6xf32>
}

// Without an epilogue.
// CHECK-LABEL: func.func @bare
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} attrs = {npu.op = "pointwise_conv2d"}
// CHECK: return %[[SUM]]
func.func @bare(%x: tensor<1x8x6x6xf32> {npu.role = "input"}, %w: tensor<1x1x8x32xf32> {npu.role = "parameter"}) -> tensor<1x32x6x6xf32> {
  %zero = arith.constant 0.0 : f32
  %xe = tensor.empty() : tensor<1x6x6x8xf32>
  %xt = linalg.transpose ins(%x : tensor<1x8x6x6xf32>) outs(%xe : tensor<1x6x6x8xf32>) permutation = [0, 2, 3, 1]
  %e = tensor.empty() : tensor<1x6x6x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x6x6x32xf32>) -> tensor<1x6x6x32xf32>
  %c = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%xt, %w : tensor<1x6x6x8xf32>, tensor<1x1x8x32xf32>) outs(%f : tensor<1x6x6x32xf32>) -> tensor<1x6x6x32xf32>
  %be = tensor.empty() : tensor<1x32x6x6xf32>
  %b = linalg.transpose ins(%c : tensor<1x6x6x32xf32>) outs(%be : tensor<1x32x6x6xf32>) permutation = [0, 3, 1, 2]
  return %b : tensor<1x32x6x6xf32>
}

// One end has channels last.
// CHECK-LABEL: func.func @image_with_channels_last
// CHECK: linalg.conv_2d_nhwc_hwcf
func.func @image_with_channels_last(%x: tensor<1x6x6x8xf32> {npu.role = "input"}, %w: tensor<1x1x8x32xf32> {npu.role = "parameter"}) -> tensor<1x32x6x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x6x6x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x6x6x32xf32>) -> tensor<1x6x6x32xf32>
  %c = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x6x6x8xf32>, tensor<1x1x8x32xf32>) outs(%f : tensor<1x6x6x32xf32>) -> tensor<1x6x6x32xf32>
  %be = tensor.empty() : tensor<1x32x6x6xf32>
  %b = linalg.transpose ins(%c : tensor<1x6x6x32xf32>) outs(%be : tensor<1x32x6x6xf32>) permutation = [0, 3, 1, 2]
  return %b : tensor<1x32x6x6xf32>
}

// So has the other one.
// CHECK-LABEL: func.func @result_with_channels_last
// CHECK: linalg.conv_2d_nhwc_hwcf
func.func @result_with_channels_last(%x: tensor<1x8x6x6xf32> {npu.role = "input"}, %w: tensor<1x1x8x32xf32> {npu.role = "parameter"}) -> tensor<1x6x6x32xf32> {
  %zero = arith.constant 0.0 : f32
  %xe = tensor.empty() : tensor<1x6x6x8xf32>
  %xt = linalg.transpose ins(%x : tensor<1x8x6x6xf32>) outs(%xe : tensor<1x6x6x8xf32>) permutation = [0, 2, 3, 1]
  %e = tensor.empty() : tensor<1x6x6x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x6x6x32xf32>) -> tensor<1x6x6x32xf32>
  %c = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%xt, %w : tensor<1x6x6x8xf32>, tensor<1x1x8x32xf32>) outs(%f : tensor<1x6x6x32xf32>) -> tensor<1x6x6x32xf32>
  return %c : tensor<1x6x6x32xf32>
}

// Something else reads the result with channels last.
// CHECK-LABEL: func.func @result_in_both_orders
// CHECK: linalg.conv_2d_nhwc_hwcf
func.func @result_in_both_orders(%x: tensor<1x8x6x6xf32> {npu.role = "input"}, %w: tensor<1x1x8x32xf32> {npu.role = "parameter"}) -> (tensor<1x32x6x6xf32>, tensor<1x6x6x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %xe = tensor.empty() : tensor<1x6x6x8xf32>
  %xt = linalg.transpose ins(%x : tensor<1x8x6x6xf32>) outs(%xe : tensor<1x6x6x8xf32>) permutation = [0, 2, 3, 1]
  %e = tensor.empty() : tensor<1x6x6x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x6x6x32xf32>) -> tensor<1x6x6x32xf32>
  %c = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%xt, %w : tensor<1x6x6x8xf32>, tensor<1x1x8x32xf32>) outs(%f : tensor<1x6x6x32xf32>) -> tensor<1x6x6x32xf32>
  %be = tensor.empty() : tensor<1x32x6x6xf32>
  %b = linalg.transpose ins(%c : tensor<1x6x6x32xf32>) outs(%be : tensor<1x32x6x6xf32>) permutation = [0, 3, 1, 2]
  return %b, %c : tensor<1x32x6x6xf32>, tensor<1x6x6x32xf32>
}

// Positions that strides leave out are left out of a copy.
// CHECK-LABEL: func.func @strided
// CHECK: %[[COPY:.*]] = tensor.extract_slice %arg0[0, 0, 0, 0] [1, 8, 6, 6] [1, 1, 2, 2]
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[COPY]] : {{.*}} attrs = {npu.op = "pointwise_conv2d"}
// CHECK: return %[[SUM]]
func.func @strided(%x: tensor<1x8x12x12xf32> {npu.role = "input"}, %w: tensor<1x1x8x32xf32> {npu.role = "parameter"}) -> tensor<1x32x6x6xf32> {
  %zero = arith.constant 0.0 : f32
  %xe = tensor.empty() : tensor<1x12x12x8xf32>
  %xt = linalg.transpose ins(%x : tensor<1x8x12x12xf32>) outs(%xe : tensor<1x12x12x8xf32>) permutation = [0, 2, 3, 1]
  %e = tensor.empty() : tensor<1x6x6x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x6x6x32xf32>) -> tensor<1x6x6x32xf32>
  %c = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%xt, %w : tensor<1x12x12x8xf32>, tensor<1x1x8x32xf32>) outs(%f : tensor<1x6x6x32xf32>) -> tensor<1x6x6x32xf32>
  %be = tensor.empty() : tensor<1x32x6x6xf32>
  %b = linalg.transpose ins(%c : tensor<1x6x6x32xf32>) outs(%be : tensor<1x32x6x6xf32>) permutation = [0, 3, 1, 2]
  return %b : tensor<1x32x6x6xf32>
}

// Less than a vector of positions.
// CHECK-LABEL: func.func @small
// CHECK: linalg.conv_2d_nhwc_hwcf
func.func @small(%x: tensor<1x8x2x2xf32> {npu.role = "input"}, %w: tensor<1x1x8x32xf32> {npu.role = "parameter"}) -> tensor<1x32x2x2xf32> {
  %zero = arith.constant 0.0 : f32
  %xe = tensor.empty() : tensor<1x2x2x8xf32>
  %xt = linalg.transpose ins(%x : tensor<1x8x2x2xf32>) outs(%xe : tensor<1x2x2x8xf32>) permutation = [0, 2, 3, 1]
  %e = tensor.empty() : tensor<1x2x2x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x2x32xf32>) -> tensor<1x2x2x32xf32>
  %c = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%xt, %w : tensor<1x2x2x8xf32>, tensor<1x1x8x32xf32>) outs(%f : tensor<1x2x2x32xf32>) -> tensor<1x2x2x32xf32>
  %be = tensor.empty() : tensor<1x32x2x2xf32>
  %b = linalg.transpose ins(%c : tensor<1x2x2x32xf32>) outs(%be : tensor<1x32x2x2xf32>) permutation = [0, 3, 1, 2]
  return %b : tensor<1x32x2x2xf32>
}
