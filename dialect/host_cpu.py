"""Reads the CPU of this process into the keys of a target file (Linux; elsewhere a baseline)."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

_BASELINE_L2_BYTES = 256 * 1024
_SIZE_SUFFIXES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def describe_host_cpu() -> dict[str, Any]:
    """Target keys that the CPU decides: cores, cache as sram, vector unit."""
    flags = cpu_flags()
    lanes, registers = vector_unit(flags, platform.machine())
    return {
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1,
        "sram": {"bytes": l2_bytes(), "alignment": 64},
        "vector": {"lanes": lanes, "registers": registers},
        "matrix": {"macs_per_cell": {"i8": byte_products(flags)}},
    }


def vector_unit(flags: frozenset[str], machine: str) -> tuple[int, int]:
    """(f32 lanes, registers) of the widest vector unit with fused multiply-add."""
    if machine in ("aarch64", "arm64"):
        return 4, 32
    if {"avx512f", "avx512vl", "avx512dq"} <= flags:
        return 16, 32
    if {"avx2", "fma"} <= flags:
        return 8, 16
    return 4, 16


def byte_products(flags: frozenset[str]) -> int:
    """Products of bytes that a lane adds up in one instruction, in 32 bits."""
    return 4 if {"avx512_vnni", "avx512vl"} <= flags else 1


def cpu_flags() -> frozenset[str]:
    """Feature flags of the first CPU; empty where the system does not list them."""
    return frozenset(_cpuinfo("flags", "Features").split())


def cpu_name() -> str:
    """The model of the first CPU; empty where the system does not name it."""
    return _cpuinfo("model name", "CPU part").strip()


def _cpuinfo(*keys: str) -> str:
    """What the system says of the first CPU under one of these keys."""
    path = Path("/proc/cpuinfo")
    if not path.is_file():
        return ""
    for line in path.read_text().splitlines():
        if line.startswith(keys):
            return line.partition(":")[2]
    return ""


def l2_bytes() -> int:
    """Size of the level-2 cache of the first core in bytes; a baseline where it is not listed."""
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, size = index / "level", index / "size"
        if level.is_file() and size.is_file() and level.read_text().strip() == "2":
            text = size.read_text().strip()
            return (
                int(text[:-1]) * _SIZE_SUFFIXES[text[-1]]
                if text[-1] in _SIZE_SUFFIXES
                else int(text)
            )
    return _BASELINE_L2_BYTES
