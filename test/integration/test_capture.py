"""Captured programs against eager: values, strides, structure, aliasing, mutation."""

import copy
import threading
from dataclasses import dataclass

import pytest
import torch
from parity import assert_same
from torch import nn
from transformers.utils import ModelOutput

import mlir_npu

CONV = nn.Conv2d(4, 8, 3, padding=1).eval()
X = torch.randn(1, 4, 12, 12)


def check(model, *inputs, times=2, **keywords):
    """Capture with the inputs, and compare calls with others of their kind. Returns the program."""
    program = mlir_npu.capture(model, *copy.deepcopy(inputs), **copy.deepcopy(keywords))
    twin = copy.deepcopy(model) if isinstance(model, nn.Module) else model
    for _ in range(times):
        given = fresh((inputs, keywords))
        ours, theirs = copy.deepcopy(given), copy.deepcopy(given)
        with torch.no_grad():
            actual = program(*ours[0], **ours[1])
            expected = twin(*theirs[0], **theirs[1])
        assert_same(actual, expected)
        assert_same(ours, theirs)
        if isinstance(model, nn.Module):
            assert_same(dict(model.state_dict()), dict(twin.state_dict()))
    return program


def fresh(given):
    """Other values of the same kind, in the same memory order."""

    def flipped(tensor):
        return tensor.clone().copy_(tensor.flip(-1)) if tensor.dim() else tensor + 1

    return torch.utils._pytree.tree_map_only(torch.Tensor, flipped, given)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 8, 3, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.bn(self.conv(x)).relu())


@dataclass
class Output(ModelOutput):
    logits: torch.Tensor | None = None
    extra: torch.Tensor | None = None
    hidden: tuple[torch.Tensor, ...] | None = None


@pytest.mark.parametrize(
    "model",
    [
        Block().eval(),
        lambda x: (CONV(x),),
        lambda x: [CONV(x), None, 3, "text"],
        lambda x: {"b": CONV(x), "a": (CONV(x).relu(), {"c": None})},
        lambda x: Output(logits=CONV(x).mean((2, 3)), hidden=(x, CONV(x))),
        lambda x: (CONV(x).softmax(1), torch.special.bessel_j0(CONV(x))),
        lambda x: CONV(x).permute(0, 2, 3, 1),
        lambda x: CONV(x) * x.sum().item(),
        lambda x: x.relu().nonzero(),
        lambda x: x + 1,
        lambda x: 3,
    ],
)
@pytest.mark.parametrize("gradients", [False, True])
def test_results_are_those_of_the_model(model, gradients):
    with torch.set_grad_enabled(gradients):
        check(model, X)
        check(model, X.to(memory_format=torch.channels_last))


def test_results_of_a_model_output_have_its_class():
    program = mlir_npu.capture(lambda x: Output(logits=CONV(x)), X)
    result = program(X)
    assert type(result) is Output and list(result) == ["logits"] and result.extra is None


def test_results_have_no_gradient_in_any_mode():
    program = mlir_npu.capture(CONV, X)
    assert not program(X).requires_grad and torch.is_grad_enabled()
    with torch.inference_mode():
        assert program(X).is_inference()
        assert_same(program(X.clone()), CONV(X))


def test_a_model_of_inference_tensors():
    """Nothing tells whether those change, so they are prepared for every call."""
    with torch.inference_mode():
        model = nn.Conv2d(4, 8, 3)
        program = mlir_npu.capture(model, X)
        assert_same(program(X), model(X))
        model.weight.mul_(2)
        expected = model(X)
    assert_same(program(X), expected)


def test_views_of_parameters_are_views():
    layer = nn.Linear(4, 4)
    program = mlir_npu.capture(lambda x: (layer(x), layer.weight[0]), torch.ones(2, 4))
    with torch.no_grad():
        _, row = program(torch.ones(2, 4))
        row.zero_()
        assert not layer.weight[0].any()
        assert_same(program(torch.ones(2, 4))[0], layer(torch.ones(2, 4)))


def test_results_that_are_inputs_parameters_or_each_other():
    def model(x, y):
        z = CONV(x)
        return z, x, z, CONV.weight, y

    first, x, second, weight, y = mlir_npu.capture(model, X, torch.ones(3))(
        X, given := torch.ones(3)
    )
    assert first is second and x is X and weight is CONV.weight and y is given


def test_results_that_are_views_of_inputs_share_their_memory():
    program = mlir_npu.capture(lambda x: (CONV(x), x[:, 1:]), X)
    x = X.clone()
    _, view = program(x)
    view.zero_()
    assert not x[:, 1:].any() and x[:, :1].any()


def test_inputs_that_change():
    def model(x, y):
        x += 1
        y[:, 0] = 3
        return CONV(x), x

    check(model, X, torch.ones(2, 3))


@pytest.mark.parametrize("name", ["buffer", "statistics"])
def test_buffers_that_change(name):
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))
            self.register_buffer("total", torch.zeros(()))

        def forward(self, x):
            self.count += 1
            self.total.add_(x.sum())
            return CONV(x) * self.count

    torch.manual_seed(0)
    model = {"buffer": Counting(), "statistics": nn.Sequential(CONV, nn.BatchNorm2d(8)).train()}
    check(model[name], X, times=3)


