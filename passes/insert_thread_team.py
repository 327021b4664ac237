"""Run kernels marked `npu.team` on the OpenMP threads that the process already has.

Works on the LLVM dialect. The body of a marked kernel becomes a call of libgomp's `GOMP_parallel`
with a generated function in which every thread takes its share of the iterations and its own
scratch memory. torch loads libgomp and sizes its team (`torch.set_num_threads`); the module
attribute `npu.num_threads` overrides the size, 0 keeps it. A team of one is not started at all.

Before:
    llvm.func @k(%x, %scratch) attributes {npu.team = {...}} {
      llvm.call @k_chunk(%x, %scratch, 0, 8) }
After:
    llvm.func @k(%x, %scratch) {
      if omp_get_max_threads() == 1: llvm.call @k_chunk(%x, %scratch, 0, 8)
      else: GOMP_parallel(@k_team, {%x, %scratch}, npu.num_threads, 0) }
    llvm.func internal @k_team(%arguments) {
      t, n = omp_get_thread_num(), omp_get_num_threads()
      llvm.call @k_chunk(%x, %scratch + t * bytes, t * 8 / n, (t + 1) * 8 / n) }

Options:
    serial: keep the calls on one thread, for processes without libgomp.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.outline_parallel import TEAM
from mlir_npu.passes.registry import fail, register_pass

NUM_THREADS = "npu.num_threads"
_RUNTIME = {
    "GOMP_parallel": "(!llvm.ptr, !llvm.ptr, i32, i32)",
    "omp_get_thread_num": "() -> i32",
    "omp_get_num_threads": "() -> i32",
    "omp_get_max_threads": "() -> i32",
}


@dataclass(frozen=True)
class InsertThreadTeamOptions:
    serial: bool = False


@dataclass(frozen=True)
class _Team:
    """A marked kernel: what to call, how often, and where its scratch memory is."""

    name: str
    chunk: str
    iterations: int
    arguments: int
    scratch: int | None
    scratch_bytes: int


@register_pass("insert-thread-team", InsertThreadTeamOptions)
def insert_thread_team(module: ir.Operation, options: InsertThreadTeamOptions) -> None:
    block = module.regions[0].blocks[0]
    marked = [op.operation for op in block.operations if TEAM in op.attributes]
    threads = _num_threads(module)
    if not options.serial and threads != 1 and marked:
        declared = {_symbol(op) for op in block.operations if "sym_name" in op.attributes}
        missing = {name: type_ for name, type_ in _RUNTIME.items() if name not in declared}
        _append(block, "\n".join(f"llvm.func @{n}{t}" for n, t in missing.items()))
        for kernel in marked:
            _start_team(kernel, _team(kernel), block, threads)
    for op in block.operations:
        if TEAM in op.attributes:
            del op.attributes[TEAM]


def _num_threads(module: ir.Operation) -> int:
    if NUM_THREADS not in module.attributes:
        return 0
    threads = ir.IntegerAttr(module.attributes[NUM_THREADS]).value
    if threads < 0:
        fail(module, f"{NUM_THREADS} must be 0 (as torch is set) or positive, got {threads}")
    return threads


def _team(kernel: ir.Operation) -> _Team:
    if kernel.name != "llvm.func":
        fail(
            kernel,
            f"'{kernel.name}' is not in the LLVM dialect yet; run convert-func-to-llvm first",
        )
    pointers = [argument.type for argument in kernel.regions[0].blocks[0].arguments]
    for type_ in pointers:
        if str(type_) != "!llvm.ptr":
            fail(kernel, f"arguments of a threaded kernel must be bare pointers, got {type_}")
    marks = ir.DictAttr(kernel.attributes[TEAM])
    number = {n: marks[n].value for n in ("iterations", "scratch", "scratch_bytes") if n in marks}
    return _Team(
        _symbol(kernel),
        ir.FlatSymbolRefAttr(marks["chunk"]).value,
        number["iterations"],
        len(pointers),
        number.get("scratch"),
        number.get("scratch_bytes", 0),
    )


def _symbol(op: ir.Operation) -> str:
    return ir.StringAttr(op.attributes["sym_name"]).value


def _start_team(kernel: ir.Operation, team: _Team, block: ir.Block, threads: int) -> None:
    """Put the generated functions behind the module's and let the old kernel go."""
    attributes = {name: kernel.attributes[name] for name in ("sym_visibility", "linkage")
                  if name in kernel.attributes}  # fmt: skip
    kernel.erase()
    entry, _ = _append(block, _driver(team, threads), declare=team)
    for name, value in attributes.items():
        entry.attributes[name] = value


