"""What a region computes from its parameters alone, kept while the parameters stay the same.

A set of parameters is recognised by the identity of its tensors. It is unchanged while every tensor
has the same version counter (in-place operations, optimizer steps and load_state_dict advance it)
and the same address (assigning `.data` moves it). Parameters are held weakly: when one dies, what
was prepared from it is freed, so an identity is never mistaken for that of a later tensor. Fused
optimizers write without advancing the version counter; a hook on all optimizers drops what their
step made stale. Other writes that bypass the counter (in-place operations on `.data`, NumPy views)
cannot be seen, as in autograd.
"""

from __future__ import annotations

import itertools
import operator
import threading
import weakref
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

_version_of = operator.attrgetter("_version")
_address_of = torch.Tensor.data_ptr
_serial = itertools.count(1)

# parameter sets kept per region; a model that reuses one graph for many layers has one per layer
MAX_SETS = 64


@dataclass(frozen=True, slots=True)
class Prepared:
    """Slot addresses of one parameter set.

    serial: unique in the process, never 0; versions, addresses: of the caller's tensors when this
    was made; pointers: of the tensors that compiled code reads, parameters first, prepared values
    after them; owned: tensors that keep the pointers alive (packed copies, prepared values);
    guards: weak references.
    """

    serial: int
    versions: list[int] | None
    addresses: list[int]
    pointers: tuple[int, ...]
    owned: tuple[torch.Tensor, ...]
    guards: tuple[weakref.ref, ...]


class PreparedCache:
    """Thread-safe map from parameter sets to prepared values. `make(parameters)` -> (pointers,
    owned tensors)."""

    def __init__(
        self, make: Callable[[Sequence[torch.Tensor]], tuple[Sequence[int], Sequence[torch.Tensor]]]
    ) -> None:
        self._make = make
        self._sets: dict[tuple[int, ...], Prepared] = {}
        self._lock = threading.Lock()
        _caches.add(self)

    def __len__(self) -> int:
        return len(self._sets)

    def get(self, parameters: Sequence[torch.Tensor]) -> Prepared:
        """Prepared values of these parameters as they are now. The caller holds the result while it
        uses it."""
        key = tuple(map(id, parameters))
        found = self._sets.get(key)
        if found is not None and self._is_current(found, parameters):
            return found
        with self._lock:
            found = self._sets.get(key)  # another thread may have been faster
            if found is not None and self._is_current(found, parameters):
                return found
            return self._prepare(key, parameters)

    def drop(self, parameters: Set[int]) -> None:
        """Forget every set with one of these parameters, given by id."""
        for key in list(self._sets):
            if not parameters.isdisjoint(key):
                self._sets.pop(key, None)

    @staticmethod
    def _is_current(found: Prepared, parameters: Sequence[torch.Tensor]) -> bool:
        return list(map(_version_of, parameters)) == found.versions and (
            list(map(_address_of, parameters)) == found.addresses
        )

    def _prepare(self, key: tuple[int, ...], parameters: Sequence[torch.Tensor]) -> Prepared:
        versions = _versions(
            parameters
        )  # read before computing: a write in between makes the entry stale, not wrong
        addresses = list(map(_address_of, parameters))
        pointers, owned = self._make(parameters)
        if versions is None:  # inference tensors have no version counter: never reuse
            return Prepared(next(_serial), None, addresses, tuple(pointers), tuple(owned), ())
        cache = weakref.ref(self)

        def forget(_: weakref.ref) -> None:
            alive = cache()
            if alive is not None:
                alive._sets.pop(key, None)

        guards = tuple(weakref.ref(parameter, forget) for parameter in parameters)
        made = Prepared(next(_serial), versions, addresses, tuple(pointers), tuple(owned), guards)
        self._sets.pop(key, None)
        while len(self._sets) >= MAX_SETS:
            self._sets.pop(next(iter(self._sets)), None)  # the oldest
        self._sets[key] = made
        return made


def _versions(parameters: Sequence[torch.Tensor]) -> list[int] | None:
    if any(parameter.is_inference() for parameter in parameters):
        return None
    return list(map(_version_of, parameters))


_caches: weakref.WeakSet[PreparedCache] = weakref.WeakSet()


def _after_optimizer_step(optimizer: torch.optim.Optimizer, args: tuple, kwargs: dict) -> None:
    fused = {
        id(p) for group in optimizer.param_groups if group.get("fused") for p in group["params"]
    }
    if fused:
        for cache in list(_caches):
            cache.drop(fused)


register_optimizer_step_post_hook(_after_optimizer_step)
