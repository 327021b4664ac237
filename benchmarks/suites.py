"""The cases of every suite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mlir_npu.benchmarks import layers
from mlir_npu.benchmarks.cases import Case
from mlir_npu.benchmarks.engines import (
    HOST,
    HOST_COMPILED,
    OURS,
    OURS_COMPILED,
    PEERS,
    SIDE_BY_SIDE,
)

BATCHES = (1, 8)
SCALING_BATCHES = (1, 2, 4, 8, 16, 32)
SCALING_IMAGES = (64, 128, 224, 320, 512)
SCALING_ENGINES = (OURS, "eager", "onnxruntime")
QUICK_SIZES = 3
NETWORKS = (
    "ResNet-18",
    "ResNet-50",
    "MobileNetV2",
    "VGG-11",
    "VGG-16",
    "SqueezeNet 1.1",
    "CREPE tiny",
    "U-Net",
)
TRAINED_NETWORKS, TRAINING_BATCH = ("ResNet-18",), 8
QUICK_NETWORKS = ("ResNet-18", "MobileNetV2", "CREPE tiny")
TINY_LAYER = layers.square(8, 8, 8, 3)


def layer_cases(threads: int, quick: bool) -> list[Case]:
    """All of them, or the first of every class."""
    chosen = layers.distinct()
    if quick:
        chosen = {layer.kind: layer for layer in reversed(chosen)}.values()
    return [
        Case(
            "layers",
            layer.name,
            layer.kind,
            SIDE_BY_SIDE,
            threads,
            (1, layer.inputs, *layer.size),
            layer=layer,
        )
        for layer in chosen
    ]


def network_cases(threads: int, quick: bool) -> list[Case]:
    return [
        _network("networks", name, f"batch {batch}", SIDE_BY_SIDE, threads, batch=batch)
        for batch in (BATCHES[:1] if quick else BATCHES)
        for name in (QUICK_NETWORKS if quick else NETWORKS)
    ]


def overhead_cases(threads: int, quick: bool) -> list[Case]:
    peers = ("dynamo", "eager", "inductor", "frozen", "onnxruntime", "openvino")
    engines = (OURS, OURS_COMPILED, *peers)
    (height, width), channels = TINY_LAYER.size, TINY_LAYER.inputs
    shape = (1, channels, height, width)
    name = "conv + relu, " + "x".join(map(str, shape))
    return [Case("overhead", name, "call", engines, threads, shape, layer=TINY_LAYER)]


def compile_cases(threads: int, quick: bool) -> list[Case]:
    engines = (OURS, "inductor", "frozen")
    case = _network("compile", "ResNet-50", "cold compile", engines, threads)
    return [replace(case, kind="compile")]


def memory_cases(threads: int, quick: bool) -> list[Case]:
    case = _network("memory", "ResNet-50", "peak memory", (OURS, *PEERS), threads)
    return [replace(case, kind="memory")]


def scaling_cases(threads: int, quick: bool) -> list[Case]:
    """ResNet-18; the smallest sizes alone when quick."""
    count = QUICK_SIZES if quick else None
    batches = [
        _network("scaling", "ResNet-18", "images", SCALING_ENGINES, threads, batch=n, size=n)
        for n in SCALING_BATCHES[:count]
    ]
    images = [
        _network("scaling", "ResNet-18", "pixels", SCALING_ENGINES, threads, image=n, size=n * n)
        for n in SCALING_IMAGES[:count]
    ]
    return batches + images


def host_cases(threads: int, quick: bool) -> list[Case]:
    """Every chain in every size; quick: one size of all."""
    from mlir_npu.benchmarks import chains

    engines = (HOST, HOST_COMPILED, OURS, "eager", "inductor")
    cases = []
    for name, kind in chains.KINDS.items():
        for rows, columns in chains.QUICK_SIZES if quick else chains.SIZES:
            shape = chains.shape_of(name, rows, columns)
            label = f"{name}, {rows}x{columns}"
            case = Case("host", label, kind.group, engines, threads, shape, network=name)
            cases.append(case)
    return cases


def training_cases(threads: int, quick: bool) -> list[Case]:
    engines = (OURS_COMPILED, "eager", "inductor")
    return [
        _network("training", name, "training step", engines, threads, batch=TRAINING_BATCH)
        for name in TRAINED_NETWORKS
    ]


def _network(
    suite: str,
    network: str,
    group: str,
    engines: tuple[str, ...],
    threads: int,
    *,
    batch: int = 1,
    image: int | None = None,
    size: int = 1,
) -> Case:
    from mlir_npu.benchmarks.models import input_shape

    shape = input_shape(network, batch, image)
    name = network if suite != "scaling" else f"{network}, {'x'.join(map(str, shape))}"
    return Case(suite, name, group, engines, threads, shape, network=network, size=size)


SUITES: dict[str, Callable[[int, bool], list[Case]]] = {
    "layers": layer_cases,
    "networks": network_cases,
    "overhead": overhead_cases,
    "compile": compile_cases,
    "memory": memory_cases,
    "scaling": scaling_cases,
    "host": host_cases,
    "training": training_cases,
}
