"""Memory of large results, which is used again when the caller has dropped them.

The system hands out large pieces of memory page by page, at the first access to each: for a result
of a few MB that can take longer than the kernel that writes it. To look for memory must not: a
kernel leaves the caches full of its own data, so that every line of Python costs its misses.
"""

from __future__ import annotations

import sys
import threading

import torch
from torch._C import _storage_Use_Count as use_count
from torch._C._dynamo.guards import _empty_strided_cpu as empty_strided

LARGE = 1 << 20  # bytes from which keeping pays
LIMIT = 64 << 20  # bytes that are kept, of all results together

Spec = tuple[tuple[int, ...], tuple[int, ...], torch.dtype]  # shape, strides


class ResultPool:
    """Keeps the latest large results; safe from several threads."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._kept: list[_Kept] = []  # the latest last

    def take(self, size: int, spec: Spec) -> torch.Tensor:
        """An uninitialised tensor of `size` bytes, whose memory nobody else uses."""
        with self._lock:
            for index, kept in enumerate(self._kept):
                if kept.size == size and kept.is_unused():
                    self._kept.append(self._kept.pop(index))
                    return kept.result(spec)
            result = empty_strided(*spec)
            if size <= self._limit:
                self._keep(result, spec)
            return result

    def _keep(self, result: torch.Tensor, spec: Spec) -> None:
        self._kept.append(_Kept(result, spec))
        while sum(kept.size for kept in self._kept) > self._limit:
            del self._kept[0]


class _Kept:
    """Memory of a result. tensor: has no user but the pool, and is what results are copies of."""

    __slots__ = ("_implementation", "_spec", "_storage", "_tensor", "size")

    def __init__(self, result: torch.Tensor, spec: Spec) -> None:
        self._storage = result.untyped_storage()
        self._implementation = self._storage._cdata
        self.size = self._storage.nbytes()
        self._lay_out(spec)

    def is_unused(self) -> bool:
        """Whether nothing else, here or in another process, has the memory, unchanged."""
        return (
            self.uses() == _ALONE
            and self._storage.nbytes() == self.size
            and not self._storage.is_shared()
        )

    def uses(self) -> tuple[int, int]:
        """How often the storage is used: by tensors, and as an object of Python."""
        return use_count(self._implementation), sys.getrefcount(self._storage)

    def result(self, spec: Spec) -> torch.Tensor:
        if spec is not self._spec:
            self._lay_out(spec)
        return self._tensor.data  # a tensor of its own, in a tenth of the time that `set_` takes

    def _lay_out(self, spec: Spec) -> None:
        shape, strides, dtype = self._spec = spec
        with torch.inference_mode(False):
            flat = torch.empty(0, dtype=dtype, device="cpu")
            self._tensor = flat.set_(self._storage, 0, shape, strides)


_ONE = (1,), (1,), torch.float32
_ALONE = _Kept(empty_strided(*_ONE), _ONE).uses()
RESULTS = ResultPool()
