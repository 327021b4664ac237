// RUN: %npu-opt %s --pass-pipeline='builtin.module(convert-linalg-to-vector,canonicalize)' | filecheck %s
// RUN: %npu-opt %s --pass-pipeline='builtin.module(convert-linalg-to-vector,convert-linalg-to-vector,canonicalize)' | filecheck %s

#row = affine_map<(d0, d1) -> (d0, d1)>
#first = affine_map<(d0, d1) -> (d0)>
#second = affine_map<(d0, d1) -> (d1)>

module attributes {npu.target = #npu.target<{cached = true, clock_hz = 1 : i64, cores = 2 : i64, description = "", name = "test", acc = {alignment = 64 : i64, bytes = 65536 : i64}, sram = {alignment = 64 : i64, bytes = 65536 : i64}, dma = {bytes_per_cycle = 32 : i64, channels = 1 : i64, max_rank = 8 : i64, setup_cycles = 1 : i64}, matrix = {cols = 1 : i64, macs_per_cell = {f16 = 1 : i64, f32 = 1 : i64, i8 = 1 : i64}, rows = 1 : i64}, vector = {lanes = 8 : i64, registers = 16 : i64}}>} {

// Dense operands are one run of memory: 24 elements are three vectors.
// CHECK-LABEL: func.func @elementwise
// CHECK-COUNT-3: vector.store {{.*}} : memref<{{.*}}>, vector<8xf32>
// CHECK-NOT: linalg
// CHECK: return
func.func @elementwise(%x: memref<2x12xf32>, %y: memref<2x12xf32>) {
  linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<2x12xf32>) outs(%y : memref<2x12xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = math.sqrt %a : f32
    linalg.yield %0 : f32
  }
  return
}

