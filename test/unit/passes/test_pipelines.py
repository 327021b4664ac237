"""The stages in order, what a failure reports, and the rules that end every stage."""

from __future__ import annotations

import re

import pytest
from staged import kernel_text as k
from staged.run import compile_to

from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.dialect.target import load_target, set_target
from mlir_npu.passes.pass_manager import run_pipeline
from mlir_npu.passes.pipelines import HOST_STAGES, STAGES, Stage, stage_names, stages
from mlir_npu.passes.run_stages import StageFailure, run_stage, run_stages
from mlir_npu.passes.verify_stage import RULES, StageViolation, verify_stage

CONV = k.conv2d((1, 8, 8, 8), 2, 8, k.Window((3, 3), low=(1, 1), high=(1, 1)))
SRAM = 'memref<16xf32, #npu.space<"sram">>'


def parse(text: str, target: str | None = None) -> ir.Module:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        if target:
            set_target(module.operation, load_target(target))
        return module


def violations(text: str, stage: str, target: str | None = None) -> list[str]:
    with pytest.raises(StageViolation) as error:
        verify_stage(parse(text, target), stage)
    return [diagnostic.message for diagnostic in error.value.diagnostics]


def test_stages_stand_in_the_order_of_the_design():
    assert stage_names() == (
        "normalise", "schedule", "tile", "buffers", "stage", "pipeline", "allocate", "cpu", "llvm",
    )  # fmt: skip
    assert set(RULES) == {stage.name for stage in (*STAGES, *HOST_STAGES)}


def test_every_stage_is_a_pipeline_of_known_passes():
    module = parse("")
    for stage in STAGES:
        if stage.name != "normalise":  # some of its passes want a target
            run_pipeline(module, stage.pipeline)


def test_stages_report_in_order_and_can_be_cut_out():
    module, seen = parse(CONV.text, "small"), []
    run_stages(module, lambda name, _: seen.append(name), first="schedule", last="stage")
    assert seen == ["schedule", "tile", "buffers", "stage"]
    text = module.operation.get_asm()
    assert '"npu.conv2d"' in text and "linalg" not in text


@pytest.mark.parametrize("schedule", ["serial", "untiled"])
def test_a_schedule_mode_is_an_option_of_choose_tiles(schedule):
    assert stages("pipelined") == STAGES
    assert stages(schedule)[1] == Stage("schedule", (f"choose-tiles{{mode={schedule}}}",))
    module = parse(CONV.text, "small")
    run_stages(module, first="schedule", last="schedule", schedule=schedule)
    assert ('mode = "untiled"' in module.operation.get_asm()) == (schedule == "untiled")


def test_untiled_kernels_may_exceed_the_memories_of_their_target():
    run_stages(parse(CONV.text, "nano"), first="schedule", schedule="untiled")
    with pytest.raises(StageFailure, match=r"needs \d+ of 256 bytes of sram") as error:
        run_stages(parse(CONV.text, "nano"), first="schedule", schedule="serial")
    assert error.value.reproduction("x").endswith("'builtin.module(choose-tiles{mode=serial})'")


def test_an_unknown_stage_is_refused():
    with pytest.raises(
        ValueError, match="no stage is called 'tiles'; there are normalise, schedule"
    ):
        run_stages(parse(""), first="tiles")


def test_a_failure_holds_what_reproduces_it():
    kernel = k.matmul(4, 4, 2, 32)
    with pytest.raises(StageFailure) as error:
        compile_to(kernel, "stage", "nano")
    failure = error.value
    assert (failure.stage, failure.pass_name) == ("schedule", "choose-tiles")
    assert re.search(r"needs \d+ of 256 bytes of sram", failure.diagnostics[0].message)
    assert failure.reproduction("/tmp/a b.mlir") == (
        "npu-opt '/tmp/a b.mlir' --pass-pipeline='builtin.module(choose-tiles)'"
    )
    again = parse(failure.ir_before)
    with pytest.raises(StageFailure, match=re.escape(failure.diagnostics[0].message)):
        run_stages(again, first="schedule", last="schedule")


def test_a_broken_rule_is_a_failure_of_the_stage():
    text = 'func.func private @k() attributes {npu.kernel = "copy"} { return }'
    with pytest.raises(StageFailure) as error:
        run_stage(parse(text, "edge"), Stage("schedule", ("cse",)))
    assert error.value.pass_name == "verify-stage"
    assert "kernel 'k' has no schedule" in str(error.value)


def test_a_fault_in_a_pass_is_reported_as_one(monkeypatch):
    from mlir_npu.passes import registry

    def broken(module, options):
        raise KeyError("lost")

    entry = registry.Pass("broken", broken, registry.NoOptions, "", __name__)
    monkeypatch.setitem(registry._PASSES, "broken", entry)
    with pytest.raises(StageFailure, match="internal error: KeyError: 'lost'") as error:
        run_stage(parse(""), Stage("cpu", ("cse", "broken", "canonicalize")))
    assert error.value.pass_name == "broken" and isinstance(error.value.__cause__, KeyError)


