"""Import in another process: what travels there, and what comes back."""

import pickle

import torch
from aten_graphs import trace
from torch import nn

from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.dialect.target import load_target, set_threads
from mlir_npu.lowering.decompositions import NPU_DECOMPOSITIONS
from mlir_npu.lowering.import_error import RegionImportError
from mlir_npu.lowering.importer import import_graph, import_request
from mlir_npu.lowering.retrace import retrace

CONVOLUTION = torch.ops.aten.convolution.default


def block(x, w):
    y = nn.functional.conv2d(x.contiguous(memory_format=torch.channels_last), w, padding=1)
    table = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]).view(5, 1, 1)
    return (y * torch.tensor(0.5) + table).relu(), y.amax((2, 3))


def test_the_same_module_comes_out():
    tensors = torch.randn(1, 3, 6, 6), torch.randn(5, 3, 3, 3)
    graph_module = trace(block, *tensors)
    for node in graph_module.graph.find_nodes(op="call_function", target=CONVOLUTION):
        node.meta["stack_trace"] = '  File "model.py", line 3, in forward\n    y = conv(x)\n'
    weights = graph_module.graph.find_nodes(op="placeholder")[1].name
    here = import_graph(graph_module, parameters={weights}, decompositions=NPU_DECOMPOSITIONS)
    retraced = retrace(graph_module, NPU_DECOMPOSITIONS)
    request = import_request(retraced, {weights}, load_target("edge"), 3)
    travelled = pickle.loads(pickle.dumps(request))
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(travelled.run())
        assert "edge" in str(module.operation.attributes["npu.target"])
        assert "npu.num_threads = 3" in module.operation.get_asm()
        body = module.body.operations[0].get_asm(enable_debug_info=True)
    with here.module.context, ir.Location.unknown():
        set_threads(here.module.operation, 3)
        assert here.module.body.operations[0].get_asm(enable_debug_info=True) == body
    assert "model.py" in body
    assert retraced.interface({weights}).parameters == here.interface.parameters == (1,)


def test_errors_keep_what_they_know():
    error = RegionImportError("no", operators=("aten.sort.default",), location="model.py:3")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.reason, copy.operators, copy.location) == (
        "model.py:3: no",
        "no",
        ("aten.sort.default",),
        "model.py:3",
    )
