"""The `npu` dialect and the base class of its ops.

MLIR runs the verifier of an op before it has checked that operands, attributes and regions are
there at all. `TileOp` therefore checks the form of an op first and calls `verify_op` only if the
form is right, so that rules can read every field without guarding.
"""

# No annotations on class variables here: ext reads those as fields of the op.
from __future__ import annotations

from typing import Any

from mlir_npu.dialect.bindings import ext, ir

SEGMENTS = "operandSegmentSizes"
_KINDS = {
    ir.ArrayAttr: "a list",
    ir.DenseI64ArrayAttr: "of the form array<i64: ...>",
    ir.IntegerAttr: "an integer",
    ir.StringAttr: "a string",
}


class Npu(ext.Dialect, name="npu"):
    """Tiles, moves between memories, and compute on tiles."""


def error(op: ir.OpView, message: str) -> bool:
    """Emit "'npu.x' op message" at `op`; returns False."""
    op.location.emit_error(f"'{op.OPERATION_NAME}' op {message}")
    return False


class TileOp(Npu.Operation):
    """Base of all npu ops: a subclass overrides `verify_op`; OPTIONAL names optional attributes.

    An op has at most one variadic operand field. It takes what the other fields leave, so operands
    are found by position and the IR carries no operandSegmentSizes.
    """

    OPTIONAL = ()

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        operands, attributes, results, regions = ext.partition_fields(cls._fields)
        cls._OPERANDS, cls._ATTRIBUTES = operands, attributes
        cls._RESULT_COUNT, cls._REGION_COUNT = len(results), len(regions)
        if "name" not in kwargs:
            return
        if any(map(_is_variadic, operands)):
            _find_operands_by_position(cls)
        for name in cls.OPTIONAL:
            setattr(cls, name, property(lambda self, name=name: _optional_attribute(self, name)))

    def verify_invariants(self) -> bool:
        return verify_form(self) and self.verify_op()

    def verify_op(self) -> bool:
        """The rules of the op; emits an error and returns False where one is broken."""
        return True


def verify_form(op: TileOp) -> bool:
    """Operands, attributes, results and regions are those that the class declares."""
    variadic = any(map(_is_variadic, op._OPERANDS))
    fixed, count = len(op._OPERANDS) - variadic, len(op.operation.operands)
    if count < fixed or (count > fixed and not variadic):
        fields = ", ".join(f.name + "..." * _is_variadic(f) for f in op._OPERANDS)
        return error(op, f"takes the operands ({fields}), got {count}")
    if len(op.operation.results) != op._RESULT_COUNT:
        return error(op, f"has {op._RESULT_COUNT} results, got {len(op.operation.results)}")
    if len(op.operation.regions) != op._REGION_COUNT:
        return error(op, f"has {op._REGION_COUNT} regions, got {len(op.operation.regions)}")
    return _verify_attributes(op)


def _verify_attributes(op: TileOp) -> bool:
    for field in op._ATTRIBUTES:
        if field.name not in op.attributes:
            return error(op, f"needs the attribute '{field.name}'")
        kind, value = getattr(field.constraint, "BASE", field.constraint), op.attributes[field.name]
        if kind is not Any and not isinstance(value, kind):
            return error(
                op, f"'{field.name}' must be {_KINDS.get(kind, kind.__name__)}, got {value}"
            )
    known = [field.name for field in op._ATTRIBUTES] + list(op.OPTIONAL)
    for name in op.attributes:
        if name not in known and "." not in name and name != SEGMENTS:
            has = f"it has {', '.join(known)}" if known else "it has none"
            return error(op, f"has no attribute '{name}'; {has}")
    return True


def _optional_attribute(op: ir.OpView, name: str) -> ir.Attribute | None:
    return op.attributes.get(name)


def _is_variadic(field) -> bool:
    return field.variadicity == ext.Variadicity.variadic


def _find_operands_by_position(cls: type) -> None:
    """Replace the accessors and the builder of ext, which rely on operandSegmentSizes."""
    names = [field.name for field in cls._OPERANDS]
    variadic = next(i for i, field in enumerate(cls._OPERANDS) if _is_variadic(field))
    after = len(names) - variadic - 1

    def make_accessor(i: int):
        if i < variadic:
            return lambda self: self.operands[i]
        if i > variadic:
            return lambda self: self.operands[len(self.operands) - len(names) + i]
        return lambda self: list(self.operands)[variadic : len(self.operands) - after]

    for i, name in enumerate(names):
        for view in (cls, cls.Adaptor):
            setattr(view, name, property(make_accessor(i)))
    build = cls.__init__

    def __init__(self, *args, **kwargs):
        build(self, *args, **kwargs)
        del self.attributes[SEGMENTS]

    __init__.__signature__ = build.__signature__
    cls.__init__ = __init__
