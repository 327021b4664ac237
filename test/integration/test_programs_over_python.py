"""What Python does between the graphs of a captured training program: checked, left out with a
report, or refused with the line."""

import copy
import os

import pytest
import torch
from parity import check_step
from program_steps import check_program, image, line_of
from torch import nn
from torch.nn import functional as F

import mlir_npu
from mlir_npu.errors import CaptureError, MismatchError


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        y = self.conv(x)
        if x.mean() > 0:
            y = y * 2
        if x.max().item() > 5:
            y = y + 1
        print("mean", y.mean().item())
        return y


def test_branches_are_checked_and_prints_reported():
    model = Branches()
    theirs = copy.deepcopy(model)
    program = mlir_npu.capture(model, image() * 0.5 + 1, train=True)
    x = (torch.randn(2, 3, 16, 16) * 0.5 + 1).requires_grad_()
    assert x.max() < 5
    check_step(program, model, theirs, (x,), (x.detach().clone().requires_grad_(),))
    with pytest.raises(
        MismatchError, match=r"test_programs_over_python.py:\d+ \(if x.mean\(\) > 0"
    ):
        program(x - 2)
    with pytest.raises(MismatchError, match=r"if x.max\(\).item\(\) > 5"):
        program(x + 5)
    printed = [one for one in program.python_between if "print" in (one.line or "")]
    assert printed and all("not" in one.effect for one in printed)
    assert printed[0].location == f"{__file__}:{line_of(__file__, printed[0].line)}"


def test_a_number_that_a_later_graph_was_made_for():
    conv = nn.Conv2d(3, 4, 3)

    def model(x):
        y = conv(x)
        n = y.max().item()
        print(n)
        return y / n

    x = image(grad=False)
    compiled = torch.compile(model, backend="eager")
    compiled(x)
    program = mlir_npu.capture(model, x, train=True)
    torch.testing.assert_close(program(x), model(x), rtol=1e-4, atol=1e-5)
    with pytest.raises(MismatchError, match=r"\(n = y.max\(\).item\(\)\): the value is"):
        program(x * 2)
    with torch.compiler.set_stance("fail_on_recompile"):
        compiled(x)  # capturing throws away nothing that others compiled


def test_numbers_of_loops():
    conv = nn.Conv2d(3, 4, 3)

    def model(x):
        y = conv(x)
        for _ in range(int(x.abs().max().item()) + 1):
            y = y * 2
        return y

    x = torch.zeros(1, 3, 8, 8)
    x[0, 0, 0, 0] = 2.5
    program = mlir_npu.capture(model, x, train=True)
    torch.testing.assert_close(program(x * 1.1), model(x * 1.1), rtol=1e-4, atol=1e-5)
    with pytest.raises(MismatchError, match="for _ in range"):
        program(x * 2)


def test_numbers_of_python_are_reported():
    conv = nn.Conv2d(3, 4, 3)

    @torch.compiler.disable
    def scaled(x):
        return x * 0.5 * os.getpid() ** 0.5

    program = mlir_npu.capture(lambda x: scaled(conv(x)).sin(), image(), train=True)
    told = [one for one in program.python_between if "which Python computed" in one.reason]
    assert [one.line for one in told] == ["return x * 0.5 * os.getpid() ** 0.5"]


def test_numpy_in_between_is_an_error_that_names_the_line():
    @torch.compiler.disable
    def through_numpy(x):
        return torch.from_numpy(x.detach().numpy() * 2)

    conv = nn.Conv2d(3, 4, 3)

    def model(x):
        y = through_numpy(conv(x))
        return y.relu()

    with pytest.raises(CaptureError) as caught:
        mlir_npu.capture(model, image(), train=True)
    assert "unknown origin" in caught.value.reason
    assert caught.value.line == "return y.relu()"


def test_sizes_that_depend_on_data_are_an_error_that_names_the_line():
    conv = nn.Conv2d(3, 4, 3)

    def model(x):
        y = conv(x)
        return y[y > 0]

    with pytest.raises(CaptureError) as caught:
        mlir_npu.capture(model, image(), train=True)
    assert "depends on the contents" in caught.value.reason
    assert caught.value.line == "return y[y > 0]"


class Tripled(torch.autograd.Function):
    """With a gradient that its forward does not tell."""

    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 7


def test_gradients_that_python_defines():
    class Compiled(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, x):
            y = self.conv(x)
            torch._dynamo.graph_break()
            return Tripled.apply(y)

    check_program(Compiled(), image())
    conv, uncompiled = nn.Conv2d(3, 4, 3), torch.compiler.disable(Tripled.apply)
    with pytest.raises(CaptureError, match="defined by Python") as caught:
        mlir_npu.capture(lambda x: uncompiled(conv(x)).sin(), image(), train=True)
    assert caught.value.line == "return x * 3"


class Eager(nn.Module):
    """A break in a loop with a try: Dynamo leaves the whole function to Python."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x):
        for _ in range(2):
            try:
                x = F.relu(self.conv(x)) + x.mean((2, 3), keepdim=True)
                torch._dynamo.graph_break()
            finally:
                x = x * 0.5
        with torch.no_grad():
            scale = x.abs().mean() + 1
        values, _ = x.max(dim=1)
        return x / scale, values


def test_functions_that_dynamo_does_not_compile():
    check_program(Eager(), image())


def test_in_place_detach_and_no_grad():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)
            self.register_buffer("seen", torch.zeros(4))

        def forward(self, x):
            y = self.conv(x)
            with torch.no_grad():
                self.seen.mul_(0.9).add_(y.mean((0, 2, 3)))
            y = y.clone()
            y[:, 0] = 0
            torch._dynamo.graph_break()
            y = y.mul_(2)
            return y * self.seen[:, None, None], y.detach()

    check_program(Mixed(), image())


def test_replaced_buffers_are_an_error():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)
            self.register_buffer("count", torch.zeros(()))
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            torch._dynamo.graph_break()
            self.count = self.count * 2
            return self.conv(x)

    model = Counter()
    before = model.count
    with pytest.raises(CaptureError, match="count"):
        mlir_npu.capture(model, image(), train=True)
    assert model.count is before and model.calls == 0


def test_attributes_that_change_are_reported():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return self.conv(x)

    program = mlir_npu.capture(Counter(), image(), train=True)
    assert any("calls" in one.reason for one in program.python_between)
