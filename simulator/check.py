"""Are the tiles right? Every kernel against itself, untiled, on small random integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.choose_tiles import SCHEDULE, UNTILED
from mlir_npu.passes.kernels.walk import argument_roles, entry, kernels, symbol
from mlir_npu.passes.run_stages import run_stages
from mlir_npu.simulator.buffers import dtype_of
from mlir_npu.simulator.functional import run_function, small_integers
from mlir_npu.simulator.staging import WrongStage, stage_module, stage_of

UNTILED_STAGES = ("normalise", "schedule", "tile")  # from which there is an untiled form


@dataclass(frozen=True)
class KernelCheck:
    """differing: of `elements` results; largest: difference."""

    kernel: str
    elements: int
    differing: int
    largest: float


def has_untiled_form(module: ir.Module) -> bool:
    return stage_of(module.operation) in UNTILED_STAGES


def check_module(
    module: ir.Module, schedule: str, only: str | None = None
) -> tuple[KernelCheck, ...]:
    """Stage a copy of the module with `schedule` and one untiled, and compare what they compute.

    Raises WrongStage for a module past the stage "schedule", SimulationError for a fault.
    """
    if not has_untiled_form(module):
        raise WrongStage("a module past the stage 'schedule' has no untiled form to compare with")
    kernels_on_tensors = _copy(module)
    if stage_of(module.operation) == "normalise":
        run_stages(kernels_on_tensors, first="normalise", last="normalise")
    ours = _staged(kernels_on_tensors, schedule)
    for kernel in kernels(kernels_on_tensors.operation):
        if SCHEDULE in kernel.attributes:
            del kernel.attributes[SCHEDULE]
    reference = _staged(kernels_on_tensors, UNTILED)
    own = kernels(kernels_on_tensors.operation)
    inputs = {symbol(kernel): len(entry(kernel).arguments) for kernel in own}
    names = [name for name in inputs if only in (None, name)]
    return tuple(_check(name, inputs[name], ours, reference) for name in names)


def _copy(module: ir.Module) -> ir.Module:
    return ir.Module.parse(module.operation.get_asm(), module.context)


def _staged(module: ir.Module, schedule: str) -> ir.Module:
    staged = _copy(module)
    stage_module(staged, schedule)
    return staged


def _check(name: str, inputs: int, ours: ir.Module, reference: ir.Module) -> KernelCheck:
    (kernel,) = (k for k in kernels(ours.operation) if symbol(k) == name)
    roles = argument_roles(kernel)
    types = [a.type for a, role in zip(entry(kernel).arguments, roles) if role != "scratch"]
    rng = np.random.default_rng(0)
    arrays = [small_integers(rng, type_) for type_ in types[:inputs]]
    results = []
    for module in (ours, reference):
        outputs = [np.empty(type_.shape, dtype_of(type_.element_type)) for type_ in types[inputs:]]
        run_function(module.operation, name, arrays, outputs)
        results.append(outputs)
    return _compare(name, *results)


def _compare(
    name: str, actual: Sequence[np.ndarray], expected: Sequence[np.ndarray]
) -> KernelCheck:
    elements, differing, largest = 0, 0, 0.0
    for a, b in zip(actual, expected):
        same = (a == b) | ((a != a) & (b != b))
        elements += a.size
        differing += int(np.count_nonzero(~same))
        if not same.all():
            gap = np.abs(a.astype(np.float64) - b.astype(np.float64))[~same]
            largest = max(largest, float(np.nan_to_num(gap, nan=np.inf).max()))
    return KernelCheck(name, elements, differing, largest)
