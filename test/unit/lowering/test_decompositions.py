"""Every supported call, respelled: the same values as eager, and the linalg that our passes
expect."""

import re
from collections import Counter

import pytest
import torch
from aten_graphs import inputs_of, one_call, returned
from decomposition_cases import CASES

from mlir_npu.dialect.bindings import PassManager
from mlir_npu.lowering.decompositions import NPU_DECOMPOSITIONS
from mlir_npu.lowering.importer import import_retraced
from mlir_npu.lowering.retrace import retrace
from mlir_npu.lowering.support import all_rules, explain_support

# f64: twice the registers. cf.assert: no vectorization. linalg.index: run-time work on shapes.
UNWANTED = ("f64", "cf.assert", "linalg.index", "math.fpowi", "torch.")


def graph_of(name):
    overload, arguments, options = CASES[name]
    return one_call(overload, *arguments, **options)


def packed(tensor, spec):
    return tensor.permute(spec.order).contiguous()


def linalg_of(graph_module) -> str:
    module = import_retraced(retrace(graph_module, NPU_DECOMPOSITIONS)).module
    with module.context:
        PassManager.parse("builtin.module(linalg-fuse-elementwise-ops,canonicalize,cse)").run(
            module.operation
        )
    return str(module)


def op_counts(text: str) -> Counter:
    return Counter(re.findall(r"\b((?:linalg|tensor)\.\w+)", text))


def test_every_rule_has_a_case_and_every_case_a_rule():
    assert {str(overload) for overload, _, _ in CASES.values()} == set(all_rules())


@pytest.mark.parametrize("name", CASES)
def test_the_call_is_supported(name):
    calls = [node for node in graph_of(name).graph.nodes if node.op == "call_function"]
    assert [explain_support(node) for node in calls] == [None] * len(calls)


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_eager(name):
    overload, arguments, options = CASES[name]
    graph_module = graph_of(name)
    expected = returned(graph_module, overload(*arguments, **options))
    traced = retrace(graph_module, NPU_DECOMPOSITIONS)
    inputs = [
        packed(*pair) for pair in zip(inputs_of(*arguments, **options), traced.inputs, strict=True)
    ]
    (actual,) = traced.graph_module(*inputs, *traced.constants)
    torch.testing.assert_close(
        actual.contiguous(),
        packed(expected, traced.results[0]),
        rtol=1e-5,
        atol=1e-6,
        equal_nan=True,
    )


@pytest.mark.parametrize("name", CASES)
def test_linalg_is_free_of_what_our_passes_do_not_want(name):
    text = linalg_of(graph_of(name))
    assert [word for word in UNWANTED if word in text] == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("conv 2d", {"conv_2d_nchw_fchw": 1, "fill": 1, "generic": 1}),
        ("conv 2d without bias", {"conv_2d_nchw_fchw": 1, "fill": 1, "generic": 0}),
        ("conv 1d", {"conv_2d_nchw_fchw": 1, "conv_1d_ncw_fcw": 0}),
        ("conv grouped", {"conv_2d_ngchw_gfchw": 1}),
        ("conv depthwise", {"depthwise_conv_2d_nchw_chw": 1}),
        ("conv depthwise multiplier", {"depthwise_conv_2d_nchw_chw": 1}),
        ("conv 1d depthwise multiplier", {"depthwise_conv_2d_nchw_chw": 1}),
        ("addmm", {"matmul": 1, "fill": 1, "generic": 1}),
        ("relu6", {"generic": 1}),
        ("hardswish", {"generic": 1}),
        ("gelu", {"generic": 1}),
        ("batch norm", {"generic": 2}),
        ("adaptive pool [2, 3]", {"pooling_nchw_sum": 1}),
        ("max pool special", {"pooling_nchw_max": 1}),
    ],
)
def test_named_ops_come_out(name, expected):
    counts = op_counts(linalg_of(graph_of(name)))
    assert {key: counts[f"linalg.{key}"] for key in expected} == expected


def test_pools_that_rules_refuse_are_left_alone():
    """The host lowering shares these respellings, without the support rules before them."""
    x = torch.ones(1, 2, 4, 3)
    for overload in (torch.ops.aten._adaptive_avg_pool2d, torch.ops.aten.adaptive_avg_pool2d):
        assert NPU_DECOMPOSITIONS[overload.default](x, [0, 1]) is NotImplemented
    unequal = NPU_DECOMPOSITIONS[torch.ops.aten.adaptive_max_pool2d.default](x, [3, 2])
    assert unequal is NotImplemented


def test_clamps_compare_and_select():
    text = linalg_of(graph_of("relu6"))
    assert len(re.findall(r"arith\.cmpf o[lg]t", text)) == 2 and text.count("arith.select") == 2
