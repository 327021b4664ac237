// RUN: %npu-opt %s --target nano --pass-pipeline='builtin.module(plan-scratchpad)' --split-input-file --verify-diagnostics

// expected-error @below {{eltwise kernel 'large': sram needs 320 of 256 bytes; largest buffers: 0: memref<64xf32, #npu.space<"sram">> (256 bytes), 1: memref<16xf32, #npu.space<"sram">> (64 bytes); use a smaller tile}}
func.func private @large() attributes {npu.kernel = "eltwise"} {
  %a = memref.alloc() : memref<64xf32, #npu.space<"sram">>
  %b = memref.alloc() : memref<16xf32, #npu.space<"sram">>
  "npu.fill"(%b) {value = 0.0 : f32} : (memref<16xf32, #npu.space<"sram">>) -> ()
  "npu.fill"(%a) {value = 0.0 : f32} : (memref<64xf32, #npu.space<"sram">>) -> ()
  return
}

// -----

func.func private @dynamic(%n: index) attributes {npu.kernel = "eltwise"} {
  // expected-error @below {{a buffer must have a static shape, got memref<?xf32, #npu.space<"sram">>}}
  %a = memref.alloc(%n) : memref<?xf32, #npu.space<"sram">>
  return
}

// -----

func.func private @carried(%n: index) attributes {npu.kernel = "eltwise"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %first = memref.alloc() : memref<4xf32, #npu.space<"sram">>
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%old = %first) -> (memref<4xf32, #npu.space<"sram">>) {
    // expected-error @below {{a buffer of one iteration reaches the next; allocate it in front of the loop}}
    %new = memref.alloc() : memref<4xf32, #npu.space<"sram">>
    scf.yield %new : memref<4xf32, #npu.space<"sram">>
  }
  return
}

// -----

func.func private @no_numbers() attributes {npu.kernel = "eltwise"} {
  // expected-error @below {{a buffer must hold integers or floats, got memref<4xindex, #npu.space<"sram">>}}
  %a = memref.alloc() : memref<4xindex, #npu.space<"sram">>
  return
}
