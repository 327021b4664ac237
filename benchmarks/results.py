"""The document that a run writes as JSON, and its check.

* schema: SCHEMA
* machine: what machine.describe() says
* effort: of the timed cases
* absent: engine -> why it is not there
* records: one per case, each with

  - case: Case.to_json()
  - error: how the process died, null if it did not
  - load: processes that wanted a core when the case began (mean of one minute)
  - macs, least_macs, peak_gflops, copy_gbps: of timed cases; work of a call with and without that
    on padding; best rates of the machine
  - engines: name -> {"error": text}, or an object with
    values: ms of every round; seconds, or MB, of every repetition
    difference: largest distance from eager's result; tolerance: what is allowed
    notes: what the engine has to say
"""

from __future__ import annotations

from numbers import Real
from typing import Any

from mlir_npu.benchmarks.cases import Case
from mlir_npu.benchmarks.engines import ENGINES, PEERS

SCHEMA = 1
TOP = {"schema": int, "machine": dict, "effort": dict, "absent": dict, "records": list}
TIMED = {"macs": int, "least_macs": int, "peak_gflops": Real, "copy_gbps": Real}
OUTCOME = {"values": list, "difference": Real, "tolerance": Real, "notes": dict}


class SchemaError(ValueError):
    """The document is not what a run writes; the text says where."""


def check(document: Any) -> None:
    """Raises SchemaError for what is no document of this version."""
    _require(document, TOP, "document")
    if document["schema"] != SCHEMA:
        raise SchemaError(f"schema is {document['schema']}, this version reads {SCHEMA}")
    for number, record in enumerate(document["records"]):
        _check_record(record, f"records[{number}]")


def _check_record(record: Any, where: str) -> None:
    _require(record, {"case": dict, "load": Real, "engines": dict}, where)
    try:
        case = Case.from_json(record["case"])
    except (KeyError, TypeError) as error:
        raise SchemaError(f"{where}.case: {error}") from error
    if record.get("error") is not None:
        return
    if case.kind == "time":
        _require(record, TIMED, where)
    for name, outcome in record["engines"].items():
        here = f"{where}.engines[{name!r}]"
        if name not in ENGINES:
            raise SchemaError(f"{here}: no such engine")
        if "error" in outcome:
            continue
        _require(outcome, OUTCOME, here)
        if not outcome["values"] or not all(value > 0 for value in outcome["values"]):
            raise SchemaError(f"{here}.values: must be positive numbers, at least one")


def _require(table: Any, kinds: dict[str, type], where: str) -> None:
    if not isinstance(table, dict):
        raise SchemaError(f"{where}: must be an object")
    for key, kind in kinds.items():
        if not isinstance(table.get(key), kind):
            raise SchemaError(f"{where}.{key}: must be {kind.__name__}, is {table.get(key)!r}")


def problems(document: dict) -> list[str]:
    """What makes a run fail, one sentence each."""
    peaks = best_peaks(document)
    found = []
    for record in document["records"]:
        found += [f"{label(record)}: {text}" for text in _problems(record, peaks)]
    return found


def failed_peers(document: dict) -> list[str]:
    """Peers that could not run a case."""
    return [
        f"{label(record)}: {name}: {outcome['error']}"
        for record in document["records"]
        for name, outcome in record["engines"].items()
        if "error" in outcome and name in PEERS
    ]


def best_peaks(document: dict) -> dict[int, float]:
    """GFLOP/s of the FMA loop, the most that was seen in the run, by number of threads."""
    peaks: dict[int, float] = {}
    for record in document["records"]:
        threads = record["case"]["threads"]
        if record.get("peak_gflops"):
            peaks[threads] = max(peaks.get(threads, 0.0), record["peak_gflops"])
    return peaks


def label(record: dict) -> str:
    case = record["case"]
    return f"{case['suite']}/{case['group']}/{case['name']}, {case['threads']} thread(s)"


def gflops(record: dict, milliseconds: float) -> float:
    return 2e-6 * record["macs"] / milliseconds


CLOCK = 1.05  # the clock may have been this much higher than when the peak was measured


def _problems(record: dict, peaks: dict[int, float]) -> list[str]:
    if record.get("error"):
        return [record["error"]]
    found = []
    for name, outcome in record["engines"].items():
        if "error" in outcome:
            found += [f"{name}: {outcome['error']}"] * (name not in PEERS)
            continue
        if not outcome["difference"] <= outcome["tolerance"]:
            found.append(
                f"{name} is off by {outcome['difference']:.2e}, "
                f"allowed are {outcome['tolerance']:.2e}"
            )
        if macs := outcome["notes"].get("host_conv_macs"):
            found.append(f"{name} ran {macs:,} multiply-accumulates of convolutions on the host")
        if record["case"]["kind"] != "time" or outcome["notes"].get("winograd"):
            continue
        rate = 2e-6 * record["least_macs"] / min(outcome["values"])
        peak = peaks[record["case"]["threads"]]
        if rate > CLOCK * peak:
            found.append(f"{name}: {rate:.1f} GFLOP/s are above the peak of {peak:.1f}")
    return found
