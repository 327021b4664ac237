// RUN: %npu-opt %s --pass-pipeline='builtin.module(insert-dma)' --split-input-file --verify-diagnostics

func.func private @read_in_place(%x: memref<4xf32>, %out: memref<6xf32>) attributes {npu.kernel = "eltwise"} {
  %zero = arith.constant 0.0 : f32
  %p = memref.alloc() : memref<6xf32>
  linalg.fill ins(%zero : f32) outs(%p : memref<6xf32>)
  %interior = memref.subview %p[1] [4] [1] : memref<6xf32> to memref<4xf32, strided<[1], offset: 1>>
  memref.copy %x, %interior : memref<4xf32> to memref<4xf32, strided<[1], offset: 1>>
  // expected-error @below {{'linalg.generic' uses a padded buffer; only copies of its tiles may}}
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%p : memref<6xf32>) outs(%out : memref<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  return
}

// -----

func.func private @every_second(%x: memref<4xf32>, %tile: memref<3xf32, #npu.space<"sram">>) attributes {npu.kernel = "eltwise"} {
  %zero = arith.constant 0.0 : f32
  %p = memref.alloc() : memref<6xf32>
  linalg.fill ins(%zero : f32) outs(%p : memref<6xf32>)
  %interior = memref.subview %p[1] [4] [1] : memref<6xf32> to memref<4xf32, strided<[1], offset: 1>>
  memref.copy %x, %interior : memref<4xf32> to memref<4xf32, strided<[1], offset: 1>>
  %half = memref.subview %p[0] [3] [2] : memref<6xf32> to memref<3xf32, strided<[2]>>
  // expected-error @below {{a tile of a padded buffer must be a dense box of it, got memref<3xf32, strided<[2]>>}}
  memref.copy %half, %tile : memref<3xf32, strided<[2]>> to memref<3xf32, #npu.space<"sram">>
  return
}
