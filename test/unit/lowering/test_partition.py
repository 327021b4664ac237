"""Plans for graphs with known traps: cycles, writes, aliases, literals, odd outputs."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from aten_graphs import PartitionOptions, aten, calls, capture, places, run_plan, trace
from torch import nn

from mlir_npu.lowering.check_plan import PlanError, check_plan
from mlir_npu.lowering.partition import partition
from mlir_npu.lowering.plan import PartitionPlan

X = torch.rand(4, 4)
Y = torch.rand(4, 4)


def plan_of(function, *arguments, min_region_macs=0, host_ops=()) -> PartitionPlan:
    """Plan of a traced function, after checking that it computes what the function does."""
    graph_module = trace(function, *arguments)
    before = graph_module.code
    plan = partition(graph_module, PartitionOptions(min_region_macs, host_ops))
    assert graph_module.code == before, "the graph of the caller is left alone"
    expected = function(*(argument.clone() for argument in arguments))
    expected = list(expected) if isinstance(expected, (tuple, list)) else [expected]
    actual = run_plan(plan, [argument.clone() for argument in arguments])
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
    return plan


# ---- regions ------------------------------------------------------------------------------------


def test_a_whole_network_is_one_region():
    network = nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(392, 5),
    ).eval()
    (graph_module,) = capture(network, torch.rand(1, 3, 16, 16))
    plan = partition(graph_module, PartitionOptions(4096))
    assert places(plan) == ["npu"]
    (region,) = plan.parts
    assert region.conv_macs == 14 * 14 * 8 * 27 and region.macs == region.conv_macs + 392 * 5
    assert plan.rejections == ()
    assert set(region.inputs) == set(plan.placeholders)


def test_parallel_branches_make_one_region():
    plan = plan_of(lambda x: aten.relu(x) + aten.sigmoid(x) * aten.tanh(aten.neg(x)), X)
    assert places(plan) == ["npu"]


def test_two_branches_whose_ends_would_close_a_cycle():
    def crossed(x):
        left = aten.sin(aten.relu(x))
        right = aten.relu(aten.cos(x))
        return aten.relu(left) + aten.sin(right)

    plan = plan_of(crossed, X)
    assert len(plan.npu_parts) == 2


def test_an_unsupported_op_between_two_supported_ones_makes_two_regions():
    plan = plan_of(lambda x: aten.relu(aten.sin(aten.relu(x))), X)
    assert places(plan) == ["npu", "host", "npu"]


def test_taking_a_bridge_out_of_a_region_splits_it():
    def chain(x):
        return aten.relu(aten.sigmoid(aten.tanh(aten.relu(x))) + x)

    assert places(plan_of(chain, X)) == ["npu"]
    assert places(plan_of(chain, X, host_ops=("sigmoid",))) == ["npu", "host", "npu"]


def test_a_weight_is_transposed_in_the_region_that_uses_it():
    def layers(x, w):
        hidden = aten.sin(aten.mm(x, aten.t(w)))
        return aten.mm(hidden, aten.t(w))

    plan = plan_of(layers, X, Y)
    assert [calls(plan, part.name) for part in plan.npu_parts] == [["t", "mm"], ["t", "mm"]]
    assert plan.parts[2].inputs == ("w_1", "sin")


def test_work_on_weights_moves_to_the_region_that_reads_it():
    def folded(x, w):
        scaled = aten.mul(w, 2)
        return aten.mm(aten.sin(aten.mm(x, x)), scaled)

    plan = plan_of(folded, X, Y)
    assert [calls(plan, part.name) for part in plan.npu_parts] == [["mm"], ["mul", "mm"]]


def test_inputs_are_ordered_as_in_the_graph():
    plan = plan_of(lambda a, b, c: aten.addmm(c, b, a), X, X + 1, X + 2)
    assert plan.parts[0].inputs == ("a_1", "b_1", "c_1")


def test_attributes_decide_and_not_names():
    plan = plan_of(lambda x: (aten.pow(x, 3), aten.pow(x, 1 / 3)), torch.rand(1, 2, 5, 5))
    assert [calls(plan, part.name).count("pow") for part in plan.npu_parts] == [1]
    (rejection,) = plan.rejections
    assert rejection.reason.startswith("exponent 0.33")


# ---- what pays ----------------------------------------------------------------------------------


def test_a_lone_activation_is_returned_to_the_host_with_the_numbers():
    plan = plan_of(lambda x: aten.relu(x), torch.rand(100, 100), min_region_macs=4096)
    assert places(plan) == ["host"]
    assert plan.rejections[0].reason == (
        "its region of 1 ops saves the work of 0 MACs, less than min_region_macs=4096"
    )


def test_a_fused_chain_on_a_large_tensor_pays():
    assert places(
        plan_of(lambda x: aten.relu(x) * 2, torch.rand(100, 100), min_region_macs=4096)
    ) == ["npu"]


def test_a_small_group_does_not_keep_two_host_parts_apart():
    def step(x, y):
        return aten.mm(aten.sin(aten.relu(aten.cos(x))), y), aten.mm(y, y)

    plan = plan_of(step, torch.rand(4, 32), torch.rand(32, 32), min_region_macs=1000)
    assert places(plan) == ["host", "npu"]


def test_ops_can_be_kept_on_the_host_by_name():
    for name in ("relu", "aten.relu", "aten.relu.default"):
        plan = plan_of(lambda x: aten.relu(aten.mm(x, x)), X, host_ops=(name,))
        assert places(plan) == ["npu", "host"]
        assert plan.rejections[0].reason == f'the option host_ops="{name}" keeps it on the host'


def test_rejections_name_the_line_of_the_program():
    def program(x):
        return torch.sin(torch.relu(x) @ x)

    (graph_module,) = capture(program, X)
    (rejection,) = partition(graph_module, PartitionOptions()).rejections
    file, line = rejection.location.rsplit(":", 1)
    assert Path(file).name == Path(__file__).name
    assert int(line) == program.__code__.co_firstlineno + 1


# ---- literals -----------------------------------------------------------------------------------


def test_literals_do_not_split_a_region():
    def scaled(x, w):
        x = torch.relu(x @ w) * torch.tensor(2)
        x = x * torch.tensor([1.0, 2.0, 3.0, 4.0]) - torch.tensor(0.5)
        return torch.tensor(3.0) * torch.relu(x @ w)

    (graph_module,) = capture(scaled, X, Y)
    plan = partition(graph_module, PartitionOptions())
    assert places(plan) == ["npu"]
    torch.testing.assert_close(run_plan(plan, [X, Y]), [scaled(X, Y)])


def test_a_number_in_a_parameter_does_not_split_a_region():
    plan = plan_of(lambda x, s: aten.relu(s - aten.mm(x, x) * s), X, torch.tensor(2.5))
    assert places(plan) == ["npu"]
    assert plan.parts[0].inputs == ("x_1", "s_1")


def test_large_constants_stay_in_the_region_that_uses_them():
    table = torch.rand(33, 33)
    (graph_module,) = capture(
        lambda x: torch.relu(x @ torch.tensor(table.tolist())), torch.rand(4, 33)
    )
    plan = partition(graph_module, PartitionOptions())
    assert places(plan) == ["npu"] and plan.parts[0].inputs == plan.placeholders


def test_what_depends_on_constants_only_is_left_to_the_host():
    def literal(x):
        return torch.tensor([1.0, 2.0]), torch.relu(x)

    (graph_module,) = capture(literal, X)
    plan = partition(graph_module, PartitionOptions())
    assert [rejection.reason for rejection in plan.rejections] == ["it depends on constants only"]
    torch.testing.assert_close(run_plan(plan, [X]), [torch.tensor([1.0, 2.0]), torch.relu(X)])


# ---- writes and effects -------------------------------------------------------------------------


def test_writes_keep_their_order():
    def fill(x):
        copy = aten.clone(x)
        aten.fill_(copy, 2)
        first = aten.relu(copy)
        aten.fill_(copy, 3)
        return copy, first, aten.relu(copy)

    plan = plan_of(fill, X)
    assert all("fill_" not in calls(plan, part.name) for part in plan.npu_parts)


def test_a_read_after_a_write_sees_it_and_a_read_before_does_not():
    def buffer(x, b):
        before = aten.relu(b)
        aten.index_copy_(b, 0, torch.tensor([1, 0, 3, 2]), x)
        return aten.add(x, b), before

    plan = plan_of(buffer, X, torch.rand(4, 4))
    assert places(plan) == ["npu", "host", "npu"]


def test_a_write_through_a_view_is_seen_through_another():
    def views(x):
        base = aten.clone(x)
        early = aten.relu(aten.t(base))
        aten.mul_(aten.view(base, [16]), 5)
        return aten.relu(aten.t(base)), early

    plan_of(views, X)


def test_random_numbers_are_drawn_in_order():
    def draws(x):
        first = aten.bernoulli(aten.sin(aten.relu(x)))
        second = aten.bernoulli(x)
        return first, second

    graph_module = trace(draws, X)
    plan = partition(graph_module, PartitionOptions())
    torch.manual_seed(7)
    expected = draws(X)
    torch.manual_seed(7)
    torch.testing.assert_close(run_plan(plan, [X]), list(expected))


def test_copies_into_inputs_come_after_every_read():
    def update(x):
        y = aten.relu(x) + 1
        z = aten.mm(x, y)
        aten.copy_(x, y)
        return z

    x = X.clone()
    plan = plan_of(update, X)
    run_plan(plan, [x])
    torch.testing.assert_close(x, torch.relu(X) + 1)


# ---- results ------------------------------------------------------------------------------------


def test_results_keep_their_number_order_and_identity():
    def odd(a, b):
        y = aten.relu(a)
        return y, None, b, y, aten.neg(a), b

    graph_module = trace(odd, X, Y)
    plan = partition(graph_module, PartitionOptions())
    assert plan.results == ("relu", None, "b_1", "relu", "neg", "b_1")
    a, b = X.clone(), X.clone()
    results = run_plan(plan, [a, b])
    assert results[0] is results[3] and results[2] is b and results[5] is b and results[1] is None


def test_a_view_of_an_input_shares_its_memory():
    plan = plan_of(lambda x: (aten.view(x, [16]), aten.relu(aten.view(x, [16]))), X)
    x = X.clone()
    results = run_plan(plan, [x])
    assert results[0].data_ptr() == x.data_ptr()
    assert results[1].data_ptr() != x.data_ptr()


def test_a_result_and_its_view_share_memory_and_are_two_objects():
    plan = plan_of(lambda x: (y := aten.relu(x), aten.view(y, [4, 4]), aten.detach(y)), X)
    first, second, third = run_plan(plan, [X])
    assert first.data_ptr() == second.data_ptr() == third.data_ptr()
    assert len({id(first), id(second), id(third)}) == 3


def test_a_sole_view_leaves_the_region_without_a_host_part():
    plan = plan_of(lambda x: aten.view(aten.mm(x, x), [2, 8]), X)
    assert places(plan) == ["npu"] and plan.results == ("view",)


def test_a_sole_view_with_gaps_is_made_on_the_host():
    plan = plan_of(lambda x: aten.slice(aten.mm(x, x), 1, 0, 2), X)
    assert places(plan) == ["npu", "host"]


def test_a_graph_without_calls():
    plan = plan_of(lambda x: (x, x), X)
    assert plan.parts == () and plan.results == ("x_1", "x_1")


def test_empty_statistics_of_a_frozen_batch_norm_do_not_keep_it_from_the_npu():
    network = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval()
    forward, backward = capture(network, torch.rand(1, 2, 8, 8), train=True)
    plan = partition(forward, PartitionOptions())
    assert len(plan.npu_parts) == 1
    assert {rejection.op for rejection in plan.rejections} == {
        "aten.full.default",
        "aten.detach.default",
    }
    assert len(plan.results) == len(forward.graph.output_node().args[0])
    assert len(partition(backward, PartitionOptions()).results) == len(
        backward.graph.output_node().args[0]
    )


def test_indices_that_only_the_backward_reads_keep_the_pool_on_the_host():
    network = nn.Sequential(nn.Conv2d(2, 4, 3), nn.MaxPool2d(2))
    forward, _ = capture(network, torch.rand(1, 2, 8, 8), train=True)
    plan = partition(forward, PartitionOptions())
    assert [rejection.op for rejection in plan.rejections] == [
        "aten.max_pool2d_with_indices.default"
    ]


# ---- dynamic shapes -----------------------------------------------------------------------------


def test_symbolic_sizes_cross_host_parts_only():
    def padded(x, w):
        scale = w @ w
        return torch.relu(x + x.shape[0]) @ scale

    (graph_module,) = capture(padded, torch.rand(5, 4), X, dynamic=True)
    plan = partition(graph_module, PartitionOptions())
    for part in plan.npu_parts:
        for node in part.graph_module.graph.find_nodes(op="placeholder"):
            assert isinstance(node.meta["val"], torch.Tensor)
    assert any("dynamic shape" in rejection.reason for rejection in plan.rejections)


# ---- determinism and the check ------------------------------------------------------------------

SCRIPT = """
import torch
from aten_graphs import PartitionOptions, capture
from mlir_npu.lowering.partition import partition
def program(x, w):
    y = torch.relu(x @ w) + torch.sin(x)
    return torch.sigmoid(y) @ w, y.view(-1), torch.tanh(x) * torch.cos(y @ w)
