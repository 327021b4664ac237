"""What must hold at the end of every stage, one small rule each; runs after each stage, always."""

from __future__ import annotations

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.pass_manager import Diagnostic
from mlir_npu.passes.stage_rules import Rule, memory, movement, program

RULES: dict[str, tuple[Rule, ...]] = {
    "normalise": (program.no_torch_ops, program.regions_only_call_kernels),
    "schedule": (program.kernels_are_scheduled,),
    "tile": (program.ops_have_the_extents_of_their_tile,),
    "buffers": (program.no_tensors, program.functions_return_nothing),
    "stage": (
        movement.dram_is_reached_by_dma_only,
        movement.tokens_are_waited_once,
        memory.memories_are_known,
    ),
    "pipeline": (
        movement.dram_is_reached_by_dma_only,
        movement.tokens_are_waited_once,
        memory.memories_are_known,
    ),
    "allocate": (
        movement.dram_is_reached_by_dma_only,
        movement.only_the_scratchpad_is_on_chip,
        movement.tokens_are_waited_once,
        movement.moves_have_the_rank_of_the_engine,
        memory.memories_are_known,
        memory.nothing_is_allocated,
        memory.memory_is_passed_last,
        memory.placed_buffers_are_disjoint,
        memory.scratch_fits,
    ),
    "host": (
        program.no_tensors,
        program.functions_return_nothing,
        memory.nothing_is_allocated,
        program.nothing_asserts,
    ),
    "cpu": (program.no_npu_ops,),
    "llvm": (program.only_llvm,),
}


class StageViolation(Exception):
    """The module breaks a rule of the stage it has come through."""

    def __init__(self, stage: str, diagnostics: tuple[Diagnostic, ...]):
        self.diagnostics = diagnostics
        super().__init__(f"after stage '{stage}': {'; '.join(map(str, diagnostics))}")


def verify_stage(module: ir.Module, stage: str) -> None:
    """Raise StageViolation, with every broken rule, unless the module is right after `stage`."""
    with module.context, ir.Location.unknown():
        module.operation.verify()
        found = [v for rule in RULES[stage] for v in rule(module.operation)]
        diagnostics = tuple(
            Diagnostic("error", str(op.location), getattr(op.location, "start_line", None), text)
            for op, text in found
        )
    if diagnostics:
        raise StageViolation(stage, diagnostics)