def test_the_pass_that_breaks_a_module_is_named(monkeypatch):
    from mlir_npu.passes import registry

    def breaking(module, options):
        function = module.regions[0].blocks[0].operations[0]
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([], []))

    entry = registry.Pass("breaking", breaking, registry.NoOptions, "", __name__)
    monkeypatch.setitem(registry._PASSES, "breaking", entry)
    module = parse("func.func @k(%0: index) { return }")
    with pytest.raises(StageFailure, match="entry block must have 0 arguments") as error:
        run_stage(module, Stage("cpu", ("cse", "breaking", "symbol-dce")))
    assert error.value.pass_name == "breaking"


def test_normalise_wants_calls_only():
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = arith.negf %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    assert violations(text, "normalise") == ["'arith.negf' stands outside of a kernel"]


def test_schedule_must_fit():
    text = """func.func private @k() attributes {npu.kernel = "eltwise", npu.schedule = {
      tile = array<i64>, sram_bytes = 300 : i64, acc_bytes = 0 : i64}} { return }"""
    assert violations(text, "schedule", "nano") == ["schedule needs 300 of 256 sram_bytes"]


def test_tiles_must_have_been_made():
    text = k.add_relu((4, 8), schedule=k.schedule((2, 0))).text
    assert violations(text, "tile", "edge") == [
        "kernel 'kernel' works on [4, 8], its tile is [2, 0]"
    ]


def test_buffers_leave_no_tensors_and_no_results():
    text = """func.func @f(%x: memref<4xf32>) -> memref<4xf32> {
      %e = tensor.empty() : tensor<4xf32>
      return %x : memref<4xf32>
    }"""
    assert violations(text, "buffers") == [
        "'tensor.empty' makes a tensor",
        "'f' returns memref<4xf32>",
    ]


def test_staged_kernels_reach_dram_by_dma_and_wait_once():
    text = f"""func.func private @k(%x: memref<16xf32>, %s: {SRAM}) attributes {{npu.kernel = "eltwise"}} {{
      %t = memref.alloc() : memref<16xf32>
      memref.copy %x, %t : memref<16xf32> to memref<16xf32>
      %0 = "npu.dma_start"(%x, %s) {{operandSegmentSizes = array<i32: 1, 1, 0>,
        permutation = array<i64: 0>}} : (memref<16xf32>, {SRAM}) -> !npu.token
      return
    }}"""
    assert violations(text, "stage", "edge") == [
        "'memref.copy' is left",
        "kernel 'k' allocates memref<16xf32> in dram",
        "a move is waited for 0 times",
    ]


def test_moves_have_the_rank_of_the_engine():
    x, y = "memref<8x7x6x5x2xf32>", "memref<2x5x6x7x8xf32>"
    text = f"""func.func private @k(%x: {x}, %y: {y}) attributes {{npu.kernel = "copy"}} {{
      %0 = "npu.dma_start"(%x, %y) {{permutation = array<i64: 4, 3, 2, 1, 0>}} : ({x}, {y}) -> !npu.token
      "npu.dma_wait"(%0) : (!npu.token) -> ()
      return
    }}"""
    fault = "a move of 5 dimensions exceeds the 4 of the DMA engine"
    assert fault in violations(text, "allocate", "edge")
    assert fault not in violations(text, "allocate", "host")


PLACED = """func.func private @k(%scratch: memref<256xi8> {{npu.role = "scratch"}}) attributes {{
    npu.kernel = "eltwise", npu.memory = {{sram_bytes = 128 : i64, acc_bytes = 0 : i64, acc_start = 128 : i64}}}} {{
  %m = memref.memory_space_cast %scratch : memref<256xi8> to memref<256xi8, #npu.space<"sram">>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant {second} : index
  %a = memref.view %m[%c0][] : memref<256xi8, #npu.space<"sram">> to {sram}
  %b = memref.view %m[%c1][] : memref<256xi8, #npu.space<"sram">> to {sram}
  scf.forall (%i) in (2) {{
    "npu.fill"(%a) {{value = 0.0 : f32}} : ({sram}) -> ()
    {between}
    "npu.fill"(%b) {{value = 0.0 : f32}} : ({sram}) -> ()
    {after}
  }}
  return
}}"""
USE = '"npu.eltwise"(%a, %a) ({ ^bb0(%v: f32, %o: f32): "npu.yield"(%v) {operandSegmentSizes = array<i32: 1>} : (f32) -> () }) {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>} : (' + SRAM + ", " + SRAM + ") -> ()"  # fmt: skip


def test_buffers_that_never_live_together_may_share():
    text = PLACED.format(second=0, sram=SRAM, between=USE, after="")
    verify_stage(parse(text, "edge"), "allocate")


def test_live_buffers_must_be_disjoint():
    (message,) = violations(
        PLACED.format(second=0, sram=SRAM, between="", after=USE), "allocate", "edge"
    )
    assert message.startswith("sram of 'k':") and "overlap while both are live" in message


