"""Contractions, windows and drains of 8-bit integers on vectors: exact, over the whole range."""

from dataclasses import replace

import numpy as np
import pytest
from jit import AVX2, AVX512, SSE, Function, memref_type, segments
from npu_text import identity_map, window
from reference import out_extent, patches

from mlir_npu.dialect.host_cpu import byte_products, cpu_flags

HAS_BYTE_PRODUCTS = byte_products(cpu_flags()) == 4
VNNI, VNNI_256 = (replace(unit, byte_products=4) for unit in (AVX512, AVX2))
UNITS = pytest.mark.parametrize(
    "unit",
    [
        AVX512,
        AVX2,
        SSE,
        *(
            pytest.param(
                unit, marks=pytest.mark.skipif(not HAS_BYTE_PRODUCTS, reason="no AVX512 VNNI")
            )
            for unit in (VNNI, VNNI_256)
        ),
    ],
    ids=["avx512", "avx2", "sse", "vnni", "vnni-256"],
)
RNG = np.random.default_rng(3)
# (n, h, w, c), (ko, r, s, ki), strides, dilations
CONVOLUTIONS = [
    ((1, 9, 9, 16), (2, 3, 3, 16), (1, 1), (1, 1)),
    ((1, 8, 8, 3), (1, 5, 5, 16), (2, 2), (1, 1)),
    ((2, 6, 7, 7), (1, 1, 1, 32), (1, 1), (1, 1)),
    ((1, 9, 11, 10), (2, 3, 2, 24), (1, 2), (2, 1)),
    ((1, 5, 6, 5), (3, 2, 3, 5), (1, 1), (1, 2)),
    ((1, 7, 7, 4), (1, 3, 3, 8), (1, 1), (1, 1)),
    ((1, 6, 6, 2), (2, 3, 3, 16), (1, 1), (1, 1)),
]


def integers(shape):
    return RNG.integers(-128, 128, shape).astype(np.int8)


def run(op, attributes, inputs, out, unit, acc="i32", start=0):
    """What `op` adds to `start`, in memory of its own element type."""
    names = [f"x{i}" for i in range(len(inputs))]
    types = [(memref_type(i.shape, None, "i8"), memref_type(i.shape, "sram", "i8")) for i in inputs]
    tile, buffer = memref_type(out, "acc", acc), memref_type(out, None, acc)
    result = memref_type(out, "sram", acc)
    arguments = [f"%{name}: {plain}" for name, (plain, _) in zip(names, types)]
    arguments += [f"%o: {buffer}", f"%m: {buffer}"]
    casts = [
        f"%{name}_t = memref.memory_space_cast %{name} : {plain} to {chip}"
        for name, (plain, chip) in zip(names, types)
    ]
    maps = f"[{identity_map(len(out))}, {identity_map(len(out))}]"
    operands = ", ".join([*(f"%{name}_t" for name in names), "%acc"])
    text = f"""func.func @main({", ".join(arguments)}) {{
      {chr(10).join(casts)}
      %o_t = memref.memory_space_cast %o : {buffer} to {result}
      %acc = memref.memory_space_cast %m : {buffer} to {tile}
      "npu.fill"(%acc) {{value = {start} : {acc}}} : ({tile}) -> ()
      "npu.{op}"({operands}) {{{attributes}}} : ({", ".join(t for _, t in types)}, {tile}) -> ()
      "npu.drain"(%acc, %o_t) ({{
      ^bb0(%a: {acc}, %old: {acc}):
        "npu.yield"(%a) : ({acc}) -> ()
      }}) {{indexing_maps = {maps}, {segments(0, accumulator=True)}}} : ({tile}, {result}) -> ()
      return
    }}"""
    compiled = Function(text, unit)
    kind = {"i32": np.int32, "i8": np.int8}[acc]
    o, memory = np.zeros(out, kind), np.zeros(out, kind)
    compiled(*inputs, o, memory)
    return o, compiled.vector_text


@UNITS
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=lambda c: "x".join(map(str, c[0] + c[1])))
def test_conv2d(case, unit):
    (n, h, w, c), (ko, r, s, ki), strides, dilations = case
    pixels = out_extent(h, r, strides[0], dilations[0]), out_extent(w, s, strides[1], dilations[1])
    x, weights = integers((n, h, w, c)), integers((ko, r, s, c, ki))
    seen = patches(x, (r, s), pixels, strides, dilations).astype(np.int32)
    exact = np.einsum("nyxrsc,orsci->nyxoi", seen, weights.astype(np.int32)) + 7
    out, text = run("conv2d", window(strides, dilations), [x, weights], exact.shape, unit, start=7)
    np.testing.assert_array_equal(out, exact)
    if unit in (VNNI, VNNI_256) and c >= 4 and ki % 4 == 0:
        assert "vpdpbusd" in text
    if unit.byte_products == 1:
        assert "vpdpbusd" not in text


@UNITS
@pytest.mark.parametrize(("m", "no", "c", "ni"), [(1, 2, 64, 16), (9, 3, 33, 8), (4, 1, 3, 5)])
def test_matmul(m, no, c, ni, unit):
    x, weights = integers((m, c)), integers((no, c, ni))
    exact = np.einsum("mc,oci->moi", x.astype(np.int32), weights.astype(np.int32))
    out, _ = run("matmul", "", [x, weights], exact.shape, unit)
    np.testing.assert_array_equal(out, exact)


@UNITS
@pytest.mark.parametrize("taps", [(3, 3), (7, 7)])
def test_depthwise(taps, unit):
    x, weights = integers((1, 12, 13, 20)), integers((*taps, 20))
    pixels = out_extent(12, taps[0], 1, 1), out_extent(13, taps[1], 1, 1)
    seen = patches(x, taps, pixels, (1, 1), (1, 1)).astype(np.int32)
    exact = np.einsum("nyxrsc,rsc->nyxc", seen, weights.astype(np.int32))
    out, _ = run("depthwise_conv2d", window((1, 1), (1, 1)), [x, weights], exact.shape, unit)
    np.testing.assert_array_equal(out, exact)


@UNITS
@pytest.mark.parametrize(("kind", "acc", "start"), [("max", "i8", -128), ("sum", "i32", 0)])
def test_pools(kind, acc, start, unit):
    x = integers((2, 9, 9, 18))
    seen = patches(x, (3, 3), (4, 4), (2, 2), (1, 1)).astype(np.int32)
    exact = seen.max((3, 4)) if kind == "max" else seen.sum((3, 4))
    attributes = f'kind = "{kind}", window = array<i64: 3, 3>, {window((2, 2), (1, 1))}'
    out, _ = run("pool2d", attributes, [x], exact.shape, unit, acc, start)
    np.testing.assert_array_equal(out, exact)
