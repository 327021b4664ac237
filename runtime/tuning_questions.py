"""Read a module on tensors for what could be tuned in it, and build a candidate. Needs MLIR."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mlir_npu.dialect.bindings import func, ir
from mlir_npu.dialect.target import target_of
from mlir_npu.passes.analysis.tile_candidates import tile_candidates
from mlir_npu.passes.analysis.winograd import CHOICES
from mlir_npu.passes.choose_tiles import schedule_of
from mlir_npu.passes.convert_conv_to_winograd import is_candidate, model_choice
from mlir_npu.passes.kernels.choices import SCHEDULES, WINOGRAD, kernel_text, key_of
from mlir_npu.passes.kernels.describe import describe
from mlir_npu.passes.kernels.walk import called, functions, kernels, nested, string, symbol
from mlir_npu.passes.pass_manager import run_pipeline
from mlir_npu.passes.pipelines import Recipe, Stage
from mlir_npu.passes.rewriting.convolution_alone import convolution_alone
from mlir_npu.passes.run_stages import run_stage
from mlir_npu.runtime.bytecode import bytecode
from mlir_npu.runtime.tuning import Question

_TO_WINOGRAD = "convert-conv-to-winograd"
_KEPT = ("npu.target", "npu.num_threads")  # what a kernel alone keeps of its module


def convolution_questions(module: ir.Module, recipe: Recipe) -> list[Question]:
    """Which convolutions may be computed in windows: one question for all of one shape.

    The module is taken to where the pass would decide.
    """
    (first,) = recipe.normalise
    if _TO_WINOGRAD not in first.passes:  # it is there with an option that forbids it
        return []
    passes = first.passes[: first.passes.index(_TO_WINOGRAD)]
    run_pipeline(module, Stage(first.name, passes).pipeline)
    found: dict[str, Question] = {}
    for op in nested(module.operation):
        if not is_candidate(op):
            continue
        text = convolution_alone(op)
        if (key := key_of(text)) not in found:
            alone = _with_attributes(ir.Module.parse(text), module)
            own = model_choice(op)
            choices = (own, *(choice for choice in CHOICES if choice != own))
            sizes = _sizes([value.type for value in op.operands])
            name = "Winograd outputs of convolution {}, {} -> {}".format(*sizes)
            candidates = tuple(f"{choice} : i64" for choice in choices)
            found[key] = _question(name, WINOGRAD, text, alone, candidates)
    return list(found.values())


def kernel_questions(module: ir.Module, recipe: Recipe, threads: int) -> list[Question]:
    """Which schedules the kernels of @main may have; the module is taken to just before that."""
    (first,) = recipe.normalise
    run_stage(module, first)
    target = target_of(module.operation)
    (main,) = (f for f in functions(module.operation) if symbol(f) == "main")
    used = {called(call) for call in nested(main, "func.call")}
    found: dict[str, Question] = {}
    for kernel in kernels(module.operation):
        text = kernel_text(kernel)
        if symbol(kernel) not in used or key_of(text) in found:
            continue
        shape = _shape(kernel, target.vector.lanes)
        if shape is None:
            continue
        choices = tile_candidates(shape, target, threads)
        if len(choices) > 1:
            candidates = tuple(str(schedule_of(shape, choice)) for choice in choices)
            alone = _with_attributes(_callable(kernel), module)
            found[key_of(text)] = _question(_name(kernel), SCHEDULES, text, alone, candidates)
    return list(found.values())


def unscheduled(recipe: Recipe) -> Recipe:
    """What is left of a recipe for modules of kernels."""
    return replace(recipe, normalise=())


def _question(name, attribute, text, alone: ir.Module, candidates) -> Question:
    kept = [str(alone.operation.attributes[a]) for a in _KEPT if a in alone.operation.attributes]
    whole = "\n".join([*kept, text, *candidates])
    return Question(name, attribute, key_of(text), whole, bytecode(alone), candidates)


def _shape(kernel: ir.Operation, lanes: int):
    try:
        return describe(kernel, lanes)
    except ValueError:  # choose-tiles says so
        return None


def _name(kernel: ir.Operation) -> str:
    """ "conv2d 1x14x14x256xf32, 16x3x3x256x16xf32 -> 1x14x14x16x16xf32" """
    type_ = ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value)
    taken, made = (", ".join(_sizes(types)) for types in (type_.inputs[:2], type_.results))
    return f"{string(kernel, 'npu.kernel')} {taken} -> {made}"


def _sizes(types) -> Iterator[str]:
    return (str(type_).removeprefix("tensor<").removesuffix(">") for type_ in types)


def _callable(kernel: ir.Operation) -> ir.Module:
    """A module whose @main calls the kernel."""
    alone = ir.Module.create(kernel.location)
    type_ = ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value)
    with ir.InsertionPoint(alone.body), kernel.location:
        main = func.FuncOp("main", type_)
        given = ir.DictAttr.get({"npu.role": ir.StringAttr.get("input")})
        main.arg_attrs = [given] * len(type_.inputs)
        kernel.clone()
    with ir.InsertionPoint(main.add_entry_block()), kernel.location:
        name = ir.FlatSymbolRefAttr.get(symbol(kernel))
        func.ReturnOp(func.CallOp(type_.results, name, list(main.arguments)).results)
    return alone


def _with_attributes(alone: ir.Module, module: ir.Module) -> ir.Module:
    for name in _KEPT:
        if name in module.operation.attributes:
            alone.operation.attributes[name] = module.operation.attributes[name]
    return alone
