"""Engines by name, each in a form in which one would use it."""

from __future__ import annotations

from mlir_npu.benchmarks.engines.base import Engine
from mlir_npu.benchmarks.engines.exported import OnnxRuntime, OpenVino
from mlir_npu.benchmarks.engines.pytorch import (
    ChannelsLast,
    DynamoOnly,
    Eager,
    Frozen,
    Inductor,
    MlirNpu,
    MlirNpuCompile,
    MlirNpuHost,
    MlirNpuHostCompile,
    MlirNpuLast,
)

OURS, OURS_LAST, OURS_COMPILED = "mlir_npu", "mlir_npu_last", "mlir_npu_compile"
HOST, HOST_COMPILED = "mlir_npu_host", "mlir_npu_host_compile"
ENGINES: dict[str, type[Engine]] = {
    OURS: MlirNpu,
    OURS_LAST: MlirNpuLast,
    OURS_COMPILED: MlirNpuCompile,
    HOST: MlirNpuHost,
    HOST_COMPILED: MlirNpuHostCompile,
    "eager": Eager,
    "channels_last": ChannelsLast,
    "inductor": Inductor,
    "frozen": Frozen,
    "onnxruntime": OnnxRuntime,
    "openvino": OpenVino,
    "dynamo": DynamoOnly,
}
PEERS = ("eager", "channels_last", "inductor", "frozen", "onnxruntime", "openvino")
SIDE_BY_SIDE = (OURS, OURS_LAST, *PEERS)


def absent(names: tuple[str, ...]) -> dict[str, str]:
    """Engines that this environment cannot run, and why."""
    reasons = {name: ENGINES[name].missing() for name in names}
    return {name: reason for name, reason in reasons.items() if reason}
