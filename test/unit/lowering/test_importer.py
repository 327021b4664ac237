import pytest
import torch
from aten_graphs import aten, capture, one_call, trace
from torch.nn import functional as F

from mlir_npu.dialect.bindings import ir
from mlir_npu.lowering.decompositions import NPU_DECOMPOSITIONS
from mlir_npu.lowering.import_error import RegionImportError
from mlir_npu.lowering.importer import import_graph
from mlir_npu.runtime.interface import Output

CHANNELS_LAST = torch.channels_last


def imported(function, *tensors, parameters=()):
    graph_module = trace(function, *tensors)
    names = [node.name for node in graph_module.graph.find_nodes(op="placeholder")]
    return import_graph(
        graph_module,
        parameters=frozenset(names[i] for i in parameters),
        decompositions=NPU_DECOMPOSITIONS,
    )


def refused(function, *tensors):
    with pytest.raises(RegionImportError) as caught:
        imported(function, *tensors)
    return caught.value


def text(region):
    return str(region.module)


def op_names(region):
    names = []
    region.module.operation.walk(lambda op: (names.append(op.name), ir.WalkResult.ADVANCE)[1])
    return names


def test_roles_follow_the_parameters():
    region = imported(
        lambda x, w: F.conv2d(x, w),
        torch.randn(1, 2, 4, 4),
        torch.randn(3, 2, 3, 3),
        parameters=[1],
    )
    (main,) = region.module.body.operations
    roles = [ir.StringAttr(attributes["npu.role"]).value for attributes in main.arg_attrs]
    assert roles == ["input", "parameter"]
    assert region.interface.parameters == (1,)


def test_only_linalg_level_operations_are_left():
    region = imported(lambda x: F.relu(x).mean((2, 3)), torch.randn(1, 2, 4, 4))
    dialects = {name.split(".")[0] for name in op_names(region)}
    assert dialects <= {"builtin", "func", "linalg", "tensor", "arith", "math"}


def test_convolution_bias_is_an_addition():
    region = imported(
        F.conv2d,
        torch.randn(1, 2, 4, 4),
        torch.randn(3, 2, 3, 3),
        torch.randn(3),
        parameters=[1, 2],
    )
    assert "linalg.broadcast" not in op_names(region)
    assert "arith.addf" in op_names(region)


def test_channels_last_arguments_and_results_are_physical():
    x = torch.randn(2, 3, 4, 5).to(memory_format=CHANNELS_LAST)
    region = imported(torch.relu, x)
    (main,) = region.module.body.operations
    assert [str(t) for t in main.type.inputs] == ["tensor<2x4x5x3xf32>"]
    assert [str(t) for t in main.type.results] == ["tensor<2x4x5x3xf32>"]
    assert op_names(region).count("linalg.transpose") == 2
    assert "permutation = [0, 3, 1, 2]" in text(region)
    assert region.interface.results[0].strides == x.stride()


def test_transposed_weight_is_physical():
    region = imported(lambda x, w: x @ w, torch.randn(4, 3), torch.randn(5, 3).t(), parameters=[1])
    (main,) = region.module.body.operations
    assert str(main.type.inputs[1]) == "tensor<5x3xf32>"


def test_expanded_and_strided_inputs_are_packed_by_the_caller():
    region = imported(torch.add, torch.randn(4, 6)[:, ::2], torch.randn(3).expand(4, 3))
    (main,) = region.module.body.operations
    assert [str(t) for t in main.type.inputs] == ["tensor<4x3xf32>"] * 2
    assert "linalg.transpose" not in op_names(region)


def test_outputs_keep_count_order_and_identity():
    def function(x):
        y = torch.relu(x)
        return y, None, x, y, torch.tanh(x)

    region = imported(function, torch.randn(3))
    assert region.interface.outputs == (
        Output("result", 0),
        Output("none"),
        Output("input", 0),
        Output("result", 0),
        Output("result", 1),
    )
    assert len(region.interface.results) == 2


def test_views_of_a_result_are_results_of_their_own():
    def function(x):
        y = torch.relu(x)
        return y, y.view(4), y.expand(3, 4)

    region = imported(function, torch.randn(4))
    assert [output.index for output in region.interface.outputs] == [0, 1, 2]
    assert region.interface.results[2].strides == (0, 1)


def test_large_constants_become_parameters():
    def function(x):
        table = torch.tensor([1.0, 2.0, 3.0])
        return (x + table) * table * torch.tensor(5.0)

    (graph_module,) = capture(function, torch.randn(3))
    region = import_graph(graph_module, decompositions=NPU_DECOMPOSITIONS)
    assert [c.tolist() for c in region.interface.constants] == [[1.0, 2.0, 3.0]]
    assert "dense_resource" not in text(region)
    assert text(region).count('npu.role = "parameter"') == 1


