"""One graph with symbolic sizes -> one function that compiles for the sizes of its calls.

The NPU takes static shapes. A call whose sizes are new makes a graph with those numbers
(specialize.py), which is compiled like any other; equal kernels come from the cache. At most KEPT
compiled graphs are kept, and those called least recently go. Sizes that never come again, as those
of a cache that grows with every token, must not cost a compilation each: after the first AT_ONCE,
sizes are compiled when they come for the second time, and until then the graph as it is runs, in
host parts.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping

import sympy
import torch
from torch import fx
from torch._dynamo.convert_frame import compile_lock

from mlir_npu.logs import warn_once
from mlir_npu.lowering.specialize import specialize
from mlir_npu.lowering.symbols import SizeReader

logger = logging.getLogger("mlir_npu.graph")

KEPT = 32
AT_ONCE = 8
REMEMBERED = 1024  # sizes that came once

Sizes = tuple[int, ...]
# a graph, and the values of its sizes by symbol -> boxed function
Compile = Callable[[fx.GraphModule, Mapping[sympy.Symbol, int]], Callable]


class Specializations:
    """Boxed, as AOTAutograd wants it; safe from several threads.

    always: whether sizes are compiled the first time they come, however many there are.
    """

    def __init__(
        self, graph: fx.GraphModule, reader: SizeReader, compile_: Compile, *, always: bool
    ) -> None:
        self._boxed_call = True  # AOTAutograd's mark for functions that empty a list
        self._graph, self._reader, self._compile, self._always = graph, reader, compile_, always
        self._lock = threading.Lock()
        self._kept: OrderedDict[Sizes, Callable] = OrderedDict()
        self._seen_once: OrderedDict[Sizes, None] = OrderedDict()
        self._compiled = 0
        self._for_any_size: Callable | None = None

    def __call__(self, arguments: list) -> tuple:
        sizes = self._reader.read(arguments)
        return (self._find(sizes) or self._make(sizes))(arguments)

    def _find(self, sizes: Sizes) -> Callable | None:
        with self._lock:
            found = self._kept.get(sizes)
            if found is not None:
                self._kept.move_to_end(sizes)
            return found

    def _make(self, sizes: Sizes) -> Callable:
        with compile_lock:
            if (found := self._find(sizes)) is not None:  # another thread may have been faster
                return found
            if not self._pays(sizes):
                return self._make_for_any_size()
            made = self._compile_now(dict(zip(self._reader.symbols, sizes, strict=True)))
            self._compiled += 1
            with self._lock:
                self._kept[sizes] = made
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
            return made

    def _pays(self, sizes: Sizes) -> bool:
        if self._always or self._compiled < AT_ONCE or sizes in self._seen_once:
            self._seen_once.pop(sizes, None)
            return True
        self._seen_once[sizes] = None
        while len(self._seen_once) > REMEMBERED:
            self._seen_once.popitem(last=False)
        return False

    def _make_for_any_size(self) -> Callable:
        if self._for_any_size is None:
            warn_once(
                logger,
                f"many sizes {id(self)}",
                f"mlir_npu has compiled a graph for {self._compiled} sets of sizes; what else "
                "comes runs on the host until it comes again",
            )
            self._for_any_size = self._compile_now({})
        return self._for_any_size

    def _compile_now(self, sizes: Mapping[sympy.Symbol, int]) -> Callable:
        """Compiling runs operators, which must not see the modes of the call."""
        graph = specialize(self._graph, sizes) if sizes else self._graph
        with torch.inference_mode(False), torch.no_grad(), torch.autocast("cpu", enabled=False):
            return self._compile(graph, sizes)