// The fill is where the accumulators start; partial sums lie side by side until a row ends. Four rows
// far apart are reduced together.
// CHECK-LABEL: func.func @rows
// CHECK-NOT: linalg.fill
// CHECK: scf.for
// CHECK: scf.for {{.*}} iter_args
// CHECK: arith.addi {{.*}} : vector<8xi32>
// CHECK-NOT: linalg
// CHECK: return
func.func @rows(%x: memref<8x256xi32>, %y: memref<8xi32>) {
  %zero = arith.constant 0 : i32
  linalg.fill ins(%zero : i32) outs(%y : memref<8xi32>)
  linalg.generic {indexing_maps = [#row, #first], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<8x256xi32>) outs(%y : memref<8xi32>) {
  ^bb0(%a: i32, %b: i32):
    %0 = arith.addi %a, %b : i32
    linalg.yield %0 : i32
  }
  return
}

// Four long rows one behind the other are read one after the other: eight vectors of one row.
// CHECK-LABEL: func.func @neighbours
// CHECK: scf.for %{{.*}} to %c4
// CHECK: scf.for %{{.*}} to %c512 step %c64 iter_args
// CHECK: return
func.func @neighbours(%x: memref<4x512xi32>, %y: memref<4xi32>) {
  %zero = arith.constant 0 : i32
  linalg.fill ins(%zero : i32) outs(%y : memref<4xi32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : memref<4x512xi32>) outs(%y : memref<4xi32>) {
  ^bb0(%a: i32, %b: i32):
    %0 = arith.addi %a, %b : i32
    linalg.yield %0 : i32
  }
  return
}

// Of 20 elements, 16 are two vectors. The last ones are read with four that were counted before.
// CHECK-LABEL: func.func @odd_row
// CHECK-DAG: %[[NEW:.*]] = arith.constant dense<[false, false, false, false, true, true, true, true]>
// CHECK-DAG: %[[LAST:.*]] = arith.constant 12 : index
// CHECK: vector.load %{{.*}}[%[[LAST]]]
// CHECK: arith.select %[[NEW]], {{.*}} : vector<8xi1>, vector<8xi32>
// CHECK-NOT: memref.load
// CHECK: return
func.func @odd_row(%x: memref<1x20xi32>, %y: memref<1xi32>) {
  %zero = arith.constant 0 : i32
  linalg.fill ins(%zero : i32) outs(%y : memref<1xi32>)
  linalg.generic {indexing_maps = [#row, #first], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<1x20xi32>) outs(%y : memref<1xi32>) {
  ^bb0(%a: i32, %b: i32):
    %0 = arith.addi %a, %b : i32
    linalg.yield %0 : i32
  }
  return
}

// Columns are lanes: no lane is joined with another.
// CHECK-LABEL: func.func @columns
// CHECK: arith.maximumf {{.*}} : vector<8xf32>
// CHECK-NOT: vector.extract
// CHECK: vector.store {{.*}}, vector<8xf32>
func.func @columns(%x: memref<256x16xf32>, %y: memref<16xf32>) {
  %low = arith.constant 0xFF800000 : f32
  linalg.fill ins(%low : f32) outs(%y : memref<16xf32>)
  linalg.generic {indexing_maps = [#row, #second], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<256x16xf32>) outs(%y : memref<16xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.maximumf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// Rows longer than what registers hold: eight at a time, and sums wait in memory. What is left over
// of rows comes last. This matrix fits a cache.
// CHECK-LABEL: func.func @long_rows
// CHECK: scf.for
// CHECK: vector.store {{.*}}, vector<8xf32>
// CHECK: scf.for {{.*}} to %c16 step %c8
// CHECK: scf.for {{.*}} to %c96 step %c32
// CHECK-COUNT-8: arith.addf {{.*}} fastmath<contract> : vector<8xf32>
// CHECK-NOT: memref.prefetch
// CHECK: scf.for {{.*}} to %c96 step %c32
// CHECK-COUNT-4: vector.store {{.*}}, vector<8xf32>
// CHECK-NOT: linalg
// CHECK: return
func.func @long_rows(%x: memref<17x96xf32>, %y: memref<96xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<96xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>],
      iterator_types = ["reduction", "parallel"]} ins(%x : memref<17x96xf32>) outs(%y : memref<96xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// One that no cache holds is asked for a block early, line by line.
// CHECK-LABEL: func.func @long_rows_of_memory
// CHECK: scf.for {{.*}} step %c8
// CHECK: memref.prefetch
// CHECK: arith.maximumf {{.*}} fastmath<nsz> : vector<8xf32>
// CHECK: return
func.func @long_rows_of_memory(%x: memref<8192x1024xf32>, %y: memref<1024xf32>) {
  %least = arith.constant 0xFF800000 : f32
  linalg.fill ins(%least : f32) outs(%y : memref<1024xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>],
      iterator_types = ["reduction", "parallel"]} ins(%x : memref<8192x1024xf32>) outs(%y : memref<1024xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.maximumf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// So are rows of sums; what two computations read, the second finds in a cache.
// CHECK-LABEL: func.func @sums_of_memory
// CHECK: memref.prefetch
// CHECK: return
func.func @sums_of_memory(%x: memref<8192x1024xf32>, %y: memref<8192xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<8192xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : memref<8192x1024xf32>) outs(%y : memref<8192xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// CHECK-LABEL: func.func @read_twice
// CHECK-NOT: memref.prefetch
// CHECK: return
func.func @read_twice(%x: memref<8192x1024xf32>, %y: memref<8192xf32>, %z: memref<8192xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<8192xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : memref<8192x1024xf32>) outs(%y : memref<8192xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  }
  linalg.fill ins(%zero : f32) outs(%z : memref<8192xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : memref<8192x1024xf32>) outs(%z : memref<8192xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.mulf %a, %a : f32
    %0 = arith.addf %1, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// What knows where it is stays.
// CHECK-LABEL: func.func @position
// CHECK: linalg.generic
// CHECK: linalg.index 1
func.func @position(%y: memref<2x12xi64>) {
  linalg.generic {indexing_maps = [#row], iterator_types = ["parallel", "parallel"]}
      outs(%y : memref<2x12xi64>) {
  ^bb0(%b: i64):
    %0 = linalg.index 1 : index
    %1 = arith.index_cast %0 : index to i64
    linalg.yield %1 : i64
  }
  return
}
}
