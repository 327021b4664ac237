"""What the check at the end of a stage says of moves that are not waited for exactly once."""

from __future__ import annotations

from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.passes.stage_rules.movement import tokens_are_waited_once

_MOVE = """
  %move = "npu.dma_start"(%rows, %tile) {permutation = array<i64: 0>}
    : (memref<4xf32>, memref<4xf32, #npu.space<"sram">>) -> !npu.token"""
_WAIT = '"npu.dma_wait"(%move) : (!npu.token) -> ()'
MISTAKES = {
    "no wait": _MOVE,
    "a second wait": f"{_MOVE}\n  {_WAIT}\n  {_WAIT}",
    "a wait in one branch only": f"{_MOVE}\n  scf.if %odd {{ {_WAIT} }}",
    "a wait in a loop, for a move before it": f"""{_MOVE}
  scf.for %i = %low to %high step %high {{ {_WAIT} }}""",
    "a token that a loop gives back and nobody takes": f"""{_MOVE}
  %last = scf.for %i = %low to %high step %high iter_args(%carried = %move) -> !npu.token {{
    scf.yield %carried : !npu.token
  }}""",
}


def checks() -> str:
    rows = ["| mistake | what the check says |", "|---|---|"]
    rows += [f"| {mistake} | `{_diagnostic(body)}` |" for mistake, body in MISTAKES.items()]
    return "\n".join(rows)


def _diagnostic(body: str) -> str:
    arguments = '%rows: memref<4xf32>, %tile: memref<4xf32, #npu.space<"sram">>'
    scalars = "%odd: i1, %low: index, %high: index"
    text = f"func.func @example({arguments}, {scalars}) {{{body}\n  return\n}}"
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        module.operation.verify()
        found = [message for _, message in tokens_are_waited_once(module.operation)]
    if len(found) != 1:
        raise ValueError(f"one mistake is found {len(found)} times: {text}")
    return found[0]
