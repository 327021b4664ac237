"""The NPU regions of a model as modules on tensors, for tools that take them further themselves."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlir_npu.dialect.bindings import ir


@dataclass(frozen=True)
class RegionModule:
    """One region as it is imported: linalg on tensors, with its target."""

    name: str
    module: ir.Module


_LISTENER = threading.local()


@contextlib.contextmanager
def collect_modules() -> Iterator[list[RegionModule]]:
    """Regions that are compiled on this thread inside of the block are imported only.

    They run in eager PyTorch instead of on the NPU.
    """
    before, found = wanted_modules(), []
    _LISTENER.modules = found
    try:
        yield found
    finally:
        _LISTENER.modules = before


def wanted_modules() -> list[RegionModule] | None:
    """Where regions go instead of being compiled; None if they are to be compiled."""
    return getattr(_LISTENER, "modules", None)
