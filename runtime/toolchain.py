"""What compiled code depends on besides its source: this package, its tools, the CPU."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import platform
from collections.abc import Iterator
from pathlib import Path

from mlir_npu.dialect.host_cpu import cpu_flags

_PACKAGES = ("dialect", "lowering", "passes", "runtime")
_TOOLS = ("torch", "torch-mlir")


@functools.cache
def toolchain() -> str:
    """One line that is another whenever compiled code may be another.

    The package counts with the contents of its files, so that a checkout that is being worked on
    never finds what an earlier version of it compiled. If a file changed after this process
    started, it may run the old one or the new one, and shares nothing with other processes.
    """
    versions = [f"{tool} {importlib.metadata.version(tool)}" for tool in _TOOLS]
    features = hashlib.sha256(" ".join(sorted(cpu_flags())).encode()).hexdigest()[:16]
    own = "" if is_current() else f"process {os.getpid()} of {_started()}"
    return ", ".join([f"mlir_npu {_contents()}", *versions, platform.machine(), features, own])


def digest(*parts: str | bytes) -> str:
    """A key for the parts, in order, and the toolchain."""
    whole = hashlib.sha256()
    for part in (toolchain(), *parts):
        data = part.encode() if isinstance(part, str) else part
        whole.update(len(data).to_bytes(8, "little") + data)
    return whole.hexdigest()


def is_current() -> bool:
    """Whether the package on disk is still the one that this process started with."""
    started = _started()
    return all(os.stat(path).st_mtime <= started for _, path in _sources())


def _contents() -> str:
    whole = hashlib.sha256()
    for name, path in sorted(_sources()):
        contents = Path(path).read_bytes()
        whole.update(f"{name} {len(contents)}\n".encode() + contents)
    return whole.hexdigest()[:16]


def _sources() -> Iterator[tuple[str, str]]:
    """Name and path of every file, in any order."""
    for package in _PACKAGES:
        (root,) = importlib.util.find_spec(f"mlir_npu.{package}").submodule_search_locations
        for folder, _, names in os.walk(root):
            inside = f"{package}{folder[len(root) :]}"
            for name in names:
                if name.endswith((".py", ".toml")):
                    yield f"{inside}/{name}", f"{folder}/{name}"


@functools.cache
def _started() -> float:
    """When this process started, in seconds since 1970 (Linux)."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    boot = next(line for line in Path("/proc/stat").read_text().splitlines() if "btime" in line)
    return int(boot.split()[1]) + ticks / os.sysconf("SC_CLK_TCK")