(graph,) = capture(program, torch.ones(4, 4), torch.ones(4, 4))
for part in partition(graph, PartitionOptions()).parts:
    print(part.name, part.inputs, part.outputs, part.graph_module.code)
"""


def test_two_processes_make_the_same_plan():
    here = io.StringIO()
    with contextlib.redirect_stdout(here):
        exec(SCRIPT, {})
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    environment = dict(os.environ, PYTHONHASHSEED=seed, PYTHONPATH=str(Path(__file__).parent))
    command = [sys.executable, "-c", SCRIPT]
    there = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert there.returncode == 0, there.stderr
    assert "npu_0" in here.getvalue() and there.stdout == here.getvalue()


def test_the_check_finds_parts_in_the_wrong_order():
    plan = plan_of(lambda x: aten.relu(aten.sin(aten.relu(x))), X)
    swapped = PartitionPlan(
        plan.graph_module, plan.placeholders, plan.parts[::-1], plan.results, plan.rejections
    )
    with pytest.raises(PlanError, match="npu_1 reads"):
        check_plan(swapped)


def test_the_check_finds_a_missing_part():
    plan = plan_of(lambda x: (aten.sin(x), aten.relu(aten.relu(x))), X)
    without = PartitionPlan(
        plan.graph_module, plan.placeholders, plan.npu_parts, plan.results, plan.rejections
    )
    with pytest.raises(PlanError, match="returns .'sin'"):
        check_plan(without)
