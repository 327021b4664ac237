// RUN: npu-opt %s --verify-diagnostics --pass-pipeline='builtin.module(outline-prepare)'

func.func @prepare() {
  return
}
// expected-error @+1 {{'main' has work to prepare, but there is a @prepare already}}
func.func @main(%w: tensor<4xf32> {npu.role = "parameter"}) -> tensor<4xf32> {
  %r = call @pack(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func private @pack(tensor<4xf32>) -> tensor<4xf32> attributes {npu.kernel = "copy"}
