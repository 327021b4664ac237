"""Every supported call on bf16 and f16: computed in f32, rounded once, as eager does."""

import pytest
import torch
from aten_graphs import inputs_of, one_call, returned
from decomposition_cases import CASES
from test_decompositions import packed
from torch.utils import _pytree as pytree

from mlir_npu.lowering.decompositions import REGION_DECOMPOSITIONS
from mlir_npu.lowering.retrace import retrace
from mlir_npu.lowering.support import explain_support

HALVES = [torch.bfloat16, torch.float16]
FLOATS = {
    name: case
    for name, case in CASES.items()
    if not case[0].name().startswith("quantized_decomposed")
}


def in_type(value, dtype):
    def convert(leaf):
        if leaf is torch.float32:
            return dtype
        floats = isinstance(leaf, torch.Tensor) and leaf.dtype is torch.float32
        return leaf.to(dtype) if floats else leaf

    return pytree.tree_map(convert, value)


# eager rounds every partial sum of these
SUMMED_IN_HALVES = {torch.ops.aten._adaptive_avg_pool3d.default}


@pytest.mark.parametrize("dtype", HALVES, ids=["bf16", "f16"])
@pytest.mark.parametrize("name", FLOATS)
def test_values_are_those_of_eager(name, dtype):
    overload, arguments, options = FLOATS[name]
    given, keywords = in_type(arguments, dtype), in_type(options, dtype)
    try:
        eager = overload(*given, **keywords)
    except RuntimeError as error:
        pytest.skip(f"eager has none: {error}")
    graph_module = one_call(overload, *given, **keywords)
    (call, *_) = [node for node in graph_module.graph.nodes if node.op == "call_function"]
    if (reason := explain_support(call)) is not None:
        assert "saved statistics" in reason or "float16 in eager" in reason
        return
    traced = retrace(graph_module, REGION_DECOMPOSITIONS)
    inputs = [
        packed(*pair) for pair in zip(inputs_of(*given, **keywords), traced.inputs, strict=True)
    ]
    (actual,) = traced.graph_module(*inputs, *traced.constants)
    expected = packed(returned(graph_module, eager), traced.results[0])
    assert actual.dtype == expected.dtype
    rounds = 8 if overload in SUMMED_IN_HALVES else 1
    step = torch.finfo(dtype).eps
    largest = expected.float().nan_to_num(0, 0, 0).abs().max().item()
    torch.testing.assert_close(
        actual.float(),
        expected.float(),
        rtol=2 * step,
        atol=step * largest / 2 * rounds,
        equal_nan=True,
    )
