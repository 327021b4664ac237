"""What the backward finds again instead of having it saved, and what it keeps of parameters."""

import pytest
import torch
from parity import assert_gradients_close, check_training, compile_model
from torch import nn

from mlir_npu.lowering.report import collect
from mlir_npu.runtime.region import CompiledRegion


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)
        self.head = nn.Linear(16 * 64, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv(x)), 3, 2, 1)
        return self.head(x.flatten(1))


X = torch.randn(4, 3, 16, 16)


def test_pools_and_what_is_around_them_are_one_region():
    with collect() as reports:
        check_training(Network(), X.clone().requires_grad_())
    assert [len(report.regions) for report in reports] == [1, 1]
    assert not [r for report in reports for r in report.rejections if "pool" in r.op]
    assert not any("int64" in value for p in reports[0].parts for value in p.outputs)


def test_parameters_are_parameters_of_the_backward_too():
    with collect() as reports:
        check_training(Network(), X)
    (region,) = reports[1].regions
    assert any("float32[10, 1024]" in parameter for parameter in region.parameters)


def test_what_is_made_of_parameters_is_kept_until_they_change(monkeypatch):
    model = Network()
    compiled = compile_model(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    made = []
    make = CompiledRegion._make_prepared

    def counted(region, parameters):
        made.append(region)
        return make(region, parameters)

    monkeypatch.setattr(CompiledRegion, "_make_prepared", counted)
    counts = []
    for step in (False, False, True, False):
        made.clear()
        compiled(X).square().sum().backward()
        counts.append(len(made))
        if step:
            optimizer.step()
    assert counts[0] > 0 and counts[1:] == [0, 0, counts[0]]


@pytest.mark.parametrize("unpack", ["same", "copy"])
def test_saved_tensors_that_pass_through_hooks(unpack):
    """A copy is another tensor each time, perhaps where the last one was."""
    model, twin = Network(), Network()
    twin.load_state_dict(model.state_dict())
    compiled = compile_model(model)
    keep = torch.Tensor.clone if unpack == "copy" else lambda tensor: tensor
    for _ in range(3):
        with torch.autograd.graph.saved_tensors_hooks(torch.Tensor.detach, keep):
            loss = compiled(X).square().sum()
        loss.backward()
        twin(X).square().sum().backward()
        for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
            assert_gradients_close(ours.grad, theirs.grad)
            with torch.no_grad():
                ours -= 1e-3 * theirs.grad
                theirs -= 1e-3 * theirs.grad


def test_masks_and_positions_are_constants_of_the_backward():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 16, 3, padding=1)

        def forward(self, x):
            rows = torch.arange(16, dtype=torch.float32)
            mask = (rows[:, None] <= rows).float()
            return torch.relu(self.conv(x) * mask) * mask

    with collect() as reports:
        check_training(Masked(), X)
    assert [len(report.parts) for report in reports] == [1, 1]
    assert "arange" not in reports[1].source


def test_pools_that_the_npu_does_not_take_keep_their_indices():
    check_training(
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(2)).double(), X.double().requires_grad_()
    )
    check_training(nn.MaxPool2d(2), torch.randn(3, 8, 8, requires_grad=True))


@pytest.mark.parametrize(
    "function",
    [
        lambda y: nn.functional.interpolate(y, scale_factor=2, mode="bilinear"),
        lambda y: nn.functional.interpolate(y, size=(9, 20), mode="bilinear", align_corners=True),
        lambda y: nn.functional.interpolate(y, scale_factor=2),
        lambda y: nn.functional.pad(y, (1, 2, 3, 0), mode="reflect") * 2,
        lambda y: y[:, 2:9, ::2] * y[:, 3:10, 1::2],
        lambda y: nn.functional.group_norm(y, 4).log_softmax(1) * 3,
    ],
    ids=["bilinear", "aligned", "nearest", "reflect", "slices", "normalized"],
)
def test_gradients_that_run_on_the_npu(function):
    class Applies(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 16, 3, padding=1)

        def forward(self, x):
            return function(self.conv(x))

    with collect() as reports:
        check_training(Applies(), X.clone().requires_grad_())
    assert [part.engine for part in reports[1].parts] == ["npu"]
