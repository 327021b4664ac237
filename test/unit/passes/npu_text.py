"""Text of npu functions in the form after the allocate stage, for tests."""

from __future__ import annotations

from collections.abc import Sequence

from jit import accumulator, memref_type, on_chip, segments, signature

RELU = """
    %zero = arith.constant 0.0 : f32
    %positive = arith.cmpf ugt, %sum, %zero : f32
    %result = arith.select %positive, %sum, %zero : f32"""


def identity_map(rank: int) -> str:
    dims = ", ".join(f"d{i}" for i in range(rank))
    return f"affine_map<({dims}) -> ({dims})>"


def channel_map(rank: int, channel_dims: int) -> str:
    dims = [f"d{i}" for i in range(rank)]
    return f"affine_map<({', '.join(dims)}) -> ({', '.join(dims[rank - channel_dims :])})>"


def fill(buffer: str, type_: str, value: str = "0.0") -> str:
    return f'"npu.fill"(%{buffer}) {{value = {value} : f32}} : ({type_}) -> ()'


def bias_relu_drain(shape: Sequence[int], channel_dims: int, acc: str = "acc") -> str:
    """`%o_t = relu(acc + %b_t)`, the bias along the last `channel_dims` dimensions."""
    rank = len(shape)
    maps = f"[{identity_map(rank)}, {channel_map(rank, channel_dims)}, {identity_map(rank)}]"
    types = (
        memref_type(shape, "acc"),
        memref_type(shape[rank - channel_dims :], "sram"),
        memref_type(shape, "sram"),
    )
    return f"""
  "npu.drain"(%{acc}, %b_t, %o_t) ({{
  ^bb0(%a: f32, %bias: f32, %old: f32):
    %sum = arith.addf %a, %bias : f32{RELU}
    "npu.yield"(%result) : (f32) -> ()
  }}) {{indexing_maps = {maps}, {segments(1, accumulator=True)}}} : ({", ".join(types)}) -> ()"""


def copy_drain(shape: Sequence[int], acc: str = "acc") -> str:
    maps = f"[{identity_map(len(shape))}, {identity_map(len(shape))}]"
    types = f"{memref_type(shape, 'acc')}, {memref_type(shape, 'sram')}"
    return f"""
  "npu.drain"(%{acc}, %o_t) ({{
  ^bb0(%a: f32, %old: f32):
    "npu.yield"(%a) : (f32) -> ()
  }}) {{indexing_maps = {maps}, {segments(0, accumulator=True)}}} : ({types}) -> ()"""


def eltwise(
    inputs: Sequence[tuple[str, str, str]], output: tuple[str, str, str], body: str, result: str
) -> str:
    """`npu.eltwise` over (name, map, type) operands; `body` names its arguments %in0, %in1, ..."""
    operands = [*inputs, output]
    names = ", ".join(f"%{name}" for name, _, _ in operands)
    maps = ", ".join(map_ for _, map_, _ in operands)
    types = ", ".join(type_ for _, _, type_ in operands)
    arguments = [f"%in{i}: f32" for i in range(len(inputs))] + ["%old: f32"]
    return f"""
  "npu.eltwise"({names}) ({{
  ^bb0({", ".join(arguments)}):
    {body}
    "npu.yield"({result}) : (f32) -> ()
  }}) {{indexing_maps = [{maps}], {segments(len(inputs))}}} : ({types}) -> ()"""


def function(shapes: dict[str, Sequence[int]], acc_shape: Sequence[int] | None, *body: str) -> str:
    """`main` over dense arguments; with `acc_shape`, the last argument backs `%acc`."""
    arguments = dict(shapes, acc_arena=acc_shape) if acc_shape is not None else dict(shapes)
    tile = accumulator(acc_shape) if acc_shape is not None else ""
    lines = "\n  ".join([on_chip(**shapes), tile, *body])
    return f"func.func @main({signature(**arguments)}) {{\n  {lines}\n  return\n}}"


def compute(
    name: str, attributes: str, operands: dict[str, Sequence[int]], acc: Sequence[int]
) -> str:
    """A compute op over `%<name>_t` operands that accumulates into `%acc`."""
    values = ", ".join([*(f"%{o}_t" for o in operands), "%acc"])
    types = ", ".join(
        [*(memref_type(s, "sram") for s in operands.values()), memref_type(acc, "acc")]
    )
    return f'"npu.{name}"({values}) {{{attributes}}} : ({types}) -> ()'


def window(strides: Sequence[int], dilations: Sequence[int]) -> str:
    return (
        f"strides = array<i64: {strides[0]}, {strides[1]}>, "
        f"dilations = array<i64: {dilations[0]}, {dilations[1]}>"
    )
