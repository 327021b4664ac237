"""Give a tile two buffers that take turns, so that its move overlaps with the compute of another.

Each function tests whether the rotation is legal and, if so, rewrites; it returns None, or the
reason why everything was left as it is.
"""

from __future__ import annotations

from mlir_npu.dialect.attributes import TokenType
from mlir_npu.dialect.bindings import arith, ir, memref, scf
from mlir_npu.dialect.movement import DmaNoneOp, DmaStartOp, DmaWaitOp
from mlir_npu.passes.kernels.walk import integers
from mlir_npu.passes.pipelining.addresses import address_ops, rebuild, root_of, written_roots
from mlir_npu.passes.pipelining.loop_chain import (
    LoopChain,
    carry_tokens,
    chain_of,
    index,
    yield_tokens,
)
from mlir_npu.passes.pipelining.transfers import alternates, read_load, read_store

SINGLE = "npu.single_buffer"


def rotate_load(move: ir.Operation) -> str | None:
    """Start the load one iteration ahead, into the buffer that the running one does not use."""
    load, chain = read_load(move), _rotatable_chain(move)
    for found in (load, chain):
        if isinstance(found, str):
            return found
    source, _, *low = move.operands
    addresses = address_ops([source, *low], chain.outermost)
    if isinstance(addresses, str):
        return addresses
    if root_of(source) in written_roots(chain.outermost):
        return "what it reads is written in the loop"
    slots = _slots(load.buffer, chain)
    with ir.InsertionPoint(chain.outermost), move.location:
        first = _start_for(move, addresses, chain, index(0), slots[0])
    chain, (token,) = carry_tokens(chain, [first])
    with ir.InsertionPoint(move), move.location:
        number = chain.number()
        running, other = _take_turns(number, slots)
        DmaWaitOp([token])
        ahead = _start_next(move, addresses, chain, number, other)
    yield_tokens(chain, [ahead])
    load.buffer.results[0].replace_all_uses_with(running)
    for op in (load.wait, move, load.buffer):
        op.erase()
    return None


def rotate_store(move: ir.Operation) -> str | None:
    """Wait for the store where its buffer is made again, two iterations later."""
    store, chain = read_store(move), _rotatable_chain(move)
    for found in (store, chain):
        if isinstance(found, str):
            return found
    slots = _slots(store.buffer, chain)
    with ir.InsertionPoint(chain.outermost), move.location:
        nothing = [DmaNoneOp(TokenType.get()).token for _ in slots]
    chain, (before_last, last) = carry_tokens(chain, nothing)
    with ir.InsertionPoint(store.buffer), move.location:
        DmaWaitOp([before_last])
    _alternate(store.buffer, chain, slots)
    store.wait.erase()
    yield_tokens(chain, [last, move.results[0]])
    return None


def rotate_accumulator(allocation: ir.Operation) -> str | None:
    """Let an accumulator be drained while the next tile accumulates in the other buffer."""
    chain, reason = _rotatable_chain(allocation), alternates(allocation)
    if isinstance(chain, str) or reason is not None:
        return reason or chain
    _alternate(allocation, chain, _slots(allocation, chain))
    return None


def _rotatable_chain(op: ir.Operation) -> LoopChain | str:
    chain = chain_of(op)
    if isinstance(chain, str):
        return chain
    if any(SINGLE in loop.op.attributes for loop in chain.loops):
        return f"a loop around it has '{SINGLE}'"
    if chain.iterations < 2:
        return "its loops run once"
    return chain


def _slots(buffer: ir.Operation, chain: LoopChain) -> tuple[ir.Value, ir.Value]:
    with ir.InsertionPoint(chain.outermost), buffer.location:
        type_ = buffer.results[0].type
        return tuple(memref.AllocOp(type_, [], []).result for _ in range(2))


def _alternate(buffer: ir.Operation, chain: LoopChain, slots: tuple[ir.Value, ir.Value]) -> None:
    with ir.InsertionPoint(buffer), buffer.location:
        running, _ = _take_turns(chain.number(), slots)
    buffer.results[0].replace_all_uses_with(running)
    buffer.erase()


def _take_turns(number: ir.Value, slots: tuple[ir.Value, ir.Value]) -> tuple[ir.Value, ir.Value]:
    """The buffer of iteration `number`, and that of its neighbours."""
    even, odd = slots
    bit = arith.RemUIOp(number, index(2)).result
    is_odd = arith.CmpIOp(arith.CmpIPredicate.eq, bit, index(1)).result
    running = arith.SelectOp(is_odd, odd, even).result
    return running, arith.SelectOp(is_odd, even, odd).result


def _start_next(move, addresses, chain: LoopChain, number: ir.Value, target: ir.Value) -> ir.Value:
    """Start the move of the iteration after `number`, unless there is none; its token."""
    following = arith.AddIOp(number, index(1)).result
    more = arith.CmpIOp(arith.CmpIPredicate.ult, following, index(chain.iterations)).result
    branch = scf.IfOp(more, [TokenType.get()], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp([_start_for(move, addresses, chain, following, target)])
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp([DmaNoneOp(TokenType.get()).token])
    return branch.results[0]


def _start_for(move, addresses, chain: LoopChain, number: ir.Value, target: ir.Value) -> ir.Value:
    """Start the move as iteration `number` would; its token."""
    counters = chain.counters(number)
    known = dict(zip((loop.induction for loop in chain.loops), counters))
    values = rebuild(addresses, known)
    source, _, *low = (values.get(value, value) for value in move.operands)
    pad_value = move.attributes["pad_value"] if "pad_value" in move.attributes else None
    order = integers(move, "permutation")
    start = DmaStartOp.build(source, target, low=low, permutation=order, pad_value=pad_value)
    return start.token