def test_a_value_carried_between_rounds_is_live_in_all_of_the_loop():
    text = PLACED.format(second=0, sram=SRAM, between=USE, after="")
    first_fill = '"npu.fill"(%a) {value = 0.0 : f32} : (' + SRAM + ") -> ()"
    (message,) = violations(text.replace(first_fill, ""), "allocate", "edge")
    assert "overlap while both are live" in message


def test_allocated_functions_take_their_memory_last():
    text = """func.func @main(%x: memref<4xf32>) {
      %a = memref.alloc() : memref<4xf32>
      return
    }"""
    assert violations(text, "allocate", "edge") == [
        "memref<4xf32> has no place",
        "'main' must end with ['workspace', 'scratch'], has [None]",
    ]


def test_memory_must_not_exceed_the_target():
    text = PLACED.format(second=128, sram=SRAM, between="", after="").replace(
        "128 : i64", "300 : i64"
    )
    assert violations(text, "allocate", "nano") == ["eltwise kernel needs 300 of 256 bytes of sram"]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (96, f"{SRAM} is at byte 96 of sram, no multiple of 64"),
        (192, f"{SRAM} is at bytes 192 to 256 of the 128 bytes of sram"),
    ],
)
def test_every_buffer_is_aligned_and_within_its_memory(second, message):
    text = PLACED.format(second=second, sram=SRAM, between="", after="")
    assert message in violations(text, "allocate", "edge")


def test_acc_stands_behind_sram_in_the_scratchpad():
    text = PLACED.format(second=64, sram=SRAM, between="", after="")
    acc = text.replace("acc_bytes = 0", "acc_bytes = 64").replace('"sram"', '"acc"')
    first = "is at bytes -128 to -64 of the 64 bytes of acc"
    assert first in violations(acc, "allocate", "edge")[0]
    (message,) = violations(
        text.replace("acc_bytes = 0", "acc_bytes = 64").replace(
            "acc_start = 128", "acc_start = 64"
        ),
        "allocate",
        "edge",
    )
    assert message == "acc starts at byte 64, before the 128 bytes of sram end"
    (message,) = violations(text.replace("acc_start", "begin"), "allocate", "edge")
    assert message == "kernel 'k' has no 'acc_start' of at least 0 in npu.memory"


def test_a_buffer_without_a_constant_offset_has_no_place():
    text = PLACED.format(second=64, sram=SRAM, between="", after="")
    text = text.replace("(%scratch", "(%n: index, %scratch").replace("view %m[%c1]", "view %m[%n]")
    assert violations(text, "allocate", "edge") == [f"{SRAM} has no constant offset"]


@pytest.mark.parametrize(
    ("op", "message"),
    [
        ("memref.copy %x, %x : memref<4xf32> to memref<4xf32>", "'memref.copy' is left"),
        ("%l = memref.load %x[%c0] : memref<4xf32>", "'memref.load' is left"),
        ("%l = vector.load %x[%c0] : memref<4xf32>, vector<4xf32>", "'vector.load' touches dram"),
        (
            "func.call @k(%x, %scratch) : (memref<4xf32>, memref<256xi8>) -> ()",
            "'func.call' touches dram",
        ),
        (
            'memref.memory_space_cast %x : memref<4xf32> to memref<4xf32, #npu.space<"sram">>',
            'memref<4xf32> is no scratchpad, yet cast to memref<4xf32, #npu.space<"sram">>',
        ),
        (
            'memref.memory_space_cast %m : memref<256xi8, #npu.space<"sram">> to memref<256xi8, 3>',
            "memref<256xi8, 3> is in none of the memories dram, sram, acc",
        ),
    ],
)
def test_allocated_kernels_reach_dram_by_dma_only(op, message):
    text = PLACED.format(second=64, sram=SRAM, between="", after=op)
    text = text.replace("(%scratch", "(%x: memref<4xf32>, %scratch")
    assert message in violations(text, "allocate", "edge")


@pytest.mark.parametrize("stage", ["stage", "pipeline", "allocate"])
def test_every_argument_is_in_a_known_memory(stage):
    far = 'memref<4xf32, #npu.space<"l2">>'
    text = PLACED.format(second=64, sram=SRAM, between="", after="")
    text = text.replace("(%scratch", f"(%x: {far}, %scratch")
    assert f"{far} is in none of the memories dram, sram, acc" in violations(text, stage, "edge")


def test_host_parts_assert_nothing():
    text = """func.func @f(%x: i1) {
      cf.assert %x, "must hold"
      return
    }"""
    assert violations(text, "host") == ["'cf.assert' is left: must hold"]


def test_cpu_and_llvm_leave_nothing_of_the_level_above():
    text = f'func.func @f(%s: {SRAM}) {{ "npu.fill"(%s) {{value = 0.0 : f32}} : ({SRAM}) -> () return }}'
    assert violations(text, "cpu") == ["'npu.fill' is left"]
    assert "'func.func' is not lowered" in violations(text, "llvm")
