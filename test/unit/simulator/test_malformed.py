"""Programs that cannot be executed are faults with the op and the cause, never other exceptions."""

from __future__ import annotations

import programs as p
import pytest

from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.dialect.target import load_target, set_target
from mlir_npu.passes.kernels.walk import kernels
from mlir_npu.simulator.errors import SimulationError
from mlir_npu.simulator.functional import FunctionalMachine
from mlir_npu.simulator.program import Program
from mlir_npu.simulator.simulate import simulate_kernel

EDGE = load_target("edge")
INDICES = "\n".join(f"%c{i} = arith.constant {i} : index" for i in range(3))
FILLED = [p.alloc("s", "4"), p.fill("s", "4", p.SRAM)]


def parsed(text: str) -> ir.Module:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        set_target(module.operation, EDGE)
    return module


def function(*lines: str, arguments: str = "") -> ir.Module:
    body = "\n".join((INDICES, *lines, "return"))
    return parsed(f'func.func @k({arguments}) attributes {{npu.kernel = "x"}} {{\n{body}\n}}')


def time_it(module: ir.Module) -> None:
    (kernel,) = kernels(module.operation)
    simulate_kernel(module.operation, kernel, EDGE)


def run_it(module: ir.Module) -> None:
    (kernel,) = kernels(module.operation)
    name = ir.StringAttr(kernel.attributes["sym_name"]).value
    Program(module.operation, FunctionalMachine(module.operation)).run(name, [])


LOOP = "scf.for %i = {} to {} step {} {{\n{}\n}}"
EMPTY = LOOP.format("%c0", "%n", "%c1", "")
INNER = EMPTY.replace("%i", "%j")
FAULTS = {
    "division by zero": (["%d = arith.divsi %c1, %c0 : index"], "'arith.divsi': divides by zero"),
    "remainder by zero": (["%d = arith.remui %c1, %c0 : index"], "'arith.remui': divides by zero"),
    "division by zero in a loop": (
        [LOOP.format("%c0", "%c1", "%c1", "%d = arith.divui %c1, %i : index")],
        "'arith.divui': divides by zero",
    ),
    "division by zero in a map": (
        ["%d = affine.apply affine_map<(a)[b] -> (a floordiv b)>(%c1)[%c0]"],
        "'affine.apply': divides by zero",
    ),
    "a step of zero": (
        [LOOP.format("%c0", "%c2", "%c0", "")],
        "'scf.for': has the step 0; it must be positive",
    ),
    "a loop that never ends": (
        ["%n = arith.constant 1000000000000 : index", EMPTY],
        "'scf.for': runs 1,000,000,000,000 times 0 ops, which makes more than the 100,000,000",
    ),
    "a forall that never ends": (
        ["scf.forall (%i, %j) in (1000000, 1000000) {\n}"],
        "'scf.forall': runs 1,000,000,000,000 times",
    ),
    "extents that are not constant": (
        [f"%a = memref.alloc(%c1) : {p.memref('?', p.SRAM)}"],
        "'memref.alloc': memref<.xf32.* has extents that are not constant",
    ),
    "a layout": (
        ["%a = memref.alloc() : memref<4x4xf32, strided<[1, 4]>>"],
        "'memref.alloc': .* is not row-major",
    ),
    "an unknown memory": (
        ['%a = memref.alloc() : memref<4xf32, #npu.space<"l2">>'],
        "'memref.alloc': .* is in 'l2', not in dram, sram, acc",
    ),
    "an element type without values": (
        ["%a = memref.alloc() : memref<4xbf16>"],
        "'memref.alloc': element type bf16 is not one of",
    ),
    "a constant that is no number": (
        ["%d = arith.constant dense<0> : tensor<4xi32>"],
        "'arith.constant': a constant of type tensor<4xi32> is no number",
    ),
    "recursion": (["func.call @k() : () -> ()"], "'func.func': recursion: k calls k"),
}


@pytest.mark.parametrize("execute", [time_it, run_it])
@pytest.mark.parametrize("name", FAULTS)
def test_fault(name, execute):
    lines, message = FAULTS[name]
    with pytest.raises(SimulationError, match=message):
        execute(function(*lines))


@pytest.mark.parametrize("type_", ["index", "memref<?xf32>", "memref<*xf32>", "memref<4xbf16>"])
def test_arguments_that_are_no_buffers(type_):
    with pytest.raises(SimulationError, match="'func.func': "):
        time_it(function(arguments=f"%x: {type_}"))


def test_a_function_without_a_body():
    module = parsed(
        'func.func private @other()\nfunc.func @k() attributes {npu.kernel = "x"} {\n'
        "call @other() : () -> ()\nreturn\n}"
    )
    with pytest.raises(SimulationError, match="'func.call': calls 'other', which has no body"):
        time_it(module)


def test_a_kernel_that_does_nothing():
    with pytest.raises(SimulationError, match="executes no move and no compute"):
        time_it(function())


def test_what_nobody_has_foreseen_has_its_op():
    module = parsed("func.func @k() attributes {npu.kernel} {\nreturn\n}")
    with pytest.raises(SimulationError, match="'func.func': "):
        time_it(module)


@pytest.mark.parametrize("element", ["f64", "i32"])
def test_a_type_without_a_rate(element):
    shapes = ("4x4", "1x4x4", "4x1x4")
    names, spaces = ("l", "r", "t"), (p.SRAM, p.SRAM, p.ACC)
    types = [f"memref<{s}x{element}, {space}>" for s, space in zip(shapes, spaces)]
    allocations = [f"%{name} = memref.alloc() : {type_}" for name, type_ in zip(names, types)]
    product = f'"npu.matmul"(%l, %r, %t) : ({", ".join(types)}) -> ()'
    with pytest.raises(
        SimulationError, match=f"'npu.matmul': .*'edge' has no rate for factors of {element}, only"
    ):
        time_it(function(*allocations, product))


def test_extents_of_compute_are_constant():
    type_ = p.memref("?", p.SRAM)
    lines = [*FILLED, f"%d = memref.cast %s : {p.memref('4', p.SRAM)} to {type_}"]
    lines.append(f'"npu.fill"(%d) {{value = 0.0 : f32}} : ({type_}) -> ()')
    with pytest.raises(SimulationError, match="'npu.fill': .* extents that are not constant"):
        time_it(function(*lines))


def test_many_trips_within_the_limit():
    module = function(*FILLED, "%n = arith.constant 1000 : index", EMPTY)
    time_it(module)


@pytest.mark.parametrize("execute", [time_it, run_it])
def test_loops_in_loops_count_together(execute, monkeypatch):
    monkeypatch.setattr("mlir_npu.simulator.steps.MOST_OPS", 5000)
    nest = LOOP.format("%c0", "%n", "%c1", INNER)
    with pytest.raises(SimulationError, match="'scf.for': runs 100 times 0 ops, which makes more"):
        execute(function("%n = arith.constant 100 : index", nest))


def test_loops_of_other_runs_do_not_count(monkeypatch):
    monkeypatch.setattr("mlir_npu.simulator.steps.MOST_OPS", 1000)
    module = function(*FILLED, "%n = arith.constant 600 : index", EMPTY)
    time_it(module)
    time_it(module)
