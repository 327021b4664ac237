"""A convolution with ReLU as an ONNX file, written directly: torch's exporter takes seconds."""

from __future__ import annotations

from pathlib import Path

import torch

from mlir_npu.benchmarks.models import Layer

OPSET, IR_VERSION = 18, 9


def write(layer: Layer, x: torch.Tensor, path: Path) -> Path:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    conv, shape = layer.conv, layer.shape
    top, bottom, left, right = shape.padding
    nodes = [
        helper.make_node(
            "Conv", ["x", "weight", "bias"], ["sum"], kernel_shape=shape.kernel,
            strides=shape.stride, pads=[top, left, bottom, right], group=shape.groups,
        ),
        helper.make_node("Relu", ["sum"], ["y"]),
    ]  # fmt: skip
    result = (x.shape[0], shape.outputs, *shape.output_size)
    graph = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, result)],
        [
            numpy_helper.from_array(conv.weight.detach().numpy(), "weight"),
            numpy_helper.from_array(conv.bias.detach().numpy(), "bias"),
        ],
    )
    opset = [helper.make_opsetid("", OPSET)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION), path)
    return path
