"""A compiled graph with the tensors of a model filled in, good while these are unchanged."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

import torch

from mlir_npu.runtime.prepared import State, drop_after_fused_steps


class Binding:
    """Call it with the program's inputs, in order.

    tensors: the model's, kept alive; call: a boxed function of `arguments`, a list in which
    `places` are left for inputs (place, input); bound: those of the tensors that `call` knows the
    contents of.
    """

    __slots__ = ("__weakref__", "_arguments", "_bound", "_call", "_places", "_state", "tensors")

    def __init__(
        self,
        tensors: Sequence[torch.Tensor],
        call: Callable,
        arguments: Sequence[torch.Tensor | None],
        places: Sequence[tuple[int, int]],
        bound: Sequence[torch.Tensor],
        state: State | None,
    ) -> None:
        self.tensors, self._call = tuple(tensors), call
        self._arguments, self._places = list(arguments), tuple(places)
        self._bound, self._state = tuple(bound), state
        if bound:
            drop_after_fused_steps(self)

    def holds(self) -> bool:
        """Whether the contents are those it was made with."""
        if not self._bound:
            return True
        state = self._state  # None for inference tensors, which nothing tells about
        return state is not None and state.is_of(self._bound)

    def __call__(self, inputs: Sequence) -> Sequence:
        arguments = self._arguments.copy()
        for place, index in self._places:
            arguments[place] = inputs[index]
        return self._call(arguments)

    def drop(self, parameters: Set[int]) -> None:
        if any(id(tensor) in parameters for tensor in self._bound):
            self._state = None
