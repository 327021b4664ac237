"""What a block computes lane by lane from memory to memory, in parts that share no vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import constant_of, definition

_ELEMENTWISE = ("arith.", "math.")
_INVARIANT = ("arith.constant", "vector.broadcast")


@dataclass(frozen=True)
class Cell:
    """Ops in order; loads and stores are of the same number of lanes, one after the other in
    memory."""

    ops: tuple[ir.Operation, ...]
    loads: tuple[ir.Operation, ...]
    stores: tuple[ir.Operation, ...]
    lanes: int


@dataclass(frozen=True)
class _Place:
    """Elements of `memory` from `base` (None for 0) plus a constant on."""

    memory: ir.Value
    base: ir.Value | None
    constant: int

    def follows(self, other: _Place, lanes: int) -> bool:
        return (
            self.memory == other.memory
            and self.base == other.base
            and self.constant == other.constant + lanes
        )


def cells_of(block: ir.Block) -> list[Cell]:
    """Those that load and store, in the order of their first ops."""
    ops = [view.operation for view in block.operations]
    position = {op: number for number, op in enumerate(ops)}
    group = list(range(len(ops)))

    def root(number: int) -> int:
        while group[number] != number:
            group[number] = group[group[number]]
            number = group[number]
        return number

    broken = set()
    for number, op in enumerate(ops):
        for operand in op.operands:
            made_by = definition(operand)
            if not isinstance(operand.type, ir.VectorType) or _is_invariant(made_by):
                continue
            if made_by in position:
                group[root(number)] = root(position[made_by])
            else:  # from around the block, with lanes of their own
                broken.add(number)
    members: dict[int, list[ir.Operation]] = {}
    for number, op in enumerate(ops):
        if _has_vectors(op) and not _is_invariant(op):
            members.setdefault(root(number), []).append(op)
    refused = {root(number) for number in broken}
    cells = [_cell(found) for start, found in sorted(members.items()) if start not in refused]
    return [cell for cell in cells if cell is not None]


def successor(cell: Cell, others: Sequence[Cell]) -> Cell | None:
    """The one that does the same to what comes next in memory."""
    for other in others:
        same = other.lanes == cell.lanes and _do_the_same(cell, other)
        if same and _follows(other, cell) and _are_alone(cell, other):
            return other
    return None


def _are_alone(one: Cell, other: Cell) -> bool:
    """Whether `one` may store where `other` does, and `other` load where `one` does: no other op in
    between sees memory."""
    own, stored = {*one.ops, *other.ops}, False
    for view in one.ops[0].block.operations:
        op = view.operation
        if op in own:
            stored = stored or op.name == "vector.store"
            own.remove(op)
            if not own:
                return True
        elif len(own) < len(one.ops) + len(other.ops) and not _is_harmless(op, stored):
            return False
    return False


def _is_harmless(op: ir.Operation, stored: bool) -> bool:
    if op.name == "memref.load":
        return not stored
    return op.name.startswith(_ELEMENTWISE) or op.name == "vector.broadcast"


def _do_the_same(one: Cell, other: Cell) -> bool:
    if len(one.ops) != len(other.ops):
        return False
    same: dict[ir.Value, ir.Value] = {}
    for ours, theirs in zip(one.ops, other.ops):
        if ours.name != theirs.name or _attributes(ours) != _attributes(theirs):
            return False
        for a, b in zip(ours.operands, theirs.operands, strict=True):
            if _is(a) and same.get(a, a) != b and not _are_equal_constants(a, b):
                return False
        for a, b in zip(ours.results, theirs.results, strict=True):
            if a.type != b.type:
                return False
            same[a] = b
    return True


def _attributes(op: ir.Operation) -> dict[str, ir.Attribute]:
    return {name: op.attributes[name] for name in op.attributes}


def _are_equal_constants(a: ir.Value, b: ir.Value) -> bool:
    value = constant_of(a)
    return value is not None and value == constant_of(b)


def _follows(later: Cell, earlier: Cell) -> bool:
    for ours, theirs in ((later.loads, earlier.loads), (later.stores, earlier.stores)):
        places = zip(map(_place, ours), map(_place, theirs), strict=True)
        if not all(ours.follows(theirs, later.lanes) for ours, theirs in places):
            return False
    return True


def _cell(ops: Sequence[ir.Operation]) -> Cell | None:
    loads = tuple(op for op in ops if op.name == "vector.load")
    stores = tuple(op for op in ops if op.name == "vector.store")
    between = [op for op in ops if op.name not in ("vector.load", "vector.store")]
    plain = all(op.name.startswith(_ELEMENTWISE) and not len(op.regions) for op in between)
    inside = all(
        use.owner.operation.block == op.block for op in ops for r in op.results for use in r.uses
    )
    if not (loads and stores and plain and inside):
        return None
    widths = {tuple(v.type.shape) for op in ops for v in (*op.results, *op.operands) if _is(v)}
    if len(widths) != 1 or len(width := widths.pop()) != 1:
        return None
    memory = [op.operands[0] for op in loads] + [op.operands[1] for op in stores]
    flat = all(isinstance(m.type, ir.MemRefType) and m.type.rank == 1 for m in memory)
    return Cell(tuple(ops), loads, stores, width[0]) if flat else None


def _place(access: ir.Operation) -> _Place:
    memory, index = list(access.operands)[-2:]
    constant = constant_of(index)
    if constant is not None:
        return _Place(memory, None, ir.IntegerAttr(constant).value)
    made_by = definition(index)
    if made_by is not None and made_by.name == "arith.addi":
        base, step = made_by.operands
        if (constant := constant_of(step)) is not None:
            return _Place(memory, base, ir.IntegerAttr(constant).value)
    return _Place(memory, index, 0)


def _is(value: ir.Value) -> bool:
    return isinstance(value.type, ir.VectorType)


def _has_vectors(op: ir.Operation) -> bool:
    return any(map(_is, (*op.results, *op.operands)))


def _is_invariant(op: ir.Operation | None) -> bool:
    """Whether all lanes of its result are alike."""
    if op is None or op.name not in _INVARIANT:
        return False
    if op.name == "vector.broadcast":
        return not isinstance(op.operands[0].type, ir.VectorType)
    value = op.attributes["value"]
    return not isinstance(value, ir.DenseElementsAttr) or value.is_splat
