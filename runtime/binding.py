"""A compiled graph with the tensors of a model filled in, good while these are unchanged."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

import torch
from torch._C._dynamo.guards import TensorGuards

from mlir_npu.runtime.prepared import State, drop_after_fused_steps


class Binding:
    """call: a function of the program's inputs, in order.

    tensors: the model's, kept alive; loose: those of them that code reads in every call, so only
    their kind must stay; bound: those that `call` knows the contents of.

    fits: whether tensors, inputs and then `loose`, are of the kinds that were last admitted. It is
    one comparison for all of them, which also tells autocast and other modes from those at that
    time; None fit before any were.
    """

    __slots__ = ("__weakref__", "_bound", "_kinds", "_state", "call", "fits", "loose", "tensors")

    def __init__(
        self,
        tensors: Sequence[torch.Tensor],
        call: Callable[[Sequence], Sequence],
        loose: Sequence[torch.Tensor],
        bound: Sequence[torch.Tensor],
        state: State | None,
    ) -> None:
        self.tensors, self.call, self.loose = tuple(tensors), call, tuple(loose)
        self._bound, self._state = tuple(bound), state
        self._kinds = [_kind(tensor) for tensor in self.loose]
        self.fits: Callable[..., bool] = _none_fits
        if bound:
            drop_after_fused_steps(self)

    def holds(self) -> bool:
        """Whether the contents are those it was made with."""
        if not self._bound:
            return True
        state = self._state  # None for inference tensors, which nothing tells about
        return state is not None and state.is_of(self._bound)

    def keeps_kinds(self) -> bool:
        """Whether `loose` are laid out as they were."""
        return [_kind(tensor) for tensor in self.loose] == self._kinds

    def admit(self, inputs: Sequence[torch.Tensor]) -> None:
        """Let inputs of the kinds of these fit, which the code takes as they are."""
        tensors = (*inputs, *self.loose)
        self.fits = TensorGuards(
            *tensors,
            dynamic_dims_sizes=[list(tensor.shape) for tensor in tensors],
            dynamic_dims_strides=[list(tensor.stride()) for tensor in tensors],
        ).check

    def drop(self, parameters: Set[int]) -> None:
        if any(id(tensor) in parameters for tensor in self._bound):
            self._state = None


def arranged(
    call: Callable,
    arguments: Sequence[torch.Tensor | int],
    inputs: int,
    *,
    boxed: bool = False,
) -> Callable[[Sequence], Sequence]:
    """`call` as a function of all `inputs`. arguments: tensors of the model, and positions of
    inputs; boxed: it takes one list, which it empties."""
    places = [(i, given) for i, given in enumerate(arguments) if isinstance(given, int)]
    if places == [(i, i) for i in range(inputs)] and len(arguments) == inputs:
        return (lambda given: call([*given])) if boxed else lambda given: call(*given)

    def fill(given: Sequence) -> list:
        filled = template.copy()
        for place, index in places:
            filled[place] = given[index]
        return filled

    template = list(arguments)
    return (lambda given: call(fill(given))) if boxed else lambda given: call(*fill(given))


def _kind(tensor: torch.Tensor) -> tuple:
    return tensor.shape, tensor.stride(), tensor.dtype, tensor.is_neg()


def _none_fits(*tensors: object) -> bool:
    return False
