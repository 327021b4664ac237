import gc
import threading
import weakref

import pytest
import torch
from torch import nn

from mlir_npu.runtime.prepared import MAX_SETS, PreparedCache


class Doubled:
    """Prepares the doubled values of all parameters, counting how often."""

    def __init__(self):
        self.calls = 0
        self.cache = PreparedCache(self.make)

    def make(self, parameters):
        self.calls += 1
        values = [p.detach() * 2 for p in parameters]
        return [v.data_ptr() for v in values], values

    def values(self, *parameters):
        return [v.tolist() for v in self.cache.get(parameters).owned]


def test_unchanged_parameters_are_prepared_once():
    d, w = Doubled(), nn.Parameter(torch.ones(2))
    assert d.values(w) == [[2.0, 2.0]]
    assert d.cache.get((w,)) is d.cache.get((w,))
    assert d.calls == 1


def test_in_place_update_takes_effect():
    d, w = Doubled(), nn.Parameter(torch.ones(2))
    d.values(w)
    with torch.no_grad():
        w.mul_(3)
    assert d.values(w) == [[6.0, 6.0]]
    w.detach().add_(1)  # detach shares the version counter
    assert d.values(w) == [[8.0, 8.0]]


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, lr=1.0),
        lambda p: torch.optim.SGD(p, lr=1.0, foreach=True),
        lambda p: torch.optim.SGD(
            p, lr=1.0, fused=True
        ),  # fused ones do not advance the version counter
        lambda p: torch.optim.Adam(p, lr=0.5, fused=True),
        lambda p: torch.optim.AdamW(p, lr=0.5),
    ],
)
def test_optimizer_step_takes_effect(make):
    d, w = Doubled(), nn.Parameter(torch.ones(2))
    d.values(w)
    w.grad = torch.ones(2)
    make([w]).step()
    assert w.tolist() != [1.0, 1.0]
    assert d.values(w) == [(w.detach() * 2).tolist()]


def test_fused_step_leaves_other_parameters_prepared():
    d, w, frozen = Doubled(), nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    d.values(frozen)
    w.grad = torch.ones(2)
    torch.optim.SGD([w], lr=1.0, fused=True).step()
    d.values(frozen)
    assert d.calls == 1


def test_update_in_inference_mode_takes_effect():
    d, w = Doubled(), nn.Parameter(torch.ones(2))
    d.values(w)
    with torch.inference_mode():
        w.mul_(5)
        assert d.values(w) == [[10.0, 10.0]]
    assert d.values(w) == [[10.0, 10.0]]


def test_replaced_data_takes_effect():
    d, w = Doubled(), nn.Parameter(torch.ones(2))
    d.values(w)
    w.data = torch.full((2,), 7.0)
    assert d.values(w) == [[14.0, 14.0]]


@pytest.mark.parametrize(
    "write",
    [
        lambda w: w.data.mul_(2),
        lambda w: w.data.copy_(torch.full_like(w, 9.0)),
        lambda w: w.data.clamp_(max=0.5),
        lambda w: w.detach().numpy().fill(3.0),
    ],
)
@pytest.mark.parametrize("shape", [(2,), (300, 40)])
def test_write_behind_the_version_counter_takes_effect(write, shape):
    d, w = Doubled(), nn.Parameter(torch.ones(shape))
    d.values(w)
    write(w)
    assert w._version == 0
    assert d.values(w) == [(w.detach() * 2).tolist()]


def test_one_element_of_a_small_parameter_is_seen():
    d, w = Doubled(), nn.Parameter(torch.ones(1000))
    for index in (0, 1, 500, 999):
        d.values(w)
        w.data[index] = 5.0
        assert d.values(w) == [(w.detach() * 2).tolist()]


def test_load_state_dict_takes_effect():
    d, layer = Doubled(), nn.Linear(2, 1, bias=False)
    d.values(layer.weight)
    layer.load_state_dict({"weight": torch.full((1, 2), 4.0)})
    assert d.values(layer.weight) == [[[8.0, 8.0]]]
    layer.load_state_dict({"weight": torch.full((1, 2), 5.0)}, assign=True)
    assert d.values(layer.weight) == [[[10.0, 10.0]]]
    layer.weight = nn.Parameter(torch.full((1, 2), 6.0))
    assert d.values(layer.weight) == [[[12.0, 12.0]]]


def test_identity_of_a_dead_parameter_is_not_reused():
    d = Doubled()
    for value in range(50):  # the allocator hands out the same addresses again
        w = nn.Parameter(torch.full((2,), float(value)))
        assert d.values(w) == [[2.0 * value] * 2]
        del w
    assert len(d.cache) == 0


def test_parameters_are_not_kept_alive():
    d, w = Doubled(), nn.Parameter(torch.ones(2))
    prepared = weakref.ref(d.cache.get((w,)).owned[0])
    alive = weakref.ref(w)
    del w
    assert alive() is None
    assert prepared() is None
    assert len(d.cache) == 0


def test_cache_is_freed_without_the_collector():
    d, w = Doubled(), nn.Parameter(torch.ones(2))
    d.values(w)
    prepared = weakref.ref(d.cache.get((w,)).owned[0])
    gc.disable()
    try:
        del d.cache
        assert prepared() is None
    finally:
        gc.enable()


def test_several_parameter_sets_are_kept():
    d = Doubled()
    layers = [nn.Parameter(torch.full((2,), float(i))) for i in range(3)]
    for _ in range(4):
        for i, w in enumerate(layers):
            assert d.values(w) == [[2.0 * i] * 2]
    assert d.calls == 3


def test_number_of_sets_is_bounded():
    d = Doubled()
    layers = [nn.Parameter(torch.ones(1)) for _ in range(MAX_SETS + 5)]
    for w in layers:
        d.values(w)
    assert len(d.cache) == MAX_SETS


def test_inference_tensors_are_never_reused():
    with torch.inference_mode():
        w = torch.ones(2)
    d = Doubled()
    assert d.values(w) == [[2.0, 2.0]]
    with torch.inference_mode():
        w.mul_(2)
    assert d.values(w) == [[4.0, 4.0]]
    assert d.calls == 2


def test_threads_prepare_once():
    d, w = Doubled(), nn.Parameter(torch.ones(2))
    start, found = threading.Barrier(8), []

    def work():
        start.wait()
        found.append(d.cache.get((w,)).serial)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert d.calls == 1
