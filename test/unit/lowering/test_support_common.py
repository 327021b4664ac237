"""What every rule checks, and that every rule says something to users."""

import pytest
import torch
import torch.ao.quantization.fx._decomposed  # registers the quantising ops
from aten_graphs import aten, call_of, capture, trace

from mlir_npu.lowering.support import FAMILIES, all_rules, explain_support


def explain(function, *tensors, overload):
    return explain_support(call_of(trace(function, *tensors), overload))


def test_every_rule_names_an_existing_overload_and_explains_itself():
    rules = all_rules()
    for overload, rule in rules.items():
        namespace, packet, name = overload.split(".")
        assert getattr(getattr(getattr(torch.ops, namespace), packet), name)
        assert rule.__doc__ and rule.__doc__.strip().endswith("."), overload
    assert {rule.__module__.rsplit(".", 1)[1] for rule in rules.values()} == set(FAMILIES)


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (torch.ones(2, 3, dtype=torch.float64), "operand x_1 is float64"),
        (torch.ones(2, 3, dtype=torch.int8), "operand x_1 is int8"),
        (torch.ones(2, 3, dtype=torch.complex64), "operand x_1 is complex64"),
        (torch.ones(0, 3), "operand x_1 of shape 0x3 has no elements"),
        (torch.ones(1, 1, 1, 1, 1, 1, 2), "operand x_1 has rank 7"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_tensors_that_the_npu_does_not_take_are_named(tensor, words):
    reason = explain(lambda x: aten.alias(x), tensor, overload="aten.alias.default")
    assert reason is not None and words in reason


def test_a_second_operand_of_another_type_is_named():
    reason = explain(
        lambda x, y: aten.mul(x, y),
        torch.ones(2),
        torch.ones(2, dtype=torch.int64),
        overload="aten.mul.Tensor",
    )
    assert reason == "operand y_1 is int64, and the NPU takes float32, bfloat16 and float16 only"


def test_ops_without_a_rule_say_so():
    assert explain(lambda x: aten.sin(x), torch.ones(2), overload="aten.sin.default") == (
        "there is no NPU lowering for aten.sin.default"
    )


def test_booleans_are_for_choices_only():
    mask = torch.ones(2, dtype=torch.bool)
    taken = explain(
        lambda x, m: aten.where(m, x, x), torch.ones(2), mask, overload="aten.where.self"
    )
    reason = explain(lambda x, m: aten.add(x, m), torch.ones(2), mask, overload="aten.add.Tensor")
    assert taken is None
    assert reason == "operand m_1 is bool, and the NPU takes float32, bfloat16 and float16 only"


def test_what_the_host_does_on_purpose_is_told():
    reason = explain(
        lambda x: aten.native_dropout(x, 0.5, True)[0],
        torch.ones(2),
        overload="aten.native_dropout.default",
    )
    assert reason is not None and "random numbers" in reason


def test_writes_are_rejected_whatever_their_op():
    reason = explain(lambda x: aten.relu_(x), torch.ones(2), overload="aten.relu_.default")
    assert reason is not None and "writes to its arguments" in reason


def test_dynamic_shapes_are_rejected_with_the_symbol():
    (graph_module,) = capture(lambda x: torch.relu(x) + x.shape[0], torch.ones(5, 3), dynamic=True)
    reason = explain_support(call_of(graph_module, "aten.relu.default"))
    assert reason is not None and "dynamic shape s" in reason


def test_only_calls_are_supported():
    graph_module = trace(lambda x: aten.relu(x), torch.ones(2))
    placeholder = next(iter(graph_module.graph.nodes))
    assert explain_support(placeholder) == "placeholder is not a call of an ATen op"
