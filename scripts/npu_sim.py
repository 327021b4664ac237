"""npu-sim: how long a network takes on an accelerator, and what holds it up."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from mlir_npu.dialect.bindings import ir
from mlir_npu.dialect.target import TargetError, available_targets, load_target, target_of
from mlir_npu.passes.run_stages import StageFailure
from mlir_npu.scripts.sim_files import DEFAULT_TARGET, UsageError, check_outputs, parse
from mlir_npu.simulator.check import check_module, has_untiled_form
from mlir_npu.simulator.delivery import check_delivery
from mlir_npu.simulator.errors import SimulationError, fault
from mlir_npu.simulator.picture import MissingMatplotlib, draw
from mlir_npu.simulator.report import report
from mlir_npu.simulator.result import ModuleRun
from mlir_npu.simulator.simulate import (
    UnsupportedTarget,
    check_target,
    nothing_to_simulate,
    simulate_module,
)
from mlir_npu.simulator.staging import SCHEDULES, WrongStage, stage_module
from mlir_npu.simulator.table import render
from mlir_npu.simulator.trace import trace
from mlir_npu.words import count

TABLE_WIDTH = 250  # where nobody says how wide the output is
USER_ERRORS = (
    *(OSError, UnicodeDecodeError, TargetError, UnsupportedTarget, WrongStage),
    *(StageFailure, SimulationError, MissingMatplotlib, UsageError),
)


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit code: 0, 1 if --check finds a difference, 2 for an error."""
    parsed = _parser().parse_args(arguments)
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=TABLE_WIDTH)
    try:
        return _run(parsed, console)
    except (*USER_ERRORS, *_model_errors()) as error:
        print(f"npu-sim: error: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="npu-sim", description=__doc__)
    parser.add_argument(
        "model",
        help="a network such as resnet-50, package.module:function that returns a torch module, "
        "or a file of MLIR at any stage up to 'allocate'",
    )
    parser.add_argument(
        "--target",
        help=f"{', '.join(available_targets())} or a .toml file (default: what the file says, else "
        f"{DEFAULT_TARGET})",
    )
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        type=_shape,
        metavar="SHAPE",
        help="shape of an input, such as 1x3x224x224; once for each input",
    )
    parser.add_argument(
        "--schedule",
        choices=SCHEDULES,
        default=SCHEDULES[0],
        help="moves and compute overlapped, one after the other, or every kernel as one tile as if "
        "memories had no end",
    )
    parser.add_argument("--kernel", metavar="NAME", help="only this kernel")
    parser.add_argument(
        "--check",
        action="store_true",
        help="compare results with untiled kernels, "
        "past the stage 'schedule' with moves that deliver at once",
    )
    parser.add_argument("--trace", metavar="FILE", help="write a trace for ui.perfetto.dev")
    parser.add_argument("--picture", metavar="FILE", help="draw units and memories: .svg or .png")
    parser.add_argument("--json", metavar="FILE", help="write the figures of the table")
    return parser


