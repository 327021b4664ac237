"""The reference of the npu dialect, made from the op classes and from what their verifiers say.

Which memories an operand may be in is found by trying: the example of the op is verified with the
operand in each memory. Diagnostics are those of bad examples. A good example that does not verify,
and a bad one that does, fail the generator.
"""

from __future__ import annotations

import inspect
from typing import Any

from mlir_npu.dialect import npu
from mlir_npu.dialect.attributes import SPACES, with_space
from mlir_npu.dialect.base import _KINDS as KINDS
from mlir_npu.dialect.bindings import ext, ir, make_context
from mlir_npu.passes.opt_driver import OptOptions, process_chunk
from mlir_npu.scripts.docs.dialect_examples import EXAMPLES
from mlir_npu.scripts.docs.dialect_mistakes import FORM, RULES, Bad

VARIADIC = ext.Variadicity.variadic


def ops() -> str:
    """A section for each op: text, operands, attributes, effects, example."""
    with make_context(), ir.Location.unknown():
        return "\n\n".join(_section(op) for op in _op_classes())


def attributes() -> str:
    """A row for each attribute and type."""
    rows = ["| | meaning |", "|---|---|"]
    for kind, sigil in ((npu.SpaceAttr, "#"), (npu.TargetAttr, "#"), (npu.TokenType, "!")):
        name = kind.type_name if sigil == "!" else kind.attr_name
        rows.append(f"| `{sigil}{name}` | {' '.join(inspect.getdoc(kind).split())} |")
    return "\n".join(rows)


def checks() -> str:
    """A row for each bad example: what it breaks, and the verifier's words."""
    rows = ["| op | rule | what the verifier says when it is broken |", "|---|---|---|"]
    rows += [f"| every op | {bad.rule} | `{_diagnostic(bad)}` |" for bad in FORM]
    rows += [f"| `npu.{bad.op}` | {bad.rule} | `{_diagnostic(bad)}` |" for bad in RULES]
    return "\n".join(rows)


def _op_classes() -> list[type]:
    """Movement, matrix unit and windows, vector unit, Winograd, each file in its order."""
    found = [op for op in npu.Npu.operations if hasattr(op, "OPERATION_NAME")]
    order = ("movement", "compute", "vector_unit", "winograd")
    return sorted(found, key=lambda op: order.index(op.__module__.rpartition(".")[2]))


def _section(op: type) -> str:
    short = op.OPERATION_NAME.removeprefix("npu.")
    if short not in EXAMPLES:
        raise ValueError(f"{op.OPERATION_NAME} has no example in dialect_examples.py")
    module = ir.Module.parse(EXAMPLES[short].text)  # an op does not keep its module alive
    example = _first(op, module)
    parts = [f"### {op.OPERATION_NAME}", _markdown(inspect.getdoc(op)), _fields(op, example)]
    if op._REGION_COUNT:
        parts.append("Region: `body`, one block that ends with `npu.yield`.")
    parts.append(f"Memory effects: {_effects(op)}")
    if op is not npu.YieldOp:  # every region shows it
        parts.append(f"```mlir\n{EXAMPLES[short].body.strip()}\n```")
    return "\n\n".join(part for part in parts if part)


def _markdown(docstring: str) -> str:
    """Paragraphs, and formulas: indented lines are code in Markdown too."""
    lines = docstring.split("\n")
    return "\n".join(line if line[:4] == "    " else line.replace("*", r"\*") for line in lines)


def _fields(op: type, example: ir.OpView) -> str:
    rows = [_operand_row(op, example, i) for i in range(len(op._OPERANDS))]
    for field in op._ATTRIBUTES:
        kind = getattr(field.constraint, "BASE", field.constraint)
        form = KINDS.get(kind, "an attribute").removeprefix("of the form ")
        rows.append(f"| attribute | `{field.name}` | {_code(form)} | |")
    rows += [f"| attribute | `{name}` | optional | |" for name in op.OPTIONAL]
    results = ext.partition_fields(op._fields)[2]
    rows += [f"| result | `{field.name}` | `!npu.token` | |" for field in results]
    if not rows:
        return ""
    return "\n".join(["| | name | type | memory |", "|---|---|---|---|", *rows])


def _code(form: str) -> str:
    return f"`{form}`" if "<" in form else form


def _operand_row(op: type, example: ir.OpView, position: int) -> str:
    field = op._OPERANDS[position]
    value = getattr(example, field.name)
    count = " (any number)" if field.variadicity == VARIADIC else ""
    if count:
        value = value[0]
    spaces, kind = "", f"`{value.type}`"
    if isinstance(value.type, ir.MemRefType):
        spaces, kind = " or ".join(_memories(example, value)), "memref"
    elif field.constraint is Any:
        kind = "any"
    return f"| operand | `{field.name}` | {kind}{count} | {spaces} |"


def _memories(example: ir.OpView, value: ir.Value) -> list[str]:
    """The memories that the verifier accepts for one operand, the others as they are."""
    kept, accepted = value.type, []
    for space in SPACES:
        value.set_type(with_space(ir.MemRefType(kept), space))
        try:
            example.operation.verify()
            accepted.append(space)
        except ir.MLIRError:
            pass
    value.set_type(kept)
    return accepted


def _effects(op: type) -> str:
    """What the op's effects interface says of itself."""
    if ir.IsTerminatorTrait in op._traits:
        return "none; the op is a terminator."
    for trait in op._traits:
        if issubclass(trait, ir.MemoryEffectsOpInterface):
            return inspect.getdoc(trait)[0].lower() + inspect.getdoc(trait)[1:]
    return "unknown to clean-up passes, which therefore move nothing across the op."


def _first(op: type, module: ir.Module) -> ir.OpView:
    found = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if operation.name == op.OPERATION_NAME:
            found.append(operation.opview)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found[0]


def _diagnostic(bad: Bad) -> str:
    problems = process_chunk(bad.text, OptOptions()).problems
    if not problems:
        raise ValueError(f"npu.{bad.op}: the bad example '{bad.rule}' verifies")
    return problems[0].partition(": error: ")[2].replace("|", r"\|")
