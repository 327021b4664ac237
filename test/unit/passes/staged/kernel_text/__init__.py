"""Kernels in the form that form-kernels leaves, called from @main, with their NumPy reference."""

from staged.kernel_text.base import Kernel, module, schedule, tensor, transposed
from staged.kernel_text.contractions import (
    batch_matmul,
    conv2d,
    grouped_conv2d,
    matmul,
    pointwise_conv2d,
)
from staged.kernel_text.others import add_relu, concat, mean, pad, transpose
from staged.kernel_text.window import Window
from staged.kernel_text.windowed import depthwise_conv2d, pool2d

__all__ = [
    "Kernel",
    "Window",
    "add_relu",
    "batch_matmul",
    "concat",
    "conv2d",
    "depthwise_conv2d",
    "grouped_conv2d",
    "matmul",
    "mean",
    "module",
    "pad",
    "pointwise_conv2d",
    "pool2d",
    "schedule",
    "tensor",
    "transpose",
    "transposed",
]
