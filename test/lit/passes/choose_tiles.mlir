// RUN: %npu-opt %s --target %inputs/avx2.toml --pass-pipeline='builtin.module(choose-tiles)' | filecheck %s --check-prefixes=CHECK,CPU
// RUN: %npu-opt %s --target %inputs/avx2.toml --pass-pipeline='builtin.module(choose-tiles,choose-tiles)' | filecheck %s --check-prefixes=CHECK,CPU
// RUN: %npu-opt %s --target small --pass-pipeline='builtin.module(choose-tiles)' | filecheck %s --check-prefixes=CHECK,SMALL
// RUN: %npu-opt %s --target small --pass-pipeline='builtin.module(choose-tiles,choose-tiles{mode=serial})' | filecheck %s --check-prefixes=CHECK,SMALL
// RUN: %npu-opt %s --target small --pass-pipeline='builtin.module(choose-tiles{mode=serial})' | filecheck %s --check-prefixes=CHECK,SERIAL
// RUN: %npu-opt %s --target small --pass-pipeline='builtin.module(choose-tiles{mode=untiled})' | filecheck %s --check-prefixes=CHECK,UNTILED
// RUN: %npu-opt %s --target %inputs/avx2.toml --pass-pipeline='builtin.module(choose-tiles{mode=untiled})' | filecheck %s --check-prefixes=CHECK,CPU
// RUN: not %npu-opt %s --target small --pass-pipeline='builtin.module(choose-tiles{mode=fast})' 2>&1 | filecheck %s --check-prefix=MODE

// MODE: pass 'choose-tiles': mode must be pipelined, serial, untiled; got 'fast'

#image = affine_map<(n, y, x, ko, ki, r, s, c) -> (n, y + r, x + s, c)>
#weights = affine_map<(n, y, x, ko, ki, r, s, c) -> (ko, r, s, c, ki)>
#out = affine_map<(n, y, x, ko, ki, r, s, c) -> (n, y, x, ko, ki)>
#id = affine_map<(d0, d1) -> (d0, d1)>

// Rows for two cores on the CPU, without order and buffers. On the accelerator what fits with the
// buffers that it needs, and the estimate; the reduction is split. As if memories were infinite:
// whole, and marked so.
// CHECK-LABEL: func.func private @conv
// CPU-SAME: acc_bytes = 100352 : i64, bound = "cores", parallel = true
// CPU-SAME: tile = array<i64: 0, 14, 0, 0, 0>
// CPU-NOT: order =
// SMALL-SAME: acc_buffers = 2 : i64, acc_bytes = {{[0-9]+}} : i64, bound = "matrix unit", buffers = 2 : i64, cycles = {{[0-9]+}} : i64, order = array<i64: 1, 2, 3, 0, 4>, parallel = false
// SMALL-SAME: reduction_tile = array<i64: 0, 0, {{[1-9][0-9]*}}>
// SERIAL-SAME: acc_buffers = 1 : i64
// SERIAL-SAME: bound = "sram: tile 1x28x28x4x16x3x3x64 needs 578560 of 16384 bytes", buffers = 1 : i64
// UNTILED-SAME: acc_bytes = 200704 : i64, bound = "nothing: untiled", buffers = 1 : i64
// UNTILED-SAME: mode = "untiled", order = array<i64: 0, 1, 2, 3, 4>
// UNTILED-SAME: sram_bytes = 578560 : i64, tile = array<i64: 0, 0, 0, 0, 0>
func.func private @conv(%x: tensor<1x30x30x64xf32>, %w: tensor<4x3x3x64x16xf32>) -> tensor<1x28x28x4x16xf32>
    attributes {npu.kernel = "conv2d"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x28x28x4x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x28x28x4x16xf32>) -> tensor<1x28x28x4x16xf32>
  %c = linalg.generic {indexing_maps = [#image, #weights, #out],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x30x30x64xf32>, tensor<4x3x3x64x16xf32>) outs(%f : tensor<1x28x28x4x16xf32>)
      attrs = {npu.op = "conv2d", npu.strides = array<i64: 1, 1>, npu.dilations = array<i64: 1, 1>} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x28x28x4x16xf32>
  return %c : tensor<1x28x28x4x16xf32>
}

// Too little work to share out, and it fits: stays whole, unless moves can overlap.
// CHECK-LABEL: func.func private @small_eltwise
// CPU-SAME: bound = "nothing: untiled", parallel = false
// CPU-SAME: tile = array<i64: 0, 0>
// SERIAL-SAME: tile = array<i64: 0, 0>
// SMALL-SAME: bound = "dma in", buffers = 2
// SMALL-SAME: tile = array<i64: 4, 0>
func.func private @small_eltwise(%x: tensor<8x16xf32>) -> tensor<8x16xf32> attributes {npu.kernel = "eltwise"} {
  %e = tensor.empty() : tensor<8x16xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<8x16xf32>
  return %r : tensor<8x16xf32>
}

// A kernel that only moves data has nothing to hold on chip.
// CHECK-LABEL: func.func private @slice
// CHECK-SAME: bound = "data movement"
// CHECK-NOT: order =
// CHECK-SAME: tile = array<i64>
func.func private @slice(%x: tensor<8x16xf32>) -> tensor<8x4xf32> attributes {npu.kernel = "copy"} {
  %r = tensor.extract_slice %x[0, 4] [8, 4] [1, 1] : tensor<8x16xf32> to tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// So has a transposition between memories of an accelerator; a CPU shares it out.
// CHECK-LABEL: func.func private @transpose
// CPU-SAME: bound = "cores"
// SMALL-SAME: bound = "data movement"
// SERIAL-SAME: bound = "data movement"
// UNTILED-SAME: bound = "data movement"
func.func private @transpose(%x: tensor<1024x256xf32>) -> tensor<256x1024xf32> attributes {npu.kernel = "copy"} {
  %e = tensor.empty() : tensor<256x1024xf32>
  %r = linalg.transpose ins(%x : tensor<1024x256xf32>) outs(%e : tensor<256x1024xf32>) permutation = [1, 0]
  return %r : tensor<256x1024xf32>
}

// A schedule that is there is kept.
// CHECK-LABEL: func.func private @given
// CHECK-SAME: npu.schedule = {bound = "given", tile = array<i64: 2, 0>}
func.func private @given(%x: tensor<8x16xf32>) -> tensor<8x16xf32>
    attributes {npu.kernel = "eltwise", npu.schedule = {tile = array<i64: 2, 0>, bound = "given"}} {
  %e = tensor.empty() : tensor<8x16xf32>
  %r = linalg.exp ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %r : tensor<8x16xf32>
}

// CHECK-LABEL: func.func @main
// CHECK-NOT: npu.schedule
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  return %x : tensor<8x16xf32>
}
