// RUN: %npu-opt %s --pass-pipeline='builtin.module(form-loop-groups)' | filecheck %s
// RUN: %npu-opt %s --pass-pipeline='builtin.module(form-loop-groups,form-loop-groups)' | filecheck %s

#row = affine_map<(d0, d1) -> (d0, d1)>
#first = affine_map<(d0, d1) -> (d0)>
#second = affine_map<(d0, d1) -> (d1)>

module attributes {npu.target = #npu.target<{cached = true, clock_hz = 1 : i64, cores = 2 : i64, description = "", name = "test", acc = {alignment = 64 : i64, bytes = 65536 : i64}, sram = {alignment = 64 : i64, bytes = 65536 : i64}, dma = {bytes_per_cycle = 32 : i64, channels = 1 : i64, max_rank = 8 : i64, setup_cycles = 1 : i64}, matrix = {cols = 1 : i64, macs_per_cell = {f16 = 1 : i64, f32 = 1 : i64, i8 = 1 : i64}, rows = 1 : i64}, vector = {lanes = 8 : i64, registers = 16 : i64}}>} {

// Rows are read once: the sum of a row is there when its elements are divided by it. 99 rows are
// tiles of 4, of which the last starts early.
// CHECK-LABEL: func.func @rows
// CHECK: %[[R:.*]] = call @loops_0(%{{.*}}) : (tensor<99x1024xf32>) -> tensor<99x1024xf32>
// CHECK-NEXT: return %[[R]]
func.func @rows(%x: tensor<99x1024xf32>) -> tensor<99x1024xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<99xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<99xf32>) -> tensor<99xf32>
  %s = linalg.generic {indexing_maps = [#row, #first], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<99x1024xf32>) outs(%f : tensor<99xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<99xf32>
  %o = tensor.empty() : tensor<99x1024xf32>
  %r = linalg.generic {indexing_maps = [#row, #first, #row], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<99x1024xf32>, tensor<99xf32>) outs(%o : tensor<99x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.divf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<99x1024xf32>
  return %r : tensor<99x1024xf32>
}

// Sums of rows and of columns have no loop in common.
// CHECK-LABEL: func.func @rows_and_columns
// CHECK: call @loops_1
// CHECK: call @loops_2
func.func @rows_and_columns(%x: tensor<64x64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %s = linalg.generic {indexing_maps = [#row, #first], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x64xf32>) outs(%f : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %t = linalg.generic {indexing_maps = [#row, #second], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<64x64xf32>) outs(%f : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  return %s, %t : tensor<64xf32>, tensor<64xf32>
}

// The kernel takes the whole of what it reads slices of, which would be copied to become arguments.
// CHECK-LABEL: func.func @halves
// CHECK: call @loops_3(%{{.*}}) : (tensor<8x64xf32>) -> tensor<8x32xf32>
func.func @halves(%x: tensor<8x64xf32>) -> tensor<8x32xf32> {
  %low = tensor.extract_slice %x[0, 0] [8, 32] [1, 1] : tensor<8x64xf32> to tensor<8x32xf32>
  %high = tensor.extract_slice %x[0, 32] [8, 32] [1, 1] : tensor<8x64xf32> to tensor<8x32xf32>
  %e = tensor.empty() : tensor<8x32xf32>
  %r = linalg.generic {indexing_maps = [#row, #row, #row], iterator_types = ["parallel", "parallel"]}
      ins(%low, %high : tensor<8x32xf32>, tensor<8x32xf32>) outs(%e : tensor<8x32xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<8x32xf32>
  return %r : tensor<8x32xf32>
}

// CHECK-LABEL: func.func @nothing
// CHECK-NEXT: return
func.func @nothing(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
}

// CHECK: func.func private @loops_0
// CHECK-SAME: npu.kernel = "loops", npu.schedule = {parallel = true}
// CHECK: scf.forall (%{{.*}}) in (25)
// CHECK: arith.minsi
// CHECK: tensor.extract_slice
// CHECK: iterator_types = ["parallel", "reduction"]
// CHECK: iterator_types = ["parallel", "parallel"]
// CHECK: tensor.parallel_insert_slice
// CHECK: func.func private @loops_1
// CHECK-SAME: npu.kernel = "loops", npu.schedule = {parallel = false}
// CHECK-NOT: scf.forall
// CHECK: func.func private @loops_2
// CHECK: func.func private @loops_3
// CHECK: tensor.extract_slice {{.*}}[0, 0] [8, 32] [1, 1]
// CHECK: tensor.extract_slice {{.*}}[0, 32] [8, 32] [1, 1]
