"""How many sizes of a dynamic graph are compiled, and which are kept."""

import threading

import pytest
import torch
from dynamic_networks import Captures, network
from parity import assert_same
from torch import nn

from mlir_npu.errors import StrictError
from mlir_npu.lowering import compile_region, specializations
from mlir_npu.lowering.report import collect


def run_sizes(compiled, model, sizes) -> list[bool]:
    """For each size: whether its call compiled a graph with a region."""
    found = []
    with torch.no_grad():
        for size in sizes:
            x = torch.randn(size, 3, 16, 16)
            with collect() as reports:
                assert_same(compiled(x), model(x))
            found.append(any(report.regions for report in reports))
    return found


def test_sizes_that_never_come_again_are_not_compiled(monkeypatch, caplog):
    monkeypatch.setattr(specializations, "AT_ONCE", 2)
    model, captures = network(), Captures()
    compiled = torch.compile(model, backend=captures, dynamic=True)
    assert run_sizes(compiled, model, (2, 3, 4, 5, 6)) == [True, True, False, False, False]
    assert "runs on the host until it comes again" in caplog.text
    assert run_sizes(compiled, model, (4, 4, 2, 3)) == [True, False, False, False]
    assert captures.count == 1


def test_those_called_least_recently_go(monkeypatch):
    monkeypatch.setattr(specializations, "KEPT", 2)
    model = network()
    compiled = torch.compile(model, backend="mlir_npu", dynamic=True)
    assert run_sizes(compiled, model, (2, 3, 2, 4)) == [True, True, False, True]
    assert run_sizes(compiled, model, (2, 4, 3)) == [False, False, True]


def test_strict_compiles_all_sizes(monkeypatch):
    monkeypatch.setattr(specializations, "AT_ONCE", 1)
    model = network()
    compiled = torch.compile(model, backend="mlir_npu", dynamic=True, options={"strict": True})
    assert run_sizes(compiled, model, (2, 3, 4)) == [True, True, True]


def test_strict_refuses_when_called():
    conv = nn.Conv2d(3, 4, 3).eval()
    compiled = torch.compile(
        lambda x: torch.sin(conv(x)), backend="mlir_npu", dynamic=True, options={"strict": True}
    )
    with torch.no_grad(), pytest.raises(StrictError, match="aten.sin"):
        compiled(torch.randn(2, 3, 64, 64))


def test_equal_sizes_compile_once_for_several_models(monkeypatch):
    compiled_regions = []
    compile_ = compile_region._compile
    monkeypatch.setattr(
        compile_region, "_compile", lambda *given: compiled_regions.append(1) or compile_(*given)
    )
    for _ in range(2):
        model = nn.Sequential(nn.Conv2d(3, 11, 3), nn.ReLU()).eval()
        compiled = torch.compile(model, backend="mlir_npu", dynamic=True)
        with torch.no_grad():
            for size in (18, 19):
                x = torch.randn(2, 3, size, size)
                assert_same(compiled(x), model(x))
        torch._dynamo.reset()
    assert len(compiled_regions) == 2


def test_threads_with_sizes_of_their_own():
    model = network()
    compiled = torch.compile(model, backend="mlir_npu", dynamic=True)
    with torch.no_grad():
        compiled(torch.randn(9, 3, 16, 16))
    failures = []

    def work(batch: int) -> None:
        try:
            with torch.no_grad():
                for _ in range(5):
                    x = torch.randn(batch, 3, 16, 16)
                    assert_same(compiled(x), model(x))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(batch,)) for batch in (2, 3, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_compiling_does_not_see_the_modes_of_the_call():
    """What is made while compiling belongs to later calls, too."""

    conv = nn.Conv2d(3, 4, 3).eval()

    def model(x):
        return conv(x) * torch.arange(4.0).view(4, 1, 1)

    compiled = torch.compile(model, backend="mlir_npu", dynamic=True)
    x = torch.randn(2, 3, 24, 24)
    with torch.inference_mode():
        assert_same(compiled(x), model(x))
    with torch.no_grad():
        assert_same(compiled(x), model(x))
