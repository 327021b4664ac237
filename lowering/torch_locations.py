"""Where in the user's program a node comes from, as text of MLIR.

Nodes of one call have one chain of frames, and chains that begin alike share what they have in
common, so that each frame is written once:

    #l0 = loc("model.py":3:0)
    #l1 = loc(callsite("layers.py":7:0 at #l0))
    #l2 = loc("aten.relu.default"(#l1))
"""

from __future__ import annotations

import re

from torch import fx

from mlir_npu.lowering.torch_types import quoted

_FRAME = re.compile(r'File "([^"]+)", line ([0-9]+),')
Frames = tuple[tuple[str, str], ...]


class Locations:
    """`lines` define what `of` refers to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._frames: dict[str, Frames] = {}
        self._names: dict[str, str] = {}

    def of(self, node: fx.Node) -> str:
        """ "loc(...)": the name of the call, at the lines that it comes from."""
        inner = self._chain(self._frames_of(node))
        name = quoted(str(node.target))
        return f"loc({self._alias(f'{name}({inner})' if inner else name)})"

    def of_first(self, graph: fx.Graph) -> str:
        """Where the first node comes from of which that is known."""
        found = (inner for node in graph.nodes if (inner := self._chain(self._frames_of(node))))
        return f"loc({next(found, 'unknown')})"

    def line(self, node: fx.Node) -> str | None:
        """ "file:line" of the innermost frame."""
        frames = self._frames_of(node)
        return ":".join(frames[-1]) if frames else None

    def _frames_of(self, node: fx.Node) -> Frames:
        trace = node.meta.get("stack_trace") or ""
        if trace not in self._frames:
            self._frames[trace] = tuple(_FRAME.findall(trace))
        return self._frames[trace]

    def _chain(self, frames: Frames) -> str | None:
        chain = None
        for file, line in frames:
            place = f"{quoted(file)}:{line}:0"
            chain = self._alias(f"callsite({place} at {chain})" if chain else place)
        return chain

    def _alias(self, location: str) -> str:
        if location not in self._names:
            self._names[location] = f"#l{len(self._names)}"
            self.lines.append(f"{self._names[location]} = loc({location})")
        return self._names[location]
