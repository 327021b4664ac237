"""Whatever an op looks like, its verifier accepts or refuses it with a message, and never raises.

Every op of the round-trip tests is damaged in every single place: each attribute removed or
replaced, each operand given another type. Python exceptions would pass through C++ frames.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mlir_npu.dialect.bindings import ir, make_context

LIT = Path(__file__).resolve().parents[2] / "lit" / "dialect"
JUNK_ATTRIBUTES = (
    "unit", "3 : i64", "0.5 : f64", '"max"', "[]", "[3]", '["parallel"]', "array<i64>",
    "array<i64: 0>", "array<i64: -1, -1>", "array<i64: 1, 0, 2>", "array<i32: 1, 1>",
    "array<f32: 1.0>", "affine_map<() -> ()>", "[affine_map<(d0) -> (d0)>]",
    "[affine_map<() -> ()>, affine_map<() -> ()>]",
    "[affine_map<(d0, d1)[s] -> (d0 + s, d1)>, affine_map<(d0, d1) -> (d0 floordiv 2, d1 mod 3)>]",
    "[affine_map<(d0, d1) -> (d0, d0)>, affine_map<(d0, d1) -> (-d1, d0 * -2)>]",
    "{}", "dense<1> : tensor<2xi64>", "@symbol", "f32", '#npu.space<"sram">',
)  # fmt: skip
JUNK_TYPES = (
    "f32", "index", "none", "!npu.token", "tensor<4x8xf32>", "vector<4xf32>", "memref<f32>",
    "memref<*xf32>", "memref<0x0xf32>", "memref<?x?x?x?xf32>", "memref<2xindex>",
    'memref<?x?xi1, #npu.space<"acc">>', 'memref<4x8xf32, #npu.space<"sram">>',
    'memref<8xf32, #npu.space<"acc">>', 'memref<1x2x3x4x5xf32, #npu.space<"sram">>',
    'memref<4xf32, #npu.space<"l1">>', "memref<4xf32, 7>", "memref<2xvector<4xf32>>",
    "memref<4x8xf32, affine_map<(d0, d1) -> (d1, d0)>>",
)  # fmt: skip


def npu_ops(module: ir.Module) -> list[ir.Operation]:
    found = []

    def collect(op: ir.Operation) -> ir.WalkResult:
        if op.name.startswith("npu."):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    return found


def damaged(op: ir.Operation) -> Iterator[str]:
    """Damage `op` in one place, yield what was done, repair, and go on with the next place."""
    for name in list(op.attributes):
        kept = op.attributes[name]
        del op.attributes[name]
        yield f"without {name}"
        for junk in JUNK_ATTRIBUTES:
            op.attributes[name] = ir.Attribute.parse(junk)
            yield f"{name} = {junk}"
        op.attributes[name] = kept
    for number, operand in enumerate(op.operands):
        kept = operand.type
        for junk in JUNK_TYPES:
            operand.set_type(ir.Type.parse(junk))
            yield f"operand {number} of type {junk}"
        operand.set_type(kept)
    for region in op.regions:
        for block in list(region.blocks):
            for argument in block.arguments:
                kept = argument.type
                for junk in JUNK_TYPES:
                    argument.set_type(ir.Type.parse(junk))
                    yield f"block argument of type {junk}"
                argument.set_type(kept)


@pytest.mark.parametrize("name", ["movement", "compute", "vector_unit"])
def test_damaged_ops_are_accepted_or_refused(name):
    text = (LIT / f"roundtrip_{name}.mlir").read_text()
    refused = 0
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        ops = npu_ops(module)
        assert ops
        for op in ops:
            for damage in damaged(op):
                try:
                    assert op.verify() is True
                except ir.MLIRError as error:
                    assert error.error_diagnostics, f"{op.name} {damage}: refused in silence"
                    refused += 1
        assert module.operation.verify(), "every damage was repaired"
    assert refused > 100


def test_a_detached_yield_is_refused():
    with make_context(), ir.Location.unknown():
        op = ir.Operation.create("npu.yield")
        with pytest.raises(ir.MLIRError, match="must be the last operation"):
            op.verify()


def test_emptied_regions_are_refused():
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse((LIT / "roundtrip_vector_unit.mlir").read_text())
        for op in npu_ops(module):
            if not len(op.regions):
                continue
            block = op.regions[0].blocks[0]
            for child in reversed(list(block.operations)):
                child.operation.erase()
            with pytest.raises(ir.MLIRError, match="empty block"):
                op.verify()
