"""What the stage `pipeline` is worth to the case study: cycles on the simulated machine."""

from __future__ import annotations

from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.dialect.target import load_target, set_target
from mlir_npu.scripts.docs.case_study import INPUT, TARGET
from mlir_npu.simulator.costs import UNITS
from mlir_npu.simulator.result import KernelRun
from mlir_npu.simulator.simulate import simulate_module
from mlir_npu.simulator.staging import stage_module

SCHEDULES = ("serial", "pipelined")
KERNEL = "conv2d_0"
LEAST_LOSS = 0.005  # of the cycles; less is not shown


def cycles() -> str:
    """A row for each schedule of the convolution."""
    units = " | ".join(UNITS)
    rows = [
        f"| schedule | cycles | {units} | of the roofline | lost to |",
        f"|---|---{'|---' * len(UNITS)}|---|---|",
    ]
    rows += [_row(schedule, _simulate(schedule)) for schedule in SCHEDULES]
    return "\n".join(rows)


def _simulate(schedule: str) -> KernelRun:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(INPUT.read_text())
        set_target(module.operation, load_target(TARGET))
        stage_module(module, schedule)
        calls = simulate_module(module.operation).calls
    return next(kernel for kernel in calls if kernel.name == KERNEL)


def _row(schedule: str, run: KernelRun) -> str:
    busy = " | ".join(f"{run.utilisation(unit):.0%}" for unit in UNITS)
    shares = {cause: cycles / run.cycles for cause, cycles in run.losses().items()}
    lost = ", ".join(
        f"{cause} {share:.0%}" for cause, share in shares.items() if share > LEAST_LOSS
    )
    return f"| {schedule} | {run.cycles:,} | {busy} | {run.share:.0%} | {lost} |"
