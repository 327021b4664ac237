"""The rules of each family: what they take and what they reject, with the reason."""

import pytest
import torch
from aten_graphs import aten, trace

from mlir_npu.lowering.support import explain_support

IMAGE = torch.rand(2, 4, 8, 6)
ROWS = torch.rand(4)
STATS = (torch.rand(4), torch.rand(4), torch.rand(4), torch.rand(4))


def explain(function, *tensors):
    """Answer of the rule for the first call of the traced function that has a tuple or tensor
    result."""
    graph_module = trace(function, *tensors)
    first = next(node for node in graph_module.graph.nodes if node.op == "call_function")
    return explain_support(first)


def norm(training, *wanted):
    def normalize(x, weight, bias, mean, var):
        out = aten.native_batch_norm(x, weight, bias, mean, var, training, 0.1, 1e-5)
        return [out[index] for index in wanted]

    return normalize


SUPPORTED = {
    "relu": (lambda x: aten.relu(x), IMAGE),
    "clamp with one bound": (lambda x: aten.clamp(x, None, 6), IMAGE),
    "relu6": (lambda x: aten.hardtanh(x, 0, 6), IMAGE),
    "gelu": (lambda x: aten.gelu(x), IMAGE),
    "gelu tanh": (lambda x: aten.gelu(x, approximate="tanh"), IMAGE),
    "elu": (lambda x: aten.elu(x), IMAGE),
    "add a number": (lambda x: aten.add(x, 2), IMAGE),
    "add with alpha": (lambda x, y: aten.add(x, y, alpha=3), IMAGE, IMAGE),
    "multiply per channel": (lambda x, s: aten.mul(x, s), IMAGE, torch.rand(1, 4, 1, 1)),
    "divide by a number": (lambda x: aten.div(x, 3), IMAGE),
    "eval batch norm": (norm(False, 0), IMAGE, *STATS),
    "max pool without indices": (
        lambda x: aten.max_pool2d_with_indices(x, [3, 3], [2, 2], [1, 1], [1, 1], True)[0],
        IMAGE,
    ),
    "avg pool": (lambda x: aten.avg_pool2d(x, [3, 3], [2, 2], [1, 1], True, False, 5), IMAGE),
    "adaptive pool, divisible": (lambda x: aten._adaptive_avg_pool2d(x, [4, 2]), IMAGE),
    "mean over space": (lambda x: aten.mean(x, [-1, -2], True), IMAGE),
    "mean of everything": (lambda x: aten.mean(x, [0, 1, 2, 3]), IMAGE),
    "clamp by a tensor": (lambda x, y: aten.clamp(x, y), IMAGE, IMAGE),
    "addmm": (
        lambda b, x, y: aten.addmm(b, x, y),
        torch.rand(3),
        torch.rand(2, 5),
        torch.rand(5, 3),
    ),
    "bmm": (lambda x, y: aten.bmm(x, y), torch.rand(2, 3, 4), torch.rand(2, 4, 5)),
    "view": (lambda x: aten.view(x, [2, -1]), IMAGE),
    "expand to the same shape": (lambda x: aten.expand(x, [2, 4, 8, 6]), IMAGE),
    "expand": (lambda x: aten.expand(x, [2, 4, 8, 6]), torch.rand(2, 4, 1, 1)),
    "split": (lambda x: aten.split(x, 2, 1)[0], IMAGE),
    "cat": (lambda x, y: aten.cat([x, y], 1), IMAGE, IMAGE),
    "pad": (lambda x: aten.constant_pad_nd(x, [1, 0, 2, 1], 0.5), IMAGE),
}

REJECTED = {
    "logic of integers": (
        lambda x: aten.bitwise_not(x),
        (torch.ones(2, dtype=torch.int32),),
        "operand x_1 is int32",
    ),
    "product of booleans": (
        lambda x: aten.mul(x, x),
        (torch.ones(2, dtype=torch.bool),),
        "computes with booleans",
    ),
    "numbers to booleans": (
        lambda x: aten._to_copy(x, dtype=torch.bool),
        (IMAGE,),
        "makes booleans",
    ),
    "training batch norm": (norm(True, 0), (IMAGE, *STATS), "training mode"),
    "saved statistics": (norm(False, 0, 1), (IMAGE, *STATS), "outputs [1] are used"),
    "max pool with indices": (
        lambda x: aten.max_pool2d_with_indices(x, [2, 2]),
        (IMAGE,),
        "indices are used",
    ),
    "adaptive pool, many uneven windows": (
        lambda x: aten._adaptive_avg_pool2d(x, [33, 2]),
        (torch.rand(1, 2, 40, 6),),
        "33 windows of a dimension of 40 differ in size",
    ),
    "adaptive max pool, uneven": (
        lambda x: aten.adaptive_max_pool2d(x, [3, 2])[0],
        (IMAGE,),
        "windows, of 8x6 to 3x2, differ in size",
    ),
    "unbatched pool": (lambda x: aten.avg_pool2d(x, [2, 2]), (IMAGE[0],), "rank 3"),
    "sum of one number": (lambda x: aten.sum(x), (torch.tensor(1.0),), "one number"),
    "cat with nothing": (lambda x, y: aten.cat([x, y], 1), (IMAGE, torch.rand(0)), "no elements"),
    "sum to another type": (
        lambda x: aten.sum(x, [1], dtype=torch.float64),
        (IMAGE,),
        "result is float64",
    ),
    "complex number": (lambda x: aten.mul(x, 1j), (IMAGE,), "complex"),
    "elu of a flipped input": (lambda x: aten.elu(x, 1, 1, -1), (IMAGE,), "input_scale=-1"),
    "attention with dropout": (
        lambda q: aten._scaled_dot_product_flash_attention_for_cpu(q, q, q, 0.1)[0],
        (torch.rand(1, 2, 8, 4),),
        "dropout_p=0.1 draws random numbers",
    ),
    "attention with many scores": (
        lambda q: aten._scaled_dot_product_flash_attention_for_cpu(q, q, q)[0],
        (torch.rand(1, 2, 197, 4),),
        "197 x 197 scores",
    ),
    "heads that share unevenly": (
        lambda q, k: aten._scaled_dot_product_flash_attention_for_cpu(q, k, k)[0],
        (torch.rand(1, 3, 8, 4), torch.rand(1, 2, 8, 4)),
        "do not share heads evenly",
    ),
    "cube root": (lambda x: aten.pow(x, 1 / 3), (IMAGE,), "exponent 0.33"),
    "roll of everything": (lambda x: aten.roll(x, [3]), (IMAGE,), "all dimensions as one"),
    "patches that overlap": (
        lambda x: aten.im2col(x, [2, 2], [1, 1], [0, 0], [1, 1]),
        (IMAGE,),
        "overlap",
    ),
    "maximum norm": (
        lambda x: aten.linalg_vector_norm(x, float("inf"), [1]),
        (IMAGE,),
        "not the Euclidean norm",
    ),
    "every second replaced": (
        lambda x, y: aten.slice_scatter(x, y, 3, 0, 6, 2),
        (IMAGE, IMAGE[..., :3]),
        "2 apart",
    ),
    "split of nothing": (lambda x: aten.split_with_sizes(x, [4, 0], 1)[0], (IMAGE,), "no elements"),
}


@pytest.mark.parametrize("name", SUPPORTED)
def test_supported(name):
    function, *tensors = SUPPORTED[name]
    assert explain(function, *tensors) is None


@pytest.mark.parametrize("name", REJECTED)
def test_rejected_with_the_reason(name):
    function, tensors, words = REJECTED[name]
    reason = explain(function, *tensors)
    assert reason is not None and words in reason
