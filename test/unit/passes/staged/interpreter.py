"""Run kernels on memrefs in NumPy, as a machine with separate memories would.

It takes modules after the stages "stage" and "allocate". Every memory starts as NaN, a move poisons
its target when it starts and delivers when it is waited for, every box is checked against its
buffer, and writes to each element are counted: a missing move, wait, or tile shows in the result.
"""
from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import called, entry, functions, symbol
from staged.scalar import evaluate

DYNAMIC = ir.ShapedType.get_dynamic_size()
DTYPES = {"f32": np.float32, "i8": np.uint8}


@dataclass(frozen=True)
class Buffer:
    """Elements, and how often each was written by a move."""

    data: np.ndarray
    writes: np.ndarray

    @classmethod
    def of(cls, data: np.ndarray) -> Buffer:
        return cls(data, np.zeros(data.shape, np.int64))

    def apply(self, change) -> Buffer:
        """The same view of elements and counts; never a copy."""
        views = [change(array) for array in (self.data, self.writes)]
        for view, array in zip(views, (self.data, self.writes)):
            assert view.size == 0 or np.shares_memory(view, array)
        return Buffer(*views)


class Machine:
    """Runs functions of one module. Arguments and results are arrays or Buffers."""

    def __init__(self, module: ir.Module):
        self.functions = {symbol(f): f for f in functions(module.operation)}
        top = module.operation.regions[0].blocks[0].operations
        self.constants = {
            symbol(op.operation): np.array(op.attributes["initial_value"])
            for op in top
            if op.operation.name == "memref.global"
        }
        self.moved_bytes = 0

    def call(self, name: str, *arguments: Buffer) -> None:
        function = self.functions[name]
        block = entry(function)
        assert len(block.arguments) == len(arguments)
        self.block(block, dict(zip(block.arguments, arguments)))

    def block(self, block: ir.Block, env: dict) -> None:
        for child in block.operations:
            op = child.operation
            handler = getattr(self, op.name.replace(".", "_"), None)
            assert handler is not None, f"the interpreter has no '{op.name}'"
            results = handler(op, env, *[env[v] for v in op.operands])
            env.update(zip(op.results, results or ()))

    # structure

    def func_call(self, op, env, *arguments):
        self.call(called(op), *arguments)

    def func_return(self, op, env):
        pass

    scf_forall_in_parallel = scf_yield = func_return

    def scf_for(self, op, env, low, high, step):
        block = op.regions[0].blocks[0]
        for value in range(low, high, step):
            self.block(block, {**env, block.arguments[0]: value})

    def scf_forall(self, op, env):
        assert list(op.attributes["staticStep"]) == [1] * len(op.attributes["staticStep"])
        block = op.regions[0].blocks[0]
        ranges = [range(int(n)) for n in op.attributes["staticUpperBound"]]
        for point in itertools.product(*ranges):
            self.block(block, {**env, **dict(zip(block.arguments, point))})

    # indices

    def arith_constant(self, op, env):
        return [op.attributes["value"].value]

    def affine_apply(self, op, env, *operands):
        return [_affine(op, operands)[0]]

    def affine_max(self, op, env, *operands):
        return [max(_affine(op, operands))]

    def affine_min(self, op, env, *operands):
        return [min(_affine(op, operands))]

    # buffers

    def memref_alloc(self, op, env):
        type_ = op.results[0].type
        dtype = DTYPES[str(type_.element_type)]
        fill = np.nan if dtype is np.float32 else 255
        return [Buffer.of(np.full(type_.shape, fill, dtype))]

    def memref_get_global(self, op, env):
        data = self.constants[ir.FlatSymbolRefAttr(op.attributes["name"]).value]
        return [Buffer.of(data.copy())]

    def memref_memory_space_cast(self, op, env, source):
        return [source]

    memref_cast = memref_memory_space_cast

    def memref_view(self, op, env, source, shift):
        shape = op.results[0].type.shape
        size = int(np.prod(shape)) * 4
        assert shift + size <= source.data.size
        data = source.data[shift : shift + size].view(np.float32).reshape(shape)
        assert np.shares_memory(data, source.data)
        return [Buffer.of(data)]

    def memref_subview(self, op, env, source, *dynamic):
        values = iter(dynamic)
        parts = [
            [next(values) if int(v) == DYNAMIC else int(v) for v in op.attributes[name]]
            for name in ("static_offsets", "static_sizes", "static_strides")
        ]
        for offset, size, extent in zip(*parts[:2], source.data.shape):
            assert 0 <= offset and 0 <= size and offset + size <= extent, (offset, size, extent)
        assert set(parts[2]) <= {1}
        box = tuple(slice(offset, offset + size) for offset, size in zip(*parts[:2]))
        return [source.apply(lambda array: array[box])]

    def memref_collapse_shape(self, op, env, source):
        shape = op.results[0].type.shape
        return [source.apply(lambda array: array.reshape(shape))]

    memref_expand_shape = memref_collapse_shape

    # moves

    def npu_dma_start(self, op, env, source, target, *low):
        order = [int(i) for i in op.attributes["permutation"]]
        moved = source.data.transpose(order)
        landing = tuple(slice(a, a + n) for a, n in zip(low, moved.shape)) if low else ...
        for a, n, extent in zip(low, moved.shape, target.data.shape):
            assert 0 <= a and a + n <= extent
        target.data[...] = np.nan
        pad = op.attributes["pad_value"].value if low else None
        self.moved_bytes += moved.nbytes

        def deliver():
            if pad is not None:
                target.data[...] = pad
            assert target.data[landing].shape == moved.shape
            target.data[landing] = moved
            target.writes[...] += 1

        return [deliver]

    def npu_dma_wait(self, op, env, *tokens):
        for deliver in tokens:
            deliver()

    # compute

    def npu_fill(self, op, env, target):
        target.data[...] = op.attributes["value"].value

    def npu_conv2d(self, op, env, image, weights, accumulator):
        rows, columns = weights.data.shape[1:3]
        for r, s, taps in _windows(op, image.data, accumulator.data.shape[1:3], rows, columns):
            accumulator.data[...] += np.einsum("nyxc,kci->nyxki", taps, weights.data[:, r, s])

    def npu_depthwise_conv2d(self, op, env, image, weights, accumulator):
        rows, columns = weights.data.shape[:2]
        for r, s, taps in _windows(op, image.data, accumulator.data.shape[1:3], rows, columns):
            accumulator.data[...] += taps * weights.data[r, s]

    def npu_matmul(self, op, env, lhs, rhs, accumulator):
        accumulator.data[...] += np.einsum("mc,kci->mki", lhs.data, rhs.data)

    def npu_pool2d(self, op, env, image, accumulator):
        combine = {"max": np.maximum, "sum": np.add}[op.attributes["kind"].value]
        rows, columns = (int(n) for n in op.attributes["window"])
        for _, _, taps in _windows(op, image.data, accumulator.data.shape[1:3], rows, columns):
            accumulator.data[...] = combine(accumulator.data, taps)

    def npu_eltwise(self, op, env, *buffers):
        evaluate(op, [buffer.data for buffer in buffers], env)

    npu_drain = npu_reduce = npu_eltwise


