"""The error of the importer: which operators of the user's program it is about, and where they are."""

from __future__ import annotations

import re

from torch import fx

_FRAME = re.compile(r'File "([^"]+)", line (\d+),')


class RegionImportError(RuntimeError):
    """A region cannot become linalg. `reason` is one sentence, `operators` ATen names, `location` "file:line"."""

    def __init__(self, reason: str, *, operators: tuple[str, ...] = (), location: str | None = None) -> None:
        super().__init__(f"{location}: {reason}" if location else reason)
        self.reason = reason
        self.operators = operators
        self.location = location


def user_location(node: fx.Node) -> str | None:
    """ "file:line" of the innermost frame of the user's program that made this node, if the trace has one."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    return f"{frames[-1][0]}:{frames[-1][1]}" if frames else None
