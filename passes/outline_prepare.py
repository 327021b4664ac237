"""Move what depends on parameters alone into @prepare, which runs when parameters change.

@prepare takes the parameters of @main in their order and returns what @main needs of its calls;
these values become arguments of @main with `npu.role = "prepared"`, after the ones it has, which
all stay. Reshapes cost nothing and stay where they are used. Without such calls there is no
@prepare.

Before:
    func.func @main(%x {npu.role = "input"}, %w {npu.role = "parameter"}) {
      %p = call @copy_0(%w)
      %v = tensor.expand_shape %p
      %r = call @conv2d_0(%x, %v)
      return %r }
After:
    func.func @prepare(%w {npu.role = "parameter"}) { %p = call @copy_0(%w)  return %p }
    func.func @main(%x {npu.role = "input"}, %w {npu.role = "parameter"},
                    %p {npu.role = "prepared"}) {
      %v = tensor.expand_shape %p
      %r = call @conv2d_0(%x, %v)
      return %r }
"""

from mlir_npu.dialect.bindings import func, ir
from mlir_npu.passes.kernels.walk import (
    ROLE,
    add_arguments,
    argument_roles,
    definition,
    entry,
    symbol,
    users,
)
from mlir_npu.passes.registry import NoOptions, fail, register_pass
from mlir_npu.passes.rewriting.dependence import PARAMETER, is_prepared
from mlir_npu.passes.rewriting.functions import region_functions
from mlir_npu.passes.rewriting.outlining import clone_renamed
from mlir_npu.passes.rewriting.values import is_unused
from mlir_npu.passes.rewriting.views import VIEWS

PREPARE, PREPARED = "prepare", "prepared"
CALL = "func.call"


@register_pass("outline-prepare")
def outline_prepare(module: ir.Operation, options: NoOptions) -> None:
    for function in region_functions(module):
        if symbol(function) == PREPARE:
            continue
        block = entry(function)
        calls = [view.operation for view in block.operations if view.operation.name == CALL]
        moved = [call for call in calls if all(is_prepared(value) for value in call.operands)]
        if not moved:
            continue
        if any(symbol(other) == PREPARE for other in region_functions(module)):
            fail(
                function,
                f"'{symbol(function)}' has work to prepare, but there is a @{PREPARE} already",
            )
        needed = [r for call in moved for r in call.results if _is_needed(r, set(moved))]
        _build_prepare(function, moved, needed)
        _pass_as_arguments(function, needed)
        _erase_moved(block, set(moved))


def _is_needed(value: ir.Value, moved: set[ir.Operation]) -> bool:
    """Whether something that stays uses `value` or a view of it."""
    for user in users(value):
        if user.name in VIEWS:
            if _is_needed(user.results[0], moved):
                return True
        elif user not in moved:
            return True
    return False


def _build_prepare(
    function: ir.Operation, moved: list[ir.Operation], needed: list[ir.Value]
) -> None:
    arguments = entry(function).arguments
    roles = zip(arguments, argument_roles(function), strict=True)
    parameters = [argument for argument, role in roles if role == PARAMETER]
    types = [value.type for value in parameters]
    with ir.InsertionPoint(function), function.location:
        prepare = func.FuncOp(PREPARE, (types, [value.type for value in needed]))
        block = prepare.add_entry_block()
    attributes = [ir.DictAttr.get({ROLE: ir.StringAttr.get(PARAMETER)})] * len(parameters)
    prepare.operation.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)
    with ir.InsertionPoint(block), function.location:
        known = dict(zip(parameters, block.arguments, strict=True))
        for call in moved:
            _copy_with_operands(call, known)
        func.ReturnOp([known[value] for value in needed])


def _copy_with_operands(op: ir.Operation, known: dict[ir.Value, ir.Value]) -> None:
    """Copy `op`, and the reshapes and constants of its operands where they are missing."""
    for value in op.operands:
        if value not in known:
            _copy_with_operands(definition(value), known)
    known.update(zip(op.results, clone_renamed(op, known).results, strict=True))


def _pass_as_arguments(function: ir.Operation, values: list[ir.Value]) -> None:
    """Replace `values` by new arguments of `function`."""
    arguments = add_arguments(function, [value.type for value in values], PREPARED)
    for value, argument in zip(values, arguments, strict=True):
        value.replace_all_uses_with(argument)


def _erase_moved(block: ir.Block, moved: set[ir.Operation]) -> None:
    """Erase the calls that moved and what only they used, users first."""
    for view in reversed(list(block.operations)):
        op = view.operation
        if op in moved or is_unused(op):
            op.erase()
