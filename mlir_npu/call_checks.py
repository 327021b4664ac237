"""What the call of a program of one graph refuses."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from mlir_npu.errors import MismatchError
from mlir_npu.lowering.capture_compile import Executable
from mlir_npu.lowering.capture_inputs import Inputs
from mlir_npu.lowering.program_events import autocast_dtype


def check_autocast(captured: torch.dtype | None) -> None:
    """That autocast is as it was. Raises MismatchError."""
    if (now := autocast_dtype()) != captured:
        raise MismatchError(
            f"autocast is {_describe(now)}, and was {_describe(captured)} when the model was "
            "captured: capture it again under autocast as it is now"
        )


def refuse_overlap(
    executable: Executable,
    inputs: Inputs,
    leaves: Sequence[object],
    weights: Sequence[torch.Tensor],
) -> None:
    """What is written must not be another argument too: the graph knows them as two. Raises
    MismatchError."""
    places = {"input": leaves, "model": weights}
    owners: dict[int, list] = {}
    for argument in executable.arguments:
        tensor = places[argument.source][argument.index]
        owners.setdefault(tensor.untyped_storage().data_ptr(), []).append(argument)
    for argument in executable.written:
        tensor = places[argument.source][argument.index]
        shared = owners[tensor.untyped_storage().data_ptr()]
        ours = {a.index for a in shared if a.source == "input"}
        if len(shared) > 1 and ours and tensor.numel():
            names = [t.name for t in inputs.tensors if t.index in ours]
            raise MismatchError(
                f"inputs share memory that the model writes to ({', '.join(names)}), and did not "
                "when it was captured: pass copies"
            )


def _describe(autocast: torch.dtype | None) -> str:
    return "off" if autocast is None else f"on, with {autocast}"
