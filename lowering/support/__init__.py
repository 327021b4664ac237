"""Which nodes the NPU computes, and for the rest one sentence that says why not.

One file per family of ops holds its rules; `rules` holds the registry and the shared checks. A rule
says yes only to what `mlir_npu.lowering.decompositions` and the passes lower exactly.
"""

from __future__ import annotations

import importlib
import operator

import torch
from torch import fx

from mlir_npu.lowering.support.host_only import why_on_host
from mlir_npu.lowering.support.rules import Rule, find_rule, node_problem
from mlir_npu.lowering.support.rules import all_rules as _registered

FAMILIES = (
    "activation",
    "activation_backward",
    "attention",
    "comparison",
    "concat_pad",
    "convolution",
    "elementwise",
    "gather",
    "linear",
    "loss",
    "normalization",
    "normalization_backward",
    "pooling",
    "pooling_backward",
    "quantized",
    "reduction",
    "shape",
    "volume",
)

for _family in FAMILIES:
    importlib.import_module(f"{__name__}.{_family}")


def all_rules() -> dict[str, Rule]:
    """Rule of every ATen overload that has one. The docstring of a rule is its text for users."""
    return _registered()


def explain_support(node: fx.Node) -> str | None:
    """None when the NPU computes this call, else one sentence that says why it does not."""
    if node.op != "call_function":
        return f"{node.op} is not a call of an ATen op"
    if node.target is operator.getitem:
        producer = node.args[0]
        if find_rule(producer) is None:
            return f"its producer {producer.name} runs on the host"
        return explain_support(producer)
    schema = getattr(node.target, "_schema", None)
    if schema is not None and schema.is_mutable:
        return "it writes to its arguments, and only the host keeps writes in order"
    if node.target is torch.ops.higher_order.cond:
        return "the host evaluates the condition; the branches are graphs of their own"
    found = find_rule(node)
    if found is None:
        return why_on_host(node) or f"there is no NPU lowering for {node.target}"
    return node_problem(node) or found(node)
