// RUN: %npu-opt %s --split-input-file --target %inputs/avx2.toml --pass-pipeline='builtin.module(convert-npu-to-vector)' | filecheck %s
// RUN: %npu-opt %s --split-input-file --target %inputs/avx2.toml --pass-pipeline='builtin.module(convert-npu-to-vector,convert-npu-to-vector)' | filecheck %s

// A fill, a convolution and a drain become one micro-kernel: accumulators are loop-carried registers, the
// bias is added to them, and the accumulator tile is gone.
// CHECK-LABEL: func.func @fused
// CHECK-NOT: "npu.
// CHECK: scf.for
// CHECK: %[[SUMS:.*]]:12 = scf.for {{.*}} -> (vector<8xf32>, {{.*}}) {
// CHECK: vector.load {{.*}} vector<8xf32>
// CHECK: vector.broadcast {{.*}} : f32 to vector<8xf32>
// CHECK: vector.fma
// CHECK: scf.yield
// CHECK: arith.addf %[[SUMS]]#0, {{.*}} : vector<8xf32>
// CHECK: vector.store
// CHECK-NOT: "npu.
// CHECK: return
func.func @fused(%x: memref<1x8x14x8xf32, #npu.space<"sram">>, %w: memref<2x3x3x8x8xf32, #npu.space<"sram">>,
                 %b: memref<2x8xf32, #npu.space<"sram">>, %o: memref<1x6x12x2x8xf32, #npu.space<"sram">>,
                 %scratch: memref<4608xi8, #npu.space<"acc">>) {
  %c0 = arith.constant 0 : index
  %acc = memref.view %scratch[%c0][] : memref<4608xi8, #npu.space<"acc">> to memref<1x6x12x2x8xf32, #npu.space<"acc">>
  "npu.fill"(%acc) {value = 0.0 : f32} : (memref<1x6x12x2x8xf32, #npu.space<"acc">>) -> ()
  "npu.conv2d"(%x, %w, %acc) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (memref<1x8x14x8xf32, #npu.space<"sram">>, memref<2x3x3x8x8xf32, #npu.space<"sram">>, memref<1x6x12x2x8xf32, #npu.space<"acc">>) -> ()
  "npu.drain"(%acc, %b, %o) ({
  ^bb0(%a: f32, %bias: f32, %old: f32):
    %sum = arith.addf %a, %bias : f32
    "npu.yield"(%sum) : (f32) -> ()
  }) {indexing_maps = [affine_map<(n, y, x, k, i) -> (n, y, x, k, i)>, affine_map<(n, y, x, k, i) -> (k, i)>,
                       affine_map<(n, y, x, k, i) -> (n, y, x, k, i)>],
      operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<1x6x12x2x8xf32, #npu.space<"acc">>, memref<2x8xf32, #npu.space<"sram">>, memref<1x6x12x2x8xf32, #npu.space<"sram">>) -> ()
  return
}

// -----

// Without a fill in sight the tile carries a value in: accumulators are loaded and stored.
// CHECK-LABEL: func.func @through_memory
// CHECK-SAME: %[[ACC:[a-z0-9]*]]: memref<3x1x8xf32, #npu.space<"acc">>
// CHECK: memref.extract_strided_metadata %[[ACC]]
// CHECK: %[[START:.*]] = vector.load
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[START]]
// CHECK: vector.fma
// CHECK: vector.store
func.func @through_memory(%l: memref<3x9xf32, #npu.space<"sram">>, %r: memref<1x9x8xf32, #npu.space<"sram">>,
                          %acc: memref<3x1x8xf32, #npu.space<"acc">>) {
  "npu.matmul"(%l, %r, %acc) : (memref<3x9xf32, #npu.space<"sram">>, memref<1x9x8xf32, #npu.space<"sram">>, memref<3x1x8xf32, #npu.space<"acc">>) -> ()
  return
}

// -----

// Few pixels use every block of weights: while one is in use the next one is asked for, a line at a time.
// CHECK-LABEL: func.func @few_pixels
// CHECK: scf.for
// CHECK: scf.for {{.*}} iter_args
// CHECK-COUNT-1: memref.prefetch {{.*}}, read, locality<2>, data
// CHECK-NOT: memref.prefetch
// CHECK: vector.fma
// CHECK: return
func.func @few_pixels(%l: memref<12x32xf32, #npu.space<"sram">>, %r: memref<8x32x8xf32, #npu.space<"sram">>,
                      %acc: memref<12x8x8xf32, #npu.space<"acc">>) {
  "npu.matmul"(%l, %r, %acc) : (memref<12x32xf32, #npu.space<"sram">>, memref<8x32x8xf32, #npu.space<"sram">>, memref<12x8x8xf32, #npu.space<"acc">>) -> ()
  return
}

// -----

// The greater of two numbers, or NaN, in the form that is one instruction; other choices stay.
// CHECK-LABEL: func.func @greater
// CHECK: %[[LESS:.*]] = arith.cmpf olt, %[[X:.*]], %[[ZERO:.*]] : vector<8xf32>
// CHECK: arith.select %[[LESS]], %[[ZERO]], %[[X]]
// CHECK: %[[ABOVE:.*]] = arith.cmpf ugt, %[[Y:.*]], %[[LIMIT:.*]] : vector<8xf32>
// CHECK: arith.select %[[ABOVE]], %[[LIMIT]], %[[Y]]
// CHECK: return
func.func @greater(%x: memref<8xf32, #npu.space<"sram">>, %o: memref<8xf32, #npu.space<"sram">>) {
  "npu.eltwise"(%x, %o) ({
  ^bb0(%a: f32, %old: f32):
    %zero = arith.constant 0.0 : f32
    %limit = arith.constant 6.0 : f32
    %0 = arith.cmpf ugt, %a, %zero : f32
    %1 = arith.select %0, %a, %zero : f32
    %2 = arith.cmpf ugt, %1, %limit : f32
    %3 = arith.select %2, %limit, %1 : f32
    "npu.yield"(%3) : (f32) -> ()
  }) {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<8xf32, #npu.space<"sram">>, memref<8xf32, #npu.space<"sram">>) -> ()
  return
}

// -----

// Dense operands are one long loop: 4 vectors of 8, then what is left.
// CHECK-LABEL: func.func @elementwise
// CHECK: scf.for
// CHECK-COUNT-4: vector.store {{.*}} vector<8xf32>
// CHECK: }
// CHECK: vector.store {{.*}} vector<2xf32>
// CHECK: return
func.func @elementwise(%x: memref<2x3x11xf32, #npu.space<"sram">>, %o: memref<2x3x11xf32, #npu.space<"sram">>) {
  "npu.eltwise"(%x, %o) ({
  ^bb0(%a: f32, %old: f32):
    %r = math.absf %a : f32
    "npu.yield"(%r) : (f32) -> ()
  }) {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
      operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<2x3x11xf32, #npu.space<"sram">>, memref<2x3x11xf32, #npu.space<"sram">>) -> ()
  return
}

// -----

// A move is complete where it stands; its wait disappears.
// CHECK-LABEL: func.func @move
// CHECK-NOT: "npu.dma
// CHECK: vector.store {{.*}} vector<8xf32>
// CHECK-NOT: "npu.dma
// CHECK: return
func.func @move(%x: memref<8xf32>, %o: memref<8xf32, #npu.space<"sram">>) {
  %t = "npu.dma_start"(%x, %o) {permutation = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 0>}
    : (memref<8xf32>, memref<8xf32, #npu.space<"sram">>) -> !npu.token
  "npu.dma_wait"(%t) : (!npu.token) -> ()
  return
}

// -----

// Nothing to convert.
// CHECK-LABEL: func.func @plain
// CHECK-NEXT: memref.load
// CHECK-NEXT: memref.store
// CHECK-NEXT: return
func.func @plain(%x: memref<f32>, %o: memref<f32>) {
  %v = memref.load %x[] : memref<f32>
  memref.store %v, %o[] : memref<f32>
  return
}

// -----

// Each window is read, transformed in registers and written to its 16 products.
// CHECK-LABEL: func.func @winograd_input
// CHECK-NOT: "npu.
// CHECK: scf.for
// CHECK-COUNT-16: vector.load {{.*}} vector<8xf32>
// CHECK: arith.subf {{.*}} : vector<8xf32>
// CHECK-COUNT-16: vector.store {{.*}} vector<8xf32>
// CHECK-NOT: "npu.
// CHECK: return
func.func @winograd_input(%x: memref<1x10x12x8xf32, #npu.space<"sram">>, %t: memref<16x20x8xf32, #npu.space<"sram">>) {
  "npu.winograd_input"(%x, %t) {outputs = 2 : i64} : (memref<1x10x12x8xf32, #npu.space<"sram">>, memref<16x20x8xf32, #npu.space<"sram">>) -> ()
  return
}

// -----

// The fill becomes the start of the sums, inside the loop over the products of matrices.
// CHECK-LABEL: func.func @batch_matmul
// CHECK-NOT: "npu.
// CHECK: arith.constant dense<0.000000e+00> : vector<8xf32>
// CHECK: scf.for {{.*}} to %c16
// CHECK: %[[SUMS:.*]]:{{[0-9]+}} = scf.for {{.*}} -> (vector<8xf32>, {{.*}}) {
// CHECK: vector.fma
// CHECK: scf.yield
// CHECK: vector.store %[[SUMS]]#0
// CHECK-NOT: "npu.
// CHECK: return
func.func @batch_matmul(%t: memref<16x20x8xf32, #npu.space<"sram">>, %u: memref<16x2x8x8xf32, #npu.space<"sram">>,
                        %p: memref<16x20x2x8xf32, #npu.space<"acc">>) {
  "npu.fill"(%p) {value = 0.0 : f32} : (memref<16x20x2x8xf32, #npu.space<"acc">>) -> ()
  "npu.batch_matmul"(%t, %u, %p) : (memref<16x20x8xf32, #npu.space<"sram">>, memref<16x2x8x8xf32, #npu.space<"sram">>, memref<16x20x2x8xf32, #npu.space<"acc">>) -> ()
  return
}

// -----

// Fill, output transform and drain are one step per window: 16 products in, 4 results out.
// CHECK-LABEL: func.func @winograd_output
// CHECK-NOT: "npu.
// CHECK: scf.for
// CHECK-COUNT-16: vector.load {{.*}} vector<8xf32>
// CHECK-COUNT-4: arith.negf {{.*}} : vector<8xf32>
// CHECK-NOT: "npu.
// CHECK: return
func.func @winograd_output(%p: memref<16x20x1x8xf32, #npu.space<"acc">>, %o: memref<1x4x2x5x2x1x8xf32, #npu.space<"sram">>,
                           %scratch: memref<2560xi8, #npu.space<"acc">>) {
  %c0 = arith.constant 0 : index
  %acc = memref.view %scratch[%c0][] : memref<2560xi8, #npu.space<"acc">> to memref<1x4x2x5x2x1x8xf32, #npu.space<"acc">>
  "npu.fill"(%acc) {value = 0.0 : f32} : (memref<1x4x2x5x2x1x8xf32, #npu.space<"acc">>) -> ()
  "npu.winograd_output"(%p, %acc) {outputs = 2 : i64} : (memref<16x20x1x8xf32, #npu.space<"acc">>, memref<1x4x2x5x2x1x8xf32, #npu.space<"acc">>) -> ()
  "npu.drain"(%acc, %o) ({
  ^bb0(%a: f32, %old: f32):
    %r = arith.negf %a : f32
    "npu.yield"(%r) : (f32) -> ()
  }) {indexing_maps = [affine_map<(n, y, u, x, v, k, i) -> (n, y, u, x, v, k, i)>, affine_map<(n, y, u, x, v, k, i) -> (n, y, u, x, v, k, i)>],
      operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<1x4x2x5x2x1x8xf32, #npu.space<"acc">>, memref<1x4x2x5x2x1x8xf32, #npu.space<"sram">>) -> ()
  return
}

// -----

// A small window over channels reads the source of the move that pads its image; the padded tile is not made.
// Of the 2 x 8 windows of a pair of rows, those at either end have 6 taps, the others 9. Rows whose window meets
// padding are a loop of their own, over the row taps that meet data.
// CHECK-LABEL: func.func @padded_depthwise
// CHECK-SAME: %[[X:[a-z0-9]*]]: memref<1x6x8x8xf32>
// CHECK-NOT: "npu.
// CHECK: %[[BASE:[a-z0-9_]*]], {{.*}} = memref.extract_strided_metadata %[[X]]
// CHECK: %[[IMAGE:.*]] = memref.reinterpret_cast %[[BASE]]
// CHECK: scf.for
// CHECK: vector.load %[[IMAGE]][
// CHECK-COUNT-132: vector.fma
// CHECK: scf.for
// CHECK: scf.for %{{.*}} iter_args
// CHECK: vector.fma
// CHECK-NOT: "npu.
// CHECK: return
func.func @padded_depthwise(%x: memref<1x6x8x8xf32>, %w: memref<3x3x8xf32, #npu.space<"sram">>,
                            %tile: memref<1x8x10x8xf32, #npu.space<"sram">>, %acc: memref<1x6x8x8xf32, #npu.space<"acc">>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = "npu.dma_start"(%x, %tile, %c0, %c1, %c1, %c0) {pad_value = 0.0 : f32, permutation = array<i64: 0, 1, 2, 3>}
    : (memref<1x6x8x8xf32>, memref<1x8x10x8xf32, #npu.space<"sram">>, index, index, index, index) -> !npu.token
  "npu.dma_wait"(%t) : (!npu.token) -> ()
  "npu.fill"(%acc) {value = 0.0 : f32} : (memref<1x6x8x8xf32, #npu.space<"acc">>) -> ()
  "npu.depthwise_conv2d"(%tile, %w, %acc) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (memref<1x8x10x8xf32, #npu.space<"sram">>, memref<3x3x8xf32, #npu.space<"sram">>, memref<1x6x8x8xf32, #npu.space<"acc">>) -> ()
  return
}

// -----

// A convolution of a padded tile leaves out row taps that meet padding only: the loop over them has bounds that
// follow from the row of the image where the tile begins.
// CHECK-LABEL: func.func @padded_convolution
// CHECK-SAME: %[[X:[a-z0-9]*]]: memref<1x16x1x4xf32>
// CHECK: arith.maxsi
// CHECK: arith.minsi
// CHECK: scf.for %{{.*}} = %{{[0-9]+}} to %{{[0-9]+}} step %{{.*}} iter_args
// CHECK: vector.fma
// CHECK: return
func.func @padded_convolution(%x: memref<1x16x1x4xf32>, %w: memref<1x31x1x4x8xf32, #npu.space<"sram">>,
                              %tile: memref<1x46x1x4xf32, #npu.space<"sram">>, %acc: memref<1x16x1x1x8xf32, #npu.space<"acc">>) {
  %c0 = arith.constant 0 : index
  %c15 = arith.constant 15 : index
  %t = "npu.dma_start"(%x, %tile, %c0, %c15, %c0, %c0) {pad_value = 0.0 : f32, permutation = array<i64: 0, 1, 2, 3>}
    : (memref<1x16x1x4xf32>, memref<1x46x1x4xf32, #npu.space<"sram">>, index, index, index, index) -> !npu.token
  "npu.dma_wait"(%t) : (!npu.token) -> ()
  "npu.conv2d"(%tile, %w, %acc) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (memref<1x46x1x4xf32, #npu.space<"sram">>, memref<1x31x1x4x8xf32, #npu.space<"sram">>, memref<1x16x1x1x8xf32, #npu.space<"acc">>) -> ()
  return
}

// -----

// Image and result with columns side by side: vectors run over columns, weights are the scalars. The
// distance of two is made of two vectors, and the last of 20 columns are a vector that begins early.
// CHECK-LABEL: func.func @columns
// CHECK-DAG: %[[EARLY:.*]] = arith.constant 12 : index
// CHECK: vector.load {{.*}} vector<8xf32>
// CHECK: vector.load {{.*}} vector<8xf32>
// CHECK: vector.shuffle {{.*}} [0, 2, 4, 6, 9, 11, 13, 15] : vector<8xf32>, vector<8xf32>
// CHECK: memref.load
// CHECK: vector.fma
// CHECK-NOT: vector.store {{.*}} vector<4xf32>
// CHECK: return
func.func @columns(%x: memref<1x3x9x41xf32, #npu.space<"sram">>, %w: memref<2x3x3x3x8xf32, #npu.space<"sram">>,
                   %o: memref<1x2x8x4x20xf32, #npu.space<"sram">>, %scratch: memref<5120xi8, #npu.space<"acc">>) {
  %c0 = arith.constant 0 : index
  %image = memref.transpose %x (n, c, y, x) -> (n, y, x, c) : memref<1x3x9x41xf32, #npu.space<"sram">>
    to memref<1x9x41x3xf32, strided<[1107, 41, 1, 369]>, #npu.space<"sram">>
  %result = memref.transpose %o (n, k, i, y, x) -> (n, y, x, k, i) : memref<1x2x8x4x20xf32, #npu.space<"sram">>
    to memref<1x4x20x2x8xf32, strided<[1280, 20, 1, 640, 80]>, #npu.space<"sram">>
  %acc = memref.view %scratch[%c0][] : memref<5120xi8, #npu.space<"acc">> to memref<1x4x20x2x8xf32, #npu.space<"acc">>
  "npu.fill"(%acc) {value = 0.0 : f32} : (memref<1x4x20x2x8xf32, #npu.space<"acc">>) -> ()
  "npu.conv2d"(%image, %w, %acc) {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>}
    : (memref<1x9x41x3xf32, strided<[1107, 41, 1, 369]>, #npu.space<"sram">>, memref<2x3x3x3x8xf32, #npu.space<"sram">>, memref<1x4x20x2x8xf32, #npu.space<"acc">>) -> ()
  "npu.drain"(%acc, %result) ({
  ^bb0(%a: f32, %old: f32):
    "npu.yield"(%a) : (f32) -> ()
  }) {indexing_maps = [affine_map<(n, y, x, k, i) -> (n, y, x, k, i)>, affine_map<(n, y, x, k, i) -> (n, y, x, k, i)>],
      operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<1x4x20x2x8xf32, #npu.space<"acc">>, memref<1x4x20x2x8xf32, strided<[1280, 20, 1, 640, 80]>, #npu.space<"sram">>) -> ()
  return
}
