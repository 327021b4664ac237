"""Split every kernel with a parallel outer loop into a chunk function and a caller that says so.

The chunk runs iterations [lo, hi) of the flattened loop; the kernel calls it for all of them,
which is correct on one thread as it stands. `npu.team` tells insert-thread-team how to share the
iterations out, and which argument is scratch memory of which every thread needs its own.

A kernel is split when its schedule is parallel, it has one outer `scf.forall` with constant bounds,
and everything beside the loop only names memory.

Before:
    func.func private @k(%x: memref<8xf32>, %scratch: memref<64xi8>) {
      scf.forall (%i, %j) in (2, 4) { work }
      return }
After:
    func.func private @k_chunk(%x, %scratch, %lo: index, %hi: index) {
      scf.for %t = %lo to %hi step %c1 { %i = %t / 4; %j = %t mod 4; work }
      return }
    func.func private @k(%x, %scratch) attributes {npu.team = {chunk = @k_chunk, ...}} {
      call @k_chunk(%x, %scratch, %c0, %c8)
      return }
"""

from __future__ import annotations

from math import prod

from mlir_npu.dialect.bindings import arith, func, ir, scf
from mlir_npu.passes.kernels.walk import (
    argument_attributes,
    argument_roles,
    entry,
    functions,
    set_argument_attributes,
    string,
    symbol,
    terminator,
)
from mlir_npu.passes.microkernels.emit import index_constant
from mlir_npu.passes.registry import NoOptions, register_pass

TEAM = "npu.team"
_PURE = (
    "memref.view",
    "memref.subview",
    "memref.memory_space_cast",
    "memref.cast",
    "arith.",
    "affine.",
)


@register_pass("outline-parallel")
def outline_parallel(module: ir.Operation, options: NoOptions) -> None:
    for kernel in functions(module):
        loop = _parallel_loop(kernel)
        if loop is not None:
            _outline(kernel, loop)


def _parallel_loop(kernel: ir.Operation) -> ir.Operation | None:
    """The loop to share out, or None."""
    if not _is_parallel(kernel) or string(kernel, "npu.kernel") is None:
        return None
    *body, _ = (op.operation for op in entry(kernel).operations)
    loops = [op for op in body if op.name == "scf.forall"]
    rest = [op for op in body if op.name != "scf.forall"]
    if len(loops) != 1 or not all(op.name.startswith(_PURE) for op in rest):
        return None
    if len(loops[0].operands) or prod(_trips(loops[0])) < 2:
        return None
    return loops[0]


def _is_parallel(kernel: ir.Operation) -> bool:
    if "npu.schedule" not in kernel.attributes:
        return True
    schedule = ir.DictAttr(kernel.attributes["npu.schedule"])
    return "parallel" not in schedule or ir.BoolAttr(schedule["parallel"]).value


def _trips(loop: ir.Operation) -> list[int]:
    """Iterations of every dimension."""
    lower, upper, step = (_bounds(loop, name) for name in ("Lower", "Upper", "Step"))
    return [-(-(end - begin) // by) for begin, end, by in zip(lower, upper, step, strict=True)]


def _bounds(loop: ir.Operation, which: str) -> list[int]:
    name = "staticStep" if which == "Step" else f"static{which}Bound"
    return list(ir.DenseI64ArrayAttr(loop.attributes[name]))


def _outline(kernel: ir.Operation, loop: ir.Operation) -> None:
    name, iterations = symbol(kernel), prod(_trips(loop))
    with ir.InsertionPoint(kernel), kernel.location:
        caller = _caller(kernel, name, iterations)
    kernel.attributes["sym_name"] = ir.StringAttr.get(f"{name}_chunk")
    for attribute in [a for a in kernel.attributes if a.startswith("npu.")]:
        del kernel.attributes[attribute]
    lower, upper = (entry(kernel).add_argument(ir.IndexType.get(), kernel.location) for _ in "ab")
    types = [argument.type for argument in entry(kernel).arguments]
    kernel.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))
    if "arg_attrs" in kernel.attributes:
        set_argument_attributes(kernel, [*argument_attributes(caller), {}, {}])
    _flatten(loop, lower, upper)


def _caller(kernel: ir.Operation, name: str, iterations: int) -> ir.Operation:
    """A function in place of `kernel` that calls its chunk for all iterations."""
    type_ = ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value)
    caller = func.FuncOp(name, type_).operation
    for attribute in kernel.attributes:
        if attribute not in caller.attributes:
            caller.attributes[attribute] = kernel.attributes[attribute]
    caller.attributes[TEAM] = _team(kernel, name, iterations)
    with ir.InsertionPoint(caller.opview.add_entry_block()):
        bounds = [index_constant(0), index_constant(iterations)]
        chunk = ir.FlatSymbolRefAttr.get(f"{name}_chunk")
        func.CallOp([], chunk, [*entry(caller).arguments, *bounds])
        func.ReturnOp([])
    return caller


def _team(kernel: ir.Operation, name: str, iterations: int) -> ir.DictAttr:
    i64 = ir.IntegerType.get_signless(64)
    team = {
        "chunk": ir.FlatSymbolRefAttr.get(f"{name}_chunk"),
        "iterations": ir.IntegerAttr.get(i64, iterations),
    }
    roles = argument_roles(kernel)
    if "scratch" in roles:
        position = roles.index("scratch")
        size = ir.MemRefType(entry(kernel).arguments[position].type).shape[0]
        team["scratch"] = ir.IntegerAttr.get(i64, position)
        team["scratch_bytes"] = ir.IntegerAttr.get(i64, size)
    return ir.DictAttr.get(team)


def _flatten(loop: ir.Operation, lower: ir.Value, upper: ir.Value) -> None:
    """Replace the forall by one `scf.for` over its flattened iterations [lower, upper)."""
    body = loop.regions[0].blocks[0]
    with ir.InsertionPoint(loop), loop.location:
        flat = scf.ForOp(lower, upper, index_constant(1))
    with ir.InsertionPoint(flat.body), loop.location:
        counters = _counters(loop, flat.induction_variable)
        end = scf.YieldOp([])
    for argument, counter in zip(body.arguments, counters, strict=True):
        argument.replace_all_uses_with(counter)
    in_parallel = terminator(body)
    for op in [o.operation for o in body.operations]:
        if op != in_parallel:
            op.move_before(end.operation)
    loop.erase()


def _counters(loop: ir.Operation, flat: ir.Value) -> list[ir.Value]:
    """The counter of every dimension from the flattened one, the last dimension fastest."""
    counters = []
    parts = zip(_trips(loop), _bounds(loop, "Lower"), _bounds(loop, "Step"), strict=True)
    for trips, lower, step in reversed(list(parts)):
        counter = arith.RemUIOp(flat, index_constant(trips)).result
        flat = arith.DivUIOp(flat, index_constant(trips)).result
        counter = arith.MulIOp(counter, index_constant(step)).result
        counters.append(arith.AddIOp(counter, index_constant(lower)).result)
    return counters[::-1]
