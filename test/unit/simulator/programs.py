"""Small tile programs, written by hand."""

from __future__ import annotations

import itertools

from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.dialect.target import Target, load_target, set_target

SRAM, ACC = '#npu.space<"sram">', '#npu.space<"acc">'


def memref(shape: str, space: str = "") -> str:
    """memref("4x8", SRAM) is memref<4x8xf32, #npu.space<"sram">>; space: empty for dram."""
    return f"memref<{shape}xf32{', ' + space if space else ''}>"


def load(source: str, target: str, shape: str, token: str) -> str:
    """Moves all of dram %source to sram %target."""
    return _move(source, target, memref(shape), memref(shape, SRAM), shape, token)


def store(source: str, target: str, shape: str, token: str) -> str:
    return _move(source, target, memref(shape, SRAM), memref(shape), shape, token)


def _move(source, target, source_type, target_type, shape, token) -> str:
    order = ", ".join(str(i) for i in range(shape.count("x") + 1))
    return (
        f'%{token} = "npu.dma_start"(%{source}, %{target}) {{permutation = array<i64: {order}>}} '
        f": ({source_type}, {target_type}) -> !npu.token"
    )


def wait(*tokens: str) -> str:
    names = ", ".join(f"%{token}" for token in tokens)
    return f'"npu.dma_wait"({names}) : ({", ".join("!npu.token" for _ in tokens)}) -> ()'


def alloc(name: str, shape: str, space: str = SRAM) -> str:
    return f"%{name} = memref.alloc() : {memref(shape, space)}"


def fill(name: str, shape: str, space: str = ACC) -> str:
    return f'"npu.fill"(%{name}) {{value = 0.0 : f32}} : ({memref(shape, space)}) -> ()'


def negate(source: str, target: str, shape: str) -> str:
    """One scalar op per element."""
    return _region("eltwise", [source], [], target, shape, SRAM, "arith.negf %v0 : f32")


def add(first: str, second: str, target: str, shape: str) -> str:
    body = "arith.addf %v0, %v1 : f32"
    return _region("eltwise", [first, second], [], target, shape, SRAM, body)


def drain(source: str, target: str, shape: str) -> str:
    """Negates, one scalar op per element."""
    return _region("drain", [], [source], target, shape, ACC, "arith.negf %v0 : f32")


def _region(name, inputs, accumulator, target, shape, space, body) -> str:
    dims = ", ".join(f"d{i}" for i in range(shape.count("x") + 1))
    operands = [*accumulator, *inputs]
    maps = ", ".join([f"affine_map<({dims}) -> ({dims})>"] * (len(operands) + 1))
    names = ", ".join(f"%{operand}" for operand in [*operands, target])
    types = ", ".join([memref(shape, space)] * len(operands) + [memref(shape, SRAM)])
    arguments = ", ".join(f"%v{i}: f32" for i in range(len(operands) + 1))
    given = [1] * (len(accumulator) + len(inputs)) + [0] * (16 - len(inputs)) + [1]
    return (
        f'"npu.{name}"({names}) ({{\n^bb0({arguments}):\n  %r = {body}\n  "npu.yield"(%r) : '
        f"(f32) -> ()\n}}) {{indexing_maps = [{maps}], operandSegmentSizes = "
        f"array<i32: {', '.join(map(str, given))}>}} : ({types}) -> ()"
    )


def matmul(left: str, right: str, total: str, rows: int, depth: int, blocks: int, block: int):
    types = (
        memref(f"{rows}x{depth}", SRAM),
        memref(f"{blocks}x{depth}x{block}", SRAM),
        memref(f"{rows}x{blocks}x{block}", ACC),
    )
    return f'"npu.matmul"(%{left}, %{right}, %{total}) : ({", ".join(types)}) -> ()'


def kernel(arguments: dict[str, str], *lines: str, target: Target | str = "edge") -> ir.Module:
    """A module with one kernel; arguments: shape by name."""
    listed = ", ".join(f"%{name}: {memref(shape)}" for name, shape in arguments.items())
    text = "\n".join(lines)
    target = load_target(target) if isinstance(target, str) else target
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(
            f'func.func @kernel({listed}) attributes {{npu.kernel = "test"}} {{\n{text}\nreturn\n}}'
        )
        set_target(module.operation, target)
    return module


def double_buffered(tiles: int, shape: str, compute: str, before=(), out=None) -> str:
    """The loop that the stage "pipeline" makes of tiles %x[i] to %y[i].

    compute: text that reads %cur, of `shape`, and writes %o, of shape `out` if it is given; before:
    lines in front of everything.
    """
    out = out or shape
    names = itertools.count()

    def box(source: str, of: str, index: str) -> tuple[str, str, str]:
        name = f"box{next(names)}"
        extents = of.split("x")
        zeros, ones = ", 0" * len(extents), ", ".join(["1"] * (len(extents) + 1))
        strides, step = [], 1
        for extent in reversed([int(e) for e in extents]):
            strides.insert(0, step)
            step *= extent
        type_ = f"memref<{of}xf32, strided<{strides}, offset: ?>>"
        text = (
            f"%{name} = memref.subview %{source}[%{index}{zeros}] [1, {', '.join(extents)}] "
            f"[{ones}] : {memref(f'{tiles}x{of}')} to {type_}"
        )
        return text, name, type_

    rank = shape.count("x") + 1
    order = ", ".join(str(i) for i in range(rank))
    out_order = ", ".join(str(i) for i in range(out.count("x") + 1))

    def start(token, source, source_type, target, target_type, permutation) -> str:
        return (
            f'%{token} = "npu.dma_start"(%{source}, %{target}) '
            f"{{permutation = array<i64: {permutation}>}} : ({source_type}, {target_type}) "
            "-> !npu.token"
        )

    sram, out_sram = memref(shape, SRAM), memref(out, SRAM)
    first_text, first, first_type = box("x", shape, "c0")
    next_text, following, next_type = box("x", shape, "after")
    out_text, out_box, out_type = box("y", out, "i")
    return "\n".join(
        [
            *before,
            alloc("a", shape),
            alloc("b", shape),
            alloc("p", out),
            alloc("q", out),
            "%c0 = arith.constant 0 : index",
            "%c1 = arith.constant 1 : index",
            "%c2 = arith.constant 2 : index",
            f"%n = arith.constant {tiles} : index",
            first_text,
            start("t0", first, first_type, "a", sram, order),
            '%none = "npu.dma_none"() : () -> !npu.token',
            "%r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%load = %t0, %before = %none)",
            "    -> (!npu.token, !npu.token) {",
            wait("load"),
            "%parity = arith.remui %i, %c2 : index",
            "%odd = arith.cmpi eq, %parity, %c1 : index",
            f"%cur = arith.select %odd, %b, %a : {sram}",
            f"%other = arith.select %odd, %a, %b : {sram}",
            f"%o = arith.select %odd, %q, %p : {out_sram}",
            "%after = arith.addi %i, %c1 : index",
            "%more = arith.cmpi ult, %after, %n : index",
            "%t = scf.if %more -> (!npu.token) {",
            next_text,
            start("u", following, next_type, "other", sram, order),
            "scf.yield %u : !npu.token",
            "} else {",
            '%nothing = "npu.dma_none"() : () -> !npu.token',
            "scf.yield %nothing : !npu.token",
            "}",
            compute,
            wait("before"),
            out_text,
            start("s", "o", out_sram, out_box, out_type, out_order),
            "scf.yield %t, %s : !npu.token, !npu.token",
            "}",
            wait("r#0"),
            wait("r#1"),
        ]
    )
