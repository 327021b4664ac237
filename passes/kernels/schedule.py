"""Read and check the `npu.schedule` of a kernel: it may have been written by hand."""

from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.structured import kernel_ops, loop_extents, reduction_loops
from mlir_npu.passes.kernels.walk import nested, symbol
from mlir_npu.passes.registry import fail

SCHEDULE = "npu.schedule"
TILE_LOOPS = ("scf.forall", "scf.for")


@dataclass(frozen=True)
class Schedule:
    """What later passes obey. tile, reduction_tile: 0 for a whole loop, empty for all of them."""

    tile: tuple[int, ...]
    reduction_tile: tuple[int, ...]
    order: tuple[int, ...] | None
    buffers: int
    acc_buffers: int


def read_schedule(kernel: ir.Operation) -> Schedule:
    """The schedule of a kernel; one that is missing or wrong in itself is an error there."""
    name = symbol(kernel)
    if SCHEDULE not in kernel.attributes:
        fail(kernel, f"kernel '{name}' has no schedule; run choose-tiles first")
    given = kernel.attributes[SCHEDULE]
    if not isinstance(given, ir.DictAttr):
        fail(kernel, f"schedule of '{name}' must be a dictionary, got {given}")
    entries = {named.name: named.attr for named in given}
    schedule = Schedule(
        tile=_sizes(kernel, entries, "tile") or (),
        reduction_tile=_sizes(kernel, entries, "reduction_tile") or (),
        order=_sizes(kernel, entries, "order"),
        buffers=_count(kernel, entries, "buffers"),
        acc_buffers=_count(kernel, entries, "acc_buffers"),
    )
    loops = len(schedule.tile)
    if schedule.order is not None and sorted(schedule.order) != list(range(loops)):
        order = list(schedule.order)
        fail(kernel, f"schedule of '{name}': order {order} does not name {loops} loops")
    return schedule


def check_against_loops(kernel: ir.Operation, schedule: Schedule) -> None:
    """Each size must divide its loop. A kernel that is already tiled shows its loops no more."""
    if nested(kernel, *TILE_LOOPS) or not (schedule.tile or schedule.reduction_tile):
        return
    try:
        parallel, reductions = _loops(kernel)
    except (KeyError, ValueError) as error:
        fail(kernel, f"kernel '{symbol(kernel)}' cannot be tiled: {error}")
    _check_sizes(kernel, "tile", schedule.tile, "loops", parallel)
    if schedule.reduction_tile:
        _check_sizes(
            kernel, "reduction_tile", schedule.reduction_tile, "reduction loops", reductions
        )


def _loops(kernel: ir.Operation) -> tuple[list[int], list[int]]:
    """Extents of the parallel loops of the last op and of the reduction loops of the root."""
    ops = kernel_ops(kernel)
    if ops is None:
        return [], []
    reduced, extents = reduction_loops(ops.last), loop_extents(ops.last)
    root_extents = loop_extents(ops.root)
    parallel = [extent for loop, extent in enumerate(extents) if loop not in reduced]
    return parallel, [root_extents[loop] for loop in reduction_loops(ops.root)]


def _check_sizes(
    kernel: ir.Operation, key: str, sizes: tuple[int, ...], what: str, extents: list[int]
) -> None:
    name = symbol(kernel)
    if len(sizes) != len(extents):
        fail(kernel, f"schedule of '{name}' has {len(sizes)} {key} sizes for {len(extents)} {what}")
    for loop, (size, extent) in enumerate(zip(sizes, extents)):
        if size and extent % size:
            fail(
                kernel,
                f"schedule of '{name}': {key} {size} does not divide the extent {extent} "
                f"of loop {loop}",
            )


def _sizes(kernel: ir.Operation, entries: dict, key: str) -> tuple[int, ...] | None:
    if key not in entries:
        return None
    given = entries[key]
    if isinstance(given, ir.DenseI64ArrayAttr) and all(int(size) >= 0 for size in given):
        return tuple(int(size) for size in given)
    fail(
        kernel,
        f"schedule of '{symbol(kernel)}': {key} must be an array<i64> of numbers of at least 0, "
        f"got {given}",
    )


def _count(kernel: ir.Operation, entries: dict, key: str) -> int:
    given = entries.get(key)
    if given is None:
        return 1
    if isinstance(given, ir.IntegerAttr) and given.value in (1, 2):
        return given.value
    fail(kernel, f"schedule of '{symbol(kernel)}': {key} must be 1 or 2, got {given}")
