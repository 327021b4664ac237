"""The npu dialect: table of contents.

Everything that must exist before the dialect is loaded is imported here.
"""

from mlir_npu.dialect.attributes import (
    ACC,
    DRAM,
    SRAM,
    SpaceAttr,
    TargetAttr,
    TokenType,
    space_attr,
    space_of,
    with_space,
)
from mlir_npu.dialect.base import Npu
from mlir_npu.dialect.compute import BatchMatmulOp, Conv2DOp, DepthwiseConv2DOp, MatmulOp, Pool2DOp
from mlir_npu.dialect.movement import BarrierOp, DmaJoinOp, DmaNoneOp, DmaStartOp, DmaWaitOp, FillOp
from mlir_npu.dialect.vector_unit import DrainOp, EltwiseOp, ReduceOp, YieldOp
from mlir_npu.dialect.winograd import WinogradInputOp, WinogradOutputOp

__all__ = [
    "ACC",
    "DRAM",
    "SRAM",
    "BarrierOp",
    "BatchMatmulOp",
    "Conv2DOp",
    "DepthwiseConv2DOp",
    "DmaJoinOp",
    "DmaNoneOp",
    "DmaStartOp",
    "DmaWaitOp",
    "DrainOp",
    "EltwiseOp",
    "FillOp",
    "MatmulOp",
    "Npu",
    "Pool2DOp",
    "ReduceOp",
    "SpaceAttr",
    "TargetAttr",
    "TokenType",
    "WinogradInputOp",
    "WinogradOutputOp",
    "YieldOp",
    "space_attr",
    "space_of",
    "with_space",
]
