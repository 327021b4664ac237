"""What capture refuses, and what it says then."""

import copy
import dataclasses

import pytest
import torch
from torch import nn

import mlir_npu
from mlir_npu import CaptureError

X = torch.randn(1, 3, 8, 8)


def conv() -> nn.Conv2d:
    return nn.Conv2d(3, 4, 3)


CONV = conv()


class Sub(torch.Tensor):
    pass


@dataclasses.dataclass
class Pair:
    a: torch.Tensor
    b: torch.Tensor


def with_buffer(tensor: torch.Tensor) -> nn.Module:
    model = conv()
    model.register_buffer("table", tensor)
    return model


NO_MODELS = [
    (lambda: (3, X), "takes an nn.Module or a function, not an int"),
    (lambda: (None, X), "takes an nn.Module or a function, not a NoneType"),
    (lambda: (nn.ReLU, X), r"ReLU is a class: capture an object of it, ReLU\(\)"),
    (lambda: (torch.jit.script(nn.ReLU()), X), "is TorchScript"),
    (lambda: (conv(),), r"missing a required argument: 'input'; it is Conv2d\(input"),
    (lambda: (conv(), X, X), "too many positional arguments"),
]
REFUSED = [
    (lambda: (conv().to("meta"), X), "parameter weight is on the device meta"),
    (lambda: (nn.LazyConv2d(4, 3), X), "parameter weight has no shape before the first call"),
    (lambda: (with_buffer(torch.eye(3).to_sparse()), X), "buffer table has the layout"),
    (lambda: (with_buffer(torch.eye(3).as_subclass(Sub)), X), "buffer table is a Sub, and"),
    (lambda: (conv(), X.as_subclass(Sub)), "input input is a Sub on cpu"),
    (lambda: (conv(), X.to_sparse()), "torch.sparse_coo"),
    (lambda: (conv(), X.to("meta")), "on meta"),
    (lambda: (conv(), X.numpy()), "input input is a ndarray"),
    (lambda: (conv(), torch.randn(1, 5, 8, 8)), "it fails for these inputs: RuntimeError: Given"),
    (lambda: (lambda x: Pair(x, x + 1), X), r"call torch.export.register_dataclass\(Pair\) once"),
    (lambda: (lambda x: object(), X), "register the class with torch.utils._pytree"),
]


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize(("given", "message"), NO_MODELS)
def test_what_is_no_model_or_is_not_called_so(given, message, train):
    with pytest.raises(TypeError, match=message):
        mlir_npu.capture(*given(), train=train)


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_what_a_program_cannot_have(given, message, train):
    with pytest.raises(CaptureError, match=message):
        mlir_npu.capture(*given(), train=train)


def test_keywords_are_the_models():
    with pytest.raises(TypeError, match="unexpected keyword argument 'trian'"):
        mlir_npu.capture(conv(), X, trian=True)


@pytest.mark.parametrize(
    "model", [conv().requires_grad_(False), lambda x: x + 1, lambda x: CONV(x).argmax(1)]
)
def test_training_of_nothing(model):
    with pytest.raises(CaptureError, match="no result depends on a parameter or input") as error:
        mlir_npu.capture(model, X, train=True)
    assert "torch.compile" not in str(error.value)


@pytest.mark.parametrize("model", [lambda x: x.flatten(1), lambda x: x, lambda x: x[:, :2] * 2])
def test_gradients_of_views_of_inputs(model):
    program = mlir_npu.capture(model, X.clone().requires_grad_(), train=True)
    ours, theirs = X.clone().requires_grad_(), X.clone().requires_grad_()
    tangent = torch.randn_like(model(X))
    program(ours).backward(tangent)
    model(theirs).backward(tangent)
    torch.testing.assert_close(ours.grad, theirs.grad)


@pytest.mark.parametrize("train", [False, True])
def test_inputs_that_repeat_their_elements(train):
    model, x = conv(), torch.randn(1, 3, 8, 8).expand(2, 3, 8, 8)
    torch.testing.assert_close(mlir_npu.capture(model, x, train=train)(x), model(x))


def test_programs_of_all_kinds_show_the_same():
    model = nn.Sequential(conv(), nn.BatchNorm2d(4), nn.ReLU()).eval()
    for program in (
        mlir_npu.capture(model, X),
        mlir_npu.capture(model, X, train=True),
        mlir_npu.capture(lambda x: (x, 3), X),
        mlir_npu.capture(copy.deepcopy(model).train(), X),  # writes statistics
    ):
        count = len(program.backward_units)
        assert count == program.plan.train
        assert [unit.kind for unit in program.plan.units].count("backward") == count
        module = dict(program.parts)
        exec(program.source, module)
        with torch.no_grad():
            results, _ = module["forward"]([X], program.parameters)
        assert len(results) == len(program.plan.results)
        assert program.python_between == ()
        assert dict(model.named_parameters()).keys() >= {
            name for name, w in program.weights.items() if isinstance(w, nn.Parameter)
        }


def test_a_unit_has_ir_of_every_level():
    (unit,) = mlir_npu.capture(nn.Conv2d(3, 8, 3), X).forward_units
    assert "torch.aten.convolution" in unit.ir("torch")["npu_0"]
    assert "linalg." in unit.ir("linalg")["npu_0"]
    assert "npu.conv2d" in unit.ir("npu")["npu_0"]
    assert "llvm.func" in unit.ir("llvm")["npu_0"]
    with pytest.raises(mlir_npu.ExportError, match="no level is called 'object'; there are torch"):
        unit.ir("object")
