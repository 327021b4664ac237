"""What sources stand for, as Python itself evaluates them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from mlir_npu.lowering.capture_origins import _Values, origin_of


class Source:
    def __init__(self, name: str) -> None:
        self.name = name


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleDict({"first": nn.Linear(2, 2), "a b": nn.Linear(2, 2)})
        self.listed = [torch.ones(1), [torch.zeros(1)]]
        self.numbered = {0: "number", "0": "text", "it's": "quote"}

    @property
    def made(self) -> torch.Tensor:
        return self.listed[1][0]


SCOPE = {"L": {"self": Model(), "x": torch.ones(3)}, "G": {"torch": torch, "n": 3}, "cast": int}
NAMES = [
    *("L['x']", "G['n']", "L['self']", "L['self'].layers", "L['self'].training"),
    *("L['self']._modules['layers']._modules['first']._parameters['weight']", "L['self'].made"),
    *("L['self']._modules['layers']._modules['a b']._parameters['bias']", "L", "G"),
    *("L['self'].listed[0]", "L['self'].listed[1][0]", "L['self'].listed[-1]"),
    *("L['self'].numbered[0]", "L['self'].numbered['0']", """L['self'].numbered["it's"]"""),
    *("cast(G['n'])", "list(L['self'].layers)[0]", "G['torch'].float32", "L['x'].shape[0]"),
]


@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_the_whole_expression(name):
    expected = eval(name, dict(SCOPE))
    values = _Values(SCOPE)
    for _ in range(2):
        origin = values.origin(Source(name))
        assert type(origin.value) is type(expected)
        assert origin.value is expected or origin.value == expected
    assert origin.read() is expected or origin.read() == expected


@pytest.mark.parametrize("name", ["", "L['y']", "L['self'].nothing.more", "L['x'][7]", "L['x'] +"])
def test_what_stands_for_nothing(name):
    assert origin_of(Source(name), SCOPE) is None
    values = _Values(SCOPE)
    assert [values.origin(Source(name)) for _ in range(2)] == [None, None]


def test_reading_finds_what_is_there_now():
    scope = {"L": {"self": Model()}, "G": {}}
    origin = origin_of(Source("L['self'].listed[0]"), scope)
    scope["L"]["self"].listed[0] = new = torch.zeros(2)
    assert origin.read() is new and origin.value is not new
