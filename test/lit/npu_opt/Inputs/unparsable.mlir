func.func @g() {
  // One line of the error.
  %0 = arith.nothing
  return
}