def _affine(op, operands) -> list[int]:
    map_ = ir.AffineMapAttr(op.attributes["map"]).value
    return [_expression(e, operands, map_.n_dims) for e in map_.results]


def _expression(e, values, dims) -> int:
    if isinstance(e, ir.AffineConstantExpr):
        return e.value
    if isinstance(e, ir.AffineDimExpr):
        return values[e.position]
    if isinstance(e, ir.AffineSymbolExpr):
        return values[dims + e.position]
    left, right = (_expression(side, values, dims) for side in (e.lhs, e.rhs))
    if isinstance(e, ir.AffineAddExpr):
        return left + right
    assert isinstance(e, ir.AffineMulExpr), e
    return left * right


def _windows(op, image, outputs, rows, columns):
    """For every tap (r, s): the input elements that it meets, one per output."""
    (sy, sx), (dy, dx) = ([int(v) for v in op.attributes[n]] for n in ("strides", "dilations"))
    height, width = outputs
    for r, s in itertools.product(range(rows), range(columns)):
        last_y, last_x = r * dy + (height - 1) * sy, s * dx + (width - 1) * sx
        assert last_y < image.shape[1] and last_x < image.shape[2]
        yield r, s, image[:, r * dy : last_y + 1 : sy, s * dx : last_x + 1 : sx]
