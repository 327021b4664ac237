"""One good example of every npu op, and bad ones: each breaks one rule of the verifier.

A bad example is a good one with some text replaced, so that it shows the one thing that is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """`body` stands in a function with these arguments; #sram and #acc are the memory spaces."""

    arguments: str
    body: str

    @property
    def text(self) -> str:
        body = self.body.strip().replace("\n", "\n  ")
        return (
            '#sram = #npu.space<"sram">\n#acc = #npu.space<"acc">\n'
            f"func.func @example({self.arguments}) {{\n  {body}\n  return\n}}\n"
        )


@dataclass(frozen=True)
class Bad:
    """The example of `op` after `replacements` breaks the rule."""

    op: str
    rule: str
    replacements: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        text = EXAMPLES[self.op].text
        for old, new in self.replacements:
            if old not in text:
                raise ValueError(f"the example of npu.{self.op} has no {old!r}")
            text = text.replace(old, new)
        return text


def _slots(before: int, after: int) -> str:
    sizes = [1] * before + [0] * (after - before) + [1]
    return f"operandSegmentSizes = array<i32: {', '.join(map(str, sizes))}>"


EXAMPLES = {
    "dma_start": Example(
        "%image: memref<9x10x16xf32, strided<[512, 16, 1], offset: ?>>, "
        "%tile: memref<10x10x16xf32, #sram>, %top: index, %zero: index",
        """
%token = "npu.dma_start"(%image, %tile, %top, %zero, %zero) {
    permutation = array<i64: 0, 1, 2>, pad_value = 0.0 : f32
  } : (memref<9x10x16xf32, strided<[512, 16, 1], offset: ?>>, memref<10x10x16xf32, #sram>,
       index, index, index) -> !npu.token
"npu.dma_wait"(%token) : (!npu.token) -> ()
""",
    ),
    "dma_wait": Example(
        "%load: !npu.token, %store: !npu.token",
        '"npu.dma_wait"(%load, %store) : (!npu.token, !npu.token) -> ()',
    ),
    "dma_none": Example(
        "",
        """
%token = "npu.dma_none"() : () -> !npu.token
"npu.dma_wait"(%token) : (!npu.token) -> ()
""",
    ),
    "dma_join": Example(
        "%rows: !npu.token, %more_rows: !npu.token",
        """
%all = "npu.dma_join"(%rows, %more_rows) : (!npu.token, !npu.token) -> !npu.token
"npu.dma_wait"(%all) : (!npu.token) -> ()
""",
    ),
    "fill": Example(
        "%sums: memref<1x8x8x2x8xf32, #acc>",
        '"npu.fill"(%sums) {value = 0.0 : f32} : (memref<1x8x8x2x8xf32, #acc>) -> ()',
    ),
    "barrier": Example("", '"npu.barrier"() : () -> ()'),
    "conv2d": Example(
        "%image: memref<1x10x10x16xf32, #sram>, %filter: memref<2x3x3x16x8xf32, #sram>, "
        "%sums: memref<1x8x8x2x8xf32, #acc>",
        """
"npu.conv2d"(%image, %filter, %sums) {
    strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>
  } : (memref<1x10x10x16xf32, #sram>, memref<2x3x3x16x8xf32, #sram>,
       memref<1x8x8x2x8xf32, #acc>) -> ()
""",
    ),
    "depthwise_conv2d": Example(
        "%image: memref<1x17x17x32xf32, #sram>, %filter: memref<3x3x32xf32, #sram>, "
        "%sums: memref<1x8x8x32xf32, #acc>",
        """
"npu.depthwise_conv2d"(%image, %filter, %sums) {
    strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>
  } : (memref<1x17x17x32xf32, #sram>, memref<3x3x32xf32, #sram>,
       memref<1x8x8x32xf32, #acc>) -> ()
""",
    ),
    "matmul": Example(
        "%rows: memref<4x64xi8, #sram>, %columns: memref<2x64x16xi8, #sram>, "
        "%sums: memref<4x2x16xi32, #acc>",
        """
"npu.matmul"(%rows, %columns, %sums)
  : (memref<4x64xi8, #sram>, memref<2x64x16xi8, #sram>, memref<4x2x16xi32, #acc>) -> ()
""",
    ),
    "batch_matmul": Example(
        "%rows: memref<3x4x64xf32, #sram>, %columns: memref<3x2x64x16xf32, #sram>, "
        "%sums: memref<3x4x2x16xf32, #acc>",
        """
"npu.batch_matmul"(%rows, %columns, %sums)
  : (memref<3x4x64xf32, #sram>, memref<3x2x64x16xf32, #sram>,
     memref<3x4x2x16xf32, #acc>) -> ()
""",
    ),
    "pool2d": Example(
        "%image: memref<1x9x9x8xf32, #sram>, %largest: memref<1x4x4x8xf32, #acc>",
        """
"npu.pool2d"(%image, %largest) {
    kind = "max", window = array<i64: 3, 3>, strides = array<i64: 2, 2>,
    dilations = array<i64: 1, 1>
  } : (memref<1x9x9x8xf32, #sram>, memref<1x4x4x8xf32, #acc>) -> ()
""",
    ),
    "eltwise": Example(
        "%x: memref<4x8xf32, #sram>, %row: memref<8xf32, #sram>, %y: memref<4x8xf32, #sram>",
        f"""
"npu.eltwise"(%x, %row, %y) ({{
^bb0(%a: f32, %b: f32, %old: f32):
  %0 = arith.addf %a, %b : f32
  "npu.yield"(%0) : (f32) -> ()
}}) {{
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
                     affine_map<(i, j) -> (i, j)>],
    {_slots(2, 16)}
  }} : (memref<4x8xf32, #sram>, memref<8xf32, #sram>, memref<4x8xf32, #sram>) -> ()
""",
    ),
    "reduce": Example(
        "%x: memref<4x8xf32, #sram>, %sums: memref<8xf32, #sram>",
        f"""
"npu.reduce"(%x, %sums) ({{
^bb0(%a: f32, %sum: f32):
  %0 = arith.addf %a, %sum : f32
  "npu.yield"(%0) : (f32) -> ()
}}) {{
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>],
    iterator_types = ["reduction", "parallel"],
    {_slots(1, 16)}
  }} : (memref<4x8xf32, #sram>, memref<8xf32, #sram>) -> ()
""",
    ),
    "drain": Example(
        "%sums: memref<4x8xi32, #acc>, %bias: memref<8xi32, #sram>, %y: memref<4x8xi8, #sram>",
        f"""
"npu.drain"(%sums, %bias, %y) ({{
^bb0(%sum: i32, %b: i32, %old: i8):
  %0 = arith.addi %sum, %b : i32
  %1 = arith.trunci %0 : i32 to i8
  "npu.yield"(%1) : (i8) -> ()
}}) {{
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
                     affine_map<(i, j) -> (i, j)>],
    {_slots(2, 17)}
  }} : (memref<4x8xi32, #acc>, memref<8xi32, #sram>, memref<4x8xi8, #sram>) -> ()
""",
    ),
    "winograd_input": Example(
        "%image: memref<1x10x14x16xf32, #sram>, %windows: memref<36x6x16xf32, #sram>",
        """
"npu.winograd_input"(%image, %windows) {outputs = 4 : i64}
  : (memref<1x10x14x16xf32, #sram>, memref<36x6x16xf32, #sram>) -> ()
""",
    ),
    "winograd_output": Example(
        "%products: memref<36x6x2x8xf32, #acc>, %sums: memref<1x2x4x3x4x2x8xf32, #acc>",
        """
"npu.winograd_output"(%products, %sums) {outputs = 4 : i64}
  : (memref<36x6x2x8xf32, #acc>, memref<1x2x4x3x4x2x8xf32, #acc>) -> ()
""",
    ),
}
EXAMPLES["yield"] = EXAMPLES["eltwise"]
