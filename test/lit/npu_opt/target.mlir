// RUN: %npu-opt %s --target=edge | filecheck %s --check-prefix=EDGE
// RUN: %npu-opt %s --target=%inputs/avx2.toml | filecheck %s --check-prefix=FILE
// RUN: %npu-opt %s | filecheck %s --check-prefix=NONE
// RUN: %npu-opt %s --target=edge | %npu-opt --target=small | filecheck %s --check-prefix=EDGE
// RUN: not %npu-opt %s --target=edgy 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not %npu-opt %s --target=%S/Inputs/bad_value.toml 2>&1 | filecheck %s --check-prefix=BAD
// RUN: not %npu-opt %S/Inputs/bad_target.mlir --pass-pipeline='builtin.module(choose-tiles)' 2>&1 | filecheck %s --check-prefix=ATTRIBUTE

// --target is written into modules that name none; it goes through print and parse unchanged.

// EDGE: npu.target = #npu.target<{acc = {alignment = 64 : i64, bytes = 65536 : i64}, cached = false,
// EDGE-SAME: name = "edge"
// FILE: name = "avx2"
// FILE-SAME: vector = {lanes = 8 : i64, registers = 16 : i64}
// NONE-NOT: npu.target
// UNKNOWN: npu-opt: error: no target is called 'edgy' and no .toml file is there; did you mean 'edge'?
// BAD: npu-opt: error: target file '{{.*}}bad_value.toml': 'sram.bytes' must be an integer in [1, 1099511627776], got 0
// ATTRIBUTE: bad_target.mlir:1:1: error: npu.target: missing key 'description'
module {
}
