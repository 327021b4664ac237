"""Memory of large results, which is used again when the caller has dropped them.

The system hands out large pieces of memory page by page, at the first access to each: for a result
of a few MB that can take longer than the kernel that writes it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence

import torch
from torch._C._dynamo.guards import _empty_strided_cpu as empty_strided

LARGE = 1 << 20  # bytes from which keeping pays
LIMIT = 64 << 20  # bytes that are kept, of all results together


class ResultPool:
    """Keeps the latest large results; safe from several threads."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._kept: list[torch.Tensor] = []  # flat, the latest last

    def take(
        self, size: int, shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype
    ) -> torch.Tensor:
        """An uninitialised tensor of `size` bytes, whose memory nobody else uses."""
        with self._lock:
            for index, kept in enumerate(self._kept):
                if kept.nbytes == size and _is_unused(kept):
                    self._kept.append(self._kept.pop(index))
                    storage = kept.untyped_storage()
                    flat = torch.empty(0, dtype=dtype, device="cpu")
                    return flat.set_(storage, 0, shape, strides)
            result = empty_strided(shape, strides, dtype)
            if size <= self._limit:
                self._keep(result)
            return result

    def _keep(self, result: torch.Tensor) -> None:
        with torch.inference_mode(False):
            kept = torch.empty(0, dtype=torch.uint8, device="cpu")
            kept.set_(result.untyped_storage())
        self._kept.append(kept)
        while sum(tensor.nbytes for tensor in self._kept) > self._limit:
            del self._kept[0]


def _is_unused(kept: torch.Tensor) -> bool:
    """Whether nothing else, here or in another process, has the memory of `kept`, unchanged."""
    storage = kept.untyped_storage()
    is_whole = storage.nbytes() == kept.nbytes and not storage.is_shared()
    del storage
    return is_whole and _uses(kept) == _ALONE


def _uses(tensor: torch.Tensor) -> tuple[int, int]:
    """How often the storage of `tensor` is used: by tensors, and as an object of Python."""
    storage = tensor.untyped_storage()
    return torch._C._storage_Use_Count(storage._cdata), sys.getrefcount(storage)


_ALONE = _uses(torch.empty(1, device="cpu"))
RESULTS = ResultPool()
