"""How ATen calls are spelled before torch-mlir sees them.

A region is traced again with `NPU_DECOMPOSITIONS`. The table holds only what torch-mlir lowers
wrongly (NaN lost in clamps), slowly (comparisons with numbers in f64, an assertion in batch
normalization), or in a form that our passes do not want (bias as the initial value of a
convolution). Everything else that the support rules let through it lowers well by itself.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from mlir_npu.lowering import (  # noqa: F401  (imported for what they register)
    decompose_activation,
    decompose_activation_backward,
    decompose_attention,
    decompose_contraction,
    decompose_convolution_backward,
    decompose_elementwise,
    decompose_gather,
    decompose_max_pool_backward,
    decompose_normalization,
    decompose_normalization_backward,
    decompose_pooling,
    decompose_pooling_backward,
    decompose_reduction,
    decompose_scatter,
    decompose_shape,
    decompose_volume,
)
from mlir_npu.lowering.decomposition_table import TABLE

NPU_DECOMPOSITIONS: dict[torch._ops.OpOverload, Callable] = dict(TABLE)
