"""Random programs with views, writes, splits and shared results: the plan computes and aliases
alike."""

import itertools

import torch
from aten_graphs import PartitionOptions, aten, run_plan, trace
from hypothesis import given, settings
from hypothesis import strategies as st

from mlir_npu.lowering.partition import partition

SHAPE = (4, 4)

# name -> (number of operands, function of 4x4 tensors to a 4x4 tensor)
STEPS = {
    "relu": (1, lambda x: aten.relu(x)),
    "add": (2, lambda x, y: aten.add(x, y)),
    "mm": (2, lambda x, y: aten.mm(x, y)),
    "clone": (1, lambda x: aten.clone(x)),
    "sin": (1, lambda x: aten.sin(x)),
    "minimum": (2, lambda x, y: aten.minimum(x, y)),
    "t": (1, lambda x: aten.t(x)),
    "detach": (1, lambda x: aten.detach(x)),
    "flip the halves": (1, lambda x: aten.cat(list(reversed(aten.split(x, 2, 1))), 1)),
    "diagonal view": (1, lambda x: aten.as_strided(aten.clone(x), [4, 4], [1, 4])),
    "fold": (1, lambda x: aten.view(aten.unsqueeze(aten.clone(x), 0), [4, 4])),
    "add in place": (2, lambda x, y: aten.add_(x, aten.clone(y))),
    "relu in place": (1, lambda x: aten.relu_(x)),
    "scale through a view": (1, lambda x: (aten.mul_(aten.t(x), 0.5), x)[1]),
}


@st.composite
def programs(draw):
    """(inputs, steps, results): a step is (name, operand indices); values are inputs, then
    steps."""
    inputs = draw(st.integers(1, 3))
    count = draw(st.integers(1, 14))
    steps = []
    for position in range(inputs, inputs + count):
        name = draw(st.sampled_from(sorted(STEPS)))
        operands = tuple(draw(st.integers(0, position - 1)) for _ in range(STEPS[name][0]))
        steps.append((name, operands))
    last = inputs + count - 1
    results = draw(st.lists(st.one_of(st.none(), st.integers(0, last)), min_size=1, max_size=5))
    return inputs, tuple(steps), tuple(results)


def as_function(program):
    inputs, steps, results = program

    def run(*arguments):
        values = list(arguments)
        for name, operands in steps:
            values.append(STEPS[name][1](*(values[index] for index in operands)))
        return [None if index is None else values[index] for index in results]

    names = ", ".join(f"a{index}" for index in range(inputs))
    scope = {"run": run}
    exec(f"def function({names}): return run({names})", scope)
    return scope["function"]


def storages(tensors):
    return [None if tensor is None else tensor.untyped_storage().data_ptr() for tensor in tensors]


def sharing(tensors):
    pointers = storages(tensors)
    return [a == b and a is not None for a, b in itertools.combinations(pointers, 2)]


@given(programs(), st.sampled_from([0, 40, 200]))
@settings(max_examples=250)
def test_a_plan_is_valid_and_computes_what_the_graph_does(program, minimum):
    function = as_function(program)
    inputs = [
        torch.rand(SHAPE, generator=torch.Generator().manual_seed(i)) - 0.5
        for i in range(program[0])
    ]
    graph_module = trace(function, *(tensor.clone() for tensor in inputs))
    options = PartitionOptions(minimum)
    plan = partition(graph_module, options)

    given_to_graph = [tensor.clone() for tensor in inputs]
    given_to_plan = [tensor.clone() for tensor in inputs]
    expected = graph_module(*given_to_graph)
    actual = run_plan(plan, given_to_plan)
    torch.testing.assert_close(actual, list(expected), rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(given_to_plan, given_to_graph, rtol=0, atol=0, equal_nan=True)
    assert sharing([*actual, *given_to_plan]) == sharing([*expected, *given_to_graph])

    _assert_convex(plan)
    again = partition(graph_module, options)
    assert [part.graph_module.code for part in again.parts] == [
        part.graph_module.code for part in plan.parts
    ]


def _assert_convex(plan):
    """No path leaves a region and comes back: judged on the whole graph, from reachability
    alone."""
    nodes = list(plan.graph_module.graph.nodes)
    reaches = {}
    for node in reversed(nodes):
        reaches[node.name] = set().union(*({u.name} | reaches[u.name] for u in node.users), set())
    for part in plan.npu_parts:
        inside = {node.name for node in part.graph_module.graph.nodes if node.op == "call_function"}
        made = set(part.outputs)
        for value in made:
            for outside in reaches[value] - inside:
                assert not (reaches[outside] & made & inside) or _is_copied_view(
                    plan, outside, part
                )


def _is_copied_view(plan, name, part):
    """A view may be made in several parts; a path through it is no path through another part."""
    return (
        sum(
            any(n.name == name and n.op == "call_function" for n in p.graph_module.graph.nodes)
            for p in plan.parts
        )
        != 1
    )
