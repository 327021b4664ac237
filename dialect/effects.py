"""Memory effects, so that upstream cse, licm and dead-code elimination treat npu ops correctly.

Waits and barriers declare none: an op without the interface may do anything and is never moved.
"""

from __future__ import annotations

from mlir_npu.dialect.bindings import ir


def _append(effects, kind, operand: ir.OpOperand) -> None:
    value = operand.owner.operands[operand.operand_number]
    if isinstance(value.type, ir.MemRefType):
        effects.append(kind, operand)


class MoveEffects(ir.MemoryEffectsOpInterface):
    """Reads operand 0, writes operand 1; index operands have no effect."""

    @staticmethod
    def get_effects(op, effects):
        source, target, *_ = op.op_operands
        _append(effects, ir.MemoryEffect.Read, source)
        _append(effects, ir.MemoryEffect.Write, target)


class AccumulateEffects(ir.MemoryEffectsOpInterface):
    """Reads all memrefs and updates the last one."""

    @staticmethod
    def get_effects(op, effects):
        operands = list(op.op_operands)
        for operand in operands:
            _append(effects, ir.MemoryEffect.Read, operand)
        _append(effects, ir.MemoryEffect.Write, operands[-1])


class OverwriteEffects(ir.MemoryEffectsOpInterface):
    """Reads all memrefs but the last, which it overwrites."""

    @staticmethod
    def get_effects(op, effects):
        *inputs, output = op.op_operands
        for operand in inputs:
            _append(effects, ir.MemoryEffect.Read, operand)
        _append(effects, ir.MemoryEffect.Write, output)


class FillEffects(ir.MemoryEffectsOpInterface):
    """Writes its only operand."""

    @staticmethod
    def get_effects(op, effects):
        _append(effects, ir.MemoryEffect.Write, op.op_operands[0])
