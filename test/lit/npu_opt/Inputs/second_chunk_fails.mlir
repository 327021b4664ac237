func.func @first() {
  return
}
// -----
func.func @second() {
  // The error is on the next line, counted from the start of the file.
  "npu.dma_wait"() : () -> ()
  return
}
// -----
func.func @third() {
  return
}
