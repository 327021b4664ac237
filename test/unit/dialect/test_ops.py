"""Ops from Python: builders, accessors, adaptors; and that the lit tests leave no op out."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlir_npu.dialect import npu
from mlir_npu.dialect.base import SEGMENTS, TileOp
from mlir_npu.dialect.bindings import func, ir, make_context, rewrite
from mlir_npu.dialect.slots import MAX_INPUTS

LIT = Path(__file__).resolve().parents[2] / "lit" / "dialect"
OPS = [op for op in npu.Npu.operations if hasattr(op, "OPERATION_NAME")]

SRAM_TILE = 'memref<4x8xf32, #npu.space<"sram">>'
SRAM_ROW = 'memref<8xf32, #npu.space<"sram">>'
DRAM_TILE = "memref<4x8xf32>"


@pytest.fixture
def values():
    """A function with a dram tile, an sram tile, an sram row and an index; ops go into it."""
    with make_context(), ir.Location.unknown():
        types = [ir.Type.parse(text) for text in (DRAM_TILE, SRAM_TILE, SRAM_ROW, "index")]
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("f", (types, []))
        block = function.add_entry_block()
        with ir.InsertionPoint(block):
            back = func.ReturnOp([])
        with ir.InsertionPoint(back):
            yield module, *block.arguments


def maps(*texts: str) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([ir.Attribute.parse(f"affine_map<(d0, d1) -> {t}>") for t in texts])


def fill_body(op) -> None:
    f32 = ir.F32Type.get()
    count = len(op.operands)
    block = op.body.blocks.append(*[f32] * count, arg_locs=[ir.Location.unknown()] * count)
    with ir.InsertionPoint(block):
        npu.YieldOp([block.arguments[0]])


def keep(kind: ir.Type) -> ir.Type:
    """A type converter keeps no reference to its functions, so they live in the module."""
    return kind


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.OPERATION_NAME)
def test_every_op_has_lit_tests(op):
    quoted = f'"{op.OPERATION_NAME}"('
    for kind in ("roundtrip", "invalid"):
        texts = [path.read_text() for path in LIT.glob(f"{kind}_*.mlir")]
        assert any(quoted in text for text in texts), f"no {kind} test has {op.OPERATION_NAME}"


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.OPERATION_NAME)
def test_every_op_is_a_documented_tile_op_of_the_table_of_contents(op):
    assert issubclass(op, TileOp)
    assert op.__doc__ and op.__doc__ != TileOp.__doc__
    assert op.__name__ in npu.__all__


def test_a_plain_move(values):
    module, dram, sram, _, _ = values
    move = npu.DmaStartOp.build(dram, sram)
    npu.DmaWaitOp([move.token])
    assert module.operation.verify()
    assert (move.source, move.target, move.low) == (dram, sram, [])
    assert list(move.permutation) == [0, 1]
    assert move.pad_value is None
    assert SEGMENTS not in move.attributes


def test_a_padded_move(values):
    module, dram, sram, _, index = values
    zero = ir.FloatAttr.get_f32(0.0)
    move = npu.DmaStartOp.build(dram, sram, low=[index, index], permutation=(0, 1), pad_value=zero)
    assert move.low == [index, index]
    assert move.pad_value == zero
    wait = npu.DmaWaitOp([move.token, move.token])
    assert wait.tokens == [move.token, move.token]
    assert module.operation.verify()


def test_inputs_of_different_types_are_one_list(values):
    module, _, sram, row, _ = values
    op = npu.EltwiseOp([sram, row], sram, maps("(d0, d1)", "(d1)", "(d0, d1)"))
    fill_body(op)
    assert module.operation.verify()
    assert (op.inputs, op.output) == ([sram, row], sram)
    again = ir.Module.parse(str(module))
    assert str(again) == str(module)


def test_an_input_may_be_replaced_by_one_of_another_type(values):
    module, _, sram, row, _ = values
    op = npu.EltwiseOp([sram, sram], sram, maps("(d0, d1)", "(d0, d1)", "(d0, d1)"))
    fill_body(op)
    op.operation.operands[1] = row
    op.attributes["indexing_maps"] = maps("(d0, d1)", "(d1)", "(d0, d1)")
    assert module.operation.verify()


def test_as_many_inputs_as_there_are_slots(values):
    module, _, sram, _, _ = values
    op = npu.EltwiseOp([sram] * MAX_INPUTS, sram, maps(*["(d0, d1)"] * (MAX_INPUTS + 1)))
    fill_body(op)
    assert module.operation.verify()
    more = npu.EltwiseOp([sram] * (MAX_INPUTS + 1), sram, maps(*["(d0, d1)"] * (MAX_INPUTS + 2)))
    fill_body(more)
    with pytest.raises(ir.MLIRError, match=f"takes at most {MAX_INPUTS} inputs"):
        module.operation.verify()


def test_conversion_patterns_see_operands_by_name(values):
    module, dram, sram, _, _ = values
    move = npu.DmaStartOp.build(dram, sram)
    npu.DmaWaitOp([move.token])
    seen = []

    def convert_wait(op, adaptor, type_converter, rewriter):
        seen.append(len(adaptor.tokens))
        rewriter.erase_op(op)

    patterns, converter = rewrite.RewritePatternSet(), rewrite.TypeConverter()
    converter.add_conversion(keep)
    patterns.add_conversion(npu.DmaWaitOp, convert_wait, converter)
    target = rewrite.ConversionTarget()
    target.add_illegal_op(npu.DmaWaitOp)
    frozen = patterns.freeze()
    config = rewrite.ConversionConfig()
    rewrite.apply_partial_conversion(module.operation, target, frozen, config)
    assert seen == [1]
    assert "npu.dma_wait" not in str(module)


@pytest.mark.parametrize("space", ["dram", "sram", "acc"])
def test_spaces_of_types(space):
    with make_context(), ir.Location.unknown():
        plain = ir.MemRefType.get([4], ir.F32Type.get())
        assert npu.space_of(plain) == "dram"
        spaced = npu.with_space(plain, space)
        assert npu.space_of(spaced) == space
        assert npu.with_space(spaced, "dram") == plain
        assert ir.Type.parse(str(spaced)) == spaced
