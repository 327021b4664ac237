import gc
import threading
import weakref

import pytest
import torch
from modules import PREPARED, SCALE, compile_text
from torch import nn

from mlir_npu.dialect.bindings import ir
from mlir_npu.runtime.arena import Arena, ArenaPool
from mlir_npu.runtime.interface import Interface, Output
from mlir_npu.runtime.kernel import Kernel, KernelLinkError
from mlir_npu.runtime.region import CompiledRegion
from mlir_npu.runtime.signature import SignatureError
from mlir_npu.runtime.tensor_spec import TensorSpec


def region_of(text, inputs, results, parameters=(), outputs=None):
    kernel, signature = compile_text(text)
    outputs = outputs or tuple(Output("result", i) for i in range(len(results)))
    interface = Interface(
        tuple(map(TensorSpec.of, inputs)),
        parameters,
        (),
        tuple(map(TensorSpec.of, results)),
        outputs,
    )
    return CompiledRegion("r", kernel, signature, interface)


def doubling(like):
    spec = TensorSpec.of(like)
    m, n = spec.physical_shape
    return region_of(SCALE.format(m=m, n=n), [like], [like])


def prepared_region():
    x = torch.empty(4)
    return region_of(PREPARED, [x, x], [x], parameters=(1,))


def test_kernel_runs_on_packed_tensors():
    kernel, _ = compile_text(SCALE.format(m=2, n=3))
    x, y = torch.randn(2, 3), torch.empty(2, 3)
    kernel(x, y)
    assert torch.equal(y, 2 * x)


def test_unknown_entry_is_an_error():
    kernel, _ = compile_text(SCALE.format(m=2, n=3))
    with pytest.raises(KernelLinkError, match="@prepare"):
        kernel.sibling("prepare")


def test_module_that_is_not_lowered_is_an_error():
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(SCALE.format(m=2, n=3))
        with pytest.raises(KernelLinkError, match="reason is on stderr"):
            Kernel(module)


def test_engine_outlives_module_and_first_kernel():
    kernel, _ = compile_text(PREPARED)
    prepare = kernel.sibling("prepare")
    del kernel
    w, p = torch.ones(4), torch.empty(4)
    prepare(w, p, torch.empty(64, dtype=torch.int8), torch.empty(64, dtype=torch.int8))
    assert p.tolist() == [2.0] * 4


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.randn(4, 3),
        lambda: torch.randn(3, 4).t(),
        lambda: torch.randn(4, 6)[:, ::2],
        lambda: torch.randn(1, 3).expand(4, 3),
        lambda: torch.randn(20)[4:16].view(4, 3),
        lambda: torch._neg_view(torch.randn(4, 3)),
    ],
)
@pytest.mark.parametrize("like", [torch.empty(4, 3), torch.empty(3, 4).t()])
def test_any_strides_are_accepted(make, like):
    x = make()
    (y,) = doubling(like)(x)
    assert torch.equal(y, 2 * x)
    assert y.stride() == like.stride()


def test_stride_of_a_size_one_dim_is_ignored():
    region = doubling(torch.empty(1, 6))
    x = torch.randn(12).as_strided((1, 6), (99, 1))
    (y,) = region(x)
    assert torch.equal(y, 2 * x)


@pytest.mark.parametrize("like", [torch.empty(4, 6)[:, ::2], torch.empty(1, 3).expand(4, 3)])
def test_outputs_have_the_traced_strides(like):
    region = region_of(SCALE.format(m=4, n=3), [torch.empty(4, 3)], [like])
    x = torch.randn(1, 3).expand(4, 3)
    (y,) = region(x)
    assert y.stride() == like.stride()
    assert torch.equal(y, 2 * x)


def test_outputs_keep_none_inputs_and_duplicates():
    x = torch.randn(2, 3)
    outputs = (Output("none"), Output("result", 0), Output("input", 0), Output("result", 0))
    region = region_of(SCALE.format(m=2, n=3), [x], [x], outputs=outputs)
    a, b, c, d = region(x)
    assert a is None
    assert c is x
    assert b is d
    assert torch.equal(b, 2 * x)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ((), "takes 1 tensors, not 0"),
        ((torch.ones(3, 2),), r"torch.float32\[3, 2\]; it was compiled for torch.float32\[2, 3\]"),
        ((torch.ones(2, 3, dtype=torch.float64),), "torch.float64"),
    ],
)
def test_other_inputs_are_errors(tensors, message):
    with pytest.raises(ValueError, match=message):
        doubling(torch.empty(2, 3))(*tensors)


