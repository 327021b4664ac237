// RUN: %npu-opt %s | %npu-opt | filecheck %s
// RUN: %npu-opt %s --mlir-print-op-generic | %npu-opt | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>
#sram = #npu.space<"sram">

// Inputs may have different types; each has a slot in operandSegmentSizes.
// CHECK-LABEL: func.func @eltwise
// CHECK: "npu.eltwise"(%arg0, %arg1, %arg2)
// CHECK-NEXT: ^bb0(%[[L:.*]]: f32, %[[R:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[S:.*]] = {{.*}}arith.addf
// CHECK-NEXT: "npu.yield"(%[[S]]) : (f32) -> ()
// CHECK-NEXT: }) {indexing_maps = [#{{.*}}, #{{.*}}, #{{.*}}], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
func.func @eltwise(%x: memref<4x8xf32, #sram>, %v: memref<8xf32, #sram>, %o: memref<4x8xf32, #sram>) {
  "npu.eltwise"(%x, %v, %o) ({
  ^bb0(%l: f32, %r: f32, %old: f32):
    %s = arith.addf %l, %r : f32
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [#id, #column, #id], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<8xf32, #sram>, memref<4x8xf32, #sram>) -> ()
  return
}

// A region may use scalars from outside, and no input at all.
// CHECK-LABEL: func.func @eltwise_of_a_scalar
// CHECK: "npu.eltwise"(%arg0)
// CHECK: "npu.yield"(%arg1) : (f32) -> ()
func.func @eltwise_of_a_scalar(%o: memref<?xf32, #sram>, %s: f32) {
  "npu.eltwise"(%o) ({
  ^bb0(%old: f32):
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0) -> (d0)>], operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<?xf32, #sram>) -> ()
  return
}

// Out of the accumulators, with bias, to another element type and another order of dimensions.
// CHECK-LABEL: func.func @drain
// CHECK: "npu.drain"(%arg0, %arg1, %arg2)
// CHECK: operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>
func.func @drain(%a: memref<4x8xi32, #npu.space<"acc">>, %b: memref<8xi32, #sram>, %o: memref<8x4xi8, #sram>) {
  "npu.drain"(%a, %b, %o) ({
  ^bb0(%acc: i32, %bias: i32, %old: i8):
    %s = arith.addi %acc, %bias : i32
    %t = arith.trunci %s : i32 to i8
    "npu.yield"(%t) : (i8) -> ()
  }) {indexing_maps = [#id, #column, #turned], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xi32, #npu.space<"acc">>, memref<8xi32, #sram>, memref<8x4xi8, #sram>) -> ()
  return
}

// CHECK-LABEL: func.func @reduce
// CHECK: "npu.reduce"(%arg0, %arg1)
// CHECK: iterator_types = ["reduction", "parallel"]
func.func @reduce(%x: memref<4x8xf32, #sram>, %v: memref<8xf32, #npu.space<"acc">>) {
  "npu.reduce"(%x, %v) ({
  ^bb0(%l: f32, %old: f32):
    %s = arith.addf %l, %old : f32
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<8xf32, #npu.space<"acc">>) -> ()
  return
}

// A window: the input is indexed by a sum of dimensions, the extent of d1 comes from the weights.
// CHECK-LABEL: func.func @windowed_reduce
// CHECK: "npu.reduce"(%arg0, %arg1, %arg2)
func.func @windowed_reduce(%x: memref<9xf32, #sram>, %w: memref<3xf32, #sram>, %o: memref<4xf32, #sram>) {
  "npu.reduce"(%x, %w, %o) ({
  ^bb0(%l: f32, %r: f32, %old: f32):
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %p, %old : f32
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0 * 2 + d1)>, #column, affine_map<(d0, d1) -> (d0)>],
      iterator_types = ["parallel", "reduction"], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<9xf32, #sram>, memref<3xf32, #sram>, memref<4xf32, #sram>) -> ()
  return
}
