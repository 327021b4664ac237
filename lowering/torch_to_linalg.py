"""Text in the torch dialect -> linalg on tensors, with torch-mlir's passes. Needs no torch.

Before: a function on !torch.vtensor
After:

    func.func @main(%0: tensor<...> {npu.role = "input"}, %1: tensor<...> {npu.role = "parameter"},
    ...) -> (...)

in linalg, tensor, arith and math.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mlir_npu.dialect.bindings import PassManager, func, ir, make_context
from mlir_npu.lowering.import_apart import TorchText
from mlir_npu.lowering.import_error import RegionImportError

TO_BACKEND = (
    "builtin.module(func.func(torch-match-quantized-custom-ops),"
    "torchdynamo-export-to-torch-backend-pipeline{extra-library=})"
)
TO_LINALG = "builtin.module(torch-backend-to-linalg-on-tensors-backend-pipeline)"

_LINALG_LEVEL = frozenset({"builtin", "func", "linalg", "tensor", "arith", "math", "cf"})


def parse_torch(graph: TorchText) -> ir.Module:
    """In a context of its own. Raises RegionImportError."""
    with make_context() as context, ir.Location.unknown():
        context.get_dialect_descriptor("torch")
        _refuse_unknown_operators(graph, context)
        try:
            return ir.Module.parse(graph.text)
        except ir.MLIRError as error:
            raise RegionImportError(f"torch-mlir cannot import the graph: {error}") from error


def lower_torch(module: ir.Module, roles: Sequence[str]) -> None:
    """In place. roles: "input" or "parameter" for every argument. Raises RegionImportError."""
    with module.context, ir.Location.unknown():
        for pipeline in (TO_BACKEND, TO_LINALG):
            try:
                PassManager.parse(pipeline).run(module.operation)
            except ir.MLIRError as error:
                raise _explain(error) from error
        _refuse_other_dialects(module)
        (main,) = (op for op in module.body.operations if isinstance(op, func.FuncOp))
        main.arg_attrs = ir.ArrayAttr.get(
            [ir.DictAttr.get({"npu.role": ir.StringAttr.get(role)}) for role in roles]
        )


def _refuse_unknown_operators(graph: TorchText, context: ir.Context) -> None:
    unknown = sorted(name for name in graph.operators if not context.is_registered_operation(name))
    if unknown:
        names = tuple(name.removeprefix("torch.") for name in unknown)
        raise RegionImportError(
            f"torch-mlir does not know {', '.join(names)}",
            operators=names,
            location=graph.operators[unknown[0]],
        )


def _refuse_other_dialects(module: ir.Module) -> None:
    """Scatter, sort, scan and attention come out as tm_tensor operations, loops as scf: nothing
    here lowers those."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name.split(".")[0] not in _LINALG_LEVEL:
            found.append(op)
            return ir.WalkResult.INTERRUPT
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    if found:
        raise RegionImportError(
            f"an operator comes out as {found[0].name}, which is not supported",
            location=_file_line(found[0].location),
        )


def _explain(error: ir.MLIRError) -> RegionImportError:
    diagnostics = error.error_diagnostics
    if not diagnostics:
        return RegionImportError(f"torch-mlir cannot lower the graph: {error}")
    first = diagnostics[0]
    found = re.search(r'loc\("(\w+\.[\w.]+)"', str(first.location))
    operators = (found.group(1),) if found else ()
    what = operators[0] if operators else "the graph"
    return RegionImportError(
        f"torch-mlir cannot lower {what}: {first.message.splitlines()[0]}",
        operators=operators,
        location=_file_line(first.location),
    )


def _file_line(location: ir.Location) -> str | None:
    """ "file:line" of the innermost frame in a location."""
    frames = re.findall(r'"([^"]+)":(\d+):\d+', str(location))
    return f"{frames[0][0]}:{frames[0][1]}" if frames else None
