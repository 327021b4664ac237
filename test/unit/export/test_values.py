"""Values of a plan: memory, views, and the bytes of weights."""

import pytest
import torch

from mlir_npu.export.lifetimes import frees
from mlir_npu.export.plan import ALIGNMENT, Source, as_json
from mlir_npu.export.plan_steps import Add, Call, Check, Copy, Slot, View
from mlir_npu.export.values import Values, Weights, span_bytes

F32 = torch.float32
COMPUTED = Source("computed", unit="u")


def values(*names: str) -> Values:
    table = Values()
    for name in names:
        table.add(name, (2, 3), (3, 1), F32, COMPUTED)
    return table


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [((2, 3), (3, 1), 24), ((), (), 4), ((0, 3), (3, 1), 0), ((2, 3), (8, 2), 52), ((5,), (0,), 4)],
)
def test_bytes_from_first_to_last_element(shape, strides, expected) -> None:
    assert span_bytes(shape, strides, F32) == expected


def test_views_of_views_lie_in_the_memory_of_the_first() -> None:
    table = values("a")
    row = table.add_view("row", table["a"], 12, (3,), (1,), F32, "u")
    last = table.add_view("last", row, 8, (), (), F32, "u")
    assert (last.base, last.byte_offset, last.bytes) == ("a", 20, 0)


def test_names_are_taken_once() -> None:
    table = values("a")
    assert table.unused("a") == "a_2"
    with pytest.raises(ValueError, match="two values are called a"):
        table.add("a", (), (), F32, COMPUTED)


def test_weights_are_aligned_and_keep_their_strides() -> None:
    weights = Weights()
    turned = torch.arange(6.0).reshape(2, 3).t()
    repeated = torch.tensor([7.0]).expand(4)
    assert [weights.add(turned), weights.add(repeated)] == [0, ALIGNMENT]
    contents = torch.frombuffer(bytearray(weights.contents), dtype=F32)
    assert contents[:6].tolist() == [0, 1, 2, 3, 4, 5]
    assert contents[ALIGNMENT // 4 :].tolist() == [7]


def test_memory_is_freed_after_its_last_use_by_any_view() -> None:
    table = values("given", "a", "b", "result")
    table.add_view("look", table["a"], 0, (6,), (1,), F32, "u")
    steps = (
        Call("p", "p", (Slot("given"), Slot("a"), Slot(workspace=8)), ("a",)),
        View("look"),
        Copy("look", "b"),
        Add("b", "result"),
        Check("given", 1),
    )
    own = {"given", "a", "b", "result", "look"}
    assert frees(steps, own, {"result"}, table) == ((), (), ("a",), ("b",), ())


def test_json_leaves_out_what_is_as_usual() -> None:
    assert as_json(Slot(value="a")) == {"value": "a"}
    assert as_json(Copy("a", "b")) == {"op": "copy", "source": "a", "target": "b"}
    assert as_json(Check("a", True)) == {"op": "check", "value": "a", "expected": True}
