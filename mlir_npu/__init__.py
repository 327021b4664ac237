"""Run PyTorch networks on an accelerator that supports only part of PyTorch.

    torch.compile(model, backend="mlir_npu")

Importing this package does not import torch: the names below load what they need when first used.
"""

from __future__ import annotations

import importlib

from mlir_npu.version import __version__ as __version__

_HOMES = {
    "CaptureError": "mlir_npu.errors",
    "Explanation": "mlir_npu.explanation",
    "ExportError": "mlir_npu.errors",
    "GeneratedCode": "mlir_npu.runtime.generated_region",
    "HostLoweringError": "mlir_npu.errors",
    "MismatchError": "mlir_npu.errors",
    "Options": "mlir_npu.options",
    "OptionsError": "mlir_npu.errors",
    "Program": "mlir_npu.program",
    "StitchedProgram": "mlir_npu.stitched",
    "Region": "mlir_npu.lowering.code_generator",
    "RegionCompileError": "mlir_npu.errors",
    "StrictError": "mlir_npu.errors",
    "Target": "mlir_npu.dialect.target",
    "TargetError": "mlir_npu.dialect.target",
    "available_targets": "mlir_npu.dialect.target",
    "capture": "mlir_npu.capturing",
    "explain": "mlir_npu.explanation",
    "load": "mlir_npu.program_files",
    "load_target": "mlir_npu.dialect.target",
}

__all__ = sorted([*_HOMES, "__version__"])


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'mlir_npu' has no attribute '{name}'")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
