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
