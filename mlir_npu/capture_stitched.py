"""Capture of a model over all graph breaks, with its backward: see `mlir_npu.capture`."""

from __future__ import annotations

import contextlib
import gc
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from mlir_npu.capture_checks import modules_of
from mlir_npu.errors import CaptureError, HostLoweringError
from mlir_npu.lowering.capture_inputs import Inputs, describe_inputs
from mlir_npu.lowering.capture_result import plan_result
from mlir_npu.lowering.fallback.host_code import PartCode, code_of
from mlir_npu.lowering.plan import Part
from mlir_npu.lowering.program_build import BuiltProgram, build_program
from mlir_npu.lowering.program_events import PythonBetween, autocast_dtype
from mlir_npu.lowering.program_record import Recording, record_run
from mlir_npu.lowering.program_source import part_name, unit_source
from mlir_npu.lowering.program_values import Known
from mlir_npu.lowering.region_code import keeping_code
from mlir_npu.options import Options
from mlir_npu.program_state import ModelState
from mlir_npu.stitched import Stitched, StitchedProgram

logger = logging.getLogger("mlir_npu.capture")
_NOTHING_TO_TRAIN = (
    "train=True, but no result depends on a parameter or input that requires a gradient: call "
    "requires_grad_() on one, or capture without train"
)


def capture_stitched(
    model: Callable,
    inputs: Sequence[Any],
    keywords: Mapping[str, Any],
    options: Options,
    *,
    train: bool,
) -> StitchedProgram:
    """Call the model once and compile what it did. Raises CaptureError, and what the call
    raises."""
    described, _ = describe_inputs(model, tuple(inputs), keywords)
    leaves = _copies(pytree.tree_leaves((tuple(inputs), dict(keywords))), train)
    modules = modules_of(model)
    state = {
        f"{prefix}{name}": tensor
        for prefix, module in modules.items()
        for name, tensor in (*module.named_parameters(), *module.named_buffers())
    }
    known = Known(
        {tensor.name: leaves[tensor.index] for tensor in described.tensors}, state, _tensors()
    )
    arguments, named = described.unflatten(leaves)
    with torch.set_grad_enabled(train), _untouched(modules, state):
        recording = record_run(model, arguments, named, modules)
    with keeping_code():
        built = build_program(recording, known, options, train=train)
    stitched = _stitch(built, described, recording, leaves, options)
    results = pytree.tree_leaves(recording.result)
    if train and not any(getattr(leaf, "requires_grad", False) for leaf in results):
        raise CaptureError(_NOTHING_TO_TRAIN, compiles=False)
    parameters = built.plan.parameters
    return StitchedProgram(
        stitched,
        ModelState(
            [built.plan.values[name] for name in parameters],
            [built.tensors[name] for name in parameters],
            modules,
        ),
    )


def _stitch(
    built: BuiltProgram,
    inputs: Inputs,
    recording: Recording,
    leaves: Sequence[Any],
    options: Options,
) -> Stitched:
    plan = built.plan
    kept = [built.tensors[name] for name in (*plan.parameters, *plan.constants)]
    between = _python_between(recording)
    if between:
        logger.warning(
            "the program leaves out Python that ran between graphs, at %s: see "
            "program.python_between",
            ", ".join(dict.fromkeys(str(one.location or one.reason) for one in between)),
        )
    return Stitched(
        plan=plan,
        inputs=inputs,
        result=plan_result(recording.result, built.results, leaves, kept),
        parts={
            part_name(unit, name): call
            for unit, graph in built.units.items()
            for name, call in graph.parts.items()
        },
        codes={
            part_name(unit, part.name): _code(part, graph.parts[part.name])
            for unit, graph in built.units.items()
            for part in graph.plan.parts
        },
        constants={name: built.tensors[name] for name in plan.constants},
        unit_sources={
            unit.name: unit_source(unit, built.units[unit.name], plan.values) for unit in plan.units
        },
        reports={unit.name: built.units[unit.name].report for unit in plan.units},
        breaks=recording.breaks,
        python_between=between,
        autocast=autocast_dtype(),
        graphs={name: graph.plan for name, graph in built.units.items()},
        options=options,
    )


def _code(part: Part, call: Callable) -> PartCode | None:
    """None if there is nothing that can be kept."""
    try:
        return code_of(part, call)
    except HostLoweringError:
        return None


_EMPTY = "Call to `torch._dynamo.graph_break()`"
_LEFT_OUT = "PyTorch calls in it are compiled; nothing else that it does is repeated"


def _python_between(recording: Recording) -> tuple[PythonBetween, ...]:
    found = list(recording.left_out)
    checked = {
        event.place.location for event in recording.events if getattr(event, "decides", False)
    }
    for one in recording.breaks:
        reason = one.reason.split("\n")[0]
        if one.location not in checked and not reason.startswith(_EMPTY):
            found.append(PythonBetween(one.location, one.line, reason, _LEFT_OUT))
    return tuple(dict.fromkeys(found))


def _copies(leaves: Sequence[Any], train: bool) -> list[Any]:
    """Of the tensors: distinct ones, which the model may write to."""
    return [_copy(leaf, train) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]


def _copy(tensor: torch.Tensor, train: bool) -> torch.Tensor:
    """With its memory, in which elements may share a place."""
    shape, strides = tensor.shape, tensor.stride()
    with torch.no_grad():
        if not tensor.numel():
            copy = torch.empty_strided(shape, strides, dtype=tensor.dtype, device="cpu")
        else:
            reach = sum((size - 1) * stride for size, stride in zip(shape, strides)) + 1
            memory = tensor.detach().as_strided((reach,), (1,), tensor.storage_offset())
            copy = memory.clone().as_strided(shape, strides)
    return copy.requires_grad_(tensor.requires_grad and train)


def _tensors() -> dict[int, torch.Tensor]:
    """All tensors there are, which Python made before the model was called."""
    return {id(found): found for found in gc.get_objects() if issubclass(type(found), torch.Tensor)}


@contextlib.contextmanager
def _untouched(
    modules: Mapping[str, torch.nn.Module], state: Mapping[str, torch.Tensor]
) -> Iterator[None]:
    """Take back what the call does to modules, their tensors and the random numbers. Raises
    CaptureError if it replaces a parameter or buffer."""
    random = torch.get_rng_state()
    contents = {name: tensor.detach().clone() for name, tensor in state.items()}
    owners = [
        (f"{prefix}{path}", module)
        for prefix, root in modules.items()
        for path, module in root.named_modules()
    ]
    tables = [(path, module, *map(dict, _tables(module))) for path, module in owners]
    replaced: list[str] = []
    try:
        yield
    finally:
        torch.set_rng_state(random)
        for path, module, *before in tables:
            for table, old in zip(_tables(module), before):
                names = [n for n in {**table, **old} if table.get(n) is not old.get(n)]
                if table is not module.__dict__:
                    replaced += [f"{path}.{name}".lstrip(".") for name in names]
                table.update(old)
                for name in table.keys() - old.keys():
                    del table[name]
        with torch.no_grad():
            for name, tensor in state.items():
                if not torch.equal(tensor, contents[name]):
                    tensor.copy_(contents[name])
    if replaced:
        raise CaptureError(
            f"it assigns a new tensor to {', '.join(replaced)}, which a program does not repeat: "
            "copy into the old one (copy_)"
        )


def _tables(module: torch.nn.Module) -> tuple[dict, dict, dict]:
    return module._parameters, module._buffers, module.__dict__
