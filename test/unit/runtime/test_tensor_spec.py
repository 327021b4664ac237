import pytest
import torch

from mlir_npu.runtime.tensor_spec import TensorSpec, dense_strides, memory_order

CHANNELS_LAST = (0, 2, 3, 1)


@pytest.mark.parametrize(
    ("shape", "strides", "order"),
    [
        ((), (), ()),
        ((2, 3), (3, 1), (0, 1)),
        ((2, 3), (1, 2), (1, 0)),
        ((2, 3, 4, 5), (60, 1, 15, 3), CHANNELS_LAST),
        ((1, 5, 4, 6), (1, 1, 30, 5), CHANNELS_LAST),  # any stride of the batch of 1
        ((1, 3, 2, 2), (7, 4, 2, 1), (0, 1, 2, 3)),
        ((2, 3, 1, 1), (3, 1, 3, 3), (0, 1, 2, 3)),  # ambiguous: row-major wins
        ((2, 1, 7, 5), (35, 1, 5, 1), (0, 1, 2, 3)),  # one channel in channels_last
        ((2, 3), (0, 1), None),  # expanded
        ((2, 3), (6, 2), None),  # gaps
        ((3, 2), (1, 1), None),  # overlapping
    ],
)
def test_memory_order(shape, strides, order):
    assert memory_order(shape, strides) == order


def test_dense_strides_match_torch():
    x = torch.empty(2, 3, 4, 5)
    assert dense_strides(x.shape, (0, 1, 2, 3)) == x.stride()
    assert dense_strides(x.shape, CHANNELS_LAST) == x.to(memory_format=torch.channels_last).stride()


def test_physical_tensor_is_row_major():
    spec = TensorSpec.of(torch.empty(2, 3, 4, 5).to(memory_format=torch.channels_last))
    packed = torch.empty(spec.physical_shape)
    assert packed.permute(spec.inverse_order).stride() == spec.dense
    assert packed.permute(spec.inverse_order).shape == spec.shape


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.randn(4, 6)[:, ::2],  # gaps
        lambda: torch.randn(6, 4).t()[:, :3],
        lambda: torch.randn(3).expand(4, 3),  # expanded
        lambda: torch.randn(2, 4, 3).transpose(0, 1)[:, 0],
        lambda: torch.randn(30)[5:17].view(4, 3),  # storage offset
        lambda: torch.randn(10).as_strided((4, 3), (2, 1)),  # overlapping
    ],
)
def test_conform_reads_any_strides(make):
    source = make()
    spec = TensorSpec.of(torch.empty(source.shape))
    packed = spec.conform(source)
    assert packed.stride() == spec.dense
    assert torch.equal(packed, source)


def test_conform_keeps_a_readable_tensor():
    x = torch.randn(30)[5:17].view(4, 3)
    assert TensorSpec.of(x).conform(x) is x


def test_conform_resolves_the_negative_bit():
    x = torch._neg_view(torch.tensor([1.0, 2.0]))
    packed = TensorSpec.of(torch.empty(2)).conform(x)
    assert not packed.is_neg()
    assert packed.tolist() == [-1.0, -2.0]


@pytest.mark.parametrize(
    "make", [lambda: torch.randn(4, 6)[:, ::2], lambda: torch.randn(3).expand(4, 3)]
)
def test_restore_gives_the_callers_strides(make):
    like = make()
    spec = TensorSpec.of(like)
    packed = torch.empty_strided(spec.shape, spec.dense).copy_(like)
    restored = spec.restore(packed)
    assert restored.stride() == like.stride()
    assert torch.equal(restored, like)
