"""Which operations of a region belong into one kernel."""

from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import definition, users
from mlir_npu.passes.registry import fail
from mlir_npu.passes.rewriting.dependence import is_prepared, used_values
from mlir_npu.passes.rewriting.elementwise import read_elementwise
from mlir_npu.passes.rewriting.epilogues import is_compute, outranks
from mlir_npu.passes.rewriting.generics import Generic, has_plain_body
from mlir_npu.passes.rewriting.moves import read_pad
from mlir_npu.passes.rewriting.outlining import scalar_producers
from mlir_npu.passes.rewriting.packing import OP
from mlir_npu.passes.rewriting.transposed_edges import Edges
from mlir_npu.passes.rewriting.values import defined_by, fill_scalar

_NAMED = {
    "linalg.depthwise_conv_2d_nhwc_hwc": "depthwise_conv2d",
    "linalg.pooling_nhwc_max": "pool2d",
    "linalg.pooling_nhwc_sum": "pool2d",
    "linalg.transpose": "copy",
    "linalg.copy": "copy",
}
# Kinds whose image may be read through a pad, which becomes part of the move of a tile.
_WINDOWED = frozenset({"conv2d", "winograd_conv2d", "grouped_conv2d", "depthwise_conv2d", "pool2d"})


@dataclass(frozen=True)
class Group:
    """Operations of one kernel in order; the last makes its results."""

    kind: str
    ops: tuple[ir.Operation, ...]


def kind_of(op: ir.Operation) -> str | None:
    """The kind of the kernel that `op` is the root of; None if no kernel can hold it."""
    if OP in op.attributes:
        return ir.StringAttr(op.attributes[OP]).value
    if op.name in _NAMED:
        return _NAMED[op.name]
    if op.name.startswith("tensor."):
        return "copy"
    if not op.name.startswith("linalg.") or not has_plain_body(op):
        return None
    return "eltwise" if _all_parallel(op) else "reduce"


def _all_parallel(op: ir.Operation) -> bool:
    if "iterator_types" not in op.attributes:
        return False
    return all("parallel" in str(k) for k in ir.ArrayAttr(op.attributes["iterator_types"]))


def epilogues(block: ir.Block) -> dict[ir.Operation, ir.Operation]:
    """For each root that has one, the elementwise generic that ends its kernel."""
    found = {}
    for view in block.operations:
        generic = read_elementwise(view.operation)
        root = _root_of(generic) if generic is not None else None
        if root is not None:
            found[root] = view.operation
    return found


def _root_of(generic: Generic) -> ir.Operation | None:
    """The operation whose kernel `generic` ends: it computes an element for each of `generic`'s."""
    found = None
    for value in generic.inputs:
        root = definition(value)
        if not is_compute(root) or kind_of(root) == "eltwise" or users(value) != [generic.op]:
            continue
        pairs = zip(generic.inputs, generic.accesses, strict=True)
        if not all(generic.is_whole(access) for used, access in pairs if used == value):
            continue
        if is_prepared(value) and not is_prepared(generic.op.results[0]):
            continue
        if found is None or outranks(root, found):
            found = root
    return found


def group_of(root: ir.Operation, epilogue: ir.Operation | None, edges: Edges) -> Group:
    """`root` with the pad of its image, what it starts from, its epilogue, and transposes.

    Fails with a diagnostic if no kernel can hold `root`.
    """
    kind = kind_of(root)
    if kind is None:
        fail(root, f"'{root.name}' has no kernel form; run this operation on the host (host_ops)")
    ops = [*cut_parts(root), root] if epilogue is None else [root, epilogue]
    pads = [pad for pad in (_pad_of(root),) if pad is not None and kind in _WINDOWED]
    loads = [op for op in _producers([*pads, *ops]) if op in edges.loads]
    if (store := edges.store_of(ops[-1])) is not None:
        ops.append(store)
    moved = [op for load in loads for op in (*_destinations(load), load)]
    inits = [op for each in ops for op in _destinations(each)]
    chain = list(dict.fromkeys([*moved, *pads, *inits, *ops]))
    return Group(kind, (*scalar_producers(chain), *chain))


def cut_parts(root: ir.Operation) -> list[ir.Operation]:
    """Slices that only the concatenation `root` uses: their copies are those of its parts."""
    if root.name != "tensor.concat":
        return []
    found = (defined_by(value, "tensor.extract_slice") for value in root.operands)
    return [op for op in dict.fromkeys(found) if op is not None and users(op.results[0]) == [root]]


def _producers(ops: list[ir.Operation]) -> list[ir.Operation]:
    """What makes the operands of `ops`."""
    found = (definition(value) for op in ops for value in op.operands)
    return [op for op in dict.fromkeys(found) if op is not None]


def _destinations(op: ir.Operation) -> list[ir.Operation]:
    """Empty and filled tensors among the operands of `op`, with the empty ones of fills."""
    found = []
    for value in used_values(op):
        if (empty := defined_by(value, "tensor.empty")) is not None:
            found.append(empty)
        elif fill_scalar(value) is not None and _is_init(op, value):
            found += [*_destinations(definition(value)), definition(value)]
    return found


def _is_init(op: ir.Operation, value: ir.Value) -> bool:
    return op.name.startswith("linalg.") and value in list(op.operands)[-len(op.results) :]


def _pad_of(root: ir.Operation) -> ir.Operation | None:
    pad = defined_by(root.operands[0], "tensor.pad") if len(root.operands) else None
    return pad if pad is not None and read_pad(pad) is not None else None


def needs_kernel(op: ir.Operation) -> bool:
    """Whether `op` moves or computes elements, beyond being what a kernel starts from."""
    if op.name == "linalg.fill":
        return any(not _starts_from(user, op.results[0]) for user in users(op.results[0]))
    return op.name not in ("tensor.empty",) and any(
        isinstance(result.type, ir.ShapedType) for result in op.results
    )


def _starts_from(user: ir.Operation, value: ir.Value) -> bool:
    inputs = list(user.operands)[: -len(user.results)] if len(user.results) else list(user.operands)
    return _is_init(user, value) and value not in inputs
