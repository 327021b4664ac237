"""What the forward saves for the backward: values that are cheap to make again are not written."""

from collections import Counter

import pytest
import torch
from parity import check_training, compile_model
from torch import fx, nn
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import default_partition, min_cut_rematerialization_partition

import mlir_npu
from mlir_npu.lowering.joint_graph import partition_joint
from mlir_npu.lowering.report import collect
from mlir_npu.scripts.networks import zoo


def saved_bytes(forward: fx.GraphModule, backward: fx.GraphModule) -> int:
    """Of what the forward makes for the backward: parameters and inputs are there anyway."""
    given = {node.name for node in forward.graph.find_nodes(op="placeholder")}
    taken = [
        node.meta["val"]
        for node in backward.graph.find_nodes(op="placeholder")
        if node.name not in given and not node.name.startswith("tangents")
    ]
    return sum(x.numel() * x.element_size() for x in taken if isinstance(x, torch.Tensor))


def copied(joint: fx.GraphModule) -> fx.GraphModule:
    graph, values = fx.Graph(), {}
    results = graph.graph_copy(joint.graph, values)
    graph.output(results).meta.update(joint.graph.output_node().meta)
    return fx.GraphModule(joint, graph)


def bytes_by_partition(model: nn.Module, x: torch.Tensor) -> dict[str, int]:
    partitions = {
        "default": default_partition,
        "min-cut": min_cut_rematerialization_partition,
        "ours": partition_joint,
    }
    found = {}

    def partition(joint, inputs, **options):
        for name, function in partitions.items():
            graphs = function(copied(joint), inputs, **options)
            found[name] = saved_bytes(*graphs)
        return graphs

    backend = aot_autograd(
        fw_compiler=lambda graph, _: graph,
        bw_compiler=lambda graph, _: graph,
        partition_fn=partition,
        decompositions={},
    )
    torch.compile(model, backend=backend)(x)
    return found


@pytest.mark.parametrize(
    ("build", "share"),
    [(zoo.resnet18, 0.95), (zoo.mobilenet_v2, 0.75)],
    ids=["resnet", "mobilenet"],
)
def test_networks_save_fewer_bytes_than_with_the_partitions_of_pytorch(build, share):
    found = bytes_by_partition(build().train(), torch.randn(2, 3, 64, 64))
    assert found["ours"] < share * found["min-cut"]
    assert found["ours"] < share * found["default"]


class Blocks(nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(n, 8, 3, padding=1, bias=False) for n in (3, 8))
        self.norm1, self.norm2 = nn.BatchNorm2d(8), nn.BatchNorm2d(8)
        self.activation = activation

    def forward(self, x):
        x = self.activation(self.norm1(self.conv1(x)))
        return self.activation(self.norm2(self.conv2(x)))


def images(report) -> int:
    """Values of the size of an image that a graph returns."""
    return Counter(value.split(": ")[1] for part in report.parts for value in part.outputs)[
        "float32[2, 8, 12, 12]"
    ]


# convolution, activation, convolution, and the result; of hardswish no mask can be seen
@pytest.mark.parametrize(
    "activation",
    [
        nn.ReLU(), nn.ReLU6(), nn.LeakyReLU(0.1), nn.SiLU(), nn.Hardswish(), nn.GELU(), nn.ELU(),
        nn.Mish(), nn.Hardsigmoid(), nn.Hardtanh(-0.5, 0.5),
    ],
    ids=str,
)  # fmt: skip
def test_normalized_images_are_made_again(activation):
    with collect() as reports:
        check_training(Blocks(activation), torch.randn(2, 3, 12, 12, requires_grad=True))
    assert [report.kind for report in reports] == ["forward", "backward"]
    assert images(reports[0]) == 4


def test_statistics_that_change_in_place_are_not_read_again():
    class Shifted(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3, padding=1)
            self.register_buffer("shift", torch.randn(2, 8, 12, 12))

        def forward(self, x):
            y = self.conv(x)
            shifted = self.shift * 2
            self.shift.add_(1)
            return nn.functional.silu(y) * shifted.sigmoid() + (y * shifted).exp()

    check_training(Shifted(), torch.randn(2, 3, 12, 12, requires_grad=True))


def test_programs_save_what_compiled_models_save():
    def saved():
        return [[value.split(": ")[1] for value in part.outputs] for part in reports[0].parts]

    model = nn.Sequential(Blocks(nn.SiLU()), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(288, 4))
    x = torch.randn(2, 3, 12, 12)
    with collect() as reports:
        compile_model(model)(x).sum().backward()
    compiled = saved()
    with collect() as reports:
        mlir_npu.capture(model, x, train=True)
    assert saved() == compiled
    assert not any("int64[2" in value for part in compiled for value in part)
