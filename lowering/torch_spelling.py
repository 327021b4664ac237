"""Which call of ATen torch-mlir knows for that of a node."""

from __future__ import annotations

import torch
from torch import fx

aten = torch.ops.aten

# calls with a number in the place of a tensor
_WITH_NUMBER = {
    getattr(aten, name).Tensor: getattr(aten, name).Scalar for name in ("add", "sub", "mul", "div")
}
_WITH_NUMBER[aten.floor_divide.default] = aten.floor_divide.Scalar
_RENAMED = {
    aten.lift_fresh_copy.default: aten.clone.default,
    aten._unsafe_index_put.default: aten._unsafe_index_put.hacked_twin,
}
IGNORED = frozenset({aten._assert_async.msg})  # without a result


def spelling(node: fx.Node) -> torch._ops.OpOverload:
    """For a call of an overload of ATen, with values in `meta`: its own, or one that computes the
    same of the same arguments."""
    call = node.target
    if call in _WITH_NUMBER and _is_number(node.args[1]):
        return _WITH_NUMBER[call]
    if call is aten.empty.memory_format:
        # what is multiplied by zero must not be NaN
        users = [user.target for user in node.users]
        return aten.zeros.default if users == [aten.baddbmm.default] else call
    return _RENAMED.get(call, call)


def _is_number(given: object) -> bool:
    value = given.meta.get("val") if isinstance(given, fx.Node) else given
    return isinstance(value, (float, int))
