"""Whole networks: the same results as eager, and every convolution on the NPU path.

The large ones are those of the demo; they compile in seconds each and run the whole path on real
sizes. The small ones have the shapes that large ones do not.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from mlir_npu import Explanation
from mlir_npu.lowering.report import collect
from mlir_npu.scripts.networks import crepe, small, zoo
from mlir_npu.scripts.networks.comparison import compare, relative_tolerance
from mlir_npu.scripts.networks.trial import Trial, try_network

SMALL = {
    "squeezenet": (small.squeezenet, (2, 3, 64, 64)),
    "unet": (small.UNet, (2, 3, 32, 32)),
    "squeeze_excite": (small.SqueezeExcite, (2, 16, 28, 28)),
    "vgg": (small.vgg, (2, 3, 32, 32)),
    "resnext": (small.resnext, (2, 8, 14, 14)),
}


@pytest.fixture(scope="module", params=zoo.NETWORKS, ids=lambda network: network.name)
def trial(request: pytest.FixtureRequest) -> Trial:
    return try_network(request.param, {}, seconds=0)


@pytest.mark.network
def test_real_network_matches_eager(trial: Trial) -> None:
    assert trial.difference.largest <= trial.difference.tolerance


@pytest.mark.network
def test_every_convolution_of_a_real_network_runs_on_the_npu(trial: Trial) -> None:
    placement = trial.placement
    assert placement.conv_macs > 10_000_000
    assert placement.npu_conv_macs == placement.conv_macs
    assert len(placement.graphs) == 1


@pytest.mark.network
def test_real_network_is_what_the_demo_wants(trial: Trial) -> None:
    assert trial.problems() == []
    assert len(trial.tones) == (4 if trial.network is zoo.CREPE else 0)


def settled(build: Callable[[], nn.Module], shape: tuple[int, ...]) -> nn.Module:
    """The network in eval mode, with batch-norm statistics that are not those of a fresh one."""
    model = build().train()
    with torch.no_grad():
        for _ in range(3):
            model(torch.randn(shape) + 0.5)
    return model.eval()


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("channels_last", [False, True], ids=["nchw", "nhwc"])
def test_small_network_matches_eager_with_every_convolution_on_the_npu(
    name: str, channels_last: bool
) -> None:
    build, shape = SMALL[name]
    model, images = settled(build, shape), torch.randn(shape)
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    compiled = torch.compile(model, backend="mlir_npu")
    with torch.no_grad(), collect() as reports:
        expected, actual = model(images), compiled(images)
    difference = compare(model, expected, actual)
    assert difference.largest <= difference.tolerance
    assert actual.stride() == expected.stride()
    placement = Explanation(tuple(reports), breaks=(), result=actual)
    assert placement.conv_macs > 0
    assert placement.npu_conv_macs == placement.conv_macs


def test_crepe_decodes_a_peak_between_two_bins() -> None:
    probabilities = torch.zeros(1, crepe.PITCH_BINS)
    probabilities[0, 100:102] = 0.5
    cents = crepe.FIRST_BIN_CENTS + 100.5 * crepe.CENTS_PER_BIN
    assert crepe.pitch(probabilities).item() == pytest.approx(10 * 2 ** (cents / 1200), rel=1e-12)


def test_crepe_pitch_ignores_far_bins_and_ends_at_the_edges() -> None:
    probabilities = torch.zeros(2, crepe.PITCH_BINS)
    probabilities[0, [0, 200]] = torch.tensor([0.9, 0.8])
    probabilities[1, [359, 350]] = torch.tensor([0.9, 0.8])
    cents = [crepe.FIRST_BIN_CENTS + crepe.CENTS_PER_BIN * bin_ for bin_ in (0, 359)]
    expected = [10 * 2 ** (c / 1200) for c in cents]
    assert crepe.pitch(probabilities).tolist() == pytest.approx(expected, rel=1e-12)


def test_tolerance_grows_with_the_square_root_of_the_reduction_length() -> None:
    eps = torch.finfo(torch.float32).eps
    one = nn.Conv2d(64, 8, 1)
    assert relative_tolerance(one) == pytest.approx(2 * eps * 8)
    assert relative_tolerance(nn.Sequential(one, nn.Linear(36, 2))) == pytest.approx(2 * eps * 10)


def test_comparison_rejects_nan_and_wrong_shapes() -> None:
    model, good = nn.Linear(4, 2), torch.ones(1, 2)
    assert compare(model, good, good).acceptable
    assert not compare(model, good, torch.full_like(good, torch.nan)).acceptable
    assert not compare(model, good, good + 1e-3).acceptable
    with pytest.raises(ValueError, match=r"\(1, 2\), the compiled network torch.float32 \(2, 1\)"):
        compare(model, good, good.t())
