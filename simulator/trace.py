"""A timing run as a trace for Perfetto (https://ui.perfetto.dev) or chrome://tracing.

The format is Chrome's trace-event JSON. Time is in microseconds of the target's clock. There is one
track per channel of a unit, one for the kernels, and a counter track per on-chip memory.
"""

from __future__ import annotations

from typing import Any

from mlir_npu.dialect.attributes import ACC, SRAM
from mlir_npu.simulator.costs import UNITS
from mlir_npu.simulator.result import KernelRun, ModuleRun

PROCESS = 1
KERNELS = 0  # track of the kernels


def trace(run: ModuleRun) -> dict[str, Any]:
    """The trace as an object to be written as JSON."""
    microseconds = 1e6 / run.target.clock_hz
    tracks = _tracks(run)
    events, begin = [], 0
    for kernel in run.calls:
        events += _kernel_events(kernel, begin, microseconds, tracks)
        begin += kernel.cycles
    events.sort(key=lambda event: event["ts"])
    return {
        "traceEvents": [*_metadata(run, tracks), *events],
        "displayTimeUnit": "ns",
        "otherData": {
            "target": run.target.name,
            "clock_hz": run.target.clock_hz,
            "cycles": run.cycles,
        },
    }


def _tracks(run: ModuleRun) -> dict[tuple[str, int], int]:
    """Number of the track of every channel of every unit."""
    channels = run.calls[0].channels if run.calls else dict.fromkeys(UNITS, 1)
    places = [(unit, channel) for unit in UNITS for channel in range(channels[unit])]
    return {place: number for number, place in enumerate(places, KERNELS + 1)}


def _metadata(run: ModuleRun, tracks: dict[tuple[str, int], int]) -> list[dict[str, Any]]:
    found = [_name("process_name", KERNELS, f"target {run.target.name}")]
    found += [_name("thread_name", KERNELS, "kernels")]
    for (unit, channel), number in tracks.items():
        alone = (unit, 1) not in tracks
        found.append(_name("thread_name", number, unit if alone else f"{unit} {channel}"))
    for number in (KERNELS, *tracks.values()):
        order = {"name": "thread_sort_index", "ph": "M", "pid": PROCESS, "tid": number, "ts": 0}
        found.append(order | {"args": {"sort_index": number}})
    return found


def _name(kind: str, track: int, name: str) -> dict[str, Any]:
    return {
        "name": kind, "ph": "M", "pid": PROCESS, "tid": track, "ts": 0, "args": {"name": name}
    }  # fmt: skip


def _kernel_events(
    kernel: KernelRun, begin: int, microseconds: float, tracks: dict[tuple[str, int], int]
) -> list[dict[str, Any]]:
    def span(name: str, track: int, start: int, end: int, arguments) -> dict[str, Any]:
        return {
            "name": name,
            "cat": "kernel" if track == KERNELS else "op",
            "ph": "X",
            "pid": PROCESS,
            "tid": track,
            "ts": (begin + start) * microseconds,
            "dur": (end - start) * microseconds,
            "args": {"cycles": end - start} | arguments,
        }

    about = {
        "shape": kernel.shape,
        "tile": kernel.tile,
        "of roofline": round(kernel.share, 3),
        "bound": kernel.bounded_by,
    }
    found = [span(kernel.name, KERNELS, 0, kernel.cycles, about)]
    for event in kernel.events:
        arguments = {"what": event.detail} | ({"bytes": event.bytes} if event.bytes else {})
        track = tracks[event.unit, event.channel]
        found.append(span(event.name, track, event.start, event.end, arguments))
    for space in (SRAM, ACC):
        for time, level in kernel.occupancy[space]:
            found.append(
                {
                    "name": f"{space} bytes",
                    "ph": "C",
                    "pid": PROCESS,
                    "tid": KERNELS,
                    "ts": (begin + time) * microseconds,
                    "args": {"bytes": level},
                }
            )
    return found
