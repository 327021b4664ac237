"""The trace is what trace-event viewers read."""

from __future__ import annotations

import json
from collections import defaultdict

from test_compiled import KERNELS, simulated

from mlir_npu.simulator.trace import trace


def conv_trace() -> tuple[dict, int]:
    run = simulated(KERNELS["conv 3x3"], "pipelined")
    return json.loads(json.dumps(trace(run))), run.cycles


def test_events_have_the_fields_of_their_kind_and_are_sorted():
    written, _ = conv_trace()
    assert set(written) == {"traceEvents", "displayTimeUnit", "otherData"}
    events = written["traceEvents"]
    common = {"name": str, "ph": str, "pid": int, "tid": int, "ts": (int, float), "args": dict}
    for event in events:
        assert all(isinstance(event[field], kind) for field, kind in common.items())
        assert event["ph"] in "XCM"
        if event["ph"] == "X":
            assert event["dur"] > 0
            assert event["ts"] >= 0
        if event["ph"] == "C":
            assert all(isinstance(value, int) for value in event["args"].values())
    times = [event["ts"] for event in events]
    assert times == sorted(times)


def test_spans_of_a_track_do_not_overlap_and_one_cycle_is_a_nanosecond():
    written, cycles = conv_trace()
    tracks = defaultdict(list)
    for event in written["traceEvents"]:
        if event["ph"] == "X":
            tracks[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for spans in tracks.values():
        for (_, end), (start, _) in zip(spans, spans[1:]):
            assert start >= end - 1e-6
    (kernel,) = tracks[0]
    assert abs(kernel[1] - cycles / 1000) < 1e-9  # microseconds at 1 GHz


def test_every_track_has_a_name():
    written, _ = conv_trace()
    events = written["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert set(names.values()) == {"kernels", "matrix", "vector", "dma in", "dma out"}
    assert {e["tid"] for e in events if e["ph"] == "X"} <= set(names)
    assert {e["name"] for e in events if e["ph"] == "C"} == {"sram bytes", "acc bytes"}
