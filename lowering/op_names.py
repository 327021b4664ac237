"""Names of ATen ops, for checking what a user typed."""

from __future__ import annotations

import functools

import torch


@functools.cache
def aten_op_names() -> frozenset[str]:
    """Names without namespace and overload, such as "relu" or "convolution"."""
    names = (name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::"))
    return frozenset(name.removeprefix("aten::").split(".")[0] for name in names)
