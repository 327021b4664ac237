// RUN: %npu-opt %s --target=small --stages=normalise..stage | filecheck %s
// RUN: %npu-opt %s --target=%inputs/avx512_vnni.toml --stages=normalise..cpu | filecheck %s --check-prefix=CPU

// A convolution of 8-bit integers, with bias and requantisation: tiles hold bytes, padding is the zero point,
// accumulators hold 32 bits, and the drain writes bytes.
// CHECK: "npu.conv2d"
// CHECK-SAME: xi8, #npu.space<"sram">>
// CHECK-SAME: xi8, #npu.space<"sram">>
// CHECK-SAME: xi32, #npu.space<"acc">>
// CHECK: "npu.drain"
// CHECK: ^bb0(%[[SUM:.*]]: i32, %[[SCALE:.*]]: f32, %{{.*}}: i8):
// CHECK-NEXT: %[[REAL:.*]] = arith.sitofp %[[SUM]] : i32 to f32
// CHECK-NEXT: %[[SCALED:.*]] = arith.mulf %[[REAL]], %[[SCALE]] : f32
// CHECK-NEXT: %[[WHOLE:.*]] = math.roundeven %[[SCALED]] : f32
// CHECK-NEXT: %[[BYTE:.*]] = arith.fptosi %[[WHOLE]] : f32 to i8
// CHECK-NEXT: "npu.yield"(%[[BYTE]])

// Four products at a time; nothing is fused into one rounding where numbers are quantised.
// CPU: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CPU: arith.sitofp
// CPU-NEXT: arith.mulf
// CPU-NOT: fastmath
// CPU: arith.fptosi

#whole = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#channel = affine_map<(d0, d1, d2, d3) -> (d1)>

func.func @main(%x: tensor<1x8x6x6xi8> {npu.role = "input"}, %w: tensor<16x8x3x3xi8> {npu.role = "parameter"},
                %s: tensor<16xf32> {npu.role = "parameter"}) -> tensor<1x16x6x6xi8> {
  %point = arith.constant -6 : i32
  %zero = arith.constant 0 : i64
  %e0 = tensor.empty() : tensor<1x8x6x6xi32>
  %a = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<1x8x6x6xi8>) outs(%e0 : tensor<1x8x6x6xi32>) {
  ^bb0(%in: i8, %out: i32):
    %wide = arith.extsi %in : i8 to i32
    linalg.yield %wide : i32
  } -> tensor<1x8x6x6xi32>
  %p = tensor.pad %a low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %point : i32
  } : tensor<1x8x6x6xi32> to tensor<1x8x8x8xi32>
  %e1 = tensor.empty() : tensor<16x8x3x3xi32>
  %b = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%w : tensor<16x8x3x3xi8>) outs(%e1 : tensor<16x8x3x3xi32>) {
  ^bb0(%in: i8, %out: i32):
    %wide = arith.extsi %in : i8 to i32
    linalg.yield %wide : i32
  } -> tensor<16x8x3x3xi32>
  %e2 = tensor.empty() : tensor<1x16x6x6xi64>
  %f = linalg.fill ins(%zero : i64) outs(%e2 : tensor<1x16x6x6xi64>) -> tensor<1x16x6x6xi64>
  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%p, %b : tensor<1x8x8x8xi32>, tensor<16x8x3x3xi32>) outs(%f : tensor<1x16x6x6xi64>) -> tensor<1x16x6x6xi64>
  %e3 = tensor.empty() : tensor<1x16x6x6xi8>
  %q = linalg.generic {indexing_maps = [#whole, #channel, #whole], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%c, %s : tensor<1x16x6x6xi64>, tensor<16xf32>) outs(%e3 : tensor<1x16x6x6xi8>) {
  ^bb0(%sum: i64, %scale: f32, %out: i8):
    %n = arith.trunci %sum : i64 to i32
    %r = arith.sitofp %n : i32 to f32
    %t = arith.mulf %r, %scale : f32
    %u = math.roundeven %t : f32
    %y = arith.fptosi %u : f32 to i8
    linalg.yield %y : i8
  } -> tensor<1x16x6x6xi8>
  return %q : tensor<1x16x6x6xi8>
}
