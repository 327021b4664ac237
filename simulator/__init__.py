"""Runs tile programs: for their results (`functional`) and for their time (`timing`).

`program` makes closures of a module's functions, which both share. `docs/simulator.md` has the
machine and the command `npu-sim`.
"""
