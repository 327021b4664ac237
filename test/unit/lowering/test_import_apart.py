"""Import in another process: what travels, and that this one stays without MLIR."""

import pickle
import subprocess
import sys

import torch
from aten_graphs import trace
from torch import nn

from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.dialect.target import load_target
from mlir_npu.lowering.compile_region import set_threads
from mlir_npu.lowering.decompositions import NPU_DECOMPOSITIONS
from mlir_npu.lowering.import_apart import ImportRequest
from mlir_npu.lowering.import_error import RegionImportError
from mlir_npu.lowering.importer import import_graph
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
    request = ImportRequest.of(retraced, frozenset({weights}), load_target("edge"), 3)
    travelled = pickle.loads(pickle.dumps(request))
    assert travelled.around.constants == ()
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(travelled.run())
        assert "edge" in str(module.operation.attributes["npu.target"])
        assert "npu.num_threads = 3" in module.operation.get_asm()
        body = module.body.operations[0].get_asm(enable_debug_info=True)
    with here.module.context, ir.Location.unknown():
        set_threads(here.module, 3)
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


PROGRAM = """
import sys, torch, mlir_npu
from torch import nn
layers = [layer for _ in range(13) for layer in (nn.Conv2d(4, 4, 3, padding=1), nn.ReLU())]
model, x = nn.Sequential(*layers).eval(), torch.randn(1, 4, 9, 9)
with torch.no_grad():
    program = mlir_npu.capture(model, x, options={"strict": True})
    torch.testing.assert_close(program(x), model(x), rtol=1e-4, atol=1e-4)
print(sorted(name for name in sys.modules if name.startswith("torch_mlir")))
"""


def test_a_program_of_a_large_region_is_made_and_called_without_mlir(tmp_path, monkeypatch):
    monkeypatch.setenv("MLIR_NPU_CACHE_DIR", str(tmp_path))
    for _ in "cold", "from the cache":
        command = [sys.executable, "-c", PROGRAM]
        run = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert run.returncode == 0, run.stderr
        assert run.stdout.strip() == "[]"
