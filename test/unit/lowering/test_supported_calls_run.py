"""What a support rule promises, the compiler keeps: every supported call through all stages,
against eager."""

import pytest
import torch
from aten_graphs import inputs_of, one_call, returned
from decomposition_cases import CASES

from mlir_npu.lowering.compile_region import compile_region
from mlir_npu.lowering.plan import Part
from mlir_npu.options import Options

QUICK = {
    "relu6", "gelu", "softplus with beta", "add per channel", "rsub number", "addmm", "bmm",
    "matmul", "conv 1d", "conv 2d", "conv grouped", "conv depthwise",
    "conv depthwise multiplier", "batch norm",
    "max pool special", "max pool dilated", "avg pool [3, 2] [2, 3] [1, 1] ceil False None",
    "adaptive pool [2, 3]", "mean over space", "cat", "pad", "view of a permuted tensor", "squeeze",
    "slice with a step", "split", "layer norm", "group norm 4", "softmax special",
    "attention masked", "amax over space", "index a grid", "reflection 2d", "pixel shuffle",
    "conv 3d plain", "max pool 3d True",
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES],
)
def test_compiled_call_computes_and_lays_out_as_eager(name):
    overload, arguments, options = CASES[name]
    graph_module = one_call(overload, *arguments, **options)
    inputs = graph_module.graph.find_nodes(op="placeholder")
    (output,) = graph_module.graph.output_node().args[0]
    names = tuple(node.name for node in inputs)
    part = Part("npu_0", "npu", graph_module, names, (output.name,), 0, 0, 1)
    (actual,) = compile_region(part, Options(), frozenset())(*inputs_of(*arguments, **options))

    expected = returned(graph_module, overload(*arguments, **options))
    torch.testing.assert_close(actual, expected, rtol=3e-5, atol=2e-5, equal_nan=True)
    assert actual.stride() == output.meta["val"].stride()


def test_the_quick_ones_exist():
    assert QUICK <= set(CASES)