def test_a_scalar_constant_can_be_used_twice():
    def function(x):
        scale = torch.tensor(5.0)
        return (x * scale) + scale

    (graph_module,) = capture(function, torch.randn(3))
    region = import_graph(graph_module, decompositions=NPU_DECOMPOSITIONS)
    assert region.interface.constants == ()
    assert "5.000000e+00" in text(region)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (torch.mm, [(2, 3), (3, 4)]),
        (torch.bmm, [(1, 2, 3), (1, 3, 4)]),
        (F.conv2d, [(1, 2, 4, 4), (3, 2, 3, 3)]),
    ],
)
def test_eight_bit_calls_are_refused_before_they_crash(function, shapes, dtype):
    error = refused(function, *(torch.ones(shape, dtype=dtype) for shape in shapes))
    assert "8-bit integers" in error.reason
    assert len(error.operators) == 1


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (aten.avg_pool2d.default, [torch.ones(1, 2, 4, 4, dtype=torch.int8), [2, 2]]),
        (
            aten.convolution_backward.default,
            [
                *(torch.ones(1, c, 4, 4, dtype=torch.int8) for c in (3, 2)),
                torch.ones(3, 2, 1, 1, dtype=torch.int8),
                *([3], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, False]),
            ],
        ),
    ],
)
def test_more_eight_bit_calls_are_refused(call, arguments):
    with pytest.raises(RegionImportError, match="8-bit integers"):
        import_graph(one_call(call, *arguments), decompositions={})


def test_unknown_operators_are_named():
    error = refused(lambda x: torch.fft.fft(x).real, torch.randn(2, 4))
    assert "aten._fft_r2c" in error.operators


def test_operators_that_do_not_lower_are_named():
    def grouped_backward(g, x, w):
        return aten.convolution_backward(
            g, x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 2, [True, True, False]
        )[:2]

    x = torch.randn(2, 4, 8, 8)
    graph_module = trace(grouped_backward, x, x, torch.randn(4, 2, 3, 3))
    with pytest.raises(RegionImportError) as caught:
        import_graph(graph_module, decompositions={})
    assert caught.value.operators == ("aten.convolution_backward.default",)


def test_operators_outside_linalg_are_refused():
    assert "tm_tensor" in refused(lambda x: torch.sort(x)[0], torch.randn(4)).reason


def test_errors_name_the_users_source_line():
    def function(x):
        return torch.fft.fft(x).real  # the line that the error names

    (graph_module,) = capture(function, torch.randn(2, 4))
    with pytest.raises(RegionImportError) as caught:
        import_graph(graph_module, decompositions=NPU_DECOMPOSITIONS)
    line = function.__code__.co_firstlineno + 1
    assert caught.value.location == f"{__file__}:{line}"
    assert str(caught.value).startswith(f"{__file__}:{line}: ")


@pytest.mark.parametrize(
    ("function", "tensor", "reason"),
    [
        (lambda x: x, torch.ones(2), "computes no tensor"),
        (torch.relu, torch.ones(0, 3), "is empty"),
        (lambda x: torch.view_as_real(x), torch.ones(2, dtype=torch.complex64), "complex64"),
        (lambda x: torch.relu(x).unfold(0, 2, 1), torch.ones(4), "overlaps itself"),
    ],
)
def test_values_that_cannot_cross_are_refused(function, tensor, reason):
    assert reason in refused(function, tensor).reason


def test_dynamic_shapes_are_refused():
    (graph_module,) = capture(torch.relu, torch.randn(5, 7), dynamic=True)
    with pytest.raises(RegionImportError, match=r"is SymInt, not a tensor|dynamic shape"):
        import_graph(graph_module, decompositions=NPU_DECOMPOSITIONS)


def test_graphs_that_write_to_their_inputs_are_refused():
    error = refused(lambda x: x.add_(1), torch.ones(2))
    assert error.operators == ("aten.add_.Tensor",)
    assert "functional" in error.reason


def test_the_given_graph_is_left_as_it_was():
    graph_module = one_call(
        aten.relu.default, torch.randn(2, 3, 4, 5).to(memory_format=CHANNELS_LAST)
    )
    before = graph_module.print_readable(print_output=False)
    import_graph(graph_module, decompositions=NPU_DECOMPOSITIONS)
    assert graph_module.print_readable(print_output=False) == before
