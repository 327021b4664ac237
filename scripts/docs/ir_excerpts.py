"""IR as a reader wants it: one function, what is long or repeated left out."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mlir_npu.dialect.bindings import ir

LONGEST_PATTERN = 6
_ELISIONS = (
    (r'#npu\.space<"(sram|acc|dram)">', r"#\1"),
    (r"operandSegmentSizes = array<i32: [\d, ]*>", "operandSegmentSizes = ..."),
    (r"strided<\[[^]]*\](, offset: (\?|\d+))?>", "strided<...>"),
)


def functions(module: ir.Module) -> dict[str, str]:
    """The text of each function by name. A detached clone brings its affine maps with it."""
    return {
        ir.StringAttr(op.attributes["sym_name"]).value: op.operation.clone(False).get_asm().strip()
        for op in module.body.operations
        if "sym_name" in op.attributes
    }


def elide(text: str) -> str:
    """Short names for memories; without sizes of slots, strides of views, spaces at line ends."""
    for pattern, replacement in _ELISIONS:
        text = re.sub(pattern, replacement, text)
    return "\n".join(line.rstrip() for line in text.splitlines())


def innermost(text: str, marker: str) -> str:
    """The block of code around the first line with `marker`, and the lines that open its loops."""
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if marker in line)
    begin = _opening(lines, at)
    end = next(i for i in range(at, len(lines)) if _depth(lines[i]) <= _depth(lines[begin]))
    block = collapse(lines[begin : end + 1])
    while (outer := _opening(lines, begin)) != begin:
        dots = " " * _depth(lines[begin]) + "..."
        block = [lines[outer], *([dots] if begin > outer + 1 else []), *block]
        begin = outer
    return "\n".join(block)


def basic_block(text: str, marker: str) -> str:
    """The basic block around the first line with `marker`."""
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if marker in line)
    begin = max(i for i in range(at) if _is_label(lines[i]))
    end = next(i for i in range(at, len(lines)) if _is_label(lines[i]) or lines[i] == "}")
    return "\n".join(collapse(lines[begin:end]))


def collapse(lines: Sequence[str]) -> list[str]:
    """A pattern of up to LONGEST_PATTERN ops that repeats four times or more is shown once."""
    kinds, out, at = [_kind(line) for line in lines], [], 0
    while at < len(lines):
        period, times = max(
            ((p, _repeats(kinds, at, p)) for p in range(1, LONGEST_PATTERN + 1)),
            key=lambda one: (one[0] * one[1] if one[1] >= 4 else 0, -one[0]),
        )
        if times < 4:
            out.append(lines[at])
            at += 1
            continue
        out += lines[at : at + period]
        indent = " " * _depth(lines[at])
        above = "the op above" if period == 1 else f"the {period} ops above"
        out.append(f"{indent}// {above}, {times - 1} times more")
        at += period * times
    return out


def _repeats(kinds: Sequence[str], at: int, period: int) -> int:
    """How often the `period` kinds at `at` stand there one after the other; 0 for lines that open
    or close a block."""
    pattern = kinds[at : at + period]
    if len(pattern) < period or "" in pattern:
        return 0
    times = 1
    while kinds[at + times * period : at + (times + 1) * period] == pattern:
        times += 1
    return times


def _kind(line: str) -> str:
    """The op of a line, "" if the line is part of the block structure."""
    if line.endswith("{") or line.strip().startswith(("}", "^")):
        return ""
    match = re.match(r'\s*(?:%[^=]*= )?"?([\w.]+)', line)
    return match.group(1) if match else ""


def _opening(lines: Sequence[str], at: int) -> int:
    """The line that opens the block that line `at` is in; `at` itself for an outermost line."""
    for i in range(at - 1, -1, -1):
        if lines[i].endswith("{") and _depth(lines[i]) < _depth(lines[at]):
            return i
    return at


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_label(line: str) -> bool:
    return line.lstrip().startswith("^bb") or line.startswith("llvm.func")
