"""Programs whose graphs break run right, and `explain` says what to change and what breaks cost."""

import logging
import warnings

import pytest
import torch
from parity import check_inference, check_training
from torch import nn

import mlir_npu

logger = logging.getLogger("a user's program")


class Prints(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3)

    def between(self, y):
        print("between")
        return y

    def forward(self, x):
        return self.second(self.between(torch.relu(self.first(x))))


class Logs(Prints):
    def between(self, y):
        logger.info("between")
        return y


class Warns(Prints):
    def between(self, y):
        warnings.warn("between", stacklevel=1)
        return y


class Item(Prints):
    def between(self, y):
        return y * y.mean().item()


class Branch(Prints):
    def between(self, y):
        if y.mean() > 0:
            y = y * 2
        return y


class Loop(Prints):
    def between(self, y):
        while y.square().mean() > 0.01:
            y = y * 0.5
        return y


class Nonzero(Prints):
    def between(self, y):
        found = (y.flatten(1).amax(1) > 0).nonzero()[:, 0]
        return y[found]


class Mask(Prints):
    def between(self, y):
        return y - y[y > 0].mean()


class ToList(Prints):
    def between(self, y):
        return y + len(y[0, 0, 0].tolist())


class Disabled(Prints):
    @torch.compiler.disable
    def between(self, y):
        return y


class Explicit(Prints):
    def between(self, y):
        torch._dynamo.graph_break()
        return y


class Saves(Prints):
    def between(self, y):
        torch.save(y.detach(), "/dev/null")
        return y


class InALoop(Prints):
    def between(self, y):
        for _ in range(2):
            print("between")
        return y


X = torch.randn(2, 3, 12, 12)
REMEDIES = {
    Prints: "ignore_logging_functions.add(print)",
    Logs: "ignore_logging_functions.add(logger.info)",
    Warns: "ignore_logging_functions.add(warnings.warn)",
    Item: "Keep the number in a tensor",
    Branch: "torch.where(condition, a, b)",
    Loop: "torch.where(condition, a, b)",
    Nonzero: "torch.where(mask, x, 0) in place of x[mask]",
    Mask: "torch.where(mask, x, 0) in place of x[mask]",
    ToList: "Compute with the tensor instead",
    Disabled: "Remove torch.compiler.disable",
    Explicit: "Remove the call.",
    Saves: "Call `save` before or after the compiled function",
}
PASSES_ON = (Prints, Logs, Warns, Disabled, Explicit)  # what `first` made, as it is


@pytest.mark.parametrize("kind", [*REMEDIES, InALoop])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_values_and_gradients(kind):
    check_inference(kind(), X)
    check_training(kind(), X.clone().requires_grad_())


@pytest.mark.parametrize("kind", [Item, Nonzero, Mask])
def test_values_and_gradients_without_a_break(kind):
    """Dynamo can be told to take these into its graph, where they run on the host."""
    captures = {"capture_scalar_outputs": True, "capture_dynamic_output_shape_ops": True}
    with torch._dynamo.config.patch(**captures):
        assert not mlir_npu.explain(kind(), X).breaks
        check_inference(kind(), X)
        check_training(kind(), X.clone().requires_grad_())


@pytest.mark.parametrize("kind", REMEDIES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_breaks_have_cause_line_and_remedy(kind):
    first = mlir_npu.explain(kind(), X).breaks[0]
    assert REMEDIES[kind] in first.remedy
    assert first.location.startswith(__file__)
    assert first.line
    assert len(first.cause) > 10 and "\n" not in first.cause


@pytest.mark.parametrize("kind", PASSES_ON)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_breaks_cost_what_leaves_the_npu_and_comes_back(kind):
    first = mlir_npu.explain(kind(), X).breaks[0]
    assert first.cost.bytes == 4 * 2 * 8 * 10 * 10
    assert first.cost.regions == ("npu_0 of graph 0", "npu_0 of graph 1")
    assert first.cost.macs == (2 * 8 * 3 * 9 * 10 * 10, 2 * 8 * 8 * 9 * 8 * 8)
    assert first.cost.regions_without == 1


def test_gradients_cross_too():
    (found,) = mlir_npu.explain(Prints(), X, train=True).breaks
    assert found.cost.bytes == 2 * 4 * 2 * 8 * 10 * 10
    assert len(found.cost.regions) == 4 and found.cost.regions_without == 2


def test_what_the_host_changed_has_not_come_back():
    explanation = mlir_npu.explain(Nonzero(), X)
    assert not any(found.cost.bytes for found in explanation.breaks)
    assert "cost: no data is moved" in str(explanation)


def test_text_of_a_break():
    text = str(mlir_npu.explain(Prints(), X)).replace("\n", " ")
    assert "cause: Dynamo does not know how to trace builtin operator `print`" in text
    assert "remedy: Return what you want to see" in text
    assert (
        "cost: 6,400 bytes leave the NPU and come back, between npu_0 of graph 0 (43,200 MACs) and "
        "npu_0 of graph 1 (73,728 MACs); without the break these 2 regions could be 1."
    ) in text


def test_text_of_a_function_that_is_given_up():
    explanation = mlir_npu.explain(InALoop().between, X)
    assert "take the line out of the loop" in explanation.breaks[0].remedy
    assert "cost: Dynamo cannot go on after this line" in str(explanation).replace("\n", " ")


def test_the_remedies_for_printing_work():
    functions = {print, warnings.warn, logger.info}
    with torch._dynamo.config.patch(ignore_logging_functions=functions):
        for kind in (Prints, Logs, Warns, InALoop):
            explanation = mlir_npu.explain(kind(), X)
            assert not explanation.breaks and explanation.regions == 1


def test_the_remedies_for_values_work():
    class Chooses(Prints):
        def between(self, y):
            y = torch.where(y.mean() > 0, y * 2, y)
            return y * y.mean() - torch.where(y > 0, y, 0).sum() / (y > 0).sum()

    assert not mlir_npu.explain(Chooses(), X).breaks
    check_training(Chooses(), X.clone().requires_grad_())