def test_parameter_of_another_shape_is_an_error():
    region, w = prepared_region(), nn.Parameter(torch.ones(4))
    region(torch.ones(4), w)
    w.data = torch.ones(5)
    with pytest.raises(ValueError, match="a parameter of r"):
        region(torch.ones(4), w)


def test_interface_must_match_the_module():
    with pytest.raises(SignatureError, match="interface"):
        region_of(SCALE.format(m=2, n=3), [torch.empty(2, 4)], [torch.empty(2, 4)])


def test_weight_updates_take_effect():
    region, w = prepared_region(), nn.Parameter(torch.ones(4))
    x = torch.arange(4.0)
    assert torch.equal(region(x, w)[0], x + 2)
    with torch.no_grad():
        w.fill_(3)
    assert torch.equal(region(x, w)[0], x + 6)
    w.data = torch.full((4,), 5.0)
    assert torch.equal(region(x, w)[0], x + 10)
    assert torch.equal(region(x, nn.Parameter(torch.zeros(4)))[0], x)
    assert torch.equal(region(x, w)[0], x + 10)


def test_strided_parameter_is_packed_again_after_an_update():
    region = prepared_region()
    w = torch.ones(8)[::2]
    x = torch.zeros(4)
    assert region(x, w)[0].tolist() == [2.0] * 4
    w.fill_(4)
    assert region(x, w)[0].tolist() == [8.0] * 4


def test_eight_threads_share_a_region():
    region, errors = prepared_region(), []
    weights = [nn.Parameter(torch.full((4,), float(i))) for i in range(8)]
    start = threading.Barrier(8)

    def work(i):
        start.wait()
        for step in range(300):
            x = torch.full((4,), float(step))
            (y,) = region(x, weights[i])
            if not torch.equal(y, x + 2.0 * i):
                errors.append((i, step, y.tolist()))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == []
    assert 1 <= len(region._blocks) <= 8


def test_small_memory_is_the_blocks_own_and_enough_for_all_threads():
    region, x, w = prepared_region(), torch.ones(4), nn.Parameter(torch.ones(4))
    before = torch.get_num_threads()
    try:
        for count in (1, 3, 2):
            torch.set_num_threads(count)
            assert region(x, w)[0].tolist() == [3.0] * 4
            (block,) = region._blocks
            assert block.memory.numel() == 64 + 64 * count
            assert block.memory.data_ptr() % 64 == 0
    finally:
        torch.set_num_threads(before)


def test_arena_grows_is_aligned_and_is_reused():
    pool = ArenaPool()
    arena = pool.take()
    assert arena.reserve(100) % 64 == 0
    assert arena.size == 128
    pool.give(arena)
    again, other = pool.take(), pool.take()
    assert again is arena
    assert other is not arena
    assert again.reserve(128) == arena.address
    assert again.reserve(129) % 64 == 0
    assert again.size == 192


def test_arena_holds_nothing_at_first():
    assert Arena().size == 0


def test_size_one_dims_of_outputs_have_the_traced_strides():
    like = torch.empty(12).as_strided((1, 6), (99, 1))
    x = torch.randn(1, 6)
    (y,) = region_of(SCALE.format(m=1, n=6), [x], [like])(x)
    assert y.stride() == (99, 1)
    assert torch.equal(y, 2 * x)


def test_bound_calls_outlive_their_region():
    x, w = torch.randn(4), torch.randn(4)
    region = prepared_region()
    expected = region(x, w)[0]
    call, gone = region.bound((w,)), weakref.ref(region)
    del region
    gc.collect()
    assert gone() is None
    assert torch.equal(call(x, None)[0], expected)


def test_packed_inputs_are_read_where_they_are():
    region = doubling(torch.empty(4, 3))
    x, other = torch.randn(4, 3), torch.randn(3, 4).t()
    for call in (region.bound(()), region.bound((), packed={0})):
        assert torch.equal(call(x)[0], 2 * x)
    assert torch.equal(region.bound(())(other)[0], 2 * other)
