"""Side by side: this backend and the engines one would use instead, on the CPU of this machine.

`python -m mlir_npu.benchmarks` (scripts/benchmark) runs suites of cases, each case in a process of
its own, and writes tables, a JSON file and a picture. docs/benchmarks.md explains the method.
"""
