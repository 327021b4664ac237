"""Outputs keep their order, count, identity and aliasing."""

import pytest
import torch
from parity import assert_same, check_inference, compile_model
from torch import nn

CONV = nn.Conv2d(4, 8, 3, padding=1).eval()
X = torch.randn(1, 4, 12, 12)


def convolve(x):
    return CONV(x)


def test_none_among_outputs():
    """peers C1."""
    check_inference(lambda x: (None, torch.relu(CONV(x)), None), X)


def test_one_tuple_stays_a_tuple():
    """peers C2."""
    assert isinstance(check_inference(lambda x: (torch.tanh(CONV(x)),), X), tuple)


def test_outputs_that_are_inputs_and_duplicates():
    """peers C5: four outputs in order, and an input is returned as the object it is."""

    def model(x, y):
        z = CONV(x)
        return z, x, z, y

    with torch.no_grad():
        first, same, again, other = compile_model(model)(X, y := torch.ones(3))
        assert same is X and other is y and first is again
        assert_same(first, CONV(X))


def test_no_tensor_output():
    assert check_inference(lambda x: 3, X) == 3


def test_nested_structures():
    check_inference(lambda x: {"a": [CONV(x), 2], "b": (None, {"c": torch.relu(CONV(x) + 1)})}, X)


def test_in_place_on_an_argument_that_is_returned():
    """peers C6, M4."""

    def model(x):
        x += 1
        x *= 2
        return CONV(x), x

    check_inference(model, X)


def test_a_value_read_before_it_changes():
    """peers M3."""

    def model(x):
        y = CONV(x)
        x.mul_(3)
        return y, CONV(x)

    check_inference(model, X)


def test_buffer_written_after_it_is_read():
    """peers P6."""

    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(4, 4, 3, padding=1)
            self.register_buffer("state", torch.zeros(1, 4, 12, 12))

        def forward(self, x):
            y = self.conv(x + self.state)
            self.state.copy_(y)
            return y + self.state

    import copy

    ours, theirs = (network := Counter().eval()), copy.deepcopy(network)
    compiled = compile_model(ours)
    with torch.no_grad():
        for _ in range(3):
            assert_same(compiled(X), theirs(X))
            assert_same(ours.state, theirs.state)


def test_order_of_fills():
    """peers P5."""

    def model(x):
        y = CONV(x)
        z = y.clone()
        z.fill_(2)
        w = z + y
        z.fill_(3)
        return w, z

    check_inference(model, X)


def test_views_of_one_result_are_different_objects():
    """peers M1: resizing one output must not touch the other."""

    def model(x):
        y = torch.relu(CONV(x))
        return y, y.view(y.shape)

    with torch.no_grad():
        first, second = compile_model(model)(X)
    assert first is not second
    assert_same(first, second)


def test_views_of_inputs_alias_them():
    with torch.no_grad():
        x = X.clone()
        view, _ = compile_model(lambda x: (x.permute(0, 2, 3, 1), CONV(x)))(x)
        assert view.data_ptr() == x.data_ptr()


@pytest.mark.parametrize("fallback", ["llvm", "eager"])
@pytest.mark.parametrize("cut", [lambda x: x.chunk(2), lambda x: x.split([1, 3]), torch.unbind])
def test_pieces_of_an_argument_share_its_memory_in_training(fallback, cut):
    """AOTAutograd takes such results from the graph as they are."""
    x = torch.randn(4, 3, requires_grad=True)

    def model(x):
        return (*cut(x), x.relu())

    *pieces, _ = compile_model(model, fallback=fallback)(x)
    with torch.no_grad():
        x.add_(1)
    for piece, expected in zip(pieces, cut(x), strict=True):
        torch.testing.assert_close(piece, expected, rtol=0, atol=0)
        assert piece.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


def test_tensor_literals_do_not_split_the_graph():
    """peers P11."""
    from mlir_npu import explain

    def model(x):
        scale = torch.tensor([1.0, 2.0, 3.0, 4.0]).view(1, 4, 1, 1)
        return torch.relu(CONV(x * scale) * torch.tensor(0.5))

    explanation = explain(model, X)
    with torch.no_grad():
        assert_same(explanation.result, model(X))
    assert explanation.regions == 1


def test_batch_norm_in_training_updates_its_statistics():
    """peers C4."""
    import copy

    ours = nn.Sequential(nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8)).train()
    theirs = copy.deepcopy(ours)
    compiled = compile_model(ours)
    for _ in range(2):
        with torch.no_grad():
            assert_same(compiled(X), theirs(X))
    for mine, other in zip(ours.buffers(), theirs.buffers()):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)
