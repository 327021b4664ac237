// RUN: %npu-opt %s --pass-pipeline='builtin.module(split-reductions)' | filecheck %s
// RUN: %npu-opt %s --pass-pipeline='builtin.module(split-reductions,split-reductions)' | filecheck %s

#whole = affine_map<(d0) -> (d0)>
#number = affine_map<(d0) -> ()>
#row = affine_map<(d0, d1) -> (d0, d1)>
#first = affine_map<(d0, d1) -> (d0)>
#second = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func.func @few_results
// CHECK: %[[V:.*]] = tensor.expand_shape %{{.*}} {{\[\[}}0, 1]] {{.*}} : tensor<65536xf32> into tensor<16x4096xf32>
// CHECK: %[[P:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[V]]
// CHECK: -> tensor<16xf32>
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction"]} ins(%[[P]]
// CHECK: -> tensor<f32>
func.func @few_results(%x: tensor<65536xf32>, %start: tensor<f32>) -> tensor<f32> {
  %0 = linalg.generic {indexing_maps = [#whole, #number], iterator_types = ["reduction"]}
      ins(%x : tensor<65536xf32>) outs(%start : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.mulf %a, %a : f32
    %2 = arith.addf %1, %b : f32
    linalg.yield %2 : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}

// A prime number of elements: equal parts, and a rest that the result starts from.
// CHECK-LABEL: func.func @rest
// CHECK: %[[REST:.*]] = tensor.extract_slice %{{.*}}[65536] [1] [1]
// CHECK: %[[START:.*]] = linalg.generic {{.*}} ins(%[[REST]]
// CHECK: %[[MAIN:.*]] = tensor.extract_slice %{{.*}}[0] [65536] [1]
// CHECK: tensor.expand_shape %[[MAIN]] {{.*}} into tensor<16x4096xf32>
// CHECK: linalg.generic {{.*}} outs(%[[START]] : tensor<f32>)
func.func @rest(%x: tensor<65537xf32>, %start: tensor<f32>) -> tensor<f32> {
  %0 = linalg.generic {indexing_maps = [#whole, #number], iterator_types = ["reduction"]}
      ins(%x : tensor<65537xf32>) outs(%start : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.maximumf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}

// Long sums along vectors: one accumulator adds fewer numbers, and those of parts are added.
// CHECK-LABEL: func.func @long_columns
// CHECK: tensor.expand_shape {{.*}} : tensor<8192x128xf32> into tensor<8x1024x128xf32>
// CHECK: -> tensor<8x128xf32>
// CHECK: -> tensor<128xf32>
func.func @long_columns(%x: tensor<8192x128xf32>, %start: tensor<128xf32>) -> tensor<128xf32> {
  %0 = linalg.generic {indexing_maps = [#row, #second], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8192x128xf32>) outs(%start : tensor<128xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<128xf32>
  return %0 : tensor<128xf32>
}

// One alone has shorter parts than one that shares what it reads, and with it a loop.
// CHECK-LABEL: func.func @alone
// CHECK: tensor.expand_shape {{.*}} : tensor<2048x128xf32> into tensor<2x1024x128xf32>
func.func @alone(%x: tensor<2048x128xf32>, %start: tensor<128xf32>) -> tensor<128xf32> {
  %0 = linalg.generic {indexing_maps = [#row, #second], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<2048x128xf32>) outs(%start : tensor<128xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<128xf32>
  return %0 : tensor<128xf32>
}

// CHECK-LABEL: func.func @shared
// CHECK-NOT: tensor.expand_shape
// CHECK: return
func.func @shared(%x: tensor<2048x128xf32>, %start: tensor<128xf32>) -> (tensor<128xf32>, tensor<128xf32>) {
  %0 = linalg.generic {indexing_maps = [#row, #second], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<2048x128xf32>) outs(%start : tensor<128xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<128xf32>
  %2 = linalg.generic {indexing_maps = [#row, #second], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<2048x128xf32>) outs(%start : tensor<128xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.maximumf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<128xf32>
  return %0, %2 : tensor<128xf32>, tensor<128xf32>
}

// Rows enough for all threads, and short: as they are.
// CHECK-LABEL: func.func @rows
// CHECK-NOT: expand_shape
// CHECK: return
func.func @rows(%x: tensor<128x4096xf32>, %start: tensor<128xf32>) -> tensor<128xf32> {
  %0 = linalg.generic {indexing_maps = [#row, #first], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<128x4096xf32>) outs(%start : tensor<128xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<128xf32>
  return %0 : tensor<128xf32>
}

// What is no sum of independent terms stays.
// CHECK-LABEL: func.func @recurrence
// CHECK-NOT: expand_shape
// CHECK: return
func.func @recurrence(%x: tensor<65536xf32>, %start: tensor<f32>) -> tensor<f32> {
  %0 = linalg.generic {indexing_maps = [#whole, #number], iterator_types = ["reduction"]}
      ins(%x : tensor<65536xf32>) outs(%start : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.mulf %b, %b : f32
    %2 = arith.addf %1, %a : f32
    linalg.yield %2 : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}
