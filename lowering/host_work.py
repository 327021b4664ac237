"""Work that the host does instead of the NPU, and how loudly to say so.

A rejected node is a fallback, whether its op has no NPU lowering or its lowering refused this call
(a dtype, a dynamic shape). None is a node that the user placed (`host_ops`, `npu_ops`,
`min_region_macs`), a
view, a copy into an input at the end, or a call so small that the NPU would return it anyway.
Fallbacks are errors with strict=True; without it there is one warning per cause.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict

import torch
from torch import fx
from torch.utils import _pytree as pytree

from mlir_npu.errors import StrictError
from mlir_npu.logs import first_time
from mlir_npu.lowering.branches import is_cond
from mlir_npu.lowering.dependencies import is_view
from mlir_npu.lowering.macs import count_elements, count_macs
from mlir_npu.lowering.partition import placed_on_host
from mlir_npu.lowering.plan import PartitionPlan, Rejection
from mlir_npu.lowering.support import explain_support
from mlir_npu.options import Options

logger = logging.getLogger("mlir_npu.partition")

# How AOTAutograd's graphs end for inputs that the program writes to, statistics for example.
WRITE_BACK = "aten.copy_.default"
LISTED = 20  # causes in an error
WARNED = 5  # causes in a warning


def fallbacks(plan: PartitionPlan, options: Options) -> list[Rejection]:
    """Rejections of calls that do work which nobody placed on the host."""
    nodes = {node.name: node for node in plan.graph_module.graph.nodes}
    pairs = ((rejection, nodes[rejection.node]) for rejection in plan.rejections)
    return [rejection for rejection, node in pairs if _is_fallback(node, options)]


def refuse_fallbacks(plan: PartitionPlan, options: Options) -> None:
    """Raise StrictError if there is a fallback."""
    causes = fallbacks(plan, options)
    if not causes:
        return
    lines = [f"  {_line(rejection)}" for rejection in causes[:LISTED]]
    if len(causes) > LISTED:
        lines.append(f"  and {len(causes) - LISTED} more")
    raise StrictError(
        f"strict=True, and {_ops(len(causes))} would run on the host; "
        "list them in host_ops to allow it:\n" + "\n".join(lines)
    )


def warn_of_host_work(plan: PartitionPlan, options: Options, kind: str) -> None:
    """One warning for a graph with causes that this process has not seen; everything at INFO."""
    for rejection in plan.rejections:
        logger.info("%s: %s on the host: %s", kind, rejection.node, _line(rejection))
    groups: dict[str, list[Rejection]] = defaultdict(list)
    for rejection in fallbacks(plan, options):
        groups[_cause(rejection)].append(rejection)
    new = [group for cause, group in groups.items() if first_time(cause)]
    if not new:
        return
    lines = [f"\n  {len(group)} x {_line(group[0])}" for group in new[:WARNED]]
    if len(new) > WARNED:
        lines.append(f"\n  and {len(new) - WARNED} causes more")
    logger.warning(
        "mlir_npu runs %s of the %s graph on the host (mlir_npu.explain lists all):%s",
        _ops(sum(map(len, new))),
        kind,
        "".join(lines),
    )


def _is_fallback(node: fx.Node, options: Options) -> bool:
    if placed_on_host(node, options) or is_view(node):
        return False
    if str(node.target) == WRITE_BACK or _is_control(node):
        return False
    # a call that the NPU supports was returned for its size alone, which is the user's option
    return explain_support(node) is not None and _does_work(node, options.min_region_macs)


def _is_control(node: fx.Node) -> bool:
    """Numbers and assertions about them; the choice between branches, which are other graphs."""
    leaves = pytree.tree_leaves(node.meta.get("val"))
    return is_cond(node) or not any(isinstance(leaf, torch.Tensor) for leaf in leaves)


def _does_work(node: fx.Node, minimum: int) -> bool:
    values = [operand.meta.get("val") for operand in node.all_input_nodes] + [node.meta.get("val")]
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    if any(not isinstance(size, int) for tensor in tensors for size in tensor.shape):
        return True  # nobody knows how much
    return max(count_macs(node), count_elements(node)) >= minimum


def _ops(count: int) -> str:
    return "1 op" if count == 1 else f"{count} ops"


def _cause(rejection: Rejection) -> str:
    """The reason without the numbers and names of values that differ from node to node."""
    return f"{rejection.op}: {re.sub(r'[A-Za-z_]*[0-9][A-Za-z_0-9]*', '#', rejection.reason)}"


def _line(rejection: Rejection) -> str:
    return f"{rejection.op} ({rejection.location or 'no source line'}): {rejection.reason}"
