"""Which buffers may share memory, as far as constant offsets and kernel arguments tell."""

from __future__ import annotations

from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir

# Views of all of a buffer under another type.
WHOLE_VIEWS = frozenset(
    {
        "memref.memory_space_cast",
        "memref.cast",
        "memref.expand_shape",
        "memref.collapse_shape",
        "memref.transpose",
    }
)
_VIEWS = WHOLE_VIEWS | {"memref.subview", "memref.reinterpret_cast"}


@dataclass(frozen=True)
class Memory:
    """A piece of memory: the value that owns it and its bytes there, `last` None when not known."""

    root: ir.Value
    first: int
    last: int | None


def whole_buffer(view: ir.Value) -> ir.Value:
    """The buffer of which `view` is all, under another shape or memory space."""
    return _peel(view, WHOLE_VIEWS)


def root_of(view: ir.Value) -> ir.Value:
    """The buffer of which `view` is a part, or all."""
    return _peel(view, _VIEWS)


def users_of(buffer: ir.Value) -> list[ir.Operation]:
    """Ops that use `buffer` or a view of all of it; those views themselves are not listed."""
    found: list[ir.Operation] = []
    for use in buffer.uses:
        op = use.owner.operation
        new = users_of(op.results[0]) if op.name in WHOLE_VIEWS else [op]
        found += [user for user in new if user not in found]
    return found


def memory_of(buffer: ir.Value) -> Memory:
    """The memory behind a buffer: a range of an arena for a planned tile, else all of its root."""
    root = _peel(buffer, _VIEWS)
    view = _defined_by(root, "memref.view")
    if view is None:
        return Memory(root, 0, None)
    arena, shift = view.operands[0], _defined_by(view.operands[1], "arith.constant")
    if shift is None:
        return Memory(_peel(arena, _VIEWS), 0, None)
    first = ir.IntegerAttr(shift.attributes["value"]).value
    return Memory(_peel(arena, _VIEWS), first, first + _bytes(root))


def may_overlap(left: ir.Value, right: ir.Value) -> bool:
    """False only if no byte is shared. Different arguments of a kernel are different memory."""
    return any(
        _share_bytes(memory_of(a), memory_of(b))
        for a in _alternatives(left)
        for b in _alternatives(right)
    )


def _alternatives(buffer: ir.Value) -> list[ir.Value]:
    """The buffers that `buffer` may be: one, or those that a select takes it from."""
    chosen = _defined_by(_peel(buffer, _VIEWS), "arith.select")
    if chosen is None:
        return [buffer]
    return [part for option in list(chosen.operands)[1:] for part in _alternatives(option)]


def _share_bytes(a: Memory, b: Memory) -> bool:
    if a.root != b.root:
        return False
    if a.last is None or b.last is None:
        return True
    return a.first < b.last and b.first < a.last


def _peel(buffer: ir.Value, names: frozenset[str]) -> ir.Value:
    while not isinstance(buffer.owner, ir.Block) and buffer.owner.name in names:
        buffer = buffer.owner.operands[0]
    return buffer


def _defined_by(value: ir.Value, name: str) -> ir.Operation | None:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != name:
        return None
    return owner


def _bytes(buffer: ir.Value) -> int:
    type_ = ir.MemRefType(buffer.type)
    total = max(1, type_.element_type.width // 8)
    for extent in type_.shape:
        total *= extent
    return total
