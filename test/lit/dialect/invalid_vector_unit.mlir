// RUN: %npu-opt %s --split-input-file --verify-diagnostics

#id = affine_map<(d0, d1) -> (d0, d1)>
#sram = #npu.space<"sram">
func.func @no_segments(%x: memref<4x8xf32, #sram>, %o: memref<4x8xf32, #sram>) {
  // expected-error @below {{'npu.eltwise' op with 2 inputs needs operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>, got none}}
  "npu.eltwise"(%x, %x, %o) ({
  ^bb0(%l: f32, %r: f32, %old: f32):
    %s = arith.addf %l, %r : f32
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [#id, #id, #id]}
    : (memref<4x8xf32, #sram>, memref<4x8xf32, #sram>, memref<4x8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#sram = #npu.space<"sram">
func.func @wrong_segments(%x: memref<4x8xf32, #sram>, %o: memref<4x8xf32, #sram>) {
  // expected-error @below {{'npu.eltwise' op with 2 inputs needs operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>, got array<i32: 2, 1>}}
  "npu.eltwise"(%x, %x, %o) ({
  ^bb0(%l: f32, %r: f32, %old: f32):
    %s = arith.addf %l, %r : f32
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [#id, #id, #id], operandSegmentSizes = array<i32: 2, 1>}
    : (memref<4x8xf32, #sram>, memref<4x8xf32, #sram>, memref<4x8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#sram = #npu.space<"sram">
func.func @too_many_inputs(%x: memref<4x8xf32, #sram>, %o: memref<4x8xf32, #sram>) {
  // expected-error @below {{'npu.eltwise' op takes at most 16 inputs, got 17}}
  "npu.eltwise"(%x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %o) ({
  ^bb0:
    "npu.yield"() : () -> ()
  }) {indexing_maps = [#id, #id, #id, #id, #id, #id, #id, #id, #id, #id, #id, #id, #id, #id, #id, #id, #id, #id]}
    : (memref<4x8xf32, #sram>, memref<4x8xf32, #sram>, memref<4x8xf32, #sram>, memref<4x8xf32, #sram>, memref<4x8xf32, #sram>, memref<4x8xf32, #sram>, memref<4x8xf32, #sram>, memref<4x8xf32, #sram>, memref<4x8xf32, #sram>, memref<4x8xf32, #sram>, memref<4x8xf32, #sram>, memref<4x8xf32, #sram>, memref<4x8xf32, #sram>, memref<4x8xf32, #sram>, memref<4x8xf32, #sram>, memref<4x8xf32, #sram>, memref<4x8xf32, #sram>, memref<4x8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#sram = #npu.space<"sram">
func.func @tensor_operand(%t: tensor<4x8xf32>, %o: memref<4x8xf32, #sram>) {
  // expected-error @below {{'npu.eltwise' op operand 0 must be a memref, got tensor<4x8xf32>}}
  "npu.eltwise"(%t, %o) ({
  ^bb0(%l: f32, %old: f32):
    "npu.yield"(%l) : (f32) -> ()
  }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (tensor<4x8xf32>, memref<4x8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#sram = #npu.space<"sram">
func.func @input_in_dram(%d: memref<4x8xf32>, %o: memref<4x8xf32, #sram>) {
  // expected-error @below {{'npu.eltwise' op operand 0 must be in sram, got dram}}
  "npu.eltwise"(%d, %o) ({
  ^bb0(%l: f32, %old: f32):
    "npu.yield"(%l) : (f32) -> ()
  }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32>, memref<4x8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @output_in_acc(%x: memref<4x8xf32, #sram>, %a: memref<4x8xf32, #acc>) {
  // expected-error @below {{'npu.eltwise' op operand 1 must be in sram, got acc}}
  "npu.eltwise"(%x, %a) ({
  ^bb0(%l: f32, %old: f32):
    "npu.yield"(%l) : (f32) -> ()
  }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<4x8xf32, #acc>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#sram = #npu.space<"sram">
func.func @map_kind(%x: memref<4x8xf32, #sram>, %o: memref<4x8xf32, #sram>) {
  // expected-error @below {{'npu.eltwise' op 'indexing_maps' must hold affine maps, got 1 : i64}}
  "npu.eltwise"(%x, %o) ({
  ^bb0(%l: f32, %old: f32):
    "npu.yield"(%l) : (f32) -> ()
  }) {indexing_maps = [#id, 1], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<4x8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#sram = #npu.space<"sram">
func.func @map_count(%x: memref<4x8xf32, #sram>, %o: memref<4x8xf32, #sram>) {
  // expected-error @below {{'npu.eltwise' op needs one indexing map per operand: 2 maps, 3 operands}}
  "npu.eltwise"(%x, %x, %o) ({
  ^bb0(%l: f32, %r: f32, %old: f32):
    %s = arith.addf %l, %r : f32
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<4x8xf32, #sram>, memref<4x8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#sram = #npu.space<"sram">
func.func @map_dimensions(%x: memref<4x8xf32, #sram>, %o: memref<4x8xf32, #sram>) {
  // expected-error @below {{'npu.eltwise' op indexing map 1 must go from 2 dimensions to the rank 2 of its operand, got (d0) -> (d0, d0)}}
  "npu.eltwise"(%x, %o) ({
  ^bb0(%l: f32, %old: f32):
    "npu.yield"(%l) : (f32) -> ()
  }) {indexing_maps = [#id, affine_map<(d0) -> (d0, d0)>], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<4x8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
#sram = #npu.space<"sram">
func.func @map_results(%x: memref<4x8xf32, #sram>, %o: memref<4x8xf32, #sram>) {
  // expected-error @below {{'npu.eltwise' op indexing map 0 must go from 2 dimensions to the rank 2 of its operand, got (d0, d1) -> (d1)}}
  "npu.eltwise"(%x, %o) ({
  ^bb0(%l: f32, %old: f32):
    "npu.yield"(%l) : (f32) -> ()
  }) {indexing_maps = [#column, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<4x8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#sram = #npu.space<"sram">
func.func @map_symbols(%x: memref<4x8xf32, #sram>, %o: memref<4x8xf32, #sram>) {
  // expected-error @below {{'npu.eltwise' op indexing map 0 must have no symbols: (d0, d1)[s0] -> (d0, s0)}}
  "npu.eltwise"(%x, %o) ({
  ^bb0(%l: f32, %old: f32):
    "npu.yield"(%l) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1)[s0] -> (d0, s0)>, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<4x8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#sram = #npu.space<"sram">
func.func @extents_differ(%x: memref<4x8xf32, #sram>, %w: memref<5x8xf32, #sram>) {
  // expected-error @below {{'npu.eltwise' op operand 1 has extent 5 along d0, an operand before it has 4}}
  "npu.eltwise"(%x, %w) ({
  ^bb0(%l: f32, %old: f32):
    "npu.yield"(%l) : (f32) -> ()
  }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<5x8xf32, #sram>) -> ()
  return
}

// -----

#column = affine_map<(d0, d1) -> (d1)>
#sram = #npu.space<"sram">
func.func @extent_unknown(%v: memref<8xf32, #sram>) {
  // expected-error @below {{'npu.reduce' op no operand gives the extent of d0}}
  "npu.reduce"(%v, %v) ({
  ^bb0(%l: f32, %old: f32):
    %s = arith.addf %l, %old : f32
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [#column, #column], iterator_types = ["reduction", "parallel"], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<8xf32, #sram>, memref<8xf32, #sram>) -> ()
  return
}

// -----

#column = affine_map<(d0, d1) -> (d1)>
#sram = #npu.space<"sram">
func.func @out_of_bounds(%x: memref<4x8xf32, #sram>, %v: memref<8xf32, #sram>) {
  // expected-error @below {{'npu.reduce' op operand 0 has extent 8 in dimension 1, but d1 + 1 goes up to 8}}
  "npu.reduce"(%x, %v) ({
  ^bb0(%l: f32, %old: f32):
    %s = arith.addf %l, %old : f32
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1 + 1)>, #column], iterator_types = ["reduction", "parallel"], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
#sram = #npu.space<"sram">
func.func @output_map(%x: memref<4x8xf32, #sram>, %v: memref<8xf32, #sram>) {
  // expected-error @below {{'npu.eltwise' op the indexing map of the output must be a permutation, got (d0, d1) -> (d1)}}
  "npu.eltwise"(%x, %v) ({
  ^bb0(%l: f32, %old: f32):
    "npu.yield"(%l) : (f32) -> ()
  }) {indexing_maps = [#id, #column], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#sram = #npu.space<"sram">
func.func @no_block(%x: memref<4x8xf32, #sram>, %o: memref<4x8xf32, #sram>) {
  // expected-error @below {{'npu.eltwise' op needs a region of one block, got 0}}
  "npu.eltwise"(%x, %o) ({
  
  }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<4x8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#sram = #npu.space<"sram">
func.func @block_arguments(%x: memref<4x8xf32, #sram>, %o: memref<4x8xf32, #sram>) {
  // expected-error @below {{'npu.eltwise' op block arguments must be the element types (f32, f32), got (f32)}}
  "npu.eltwise"(%x, %o) ({
  ^bb0(%l: f32):
    "npu.yield"(%l) : (f32) -> ()
  }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<4x8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#sram = #npu.space<"sram">
func.func @block_argument_types(%x: memref<4x8xf32, #sram>, %o: memref<4x8xf32, #sram>) {
  // expected-error @below {{'npu.eltwise' op block arguments must be the element types (f32, f32), got (f32, f64)}}
  "npu.eltwise"(%x, %o) ({
  ^bb0(%l: f32, %old: f64):
    "npu.yield"(%l) : (f32) -> ()
  }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<4x8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#sram = #npu.space<"sram">
func.func @scalar_ops(%x: memref<4x8xf32, #sram>, %o: memref<4x8xf32, #sram>) {
  // expected-error @below {{'npu.eltwise' op region may hold arith and math ops only, got 'memref.load'}}
  "npu.eltwise"(%x, %o) ({
  ^bb0(%l: f32, %old: f32):
    %c0 = arith.constant 0 : index
    %s = memref.load %x[%c0, %c0] : memref<4x8xf32, #sram>
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<4x8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#sram = #npu.space<"sram">
func.func @terminator(%x: memref<4x8xf32, #sram>, %o: memref<4x8xf32, #sram>) {
  // expected-error @below {{'npu.eltwise' op region must end with npu.yield, got 'llvm.unreachable'}}
  "npu.eltwise"(%x, %o) ({
  ^bb0(%l: f32, %old: f32):
    llvm.unreachable
  }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<4x8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#sram = #npu.space<"sram">
func.func @empty_block(%x: memref<4x8xf32, #sram>, %o: memref<4x8xf32, #sram>) {
  // expected-error @below {{empty block: expect at least a terminator}}
  "npu.eltwise"(%x, %o) ({
  ^bb0(%l: f32, %old: f32):
  }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<4x8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#sram = #npu.space<"sram">
func.func @yield_type(%x: memref<4x8xf32, #sram>, %o: memref<4x8xf32, #sram>) {
  // expected-error @below {{'npu.eltwise' op must yield one f32, yields (i1)}}
  "npu.eltwise"(%x, %o) ({
  ^bb0(%l: f32, %old: f32):
    %s = arith.cmpf ogt, %l, %l : f32
    "npu.yield"(%s) : (i1) -> ()
  }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<4x8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#sram = #npu.space<"sram">
func.func @yield_count(%x: memref<4x8xf32, #sram>, %o: memref<4x8xf32, #sram>) {
  // expected-error @below {{'npu.eltwise' op must yield one f32, yields (f32, f32)}}
  "npu.eltwise"(%x, %o) ({
  ^bb0(%l: f32, %old: f32):
    "npu.yield"(%l, %l) : (f32, f32) -> ()
  }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<4x8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#sram = #npu.space<"sram">
func.func @reads_output(%x: memref<4x8xf32, #sram>, %o: memref<4x8xf32, #sram>) {
  // expected-error @below {{'npu.eltwise' op must not read the output that it overwrites}}
  "npu.eltwise"(%x, %o) ({
  ^bb0(%l: f32, %old: f32):
    %s = arith.addf %l, %old : f32
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<4x8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
#sram = #npu.space<"sram">
func.func @iterator_kind(%x: memref<4x8xf32, #sram>, %v: memref<8xf32, #sram>) {
  // expected-error @below {{'npu.reduce' op 'iterator_types' must hold "parallel" or "reduction", got "window"}}
  "npu.reduce"(%x, %v) ({
  ^bb0(%l: f32, %old: f32):
    %s = arith.addf %l, %old : f32
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [#id, #column], iterator_types = ["window", "parallel"], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
#sram = #npu.space<"sram">
func.func @iterator_attribute(%x: memref<4x8xf32, #sram>, %v: memref<8xf32, #sram>) {
  // expected-error @below {{'npu.reduce' op 'iterator_types' must hold "parallel" or "reduction", got #linalg.iterator_type<reduction>}}
  "npu.reduce"(%x, %v) ({
  ^bb0(%l: f32, %old: f32):
    %s = arith.addf %l, %old : f32
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [#id, #column], iterator_types = [#linalg.iterator_type<reduction>, "parallel"], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
#sram = #npu.space<"sram">
func.func @iterator_count(%x: memref<4x8xf32, #sram>, %v: memref<8xf32, #sram>) {
  // expected-error @below {{'npu.reduce' op indexing map 0 must go from 1 dimensions to the rank 2 of its operand, got (d0, d1) -> (d0, d1)}}
  "npu.reduce"(%x, %v) ({
  ^bb0(%l: f32, %old: f32):
    %s = arith.addf %l, %old : f32
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [#id, #column], iterator_types = ["reduction"], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @reduce_from_acc(%a: memref<4x8xf32, #acc>, %v: memref<8xf32, #sram>) {
  // expected-error @below {{'npu.reduce' op operand 0 must be in sram, got acc}}
  "npu.reduce"(%a, %v) ({
  ^bb0(%l: f32, %old: f32):
    %s = arith.addf %l, %old : f32
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #acc>, memref<8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
#sram = #npu.space<"sram">
func.func @reduce_into_dram(%x: memref<4x8xf32, #sram>, %q: memref<8xf32>) {
  // expected-error @below {{'npu.reduce' op output must be in sram or acc, got dram}}
  "npu.reduce"(%x, %q) ({
  ^bb0(%l: f32, %old: f32):
    %s = arith.addf %l, %old : f32
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<8xf32>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
#sram = #npu.space<"sram">
func.func @reduce_body(%x: memref<4x8xf32, #sram>, %v: memref<8xf32, #sram>) {
  // expected-error @below {{'npu.reduce' op must yield one f32, yields ()}}
  "npu.reduce"(%x, %v) ({
  ^bb0(%l: f32, %old: f32):
    "npu.yield"() : () -> ()
  }) {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#sram = #npu.space<"sram">
func.func @drain_from_sram(%x: memref<4x8xf32, #sram>, %o: memref<4x8xf32, #sram>) {
  // expected-error @below {{'npu.drain' op accumulator must be in acc, got sram}}
  "npu.drain"(%x, %o) ({
  ^bb0(%l: f32, %old: f32):
    "npu.yield"(%l) : (f32) -> ()
  }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<4x8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#acc = #npu.space<"acc">
func.func @drain_into_dram(%a: memref<4x8xf32, #acc>, %d: memref<4x8xf32>) {
  // expected-error @below {{'npu.drain' op operand 1 must be in sram, got dram}}
  "npu.drain"(%a, %d) ({
  ^bb0(%l: f32, %old: f32):
    "npu.yield"(%l) : (f32) -> ()
  }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #acc>, memref<4x8xf32>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @drain_second_accumulator(%a: memref<4x8xf32, #acc>, %o: memref<4x8xf32, #sram>) {
  // expected-error @below {{'npu.drain' op operand 1 must be in sram, got acc}}
  "npu.drain"(%a, %a, %o) ({
  ^bb0(%l: f32, %r: f32, %old: f32):
    %s = arith.addf %l, %r : f32
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [#id, #id, #id], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #acc>, memref<4x8xf32, #acc>, memref<4x8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @drain_output_map(%a: memref<4x8xf32, #acc>, %v: memref<8xf32, #sram>) {
  // expected-error @below {{'npu.drain' op the indexing map of the output must be a permutation, got (d0, d1) -> (d1)}}
  "npu.drain"(%a, %v) ({
  ^bb0(%l: f32, %old: f32):
    "npu.yield"(%l) : (f32) -> ()
  }) {indexing_maps = [#id, #column], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #acc>, memref<8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#sram = #npu.space<"sram">
#acc = #npu.space<"acc">
func.func @drain_reads_output(%a: memref<4x8xf32, #acc>, %o: memref<4x8xf32, #sram>) {
  // expected-error @below {{'npu.drain' op must not read the output that it overwrites}}
  "npu.drain"(%a, %o) ({
  ^bb0(%l: f32, %old: f32):
    %s = arith.addf %l, %old : f32
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [#id, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #acc>, memref<4x8xf32, #sram>) -> ()
  return
}

// -----

func.func @yield_outside() {
  // expected-error @below {{'npu.yield' op must be inside npu.eltwise, npu.reduce, npu.drain, is inside 'func.func'}}
  "npu.yield"() : () -> ()
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#sram = #npu.space<"sram">
func.func @reduce_parallel_dimension_is_lost(%x: memref<4x8xf32, #sram>, %o: memref<4xf32, #sram>) {
  // expected-error @below {{'npu.reduce' op the indexing map of the output must use d0, d1, the parallel ones of ['parallel', 'parallel'], once each, got (d0, d1) -> (d0)}}
  "npu.reduce"(%x, %o) ({
  ^bb0(%v: f32, %old: f32):
    %s = arith.addf %v, %old : f32
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel"], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<4xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#sram = #npu.space<"sram">
func.func @reduce_reduction_dimension_is_kept(%x: memref<4x8xf32, #sram>, %o: memref<4x8xf32, #sram>) {
  // expected-error @below {{'npu.reduce' op the indexing map of the output must use d0, the parallel ones of ['parallel', 'reduction'], once each, got (d0, d1) -> (d0, d1)}}
  "npu.reduce"(%x, %o) ({
  ^bb0(%v: f32, %old: f32):
    %s = arith.addf %v, %old : f32
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [#id, #id], iterator_types = ["parallel", "reduction"], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x8xf32, #sram>, memref<4x8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0) -> (d0)>
#before = affine_map<(d0) -> (d0 - 1)>
#sram = #npu.space<"sram">
func.func @eltwise_reads_before_its_input(%x: memref<8xf32, #sram>, %o: memref<8xf32, #sram>) {
  // expected-error @below {{'npu.eltwise' op dimension 0 of operand 0: d0 - 1 goes down to -1}}
  "npu.eltwise"(%x, %o) ({
  ^bb0(%v: f32, %old: f32):
    "npu.yield"(%v) : (f32) -> ()
  }) {indexing_maps = [#before, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<8xf32, #sram>, memref<8xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>
#sram = #npu.space<"sram">
func.func @eltwise_turned_in_place(%x: memref<4x4xf32, #sram>) {
  // expected-error @below {{'npu.eltwise' op operand 0 is the output, so its indexing map must be (d0, d1) -> (d0, d1), got (d0, d1) -> (d1, d0)}}
  "npu.eltwise"(%x, %x) ({
  ^bb0(%v: f32, %old: f32):
    "npu.yield"(%v) : (f32) -> ()
  }) {indexing_maps = [#turned, #id], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4x4xf32, #sram>, memref<4x4xf32, #sram>) -> ()
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#sram = #npu.space<"sram">
func.func @reduce_reads_its_output_elsewhere(%o: memref<4xf32, #sram>) {
  // expected-error @below {{'npu.reduce' op operand 0 is the output, so its indexing map must be (d0, d1) -> (d0), got (d0, d1) -> (d1)}}
  "npu.reduce"(%o, %o) ({
  ^bb0(%v: f32, %old: f32):
    %s = arith.addf %v, %old : f32
    "npu.yield"(%s) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d1)>, #row], iterator_types = ["parallel", "reduction"], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>}
    : (memref<4xf32, #sram>, memref<4xf32, #sram>) -> ()
  return
}
