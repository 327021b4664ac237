// RUN: %npu-opt %s --pass-pipeline='builtin.module(convert-linalg-to-npu)' --split-input-file --verify-diagnostics

#sram = #npu.space<"sram">
func.func private @no_op(%x: memref<2x4xf32, #sram>, %y: memref<4x2xf32, #sram>, %z: memref<2x2xf32, #npu.space<"acc">>) attributes {npu.kernel = "matmul"} {
  // expected-error @below {{'linalg.matmul' has no npu op; generalise it before}}
  linalg.matmul ins(%x, %y : memref<2x4xf32, #sram>, memref<4x2xf32, #sram>) outs(%z : memref<2x2xf32, #npu.space<"acc">>)
  return
}

// -----

#sram = #npu.space<"sram">
func.func private @fill(%value: f32, %x: memref<4xf32, #sram>) attributes {npu.kernel = "eltwise"} {
  // expected-error @below {{'linalg.fill' must write a constant}}
  linalg.fill ins(%value : f32) outs(%x : memref<4xf32, #sram>)
  return
}

// -----

#sram = #npu.space<"sram">
func.func private @unknown(%x: memref<4xf32, #sram>, %y: memref<4xf32, #sram>) attributes {npu.kernel = "eltwise"} {
  // expected-error @below {{unknown npu.op 'conv9d'}}
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<4xf32, #sram>) outs(%y : memref<4xf32, #sram>) attrs = {npu.op = "conv9d"} {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  return
}

// -----

#sram = #npu.space<"sram">
func.func private @in_place(%x: memref<4xf32, #sram>, %y: memref<4xf32, #sram>) attributes {npu.kernel = "eltwise"} {
  // expected-error @below {{'linalg.generic' reads the output that it overwrites}}
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<4xf32, #sram>) outs(%y : memref<4xf32, #sram>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  }
  return
}

// -----

#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func private @two_accumulators(%x: memref<4xf32, #acc>, %y: memref<4xf32, #acc>, %z: memref<4xf32, #sram>) attributes {npu.kernel = "eltwise"} {
  // expected-error @below {{'linalg.generic' reads 2 accumulators; a drain reads one}}
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x, %y : memref<4xf32, #acc>, memref<4xf32, #acc>) outs(%z : memref<4xf32, #sram>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  }
  return
}

// -----

#sram = #npu.space<"sram">
func.func private @two_groups(%x: memref<1x2x2x2x4xf32, #sram>, %w: memref<2x2x1x1x4x8xf32, #sram>, %a: memref<1x2x2x2x2x8xf32, #npu.space<"acc">>)
    attributes {npu.kernel = "grouped_conv2d"} {
  // expected-error @below {{a tile of a grouped_conv2d must have extent 1 along dimension 3, got 2}}
  linalg.generic {indexing_maps = [affine_map<(n, y, x, g, ko, ki, r, s, c) -> (n, y + r, x + s, g, c)>,
      affine_map<(n, y, x, g, ko, ki, r, s, c) -> (g, ko, r, s, c, ki)>,
      affine_map<(n, y, x, g, ko, ki, r, s, c) -> (n, y, x, g, ko, ki)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : memref<1x2x2x2x4xf32, #sram>, memref<2x2x1x1x4x8xf32, #sram>) outs(%a : memref<1x2x2x2x2x8xf32, #npu.space<"acc">>)
      attrs = {npu.op = "grouped_conv2d", npu.strides = array<i64: 1, 1>, npu.dilations = array<i64: 1, 1>} {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  }
  return
}