def test_random_numbers_are_those_of_eager():
    model = Block().train()
    program, twin = mlir_npu.capture(model, X), copy.deepcopy(model)
    for seed in range(2):
        torch.manual_seed(seed)
        actual = program(X)
        torch.manual_seed(seed)
        with torch.no_grad():
            assert_same(actual, twin(X))


def test_inputs_by_keyword_nested_and_constant():
    class Model(nn.Module):
        def forward(self, x, pair, *, scale=1, mode="plain", mask=None):
            y = CONV(x) * scale + pair["a"][0]
            return y if mask is None else y * mask

    mask = torch.ones(12)
    check(Model(), X, {"a": [torch.ones(12), 2]}, mask=mask, scale=2.5)
    program = mlir_npu.capture(Model(), X, {"a": (torch.ones(()),)}, mask=mask, mode="other")
    one = program(X, {"a": (torch.ones(()),)}, mode="other", mask=mask)
    assert_same(one, program(X, {"a": (torch.ones(()),)}, mask=mask, mode="other"))


def test_a_model_without_inputs():
    check(lambda: CONV.weight * 2)
    check(lambda: torch.arange(3.0) + CONV.bias.sum())
    program = mlir_npu.capture(lambda: CONV.weight)
    assert program() is CONV.weight


def test_callables_of_every_kind():
    class Callable:
        def __call__(self, x):
            return CONV(x)

        def method(self, x):
            return CONV(x) + 1

    for model in (CONV.forward, Callable(), Callable().method, torch.relu, torch.compile(CONV)):
        check(model, X, times=1)


def test_hooks_run():
    model = Block().eval()
    model.conv.register_forward_hook(lambda module, inputs, result: result * 2)
    model.register_forward_pre_hook(lambda module, inputs: (inputs[0] + 1,))
    check(model, X)


def test_one_tensor_may_stand_for_several_inputs():
    program = mlir_npu.capture(lambda x, y: CONV(x) + y.sum(), X, X)
    y = torch.randn_like(X)
    with torch.no_grad():
        assert_same(program(X, y), CONV(X) + y.sum())
        assert_same(program(y, y), CONV(y) + y.sum())


def test_a_weight_may_stand_for_an_input():
    layer = nn.Linear(8, 8)
    program = mlir_npu.capture(lambda x: layer(x), layer.weight)
    x = torch.randn(8, 8)
    with torch.no_grad():
        assert_same(program(x), layer(x))
        assert_same(program(layer.weight), layer(layer.weight))


def test_several_programs_of_one_model():
    model, large = Block().eval(), torch.randn(3, 4, 7, 9)
    one, two, three = (mlir_npu.capture(model, x) for x in (X, large, X))
    with torch.no_grad():
        for _ in range(2):
            assert_same(one(X), model(X))
            assert_same(two(large), model(large))
            model.conv.weight.mul_(2)
            assert_same(three(X), model(X))


def test_a_copy_of_the_model_is_another_one():
    model = Block().eval()
    program = mlir_npu.capture(model, X)
    expected, twin = program(X), copy.deepcopy(model)
    with torch.no_grad():
        twin.conv.weight.zero_()
        assert_same(program(X), expected)
        assert_same(mlir_npu.capture(twin, X)(X), twin(X))
    with pytest.raises(TypeError, match="copy the model"):
        copy.deepcopy(program)


def test_threads_may_call_and_their_number_may_change():
    model = Block().eval()
    program = mlir_npu.capture(model, X)
    inputs = [torch.randn_like(X) for _ in range(4)]
    before = torch.get_num_threads()
    with torch.no_grad():
        expected = [model(x) for x in inputs]
    found = [None] * len(inputs)

    def call(index):
        for _ in range(20):
            found[index] = program(inputs[index])

    threads = [threading.Thread(target=call, args=(i,)) for i in range(len(inputs))]
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            assert_same([program(x) for x in inputs], expected)
    finally:
        torch.set_num_threads(before)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_same(found, expected)


def test_strides_of_single_elements_say_nothing():
    program = mlir_npu.capture(CONV, X)
    view = X.as_strided(X.shape, (7, *X.stride()[1:]))
    assert view.stride() != X.stride()
    with torch.no_grad():
        assert_same(program(view), CONV(X))


def test_dtypes_may_be_mixed():
    check(
        lambda x, i, d: (CONV(x), i + 1, d.to(torch.float32) * x.sum()),
        X,
        torch.arange(3),
        X.double(),
    )
    table = nn.Embedding(10, 4)
    check(lambda i: table(i).relu(), torch.tensor([1, 2, 3]), times=1)


@pytest.mark.network
def test_networks():
    from mlir_npu.scripts.networks import zoo

    for make, x in ((zoo.resnet18, zoo.images()), (zoo.mobilenet_v2, zoo.images())):
        model = make().eval()
        program = mlir_npu.capture(model, *x)
        with torch.no_grad():
            torch.testing.assert_close(program(*x), model(*x), rtol=1e-3, atol=1e-3)
        assert program.explanation.regions == 1
