// RUN: %npu-opt %s --target edge --pass-pipeline='builtin.module(split-dma)' --split-input-file --verify-diagnostics

func.func private @padded_everywhere(%x: memref<2x3x4x5x6xf32>, %y: memref<4x5x6x7x8xf32>) attributes {npu.kernel = "copy"} {
  %one = arith.constant 1 : index
  // expected-error @below {{a move of 5 dimensions exceeds the 4 of the DMA engine, and it pads or has unknown extents in too many of them to be split; raise dma.max_rank of the target or run the kernel on the host}}
  %t = "npu.dma_start"(%x, %y, %one, %one, %one, %one, %one) {permutation = array<i64: 0, 1, 2, 3, 4>, pad_value = 0.0 : f32} : (memref<2x3x4x5x6xf32>, memref<4x5x6x7x8xf32>, index, index, index, index, index) -> !npu.token
  "npu.dma_wait"(%t) : (!npu.token) -> ()
  return
}
