"""Pickles that any process can read."""

import pickle
import sys
import types

import pytest
import torch
from aten_graphs import trace

from mlir_npu.lowering.graph_pickle import dump_graph, dumps, load_graph

FORMATS = (torch.contiguous_format, torch.channels_last, torch.preserve_format)


@pytest.fixture
def script(monkeypatch):
    """A module of the user's, which no other process can import, that was imported before torch."""
    module = types.ModuleType("script_of_the_user")
    module.torch = torch
    monkeypatch.setattr(sys, "modules", {module.__name__: module, **sys.modules})
    with pytest.raises(pickle.PicklingError, match=module.__name__):
        pickle.dumps(torch.contiguous_format)


def copies(x):
    return [x.clone(memory_format=memory_format) for memory_format in FORMATS]


def test_graphs_name_no_module_of_the_user(script):
    graph = load_graph(dump_graph(trace(copies, torch.randn(1, 2, 3, 3))))
    found = [node.kwargs.get("memory_format") for node in graph.graph.nodes]
    assert tuple(value for value in found if value is not None) == FORMATS


def test_values_name_no_module_of_the_user(script):
    value = {"formats": FORMATS, "dtype": torch.bfloat16, "layout": torch.strided}
    assert pickle.loads(dumps(value)) == value
