// RUN: %npu-opt %s --pass-pipeline='builtin.module(assign-memory-spaces)' --split-input-file --verify-diagnostics

func.func private @unfilled(%x: memref<4x8xf32>, %out: memref<4xf32>) attributes {npu.kernel = "reduce"} {
  // expected-error @below {{'linalg.generic' accumulates into memref<4xf32> that no fill started}}
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x8xf32>) outs(%out : memref<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  }
  return
}

// -----

#id = affine_map<(i) -> (i)>
func.func private @other_view(%x: memref<8xf32>, %y: memref<8xf32>, %out: memref<4xf32>) attributes {npu.kernel = "eltwise"} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  }
  %half = memref.subview %y[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>
  // expected-error @below {{'linalg.generic' reads memref<4xf32, strided<[1]>> of a buffer that is held on chip}}
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%half : memref<4xf32, strided<[1]>>) outs(%out : memref<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  }
  return
}
