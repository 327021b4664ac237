"""A program that trains, as one step of autograd."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from mlir_npu.stitched import StitchedProgram


class ProgramCall(torch.autograd.Function):
    """The whole program. `count` of the tensors are its inputs, the others its parameters."""

    @staticmethod
    def forward(ctx: Any, program: StitchedProgram, count: int, *tensors: torch.Tensor) -> tuple:
        plan = program.plan
        results, saved = program.module.forward(tensors[:count], tensors[count:])
        ctx.program = program
        ctx.save_for_backward(*saved)
        values = plan.values
        ctx.differentiable = [values[name].requires_grad for name in plan.results]
        ctx.mark_non_differentiable(
            *(result for result, wanted in zip(results, ctx.differentiable) if not wanted)
        )
        return results

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple:
        program = ctx.program
        plan = program.plan
        tangents = [g for g, wanted in zip(gradients, ctx.differentiable) if wanted]
        with torch.no_grad():
            values = program.module.backward(ctx.saved_tensors, tangents)
        if torch.is_grad_enabled():  # create_graph=True
            made = [value for value in values if value is not None]
            last = iter(LastValues.apply(*(value.detach().requires_grad_() for value in made)))
            values = [None if value is None else next(last) for value in values]
        found = dict(zip((gradient.of for gradient in plan.gradients), values, strict=True))
        return None, None, *(found.get(name) for name in (*plan.inputs, *plan.parameters))


class LastValues(torch.autograd.Function):
    """Values that must not be differentiated: taken for constants, they would give wrong
    gradients."""

    @staticmethod
    def forward(ctx: Any, *values: torch.Tensor) -> tuple:
        return tuple(value.view_as(value) for value in values)

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> tuple:
        raise RuntimeError(
            "the gradients of a captured program have no gradients themselves (double backward): "
            "run the model without compiling it for that"
        )
