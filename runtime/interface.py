"""What the caller of a region sees: the tensors that it takes, and those that it gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from mlir_npu.runtime.tensor_spec import TensorSpec


@dataclass(frozen=True)
class Output:
    """Where one output of a region comes from.

    "result": the compiled result `index`; the same index twice is the same tensor object twice;
    "input": input `index` itself; "none": None.
    """

    source: Literal["result", "input", "none"]
    index: int = 0


@dataclass(frozen=True)
class Interface:
    """What the caller of a region sees.

    inputs: one spec for each tensor the caller passes; parameters: positions of those that are
    parameters; constants: tensors of the graph itself, further parameters that the region owns;
    results: what compiled code computes; outputs: what the caller gets; zeros: positions of
    parameters that hold zeros only, or else the code is wrong.
    """

    inputs: tuple[TensorSpec, ...]
    parameters: tuple[int, ...]
    constants: tuple[torch.Tensor, ...]
    results: tuple[TensorSpec, ...]
    outputs: tuple[Output, ...]
    zeros: tuple[int, ...] = ()

    def arrange(
        self, inputs: Sequence[torch.Tensor], results: Sequence[torch.Tensor]
    ) -> tuple[torch.Tensor | None, ...]:
        """What the caller gets, of packed results."""
        restored = [
            spec.restore(result) for spec, result in zip(self.results, results, strict=True)
        ]
        outputs = []
        for output in self.outputs:
            if output.source == "result":
                outputs.append(restored[output.index])
            else:
                outputs.append(inputs[output.index] if output.source == "input" else None)
        return tuple(outputs)