def _append(block: ir.Block, text: str, declare: _Team | None = None) -> list[ir.Operation]:
    """Clone the functions of `text` to the end of `block`; `declare` names what they call."""
    prelude = ""
    if declare is not None:
        types = ", ".join(["!llvm.ptr"] * declare.arguments + ["i64", "i64"])
        prelude = f"llvm.func @{declare.chunk}({types})\n" + "\n".join(
            f"llvm.func @{n}{t}" for n, t in _RUNTIME.items()
        )
    parsed = ir.Module.parse(f"{prelude}\n{text}", block.owner.context)
    skipped = len(ir.Module.parse(prelude, block.owner.context).body.operations) if prelude else 0
    with ir.InsertionPoint(block):
        return [op.operation.clone() for op in list(parsed.body.operations)[skipped:]]


def _driver(team: _Team, threads: int) -> str:
    count = team.arguments
    places = range(count)
    parameters = ", ".join(f"%p{i}: !llvm.ptr" for i in places)
    types = ", ".join(["!llvm.ptr"] * count + ["i64", "i64"])
    pointers = ", ".join(f"%p{i}" for i in places)
    own = ", ".join("%own" if i == team.scratch else f"%p{i}" for i in places)
    slot = "llvm.getelementptr %slots[{0}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr"
    store = "\n".join(
        f"  %s{i} = {slot.format(i)}\n  llvm.store %p{i}, %s{i} : !llvm.ptr, !llvm.ptr"
        for i in places
    )
    load = "\n".join(
        f"  %s{i} = {slot.format(i)}\n  %p{i} = llvm.load %s{i} : !llvm.ptr -> !llvm.ptr"
        for i in places
    )
    scratch = (
        f"  %own = llvm.getelementptr %p{team.scratch}[%skip] : (!llvm.ptr, i64) -> !llvm.ptr, i8"
        if team.scratch is not None
        else ""
    )
    return f"""
llvm.func @{team.name}({parameters}) {{
  %one = llvm.mlir.constant(1 : i32) : i32
  %slot_count = llvm.mlir.constant({count} : i64) : i64
  %slots = llvm.alloca %slot_count x !llvm.ptr : (i64) -> !llvm.ptr
  %size = llvm.call @omp_get_max_threads() : () -> i32
  %alone = llvm.icmp "eq" %size, %one : i32
  llvm.cond_br %alone, ^serial, ^parallel
^serial:
  %lo = llvm.mlir.constant(0 : i64) : i64
  %hi = llvm.mlir.constant({team.iterations} : i64) : i64
  llvm.call @{team.chunk}({pointers}, %lo, %hi) : ({types}) -> ()
  llvm.return
^parallel:
{store}
  %body = llvm.mlir.addressof @{team.name}_team : !llvm.ptr
  %threads = llvm.mlir.constant({threads} : i32) : i32
  %flags = llvm.mlir.constant(0 : i32) : i32
  llvm.call @GOMP_parallel(%body, %slots, %threads, %flags) : (!llvm.ptr, !llvm.ptr, i32, i32) -> ()
  llvm.return
}}
llvm.func internal @{team.name}_team(%slots: !llvm.ptr) {{
{load}
  %thread32 = llvm.call @omp_get_thread_num() : () -> i32
  %size32 = llvm.call @omp_get_num_threads() : () -> i32
  %thread = llvm.sext %thread32 : i32 to i64
  %size = llvm.sext %size32 : i32 to i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %iterations = llvm.mlir.constant({team.iterations} : i64) : i64
  %bytes = llvm.mlir.constant({team.scratch_bytes} : i64) : i64
  %skip = llvm.mul %thread, %bytes : i64
{scratch}
  %next = llvm.add %thread, %one : i64
  %before = llvm.mul %thread, %iterations : i64
  %after = llvm.mul %next, %iterations : i64
  %lo = llvm.sdiv %before, %size : i64
  %hi = llvm.sdiv %after, %size : i64
  llvm.call @{team.chunk}({own}, %lo, %hi) : ({types}) -> ()
  llvm.return
}}"""
