"""Softmax and attention."""

from __future__ import annotations

from torch import fx

from mlir_npu.lowering.support.reduction import one_number
from mlir_npu.lowering.support.rules import arguments, rule, shape

# Scores of a head, all of which are in memory at a time. Eager never has more than a tile of them,
# and is faster above this.
MAX_SCORES = 1 << 14


@rule("aten._softmax.default", "aten._log_softmax.default", "aten._safe_softmax.default")
def softmax(node: fx.Node) -> str | None:
    """softmax and log_softmax over any dimension, and the softmax that gives zeros where all is
    masked."""
    return one_number(node)


@rule("aten._scaled_dot_product_flash_attention_for_cpu.default")
def attention(node: fx.Node) -> str | None:
    """scaled_dot_product_attention, causal, with a mask or without, up to 128 x 128 scores of a
    head. Heads of queries may share one of keys. With dropout it runs on the host."""
    call = arguments(node)
    query, key = shape(call["query"]), shape(call["key"])
    if call["dropout_p"] > 0:
        return f"dropout_p={call['dropout_p']} draws random numbers"
    if query[0] != key[0] or query[1] % key[1]:
        return f"queries {list(query)} and keys {list(key)} do not share heads evenly"
    scores = query[-2] * key[-2]
    if scores > MAX_SCORES:
        return (
            f"a head has {query[-2]} x {key[-2]} scores, and the NPU, which keeps them all, is "
            f"slower than eager above {MAX_SCORES}"
        )
    return None
