"""What a region computes from its parameters alone, kept while the parameters stay the same.

A set of parameters is recognised by the identity of its tensors. It is unchanged while every tensor
has the same address (assigning `.data` moves it) and the same contents. Of small tensors, the
fingerprint is one of all contents. Of large ones it takes samples, and they must also have the same
version counter (in-place operations, optimizer steps and load_state_dict advance it, but not
operations on `.data` and NumPy views). What both may miss, fused optimizers, have a hook that drops
what their step made stale.

Parameters are held weakly. When one dies, what was prepared from it is freed, so an identity is
never mistaken for that of a later tensor.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from mlir_npu.runtime.fingerprint import Fingerprint, is_read_whole

_address_of = torch.Tensor.data_ptr
_serial = itertools.count(1)

# parameter sets kept per region; a model that reuses one graph for many layers has one per layer
MAX_SETS = 64


@dataclass(frozen=True, slots=True)
class Prepared:
    """Slot addresses of one parameter set.

    serial: unique in the process, never 0; pointers: of the tensors that compiled code reads,
    parameters first, prepared values after them; owned: what keeps the pointers alive
    (packed copies, prepared values); state: what the parameters looked like when this was made;
    guards: weak references to them.
    """

    serial: int
    pointers: tuple[int, ...]
    owned: tuple[Any, ...]
    state: State | None
    guards: tuple[weakref.ref, ...]


@dataclass(frozen=True, slots=True)
class State:
    """What tells whether parameters have changed. large: positions of those with versions."""

    large: tuple[int, ...]
    versions: list[int]
    addresses: list[int]
    fingerprint: Fingerprint
    contents: int

    @classmethod
    def of(cls, parameters: Sequence[torch.Tensor]) -> State | None:
        """None for inference tensors, which have no version counter."""
        if any(parameter.is_inference() for parameter in parameters):
            return None
        large = tuple(i for i, p in enumerate(parameters) if not is_read_whole(p))
        versions = [parameters[i]._version for i in large]
        addresses, fingerprint = list(map(_address_of, parameters)), Fingerprint(parameters)
        return cls(large, versions, addresses, fingerprint, fingerprint())

    def is_of(self, parameters: Sequence[torch.Tensor]) -> bool:
        """The addresses are compared before memory behind them is read."""
        return (
            list(map(_address_of, parameters)) == self.addresses
            and [parameters[i]._version for i in self.large] == self.versions
            and self.fingerprint() == self.contents
        )


class PreparedCache:
    """Thread-safe map from parameter sets to prepared values.

    `make(parameters)` returns the pointers and the owned tensors of Prepared.
    """

    def __init__(
        self, make: Callable[[Sequence[torch.Tensor]], tuple[Sequence[int], Sequence[Any]]]
    ) -> None:
        self._make = make
        self._sets: dict[tuple[int, ...], Prepared] = {}
        self._lock = threading.Lock()
        drop_after_fused_steps(self)

    def __len__(self) -> int:
        return len(self._sets)

    def get(self, parameters: Sequence[torch.Tensor]) -> Prepared:
        """Prepared values of these parameters as they are now, to be held while they are used."""
        key = tuple(map(id, parameters))
        found = self._sets.get(key)
        if found is not None and found.state.is_of(parameters):
            return found
        with self._lock:
            found = self._sets.get(key)  # another thread may have been faster
            if found is not None and found.state.is_of(parameters):
                return found
            return self._prepare(key, parameters)

    def drop(self, parameters: Set[int]) -> None:
        """Forget every set with one of these parameters, given by id."""
        for key in list(self._sets):
            if not parameters.isdisjoint(key):
                self._sets.pop(key, None)

    def _prepare(self, key: tuple[int, ...], parameters: Sequence[torch.Tensor]) -> Prepared:
        state = State.of(parameters)  # before computing: a write in between makes this stale
        pointers, owned = self._make(parameters)
        guards = tuple(weakref.ref(p, self._forgetter(key)) for p in parameters) if state else ()
        made = Prepared(next(_serial), tuple(pointers), tuple(owned), state, guards)
        if state is not None:
            self._sets.pop(key, None)
            while len(self._sets) >= MAX_SETS:
                self._sets.pop(next(iter(self._sets)), None)  # the oldest
            self._sets[key] = made
        return made

    def _forgetter(self, key: tuple[int, ...]) -> Callable[[weakref.ref], None]:
        cache = weakref.ref(self)

        def forget(_: weakref.ref) -> None:
            if (alive := cache()) is not None:
                alive._sets.pop(key, None)

        return forget


class Droppable(Protocol):
    def drop(self, parameters: Set[int]) -> None:
        """Forget what was made of these parameters, given by id."""


_droppable: weakref.WeakSet[Droppable] = weakref.WeakSet()


def drop_after_fused_steps(holder: Droppable) -> None:
    """Have what a fused optimizer changes dropped. The holder is held weakly."""
    _droppable.add(holder)


def _after_optimizer_step(optimizer: torch.optim.Optimizer, args: tuple, kwargs: dict) -> None:
    fused = {
        id(p) for group in optimizer.param_groups if group.get("fused") for p in group["params"]
    }
    if fused:
        for holder in list(_droppable):
            holder.drop(fused)


register_optimizer_step_post_hook(_after_optimizer_step)
