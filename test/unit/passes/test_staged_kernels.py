"""Every kind of kernel, tiled and staged for several targets, is exact on small integers."""

import numpy as np
import pytest
from staged import kernel_text as k
from staged.run import check, compile_to, execute

SAME = k.Window((3, 3), low=(1, 1), high=(1, 1))
KERNELS = {
    "conv 3x3": k.conv2d((1, 12, 8, 8), 2, 8, SAME),
    "conv without epilogue": k.conv2d((1, 12, 8, 8), 2, 8, SAME, epilogue=False),
    "conv without pad": k.conv2d((2, 9, 9, 4), 2, 4, k.Window((2, 3))),
    "conv 1x1": k.conv2d((1, 8, 8, 16), 4, 8, k.Window((1, 1))),
    "conv 1x1 stride 2": k.conv2d((1, 8, 8, 16), 4, 8, k.Window((1, 1), strides=(2, 2))),
    "conv stem": k.conv2d((1, 24, 24, 3), 2, 8, k.Window((7, 7), (2, 2), low=(3, 3), high=(2, 2))),
    "conv many channels": k.conv2d((1, 4, 4, 128), 8, 16, SAME),
    "grouped conv": k.grouped_conv2d((1, 8, 8, 3, 4), 2, 4, SAME),
    "pointwise conv": k.pointwise_conv2d((2, 12, 9, 7), 10),
    "depthwise": k.depthwise_conv2d((1, 12, 12, 16), SAME),
    "depthwise without epilogue": k.depthwise_conv2d((1, 12, 12, 16), SAME, epilogue=False),
    "max pool": k.pool2d((1, 12, 12, 16), k.Window((3, 3), (2, 2), low=(1, 1)), "max"),
    "sum pool": k.pool2d((2, 12, 12, 8), k.Window((2, 2), (2, 2)), "sum"),
    "matmul": k.matmul(12, 40, 3, 8),
    "matmul of one row": k.matmul(1, 512, 10, 4),
    "mean": k.mean((2, 6, 6, 32)),
    "mean of a large image": k.mean((1, 24, 24, 32)),
    "eltwise": k.add_relu((1, 16, 16, 24)),
    "transpose": k.transpose((1, 6, 8, 10), (0, 2, 3, 1)),
    "concat": k.concat((1, 5, 5, 8), 3),
    "pad": k.pad((1, 5, 6, 3), k.Window(low=(1, 0), high=(2, 3))),
}


@pytest.mark.parametrize("target", ["edge", "small", "host"])
@pytest.mark.parametrize("name", KERNELS)
def test_staged_kernel_is_exact(name, target):
    check(KERNELS[name], target)


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_on_memrefs_runs_through_upstream_lowering(name):
    kernel = KERNELS[name]
    arrays = kernel.arrays(1)
    module = compile_to(kernel, "buffers", "small")
    np.testing.assert_array_equal(execute(kernel, module, arrays), kernel.reference(*arrays))
