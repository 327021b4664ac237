"""Where Dynamo left the graph of a program, with its reason and the user's line."""

from __future__ import annotations

import contextlib
import linecache
import logging
import traceback
from collections.abc import Iterator
from dataclasses import dataclass

from torch._dynamo.utils import graph_break_reasons

# Dynamo's log of frames that it gives up as a whole (a break inside a loop or a try block, say).
_SKIPPED_FRAMES = logging.getLogger("torch._dynamo.convert_frame.__graph_breaks")
NOT_RESUMABLE = "Dynamo cannot go on after this line, so the whole function runs uncompiled. "


@dataclass(frozen=True)
class GraphBreak:
    """reason: Dynamo's; location: "file:line" of the user's program; line: its text."""

    reason: str
    location: str | None
    line: str | None


@contextlib.contextmanager
def record_graph_breaks() -> Iterator[list[GraphBreak]]:
    """Graph breaks of what is compiled inside of the block, each once; filled at its end."""
    found: list[GraphBreak] = []
    before = len(graph_break_reasons)
    with _skipped_frames() as skipped:
        yield found
    breaks = [_break(r.reason, r.user_stack) for r in graph_break_reasons[before:]]
    # a frame that contains a break is traced again after it, and breaks at the same line
    found += dict.fromkeys([*breaks, *skipped])


@contextlib.contextmanager
def _skipped_frames() -> Iterator[list[GraphBreak]]:
    collector = _Collector()
    level, propagate = _SKIPPED_FRAMES.level, _SKIPPED_FRAMES.propagate
    _SKIPPED_FRAMES.addHandler(collector)
    if not _SKIPPED_FRAMES.isEnabledFor(logging.DEBUG):
        _SKIPPED_FRAMES.propagate = False  # only we asked for these records
        _SKIPPED_FRAMES.setLevel(logging.DEBUG)
    try:
        yield collector.breaks
    finally:
        _SKIPPED_FRAMES.removeHandler(collector)
        _SKIPPED_FRAMES.setLevel(level)
        _SKIPPED_FRAMES.propagate = propagate


class _Collector(logging.Handler):
    """Takes the exception that each record carries."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.breaks: list[GraphBreak] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            reason = f"{NOT_RESUMABLE}{str(error).strip()}"
            self.breaks.append(_break(reason, getattr(error, "real_stack", None)))


def _break(reason: str, stack: list[traceback.FrameSummary] | None) -> GraphBreak:
    text = reason.strip()
    if not stack:
        return GraphBreak(text, None, None)
    frame = stack[-1]
    line = frame.line or linecache.getline(frame.filename, frame.lineno).strip()
    return GraphBreak(text, f"{frame.filename}:{frame.lineno}", line)
