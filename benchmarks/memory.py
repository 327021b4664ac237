"""Peak resident memory of this process, from the kernel's high-water mark (Linux)."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

CALLS = 5
MB = 1e6


def trim() -> None:
    """Give free heap memory back, so that what follows does not hide in it."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def status(key: str) -> float:
    """MB of a field of /proc/self/status: VmRSS now, VmHWM at most since the last reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024 / MB
    raise RuntimeError(f"/proc/self/status has no {key}")


def weight_bytes(model: nn.Module) -> int:
    return sum(t.numel() * t.element_size() for t in (*model.parameters(), *model.buffers()))


def measure(
    prepare: Callable[[], Callable[[], torch.Tensor]], weights: int
) -> tuple[float, float, torch.Tensor]:
    """Peak MB over what the process holds now: from `prepare` on, and in later calls alone.

    weights: bytes of weights that `prepare` brings along and that do not count. The third value is
    the result of the last call.
    """
    trim()
    base = status("VmRSS") + weights / MB
    reset_peak()
    call = prepare()
    result = call()
    whole = status("VmHWM") - base
    trim()
    reset_peak()
    for _ in range(CALLS):
        result = call()
    return whole, status("VmHWM") - base, result
