"""What choose-tiles writes down comes true: the bytes, the buffers and the cycles."""
import pytest
from staged import kernel_text as k
from staged.run import compile_to

from mlir_npu.dialect.bindings import ir
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
}
TOLERANCE = 0.05  # of the cycles


@pytest.mark.parametrize("target", ["edge", "small"])
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


def integer(attributes: ir.DictAttr, name: str) -> int:
    return ir.IntegerAttr(attributes[name]).value
