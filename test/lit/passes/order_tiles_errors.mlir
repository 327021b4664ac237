// RUN: %npu-opt %s --pass-pipeline='builtin.module(order-tiles)' --split-input-file --verify-diagnostics

// expected-error @+1 {{schedule of 'twice': order [0, 0] does not name 2 loops}}
func.func private @twice(%x: memref<7xf32>) attributes {npu.kernel = "eltwise",
    npu.schedule = {tile = array<i64: 1, 1>, order = array<i64: 0, 0>}} {
  scf.forall (%y, %k) in (7, 4) {
  }
  return
}

// -----

func.func private @counters(%x: memref<7xf32>) attributes {npu.kernel = "eltwise",
    npu.schedule = {tile = array<i64: 1, 0>, order = array<i64: 0, 1>}} {
  // expected-error @+1 {{has 2 counters, its schedule tiles 1 loops}}
  scf.forall (%y, %k) in (7, 4) {
  }
  return
}

// -----

func.func private @strided(%x: memref<7xf32>) attributes {npu.kernel = "eltwise",
    npu.schedule = {tile = array<i64: 1>, order = array<i64: 0>}} {
  // expected-error @+1 {{tile loops must count from 0 in steps of 1, got (0,) to (8,) by (2,)}}
  scf.forall (%y) = (0) to (8) step (2) {
  }
  return
}

// -----

// expected-error @+1 {{kernel 'unscheduled' has no schedule; run choose-tiles first}}
func.func private @unscheduled(%x: memref<7xf32>) attributes {npu.kernel = "eltwise"} {
  scf.forall (%y) in (7) {
  }
  return
}

// -----

func.func private @too_late(%x: memref<7xf32>) attributes {npu.kernel = "eltwise",
    npu.schedule = {tile = array<i64: 1>, order = array<i64: 0>}} {
  // expected-error @+1 {{double-buffer has already passed over these tiles; run order-tiles before it}}
  scf.forall (%y) in (7) {
    %a = memref.alloc() {npu.single_buffer = "stands in no loop"} : memref<4xf32, #npu.space<"sram">>
  }
  return
}
