// RUN: %npu-opt %s --pass-pipeline='builtin.module(assign-memory-spaces)' | filecheck %s
// RUN: %npu-opt %s --pass-pipeline='builtin.module(assign-memory-spaces,assign-memory-spaces)' | filecheck %s

#lhs = affine_map<(m, no, ni, c) -> (m, c)>
#rhs = affine_map<(m, no, ni, c) -> (no, c, ni)>
#acc = affine_map<(m, no, ni, c) -> (m, no, ni)>
#id = affine_map<(m, no, ni) -> (m, no, ni)>
#channel = affine_map<(m, no, ni) -> (no, ni)>

// The accumulator lives in acc across the reduction loop; what the loop reads is copied inside it, the
// epilogue's operands behind it; the result leaves once per tile.
// CHECK-LABEL: func.func private @matmul
// CHECK: scf.forall
// CHECK: %[[ACC:.*]] = memref.alloc() : memref<2x1x8xf32, #npu.space<"acc">>
// CHECK-NEXT: linalg.fill {{.*}} outs(%[[ACC]]
// CHECK-NEXT: scf.for
// CHECK: %[[LHS:.*]] = memref.alloc() : memref<2x4xf32, #npu.space<"sram">>
// CHECK-NEXT: memref.copy %{{.*}}, %[[LHS]]
// CHECK-NEXT: %[[RHS:.*]] = memref.alloc() : memref<1x4x8xf32, #npu.space<"sram">>
// CHECK-NEXT: memref.copy %{{.*}}, %[[RHS]]
// CHECK-NEXT: linalg.generic {{.*}} ins(%[[LHS]], %[[RHS]] {{.*}} outs(%[[ACC]]
// CHECK: %[[SHIFT:.*]] = memref.alloc() : memref<1x8xf32, #npu.space<"sram">>
// CHECK: %[[OUT:.*]] = memref.alloc() : memref<2x1x8xf32, #npu.space<"sram">>
// CHECK-NEXT: linalg.generic {{.*}} ins(%[[ACC]], %[[SHIFT]] {{.*}} outs(%[[OUT]]
// CHECK: memref.copy %[[OUT]], %{{.*}}
// CHECK-NOT: memref.copy
// CHECK: return
func.func private @matmul(%x: memref<4x8xf32>, %w: memref<3x8x8xf32>, %shift: memref<3x8xf32>, %out: memref<4x3x8xf32>)
    attributes {npu.kernel = "matmul"} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  scf.forall (%i, %k) in (2, 3) {
    %m = affine.apply affine_map<(d0) -> (d0 * 2)>(%i)
    %o = memref.subview %out[%m, %k, 0] [2, 1, 8] [1, 1, 1] : memref<4x3x8xf32> to memref<2x1x8xf32, strided<[24, 8, 1], offset: ?>>
    linalg.fill ins(%zero : f32) outs(%o : memref<2x1x8xf32, strided<[24, 8, 1], offset: ?>>)
    scf.for %c = %c0 to %c8 step %c4 {
      %a = memref.subview %x[%m, %c] [2, 4] [1, 1] : memref<4x8xf32> to memref<2x4xf32, strided<[8, 1], offset: ?>>
      %b = memref.subview %w[%k, %c, 0] [1, 4, 8] [1, 1, 1] : memref<3x8x8xf32> to memref<1x4x8xf32, strided<[64, 8, 1], offset: ?>>
      linalg.generic {indexing_maps = [#lhs, #rhs, #acc], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%a, %b : memref<2x4xf32, strided<[8, 1], offset: ?>>, memref<1x4x8xf32, strided<[64, 8, 1], offset: ?>>)
          outs(%o : memref<2x1x8xf32, strided<[24, 8, 1], offset: ?>>) attrs = {npu.op = "matmul"} {
      ^bb0(%p: f32, %q: f32, %s: f32):
        %t = arith.mulf %p, %q : f32
        %u = arith.addf %s, %t : f32
        linalg.yield %u : f32
      }
    }
    %d = memref.subview %shift[%k, 0] [1, 8] [1, 1] : memref<3x8xf32> to memref<1x8xf32, strided<[8, 1], offset: ?>>
    linalg.generic {indexing_maps = [#id, #channel, #id], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%o, %d : memref<2x1x8xf32, strided<[24, 8, 1], offset: ?>>, memref<1x8xf32, strided<[8, 1], offset: ?>>)
        outs(%o : memref<2x1x8xf32, strided<[24, 8, 1], offset: ?>>) {
    ^bb0(%p: f32, %q: f32, %s: f32):
      %t = arith.addf %p, %q : f32
      linalg.yield %t : f32
    }
  }
  return
}

// Without an epilogue the accumulator is copied out through sram; the window of a pool is only a shape.
// CHECK-LABEL: func.func private @pool
// CHECK: %[[ACC:.*]] = memref.alloc() : memref<1x2x2x4xf32, #npu.space<"acc">>
// CHECK: linalg.pooling_nhwc_sum {{.*}} ins(%{{.*}}, %{{.*}} : memref<1x4x4x4xf32, #npu.space<"sram">>, memref<2x2xf32>) outs(%[[ACC]]
// CHECK: %[[OUT:.*]] = memref.alloc() : memref<1x2x2x4xf32, #npu.space<"sram">>
// CHECK-NEXT: memref.copy %[[ACC]], %[[OUT]]
// CHECK-NEXT: memref.copy %[[OUT]], %arg1
func.func private @pool(%x: memref<1x4x4x4xf32>, %out: memref<1x2x2x4xf32>) attributes {npu.kernel = "pool2d"} {
  %zero = arith.constant 0.0 : f32
  %window = memref.alloc() : memref<2x2xf32>
  linalg.fill ins(%zero : f32) outs(%out : memref<1x2x2x4xf32>)
  linalg.pooling_nhwc_sum {strides = dense<2> : vector<2xi64>, dilations = dense<1> : vector<2xi64>}
      ins(%x, %window : memref<1x4x4x4xf32>, memref<2x2xf32>) outs(%out : memref<1x2x2x4xf32>)
  return
}

// Kernels that only move data stay, so do pads.
// CHECK-LABEL: func.func private @move
// CHECK-NOT: memref.alloc
// CHECK: linalg.transpose ins(%arg0 : memref<4x8xf32>) outs(%arg1 : memref<8x4xf32>)
func.func private @move(%x: memref<4x8xf32>, %out: memref<8x4xf32>) attributes {npu.kernel = "copy"} {
  linalg.transpose ins(%x : memref<4x8xf32>) outs(%out : memref<8x4xf32>) permutation = [1, 0]
  return
}

// CHECK-LABEL: func.func private @padded
// CHECK: %[[PAD:.*]] = memref.alloc() : memref<6xf32>
// CHECK-NEXT: linalg.fill {{.*}} outs(%[[PAD]] : memref<6xf32>)
// CHECK: memref.copy %[[PAD]], %{{.*}} : memref<6xf32> to memref<6xf32, #npu.space<"sram">>
func.func private @padded(%x: memref<4xf32>, %out: memref<6xf32>) attributes {npu.kernel = "eltwise"} {
  %zero = arith.constant 0.0 : f32
  %p = memref.alloc() : memref<6xf32>
  linalg.fill ins(%zero : f32) outs(%p : memref<6xf32>)
  %interior = memref.subview %p[1] [4] [1] : memref<6xf32> to memref<4xf32, strided<[1], offset: 1>>
  memref.copy %x, %interior : memref<4xf32> to memref<4xf32, strided<[1], offset: 1>>
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%p : memref<6xf32>) outs(%out : memref<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  }
  return
}

// The buffer of an image that was transposed to be padded may be that of the sums, too: nothing reads it
// after these, which stay on chip.
// CHECK-LABEL: func.func private @reused
// CHECK: %[[BOTH:.*]] = memref.alloc() : memref<1x2x2x4xf32>
// CHECK: linalg.transpose ins(%arg0 : memref<1x4x2x2xf32>) outs(%[[BOTH]] : memref<1x2x2x4xf32>)
// CHECK: %[[ACC:.*]] = memref.alloc() : memref<1x2x2x4xf32, #npu.space<"acc">>
// CHECK: linalg.depthwise_conv_2d_nhwc_hwc {{.*}} outs(%[[ACC]] : memref<1x2x2x4xf32, #npu.space<"acc">>)
// CHECK: linalg.generic {{.*}} ins(%[[ACC]] : {{.*}}) outs(%[[OUT:.*]] : memref<1x2x2x4xbf16, #npu.space<"sram">>)
// CHECK: linalg.yield
// CHECK-NEXT: }
// CHECK-NEXT: memref.copy %[[OUT]], %arg2
// CHECK-NEXT: return
func.func private @reused(%x: memref<1x4x2x2xf32>, %w: memref<3x3x4xf32>, %out: memref<1x2x2x4xbf16>)
    attributes {npu.kernel = "depthwise_conv2d"} {
  %zero = arith.constant 0.0 : f32
  %both = memref.alloc() : memref<1x2x2x4xf32>
  linalg.transpose ins(%x : memref<1x4x2x2xf32>) outs(%both : memref<1x2x2x4xf32>) permutation = [0, 2, 3, 1]
  %p = memref.alloc() : memref<1x4x4x4xf32>
  linalg.fill ins(%zero : f32) outs(%p : memref<1x4x4x4xf32>)
  %interior = memref.subview %p[0, 1, 1, 0] [1, 2, 2, 4] [1, 1, 1, 1] : memref<1x4x4x4xf32> to memref<1x2x2x4xf32, strided<[64, 16, 4, 1], offset: 20>>
  memref.copy %both, %interior : memref<1x2x2x4xf32> to memref<1x2x2x4xf32, strided<[64, 16, 4, 1], offset: 20>>
  linalg.fill ins(%zero : f32) outs(%both : memref<1x2x2x4xf32>)
  linalg.depthwise_conv_2d_nhwc_hwc {strides = dense<1> : vector<2xi64>, dilations = dense<1> : vector<2xi64>}
      ins(%p, %w : memref<1x4x4x4xf32>, memref<3x3x4xf32>) outs(%both : memref<1x2x2x4xf32>)
  linalg.generic {indexing_maps = [affine_map<(n, y, x, c) -> (n, y, x, c)>, affine_map<(n, y, x, c) -> (n, y, x, c)>],
                  iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%both : memref<1x2x2x4xf32>) outs(%out : memref<1x2x2x4xbf16>) {
  ^bb0(%s: f32, %o: bf16):
    %h = arith.truncf %s : f32 to bf16
    linalg.yield %h : bf16
  }
  return
}
