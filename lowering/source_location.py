"""Where in the user's program a node comes from."""

from __future__ import annotations

import os
import re

import torch
from torch import fx

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
TORCH = os.path.dirname(torch.__file__) + os.sep


def source_location(node: fx.Node) -> str | None:
    """ "file:line" of the innermost frame outside torch, or None if the node has no stack trace."""
    return user_frame(node.meta.get("stack_trace") or "")


def user_frame(trace: str) -> str | None:
    """ "file:line" of the innermost frame outside torch in a printed stack, or None."""
    own = [frame for frame in _FRAME.findall(trace) if not frame[0].startswith(TORCH)]
    return f"{own[-1][0]}:{own[-1][1]}" if own else None
