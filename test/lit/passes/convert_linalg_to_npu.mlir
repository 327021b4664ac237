// RUN: %npu-opt %s --pass-pipeline='builtin.module(convert-linalg-to-npu)' | filecheck %s
// RUN: %npu-opt %s --pass-pipeline='builtin.module(convert-linalg-to-npu,convert-linalg-to-npu)' | filecheck %s

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">

// CHECK-LABEL: func.func private @conv
// CHECK: "npu.fill"(%[[ACC:.*]]) {value = 0.000000e+00 : f32}
// CHECK-NEXT: "npu.conv2d"(%{{.*}}, %{{.*}}, %[[ACC]]) {dilations = array<i64: 1, 2>, strides = array<i64: 2, 1>}
// CHECK-NEXT: "npu.drain"(%[[ACC]], %{{.*}}, %{{.*}}) ({
// CHECK-NEXT: ^bb0(%[[V:.*]]: f32, %[[S:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[V]], %[[S]]
// CHECK-NEXT: "npu.yield"(%[[SUM]])
func.func private @conv(%x: memref<1x5x6x4xf32, #sram>, %w: memref<2x3x2x4x8xf32, #sram>, %shift: memref<2x8xf32, #sram>,
    %a: memref<1x2x4x2x8xf32, #acc>, %out: memref<1x2x4x2x8xf32, #sram>) attributes {npu.kernel = "conv2d"} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%a : memref<1x2x4x2x8xf32, #acc>)
  linalg.generic {indexing_maps = [affine_map<(n, y, x, ko, ki, r, s, c) -> (n, y * 2 + r, x + s * 2, c)>,
      affine_map<(n, y, x, ko, ki, r, s, c) -> (ko, r, s, c, ki)>, affine_map<(n, y, x, ko, ki, r, s, c) -> (n, y, x, ko, ki)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : memref<1x5x6x4xf32, #sram>, memref<2x3x2x4x8xf32, #sram>) outs(%a : memref<1x2x4x2x8xf32, #acc>)
      attrs = {npu.op = "conv2d", npu.strides = array<i64: 2, 1>, npu.dilations = array<i64: 1, 2>} {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [affine_map<(n, y, x, ko, ki) -> (ko, ki)>, affine_map<(n, y, x, ko, ki) -> (n, y, x, ko, ki)>,
      affine_map<(n, y, x, ko, ki) -> (n, y, x, ko, ki)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%shift, %a : memref<2x8xf32, #sram>, memref<1x2x4x2x8xf32, #acc>) outs(%out : memref<1x2x4x2x8xf32, #sram>) {
  ^bb0(%s: f32, %v: f32, %o: f32):
    %t = arith.addf %v, %s : f32
    linalg.yield %t : f32
  }
  return
}

// Column blocks are a dimension in front of the depth.
// CHECK-LABEL: func.func private @batch
// CHECK: %[[BLOCKS:.*]] = memref.transpose %arg1 (d0, d1, d2, d3) -> (d0, d2, d1, d3) : {{.*}} to memref<2x3x4x5xf32, strided<[60, 5, 15, 1]>, #npu.space<"sram">>
// CHECK: "npu.batch_matmul"(%arg0, %[[BLOCKS]], %arg2)
func.func private @batch(%x: memref<2x8x4xf32, #sram>, %y: memref<2x4x3x5xf32, #sram>, %a: memref<2x8x3x5xf32, #acc>)
    attributes {npu.kernel = "batch_matmul"} {
  linalg.generic {indexing_maps = [affine_map<(p, m, no, ni, c) -> (p, m, c)>, affine_map<(p, m, no, ni, c) -> (p, c, no, ni)>, affine_map<(p, m, no, ni, c) -> (p, m, no, ni)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %y : memref<2x8x4xf32, #sram>, memref<2x4x3x5xf32, #sram>) outs(%a : memref<2x8x3x5xf32, #acc>)
      attrs = {npu.op = "batch_matmul"} {
  ^bb0(%0: f32, %1: f32, %2: f32):
    %3 = arith.mulf %0, %1 : f32
    %4 = arith.addf %2, %3 : f32
    linalg.yield %4 : f32
  }
  return
}

// One image of a tile: rows of positions are the column blocks of a product.
// CHECK-LABEL: func.func private @pointwise
// CHECK: %[[PLANES:.*]] = memref.collapse_shape %arg1 {{.*}} : memref<1x4x3x5xf32, #npu.space<"sram">> into memref<4x3x5xf32, #npu.space<"sram">>
// CHECK: %[[ROWS:.*]] = memref.transpose %[[PLANES]] (d0, d1, d2) -> (d1, d0, d2) : {{.*}} to memref<3x4x5xf32, strided<[5, 15, 1]>, #npu.space<"sram">>
// CHECK: %[[SUMS:.*]] = memref.collapse_shape %arg2 {{.*}} : memref<1x8x3x5xf32, #npu.space<"acc">> into memref<8x3x5xf32, #npu.space<"acc">>
// CHECK: "npu.matmul"(%arg0, %[[ROWS]], %[[SUMS]])
func.func private @pointwise(%w: memref<8x4xf32, #sram>, %x: memref<1x4x3x5xf32, #sram>, %a: memref<1x8x3x5xf32, #acc>)
    attributes {npu.kernel = "pointwise_conv2d"} {
  linalg.generic {indexing_maps = [affine_map<(n, k, y, x, c) -> (k, c)>, affine_map<(n, k, y, x, c) -> (n, c, y, x)>, affine_map<(n, k, y, x, c) -> (n, k, y, x)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%w, %x : memref<8x4xf32, #sram>, memref<1x4x3x5xf32, #sram>) outs(%a : memref<1x8x3x5xf32, #acc>)
      attrs = {npu.op = "pointwise_conv2d"} {
  ^bb0(%0: f32, %1: f32, %2: f32):
    %3 = arith.mulf %0, %1 : f32
    %4 = arith.addf %2, %3 : f32
    linalg.yield %4 : f32
  }
  return
}

// One group: the group dimension goes, by views of dense tiles.
// CHECK-LABEL: func.func private @grouped
// CHECK-DAG: %[[X:.*]] = memref.collapse_shape %arg0 {{.*}} into memref<1x2x2x4xf32, #npu.space<"sram">>
// CHECK-DAG: %[[W:.*]] = memref.collapse_shape %arg1 {{.*}} into memref<2x1x1x4x8xf32, #npu.space<"sram">>
// CHECK-DAG: %[[A:.*]] = memref.collapse_shape %arg2 {{.*}} into memref<1x2x2x2x8xf32, #npu.space<"acc">>
// CHECK: "npu.conv2d"(%[[X]], %[[W]], %[[A]])
func.func private @grouped(%x: memref<1x2x2x1x4xf32, #sram>, %w: memref<1x2x1x1x4x8xf32, #sram>, %a: memref<1x2x2x1x2x8xf32, #acc>)
    attributes {npu.kernel = "grouped_conv2d"} {
  linalg.generic {indexing_maps = [affine_map<(n, y, x, g, ko, ki, r, s, c) -> (n, y + r, x + s, g, c)>,
      affine_map<(n, y, x, g, ko, ki, r, s, c) -> (g, ko, r, s, c, ki)>,
      affine_map<(n, y, x, g, ko, ki, r, s, c) -> (n, y, x, g, ko, ki)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : memref<1x2x2x1x4xf32, #sram>, memref<1x2x1x1x4x8xf32, #sram>) outs(%a : memref<1x2x2x1x2x8xf32, #acc>)
      attrs = {npu.op = "grouped_conv2d", npu.strides = array<i64: 1, 1>, npu.dilations = array<i64: 1, 1>} {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  }
  return
}

// Three ops, with the image and the products in the domain of products between them.
// CHECK-LABEL: func.func private @winograd
// CHECK: %[[U:.*]] = memref.collapse_shape %arg1 {{\[}}[0, 1], [2], [3], [4]] : memref<4x4x2x8x16xf32, {{.*}}> into memref<16x2x8x16xf32
// CHECK: %[[V:.*]] = memref.alloc() : memref<16x6x8xf32, #npu.space<"sram">>
// CHECK: %[[P:.*]] = memref.alloc() : memref<16x6x2x16xf32, #npu.space<"acc">>
// CHECK: "npu.winograd_input"(%arg0, %[[V]]) {outputs = 2 : i64}
// CHECK: "npu.fill"(%[[P]]) {value = 0.000000e+00 : f32}
// CHECK: "npu.batch_matmul"(%[[V]], %[[U]], %[[P]])
// CHECK: "npu.winograd_output"(%[[P]], %arg4) {outputs = 2 : i64}
// CHECK-NOT: linalg
func.func private @winograd(%x: memref<1x6x8x8xf32, #sram>, %w: memref<4x4x2x8x16xf32, #sram>,
    %b: memref<4x4xf32>, %a: memref<2x4xf32>, %acc: memref<1x2x2x3x2x2x16xf32, #acc>) attributes {npu.kernel = "winograd_conv2d"} {
  linalg.generic {npu.op = "winograd_conv2d", npu.outputs = 2 : i64,
      indexing_maps = [affine_map<(n, ty, y, tx, x, ko, ki, a, b, i, j, c) -> (n, ty * 2 + i, tx * 2 + j, c)>,
                       affine_map<(n, ty, y, tx, x, ko, ki, a, b, i, j, c) -> (a, b, ko, c, ki)>,
                       affine_map<(n, ty, y, tx, x, ko, ki, a, b, i, j, c) -> (a, i)>,
                       affine_map<(n, ty, y, tx, x, ko, ki, a, b, i, j, c) -> (b, j)>,
                       affine_map<(n, ty, y, tx, x, ko, ki, a, b, i, j, c) -> (y, a)>,
                       affine_map<(n, ty, y, tx, x, ko, ki, a, b, i, j, c) -> (x, b)>,
                       affine_map<(n, ty, y, tx, x, ko, ki, a, b, i, j, c) -> (n, ty, y, tx, x, ko, ki)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel", "parallel",
                        "reduction", "reduction", "reduction", "reduction", "reduction"]}
      ins(%x, %w, %b, %b, %a, %a : memref<1x6x8x8xf32, #sram>, memref<4x4x2x8x16xf32, #sram>, memref<4x4xf32>, memref<4x4xf32>, memref<2x4xf32>, memref<2x4xf32>)
      outs(%acc : memref<1x2x2x3x2x2x16xf32, #acc>) {
  ^bb0(%image: f32, %weight: f32, %b0: f32, %b1: f32, %a0: f32, %a1: f32, %old: f32):
    %0 = arith.mulf %image, %weight : f32
    %1 = arith.mulf %0, %b0 : f32
    %2 = arith.mulf %1, %b1 : f32
    %3 = arith.mulf %2, %a0 : f32
    %4 = arith.mulf %3, %a1 : f32
    %5 = arith.addf %old, %4 : f32
    linalg.yield %5 : f32
  }
  return
}

// CHECK-LABEL: func.func private @windows
// CHECK: "npu.pool2d"(%arg0, %arg2) {dilations = array<i64: 1, 1>, kind = "max", strides = array<i64: 2, 2>, window = array<i64: 2, 2>}
// CHECK: "npu.depthwise_conv2d"(%arg0, %arg1, %arg2) {dilations = array<i64: 1, 1>, strides = array<i64: 2, 2>}
// CHECK-NOT: memref.alloc
func.func private @windows(%x: memref<1x4x4x8xf32, #sram>, %w: memref<2x2x8xf32, #sram>, %a: memref<1x2x2x8xf32, #acc>) attributes {npu.kernel = "pool2d"} {
  %window = memref.alloc() : memref<2x2xf32>
  linalg.pooling_nhwc_max {strides = dense<2> : vector<2xi64>, dilations = dense<1> : vector<2xi64>}
      ins(%x, %window : memref<1x4x4x8xf32, #sram>, memref<2x2xf32>) outs(%a : memref<1x2x2x8xf32, #acc>)
  linalg.depthwise_conv_2d_nhwc_hwc {strides = dense<2> : vector<2xi64>, dilations = dense<1> : vector<2xi64>}
      ins(%x, %w : memref<1x4x4x8xf32, #sram>, memref<2x2x8xf32, #sram>) outs(%a : memref<1x2x2x8xf32, #acc>)
  return
}

// CHECK-LABEL: func.func private @reduction
// CHECK: "npu.reduce"(%arg0, %arg1)
// CHECK: iterator_types = ["parallel", "reduction"]
// CHECK: "npu.drain"(%arg1, %arg2) ({
// CHECK-NEXT: ^bb0(%[[V:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: "npu.yield"(%[[V]])
func.func private @reduction(%x: memref<4x8xf32, #sram>, %a: memref<4xf32, #acc>, %out: memref<4xf32, #sram>) attributes {npu.kernel = "reduce"} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x8xf32, #sram>) outs(%a : memref<4xf32, #acc>) {
  ^bb0(%p: f32, %o: f32):
    %m = arith.maximumf %p, %o : f32
    linalg.yield %m : f32
  }
  memref.copy %a, %out : memref<4xf32, #acc> to memref<4xf32, #sram>
  return
}

// Two results are two ops.
// CHECK-LABEL: func.func private @two_results
// CHECK: "npu.eltwise"(%arg0, %arg1) ({
// CHECK: arith.negf
// CHECK: "npu.eltwise"(%arg0, %arg2) ({
// CHECK: %[[SQUARE:.*]] = arith.mulf
// CHECK-NEXT: "npu.yield"(%[[SQUARE]])
func.func private @two_results(%x: memref<4xf32, #sram>, %n: memref<4xf32, #sram>, %s: memref<4xf32, #sram>) attributes {npu.kernel = "eltwise"} {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<4xf32, #sram>) outs(%n, %s : memref<4xf32, #sram>, memref<4xf32, #sram>) {
  ^bb0(%p: f32, %o0: f32, %o1: f32):
    %a = arith.negf %p : f32
    %b = arith.mulf %p, %p : f32
    linalg.yield %a, %b : f32, f32
  }
  return
}

// CHECK-LABEL: func.func @no_kernel
// CHECK: linalg.fill
func.func @no_kernel(%x: memref<4xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%x : memref<4xf32>)
  return
}
