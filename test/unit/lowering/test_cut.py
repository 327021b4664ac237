"""What leaves a part: a view of a result, or the memory behind it."""

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from mlir_npu.lowering.cut import _covers


def test_views_that_cover_their_base():
    base = torch.empty(4, 6)
    assert _covers(base.t(), base) and _covers(base.view(-1), base)
    assert not _covers(base[1:], base)
    assert not _covers(base[:1].expand(4, 6), base)


def test_sizes_that_only_the_data_know_are_not_asked_about():
    with FakeTensorMode(shape_env=ShapeEnv()):
        base = torch.empty(4).nonzero()
        assert not _covers(base.squeeze(1), base)
        assert not _covers(base.t(), base)
