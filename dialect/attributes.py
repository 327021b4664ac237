"""Attributes and types: `#npu.space<"sram">`, `#npu.target<{...}>`, `!npu.token`."""

# No postponed annotations here: ext reads the classes themselves.
from mlir_npu.dialect.base import Npu
from mlir_npu.dialect.bindings import ir

DRAM, SRAM, ACC = "dram", "sram", "acc"
SPACES = (DRAM, SRAM, ACC)


class SpaceAttr(Npu.Attribute, name="space"):
    """The memory of a buffer: `dram`, `sram` (scratchpad) or `acc` (accumulators).

    The memory space of a memref type. A memref without one is in dram.
    """

    space: ir.StringAttr


class TargetAttr(Npu.Attribute, name="target"):
    """The machine that a module is compiled for: the attribute `npu.target` of the module.

    It has the keys of the target file, detected values filled in; `Target.to_attribute` writes it.
    """

    properties: ir.DictAttr


class TokenType(Npu.Type, name="token"):
    """One move in flight: made by npu.dma_start, consumed by npu.dma_wait."""


class DenseArrayAttr(ir.DenseI64ArrayAttr):
    """Constraint for `array<i64: ...>`; the binding's own class does not name its base."""

    attr_name = "builtin.dense_array"


DenseArrayAttr.BASE = ir.DenseI64ArrayAttr


def space_attr(space: str) -> ir.Attribute:
    """`#npu.space<"...">` for one of SPACES, in the current context."""
    return SpaceAttr.get(ir.StringAttr.get(space))


def space_of(memref_type: ir.Type) -> str:
    """ "dram", "sram" or "acc"; any other memory space is returned as its text."""
    attribute = ir.MemRefType(memref_type).memory_space
    if attribute is None:
        return DRAM
    if not isinstance(attribute, SpaceAttr):
        return str(attribute)
    return ir.StringAttr(SpaceAttr(attribute).space).value


def with_space(memref_type: ir.MemRefType, space: str) -> ir.MemRefType:
    """The same memref type in another memory."""
    attribute = None if space == DRAM else space_attr(space)
    return ir.MemRefType.get(
        memref_type.shape,
        memref_type.element_type,
        layout=memref_type.layout,
        memory_space=attribute,
    )
