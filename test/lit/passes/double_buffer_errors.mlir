// RUN: %npu-opt %s --target small --pass-pipeline='builtin.module(double-buffer)' --split-input-file --verify-diagnostics

// expected-error @below {{kernel 'unscheduled' has no schedule; run choose-tiles first}}
func.func private @unscheduled() attributes {npu.kernel = "eltwise"} {
  return
}

// -----

// expected-error @below {{schedule of 'text': buffers must be 1 or 2, got "two"}}
func.func private @text() attributes {npu.kernel = "eltwise", npu.schedule = {buffers = "two"}} {
  return
}

// -----

// expected-error @below {{tiles of 'unordered' have no order yet; run order-tiles first}}
func.func private @unordered() attributes {npu.kernel = "eltwise",
    npu.schedule = {tile = array<i64: 1>, order = array<i64: 0>, buffers = 2 : i64}} {
  scf.forall (%y) in (7) {
  }
  return
}
