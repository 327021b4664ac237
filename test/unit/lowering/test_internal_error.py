"""One line of an error that nobody foresaw, with the user's line where the error knows it."""

import torch
from torch import fx
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from mlir_npu.lowering.internal_error import describe_internal_error


def test_errors_of_running_a_graph_name_the_line_of_the_user():
    def count(x):
        return x.sum().item()

    graph_module = fx.symbolic_trace(count)
    (node,) = graph_module.graph.find_nodes(op="call_method", target="item")
    node.meta["stack_trace"] = '  File "/home/user/net.py", line 12, in forward\n    x.sum().item()'
    try:
        with FakeTensorMode():
            make_fx(fx.Interpreter(graph_module).run)(torch.ones(3))
    except Exception as error:
        text = describe_internal_error(error)
    assert text.startswith("internal error: DataDependentOutputException: ")
    assert text.endswith(" (at /home/user/net.py:12)")
    assert "\n" not in text


def test_other_errors_are_their_first_line():
    error = ValueError("\nno such lane\n  lanes: 8")
    assert describe_internal_error(error) == "internal error: ValueError: no such lane"
    assert describe_internal_error(KeyError("a bug")) == "internal error: KeyError: 'a bug'"
    assert describe_internal_error(StopIteration()) == "internal error: StopIteration"
