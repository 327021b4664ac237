"""Where Dynamo left the graph of a program, with its reason and the user's line."""

from __future__ import annotations

import contextlib
import linecache
import logging
import traceback
from collections.abc import Iterator
from dataclasses import dataclass

from torch._dynamo.exc import Unsupported, UserError
from torch._dynamo.output_graph import GraphCompileReason
from torch._dynamo.utils import graph_break_reasons

from mlir_npu.break_remedies import cause_of, remedy_of

# Dynamo's log of frames that it gives up as a whole (a break inside a loop or a try block, say).
_SKIPPED_FRAMES = logging.getLogger("torch._dynamo.convert_frame")
NOT_RESUMABLE = "Dynamo cannot go on after this line, so the whole function runs uncompiled. "


@dataclass(frozen=True)
class BreakCost:
    """What a break did in one call of the program.

    bytes: of values that a region before the break made and a region behind it took, each value
    once; regions: these regions, and macs: their multiply-accumulates; regions_without: how many
    regions that could be without the break, if the NPU runs all that is between them.
    """

    bytes: int
    regions: tuple[str, ...]
    macs: tuple[int, ...]
    regions_without: int


@dataclass(frozen=True)
class GraphBreak:
    """reason: Dynamo's; location: "file:line" of the user's program; line: its text; resumes:
    whether Dynamo compiles what comes behind the line; cost: `explain` knows it."""

    reason: str
    location: str | None
    line: str | None
    resumes: bool = True
    cost: BreakCost | None = None

    @property
    def cause(self) -> str:
        """Why the graph breaks, in a sentence or two."""
        return cause_of(self.reason)

    @property
    def remedy(self) -> str:
        """What to change so that it does not."""
        return remedy_of(self.reason, self.resumes)


@contextlib.contextmanager
def record_graph_breaks() -> Iterator[list[GraphBreak]]:
    """Graph breaks of what is compiled inside of the block, each once; filled at its end."""
    found: list[GraphBreak] = []
    before = len(graph_break_reasons)
    with _skipped_frames() as skipped:
        yield found
    breaks = map(break_of, graph_break_reasons[before:])
    # a frame that contains a break is traced again after it, and breaks at the same line
    found += dict.fromkeys([*breaks, *skipped])


@contextlib.contextmanager
def _skipped_frames() -> Iterator[list[GraphBreak]]:
    level = _SKIPPED_FRAMES.level
    collector = _Collector(_SKIPPED_FRAMES.getEffectiveLevel())
    _SKIPPED_FRAMES.addFilter(collector)
    _SKIPPED_FRAMES.setLevel(min(logging.INFO, collector.shown_level))
    try:
        yield collector.breaks
    finally:
        _SKIPPED_FRAMES.removeFilter(collector)
        _SKIPPED_FRAMES.setLevel(level)


class _Collector(logging.Filter):
    """Takes the exception that a record carries, and drops records that nobody else asked for."""

    def __init__(self, shown_level: int) -> None:
        super().__init__()
        self.shown_level = shown_level
        self.breaks: list[GraphBreak] = []

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, (Unsupported, UserError)):
            text = str(error).split("\n\nfrom user code:")[0]  # the stack says where
            stack = getattr(error, "real_stack", None)
            self.breaks.append(_break(NOT_RESUMABLE + text, stack, resumes=False))
        return record.levelno >= self.shown_level


def break_of(reason: GraphCompileReason) -> GraphBreak:
    return _break(reason.reason, reason.user_stack)


def _break(
    reason: str, stack: list[traceback.FrameSummary] | None, resumes: bool = True
) -> GraphBreak:
    text = reason.strip()
    if not stack:
        return GraphBreak(text, None, None, resumes)
    # modules of Python itself that are frozen have no lines
    own = [frame for frame in stack if not frame.filename.startswith("<frozen")] or stack
    frame = own[-1]
    line = frame.line or linecache.getline(frame.filename, frame.lineno).strip()
    return GraphBreak(text, f"{frame.filename}:{frame.lineno}", line, resumes)
