"""A timing run as plain data, to be written as JSON."""

from __future__ import annotations

from typing import Any

from mlir_npu.dialect.attributes import ACC, DRAM, SRAM
from mlir_npu.simulator.costs import UNITS
from mlir_npu.simulator.result import KernelRun, ModuleRun
from mlir_npu.simulator.traffic import READ, WRITTEN


def report(run: ModuleRun) -> dict[str, Any]:
    """Cycles are of the target's clock; shares are fractions; `calls` names kernels in order."""
    kernels = {kernel.name: kernel for kernel in run.calls}
    return {
        "target": run.target.name,
        "clock_hz": run.target.clock_hz,
        "cycles": run.cycles,
        "bound_cycles": run.bound,
        "roofline_share": run.share,
        "macs": run.macs,
        "utilisation": {unit: run.utilisation(unit) for unit in UNITS},
        "bytes": {
            f"{space}_{direction}": run.bytes(space, direction)
            for space in (DRAM, SRAM)
            for direction in (READ, WRITTEN)
        },
        "prepare_cycles": sum(kernel.cycles for kernel in run.preparation),
        "calls": [kernel.name for kernel in run.calls],
        "kernels": {name: _kernel(kernel) for name, kernel in kernels.items()},
    }


def _kernel(run: KernelRun) -> dict[str, Any]:
    return {
        "kind": run.kind,
        "shape": run.shape,
        "tile": run.tile,
        "cycles": run.cycles,
        "busy_cycles": {unit: run.busy[unit] for unit in UNITS},
        "utilisation": {unit: run.utilisation(unit) for unit in UNITS},
        "macs": run.macs,
        "bytes": {
            f"{space}_{direction}": run.traffic.of(space, direction)
            for space in (DRAM, SRAM)
            for direction in (READ, WRITTEN)
        },
        "intensity_macs_per_byte": run.intensity,
        "bound_cycles": run.bound,
        "bounded_by": run.bounded_by,
        "roofline_share": run.share,
        "lost_cycles": run.losses(),
        "peak_bytes": {space: run.peak(space) for space in (SRAM, ACC)},
    }
