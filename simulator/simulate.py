"""Time the kernels of a module that has been staged for an accelerator."""

from __future__ import annotations

from math import prod

from mlir_npu.dialect.attributes import ACC, SRAM, space_of
from mlir_npu.dialect.bindings import ir
from mlir_npu.dialect.target import Target, target_of
from mlir_npu.passes.analysis.winograd import TAPS
from mlir_npu.passes.choose_tiles import is_untiled
from mlir_npu.passes.kernels.walk import (
    KERNEL,
    argument_roles,
    called,
    entry,
    functions,
    integers,
    kernels,
    nested,
    string,
    symbol,
)
from mlir_npu.simulator.buffers import Buffer, Memory, check_type, dtype_of
from mlir_npu.simulator.costs import DMA_IN, DMA_OUT
from mlir_npu.simulator.errors import SimulationError, faults_of
from mlir_npu.simulator.program import Program
from mlir_npu.simulator.result import KernelRun, ModuleRun
from mlir_npu.simulator.timing import TimingMachine

PREPARE, MAIN = "prepare", "main"
READ_ONLY = ("input", "parameter", "prepared")  # roles of arguments


class UnsupportedTarget(ValueError):
    """The target is no accelerator with one core and a scratchpad."""


def check_target(target: Target) -> None:
    """Raises UnsupportedTarget with what to do."""
    if target.cached:
        cause = "has caches, and what a cache does is not simulated"
    elif target.cores > 1:
        cause = f"has {target.cores} cores, and one is simulated"
    else:
        return
    raise UnsupportedTarget(
        f"target '{target.name}' {cause}; use an accelerator such as --target edge"
    )


def simulate_module(module: ir.Operation) -> ModuleRun:
    """Time every kernel that @main and @prepare call; a module without @main is its kernels.

    Raises SimulationError, UnsupportedTarget.
    """
    target = target_of(module)
    check_target(target)
    own = {symbol(kernel): kernel for kernel in kernels(module)}
    runs: dict[str, KernelRun] = {}

    def calls(name: str) -> tuple[KernelRun, ...]:
        names = _called_kernels(module, name, own)
        for kernel in names:
            if kernel not in runs:
                runs[kernel] = simulate_kernel(module, own[kernel], target)
        return tuple(runs[kernel] for kernel in names)

    defined = {symbol(function) for function in functions(module)}
    if MAIN not in defined:
        found = [simulate_kernel(module, k, target) for k in own.values()]
        return ModuleRun(target, tuple(found))
    return ModuleRun(target, calls(MAIN), calls(PREPARE) if PREPARE in defined else ())


def nothing_to_simulate(module: ir.Operation) -> str:
    """Why a module has nothing that could be timed."""
    found = len(kernels(module))
    wanted = f"a function of attribute '{KERNEL}' with a body, or linalg ops in @{MAIN}"
    if not found:
        return f"there is no kernel: {wanted} was looked for"
    return f"@{MAIN} calls none of the {found} kernels; only kernels that it calls are simulated"


def _called_kernels(module: ir.Operation, name: str, own) -> list[str]:
    (function,) = (f for f in functions(module) if symbol(f) == name)
    return [called(op) for op in nested(function, "func.call") if called(op) in own]


def simulate_kernel(module: ir.Operation, kernel: ir.Operation, target: Target) -> KernelRun:
    """Time one kernel function; memories have no end if it is untiled. Raises SimulationError."""
    with faults_of(kernel):
        return _simulate(module, kernel, target)


def _simulate(module: ir.Operation, kernel: ir.Operation, target: Target) -> KernelRun:
    endless = is_untiled(kernel)
    machine = TimingMachine(kernel, target)
    roles = argument_roles(kernel)
    arguments = [
        _argument(i, value.type, role)
        for i, (value, role) in enumerate(zip(entry(kernel).arguments, roles))
    ]
    Program(module, machine).run(symbol(kernel), arguments)
    if not machine.events:
        raise SimulationError(kernel, "the kernel executes no move and no compute")
    cycles = machine.finish()
    curves = {space: machine.occupancy.curve(space) for space in (SRAM, ACC)}
    run = KernelRun(
        symbol(kernel),
        string(kernel, KERNEL) or "kernel",
        _shape_text(kernel, machine),
        _tile_text(kernel),
        target,
        cycles,
        tuple(machine.events),
        machine.counts,
        machine.traffic,
        machine.channels,
        curves,
    )
    if not endless:
        _check_occupancy(kernel, run)
    return run


def _check_occupancy(kernel: ir.Operation, run: KernelRun) -> None:
    for space, memory in ((SRAM, run.target.sram), (ACC, run.target.acc)):
        if run.peak(space) > memory.bytes:
            raise SimulationError(
                kernel,
                f"{run.peak(space)} bytes of buffers are live in {space} at a time, "
                f"'{run.target.name}' has {memory.bytes}; use smaller tiles",
            )


def _argument(number: int, type_: ir.Type, role: str | None) -> Buffer:
    check_type(type_)
    size = dtype_of(type_.element_type).itemsize * prod(type_.shape)
    constant = f"an argument of role '{role}'" if role in READ_ONLY else ""
    return Buffer.whole(Memory(f"arg{number}", size, constant=constant), type_)


def _shape_text(kernel: ir.Operation, machine: TimingMachine) -> str:
    """The first argument that is read and the largest that is written, the window of the root."""
    types = {f"arg{i}": a.type.shape for i, a in enumerate(entry(kernel).arguments)}
    used = {(event.unit, event.memory) for event in machine.events}
    read = [shape for name, shape in types.items() if (DMA_IN, name) in used]
    written = [shape for name, shape in types.items() if (DMA_OUT, name) in used]
    sides = [*read[:1], *sorted(written, key=prod)[-1:]]
    return " to ".join("x".join(map(str, shape)) for shape in sides) + _window_text(kernel)


def _window_text(kernel: ir.Operation) -> str:
    windowed = ("npu.conv2d", "npu.depthwise_conv2d", "npu.pool2d", "npu.winograd_input")
    for op in nested(kernel, *windowed):
        if op.name == "npu.winograd_input":
            return f", {TAPS}x{TAPS}"
        if op.name == "npu.pool2d":
            taps = integers(op, "window")
        else:
            shape = list(ir.MemRefType(op.operands[1].type).shape)
            taps = shape[1:3] if op.name == "npu.conv2d" else shape[:2]
        strides = integers(op, "strides")
        step = f" / {'x'.join(map(str, strides))}" if max(strides) > 1 else ""
        return f", {'x'.join(map(str, taps))}{step}"
    return ""


def _tile_text(kernel: ir.Operation) -> str:
    """Extents of the largest tile that is stored, and of the channels of a contraction's step."""
    stored = [
        list(ir.MemRefType(op.operands[0].type).shape)
        for op in nested(kernel, "npu.dma_start")
        if space_of(op.operands[0].type) == SRAM
    ]
    text = "x".join(map(str, max(stored, key=prod))) if stored else "whole"
    for op in nested(kernel, "npu.conv2d", "npu.matmul", "npu.batch_matmul"):
        depth = list(ir.MemRefType(op.operands[1].type).shape)[-2]
        return f"{text}, {depth} deep"
    return text
