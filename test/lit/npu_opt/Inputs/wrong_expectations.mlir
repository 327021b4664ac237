// expected-error {{something}}
func.func @nothing_happens() {
  return
}
// -----
func.func @other_message() {
  // expected-error @below {{takes two tokens}}
  "npu.dma_wait"() : () -> ()
  return
}
// -----
func.func @other_line() {

  // expected-error {{takes at least one token}}
  "npu.dma_wait"() : () -> ()
  return
}
// -----
func.func @other_kind() {
  // expected-warning {{nothing}}
  return
}
