"""Run functions on tensors by upstream passes alone: the reference for our passes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from mlir_npu.dialect.bindings import ExecutionEngine, PassManager, func, ir

LOWERING = (
    "inline,symbol-dce,canonicalize,cse,"
    "one-shot-bufferize{bufferize-function-boundaries=1"
    " function-boundary-type-conversion=identity-layout-map},"
    "buffer-results-to-out-params{modify-public-functions=1},canonicalize,cse,"
    "func.func(refback-munge-memref-copy),buffer-deallocation-pipeline,convert-bufferization-to-memref,"
    "convert-linalg-to-loops,fold-memref-alias-ops,expand-strided-metadata,lower-affine,convert-scf-to-cf,"
    "convert-ub-to-llvm,convert-math-to-llvm,convert-math-to-libm,convert-arith-to-llvm,convert-index-to-llvm,"
    "finalize-memref-to-llvm,convert-cf-to-llvm,convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},"
    "canonicalize,reconcile-unrealized-casts"
)


def run(module: ir.Module, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Results of @main, after @prepare if there is one. Consumes the module."""
    _join_prepare(module)
    main = _functions(module)["main"]
    results = [
        np.full(ir.RankedTensorType(t).shape, np.nan, np.float32) for t in _type(main).results
    ]
    for function in _functions(module).values():
        for name in ("arg_attrs", "npu.kernel"):
            if name in function.attributes:
                del function.attributes[name]
    if "npu.target" in module.operation.attributes:
        del module.operation.attributes["npu.target"]
    PassManager.parse(f"builtin.module({LOWERING})").run(module.operation)
    engine = ExecutionEngine(module, opt_level=0)
    copies = [array.copy() for array in inputs]
    arrays = [*copies, *results]
    values = (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])
    base = ctypes.addressof(values)
    slots = (ctypes.c_void_p * len(arrays))(*[base + 8 * i for i in range(len(arrays))])
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(engine.raw_lookup("main"))(ctypes.addressof(slots))
    for before, after in zip(inputs, copies, strict=True):
        np.testing.assert_array_equal(before, after, err_msg="an input was written to")
    return results


def _functions(module: ir.Module) -> dict[str, ir.Operation]:
    ops = [view.operation for view in module.body.operations]
    return {ir.StringAttr(op.attributes["sym_name"]).value: op for op in ops}


def _type(function: ir.Operation) -> ir.FunctionType:
    return ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)


def _join_prepare(module: ir.Module) -> None:
    """One @main that calls @prepare and passes its results on, as a caller would."""
    functions = _functions(module)
    if "prepare" not in functions:
        return
    main, prepare = functions["main"], functions["prepare"]
    roles = [
        ir.StringAttr(ir.DictAttr(a)["npu.role"]).value
        for a in ir.ArrayAttr(main.attributes["arg_attrs"])
    ]
    given = [role for role in roles if role != "prepared"]
    assert roles == given + ["prepared"] * len(_type(prepare).results)
    for function in (main, prepare):
        function.attributes["sym_visibility"] = ir.StringAttr.get("private")
    main.attributes["sym_name"] = ir.StringAttr.get("run")
    types = _type(main)
    with ir.InsertionPoint(module.body), ir.Location.unknown():
        joined = func.FuncOp("main", (types.inputs[: len(given)], types.results))
        block = joined.add_entry_block()
    with ir.InsertionPoint(block), ir.Location.unknown():
        parameters = [
            a for a, role in zip(block.arguments, given, strict=True) if role == "parameter"
        ]
        prepared = func.CallOp(_type(prepare).results, "prepare", parameters)
        results = func.CallOp(types.results, "run", [*block.arguments, *prepared.operation.results])
        func.ReturnOp(list(results.operation.results))
