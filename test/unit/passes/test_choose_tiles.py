"""What choose-tiles writes down comes true: the bytes, the buffers and the cycles."""

from dataclasses import replace

import pytest
from staged import kernel_text as k
from staged.run import compile_to

from mlir_npu.dialect.bindings import ir
from mlir_npu.dialect.target import load_target
from mlir_npu.passes.choose_tiles import SCHEDULE
from mlir_npu.passes.kernels.walk import kernels
from mlir_npu.passes.pipelining.rotate import SINGLE
from mlir_npu.passes.plan_scratchpad import MEMORY
from mlir_npu.simulator.simulate import simulate_module

SAME = k.Window((3, 3), low=(1, 1), high=(1, 1))
HALVE = k.Window((3, 3), (2, 2), low=(1, 1), high=(1, 1))
KERNELS = {
    "conv 3x3": k.conv2d((1, 28, 28, 32), 4, 8, SAME),
    "conv without epilogue": k.conv2d((1, 14, 14, 32), 2, 16, SAME, epilogue=False),
    "conv of many channels": k.conv2d((1, 7, 7, 256), 16, 16, SAME),
    "conv 1x1": k.conv2d((1, 14, 14, 128), 8, 16, k.Window((1, 1))),
    "stem": k.conv2d((1, 64, 64, 3), 2, 16, k.Window((7, 7), (2, 2), low=(3, 3), high=(2, 2))),
    "batch": k.conv2d((4, 14, 14, 16), 2, 16, HALVE),
    "grouped conv": k.grouped_conv2d((1, 14, 14, 4, 8), 2, 8, SAME),
    "depthwise": k.depthwise_conv2d((1, 28, 28, 64), SAME),
    "depthwise stride 2": k.depthwise_conv2d((1, 28, 28, 64), HALVE, epilogue=False),
    "max pool": k.pool2d((1, 28, 28, 64), HALVE, "max"),
    "matmul": k.matmul(64, 128, 8, 16),
    "matmul of one row": k.matmul(1, 512, 10, 16),
    "mean": k.mean((1, 14, 14, 128)),
    "eltwise": k.add_relu((1, 28, 28, 64)),
    "depthwise of few channels": k.depthwise_conv2d((2, 37, 29, 32), SAME),
    "conv of odd sizes": k.conv2d((2, 37, 29, 6), 1, 32, SAME),
    "conv of blocks of 24": k.grouped_conv2d(
        (2, 19, 15, 2, 32), 1, 24, k.Window((3, 1), low=(0, 1))
    ),
    "pool of odd sizes": k.pool2d((2, 37, 29, 64), HALVE, "max"),
    "mean of odd sizes": k.mean((2, 15, 15, 48)),
    "matmul of odd sizes": k.matmul(37, 51, 7, 9),
}
EDGE, SMALL = load_target("edge"), load_target("small")


def with_dma(target, name, **values):
    return replace(target, name=name, dma=replace(target.dma, **values))


TARGETS = (
    EDGE,
    SMALL,
    with_dma(EDGE, "rank 2", max_rank=2),
    with_dma(EDGE, "rank 3", max_rank=3),
    with_dma(EDGE, "two channels", channels=2),
    with_dma(EDGE, "two channels, rank 2", channels=2, max_rank=2),
    with_dma(SMALL, "small, three channels, rank 2", channels=3, max_rank=2),
)
TOLERANCE = 0.05  # of the cycles


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@pytest.mark.parametrize("name", KERNELS)
def test_the_schedule_comes_true(name, target):
    module = compile_to(KERNELS[name], "allocate", target)
    (kernel,) = kernels(module.operation)
    chosen, used = ir.DictAttr(kernel.attributes[SCHEDULE]), ir.DictAttr(kernel.attributes[MEMORY])
    for memory in ("sram_bytes", "acc_bytes"):
        assert 0 <= integer(used, memory) <= integer(chosen, memory)
    assert SINGLE not in str(kernel), "a tile has one buffer, and two were promised"
    (run,) = simulate_module(module.operation).calls
    assert integer(chosen, "cycles") == pytest.approx(run.cycles, rel=TOLERANCE)
    serial = compile_to(KERNELS[name], "allocate", target, "serial")
    assert run.cycles <= simulate_module(serial.operation).cycles


def integer(attributes: ir.DictAttr, name: str) -> int:
    return ir.IntegerAttr(attributes[name]).value