def _shape(text: str) -> tuple[int, ...]:
    try:
        shape = tuple(int(extent) for extent in text.split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no shape such as 1x3x224x224") from None
    if min(shape) < 1:
        raise argparse.ArgumentTypeError(f"extents must be positive, got '{text}'")
    return shape


def _model_errors() -> tuple[type[Exception], ...]:
    """What loading a model may raise, if one was loaded; asking must not import torch."""
    capture = sys.modules.get("mlir_npu.scripts.networks.capture")
    return capture.MODEL_ERRORS if capture else ()


def _run(parsed: argparse.Namespace, console: Console) -> int:
    check_outputs(parsed)
    runs, differing = [], 0
    with Console(stderr=True).status(f"compiling {parsed.model}") as status:
        modules, note = _load(parsed)
        for number, module in enumerate(modules, 1):
            status.update(f"simulating part {number} of {len(modules)}")
            with _faults_of(module):
                check_target(target_of(module.operation))
                differing += _check(module, parsed, console) if parsed.check else 0
                stage_module(module, parsed.schedule)
                runs.append(simulate_module(module.operation))
    if not any(run.calls for run in runs):
        raise UsageError(f"{parsed.model}: {nothing_to_simulate(modules[0].operation)}")
    run = _only(_joined(runs), parsed.kernel)
    title = f"{parsed.model} on {run.target.name}: {run.target.description}"
    console.print(render(run, title, console.width))
    if note:
        console.print(note)
    _write(run, parsed)
    return 1 if differing else 0


@contextmanager
def _faults_of(module: ir.Module) -> Iterator[None]:
    """Whatever a module makes the simulator raise is a fault of the module."""
    try:
        yield
    except USER_ERRORS:
        raise
    except Exception as error:
        raise fault(module.operation, error) from error


def _load(parsed: argparse.Namespace) -> tuple[list[ir.Module], str]:
    path = Path(parsed.model)
    if path.suffix == ".mlir" or path.is_file():
        if parsed.input:
            raise UsageError("--input is for models; the shapes of a file are in it")
        return [parse(path, parsed.target)], ""
    from mlir_npu.scripts.networks.capture import capture

    target = DEFAULT_TARGET if parsed.target is None else parsed.target
    check_target(load_target(target))
    captured = capture(parsed.model, parsed.input, target)
    if not captured.regions:
        raise UsageError(f"no part of '{parsed.model}' runs on the NPU; mlir_npu.explain says why")
    note = ""
    if captured.host_nodes:
        nodes = count(captured.host_nodes, "node")
        note = f"not simulated: {nodes} of the model on the host"
    return [region.module for region in captured.regions], note


def _check(module: ir.Module, parsed: argparse.Namespace, console: Console) -> int:
    """Prints how the kernels compare; returns how many differ."""
    if not has_untiled_form(module):
        return _check_delivery(module, parsed, console)
    checks = check_module(module, parsed.schedule, parsed.kernel)
    wrong = [check for check in checks if check.differing]
    for check in wrong:
        console.print(
            f"[red]{check.kernel}[/red]: {check.differing} of {check.elements} results differ from "
            f"the untiled kernel, by up to {check.largest:g}"
        )
    elements = sum(check.elements for check in checks)
    console.print(
        f"{len(checks) - len(wrong)} of {len(checks)} kernels give exactly the results of their "
        f"untiled form, of {elements:,} elements together"
    )
    return len(wrong)


def _check_delivery(module: ir.Module, parsed: argparse.Namespace, console: Console) -> int:
    """Prints what depends on when moves deliver; returns how many kernels do."""
    stage_module(module, parsed.schedule)
    checks = check_delivery(module, parsed.kernel)
    if not checks:
        return 0
    wrong = [check for check in checks if not check.right]
    for check in wrong:
        console.print(f"[red]{check.kernel}[/red]: {check}")
    elements = sum(check.elements for check in checks)
    console.print(
        f"{len(checks) - len(wrong)} of {len(checks)} kernels give the same results with late "
        "moves and memories of NaN as with moves that deliver at once, of "
        f"{elements:,} elements together; past the stage 'schedule' there is no untiled form to "
        "compare with"
    )
    return len(wrong)


def _joined(runs: Sequence[ModuleRun]) -> ModuleRun:
    """The regions of a model one after the other; kernels get the number of their region."""
    if len(runs) == 1:
        return runs[0]

    def renamed(kernels, number):
        return tuple(dataclasses.replace(k, name=f"{number}.{k.name}") for k in kernels)

    calls = [kernel for i, run in enumerate(runs) for kernel in renamed(run.calls, i)]
    preparation = [kernel for run in runs for kernel in run.preparation]
    return ModuleRun(runs[0].target, tuple(calls), tuple(preparation))


def _only(run: ModuleRun, name: str | None) -> ModuleRun:
    """One call of one kernel, or everything."""
    if name is None:
        return run
    found = [kernel for kernel in (*run.calls, *run.preparation) if kernel.name == name]
    if not found:
        known = ", ".join(dict.fromkeys(kernel.name for kernel in run.calls))
        raise UsageError(f"there is no kernel '{name}'; there are {known}")
    return ModuleRun(run.target, tuple(found[:1]))


def _write(run: ModuleRun, parsed: argparse.Namespace) -> None:
    if parsed.json:
        Path(parsed.json).write_text(json.dumps(report(run), indent=1) + "\n")
    if parsed.trace:
        Path(parsed.trace).write_text(json.dumps(trace(run)) + "\n")
    if parsed.picture:
        draw(run, Path(parsed.picture), Path(parsed.model).name)


if __name__ == "__main__":
    sys.exit(main())
