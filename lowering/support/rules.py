"""The registry of support rules: one rule per ATen overload, and the checks that all of them share.

A rule is a function `rule(node) -> str | None`: None when the NPU path computes the node exactly,
else one sentence that says why not, with the offending numbers. Its docstring is what users read
about it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import fx

Rule = Callable[[fx.Node], str | None]

MAX_RANK = 6

# Halves are computed with in float32.
FLOATS = (torch.float32, torch.bfloat16, torch.float16)

# In meta of a placeholder: the tensor holds zeros only, and its caller sees to it that it stays so.
HOLDS_ZEROS = "npu.holds_zeros"

# Integers that stand for numbers cross over to floats and back in these (quantized.py).
_QUANTIZING = "quantized_decomposed."

# Take conditions and masks. Comparisons make them.
_TAKES_BOOLEANS = frozenset(
    {
        *("aten.where.self", "aten.masked_fill.Scalar", "aten.mul.Tensor", "aten._to_copy.default"),
        *(f"aten.logical_{name}.default" for name in ("and", "or", "xor", "not")),
        *(f"aten.bitwise_{name}.Tensor" for name in ("and", "or", "xor")),
        *("aten.bitwise_not.default", "aten.native_dropout_backward.default"),
        *("aten.view.default", "aten.expand.default", "aten.permute.default", "aten.slice.Tensor"),
        *("aten.unsqueeze.default", "aten.squeeze.dim", "aten.squeeze.dims", "aten.select.int"),
        *("aten.detach.default", "aten.clone.default", "aten.alias.default", "aten.cat.default"),
    }
)

# Takes constant integers that say which elements (gather.py).
_TAKES_POSITIONS = (
    "aten.index.Tensor",
    "aten._unsafe_index.Tensor",
    "aten.index_select.default",
    "aten.index_put.default",
    "aten._unsafe_index_put.default",
)

_RULES: dict[str, Rule] = {}


def rule(*overloads: str) -> Callable[[Rule], Rule]:
    """Register a rule for ATen overloads, named like "aten.relu.default"."""

    def register(function: Rule) -> Rule:
        for overload in overloads:
            if overload in _RULES:
                raise ValueError(
                    f"{overload} has two support rules: {_RULES[overload]} and {function}"
                )
            _RULES[overload] = function
        return function

    return register


def find_rule(node: fx.Node) -> Rule | None:
    return _RULES.get(str(node.target))


def all_rules() -> dict[str, Rule]:
    return dict(sorted(_RULES.items()))


def arguments(node: fx.Node) -> dict[str, object]:
    """Arguments of an ATen call by schema name, defaults filled in."""
    schema = node.target._schema.arguments
    bound = {argument.name: argument.default_value for argument in schema}
    bound.update(zip((argument.name for argument in schema), node.args, strict=False))
    bound.update(node.kwargs)
    return bound


def result(node: fx.Node) -> torch.Tensor:
    """The first fake tensor a node makes; gradients that nobody wants are None before it."""
    return first_tensor(node.meta["val"])


def first_tensor(value: object) -> object:
    """Of a node's several results the first tensor; else the value itself."""
    if not isinstance(value, (tuple, list)):
        return value
    return next((item for item in value if isinstance(item, torch.Tensor)), value)


def shape(node: fx.Node) -> tuple[int, ...]:
    return tuple(result(node).shape)


def used_outputs(node: fx.Node) -> set[int]:
    """Indices of the outputs of a multi-output node that are read (a getitem may itself be
    dead)."""
    return {user.args[1] for user in node.users if user.users}


def pair(values: object, rank: int = 2) -> tuple[int, ...]:
    """ATen's int lists may hold one value for all dimensions."""
    values = tuple(values) if isinstance(values, (tuple, list)) else (values,)
    return values * rank if len(values) == 1 else values


def tensor_problem(
    name: str, value: object, *, integers_allowed: bool = False, booleans_allowed: bool = False
) -> str | None:
    """What keeps one tensor off the NPU: dtype, layout, device, dynamic or empty shape, rank."""
    if not isinstance(value, torch.Tensor):
        return f"{name} is a {type(value).__name__}, and the NPU takes tensors only"
    if any(isinstance(size, torch.SymInt) for size in value.shape):
        return f"{name} has the dynamic shape {_sizes(value)}, and the NPU takes static shapes only"
    integers = integers_allowed and not value.dtype.is_floating_point
    booleans = booleans_allowed and value.dtype is torch.bool
    if value.dtype not in FLOATS and not (integers or booleans):
        return f"{name} is {_dtype(value)}, and the NPU takes {_listed(FLOATS)} only"
    if value.layout != torch.strided:
        return f"{name} has layout {value.layout}, and the NPU takes strided tensors only"
    if value.device.type != "cpu":
        return f"{name} is on {value.device}, and the NPU shares the memory of the cpu only"
    if value.numel() == 0:
        return f"{name} of shape {_sizes(value)} has no elements"
    if value.dim() > MAX_RANK:
        return f"{name} has rank {value.dim()}, and the NPU works on tensors up to rank {MAX_RANK}"
    return None


def node_problem(node: fx.Node) -> str | None:
    """What keeps a node off the NPU whatever it computes: its operands, its result, symbolic
    arguments."""
    for argument in (*node.args, *node.kwargs.values()):
        if isinstance(argument, fx.Node) or argument is None:
            continue
        if any(isinstance(item, torch.SymInt) for item in pair(argument)):
            return f"argument {argument} is symbolic, and the NPU takes static shapes only"
    quantizes = str(node.target).startswith(_QUANTIZING)
    for operand in node.all_input_nodes:
        if operand.op == "get_attr" and str(node.target) in _TAKES_POSITIONS:
            continue
        problem = tensor_problem(
            f"operand {operand.name}",
            operand.meta.get("val"),
            integers_allowed=quantizes,
            booleans_allowed=str(node.target) in _TAKES_BOOLEANS,
        )
        if problem:
            return problem
    return tensor_problem(
        "the result",
        first_tensor(node.meta.get("val")),
        integers_allowed=quantizes,
        booleans_allowed=True,
    )


def _sizes(value: torch.Tensor) -> str:
    return "x".join(str(size) for size in value.shape)


def _dtype(value: torch.Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")


def _listed(dtypes: tuple[torch.dtype, ...]) -> str:
    *others, last = (str(dtype).removeprefix("torch.") for dtype in dtypes)
    return f"{', '.join(others)} and {last}"
