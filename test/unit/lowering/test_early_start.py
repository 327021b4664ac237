"""When processes are started before they are known to be needed."""

from __future__ import annotations

import pytest
import torch
from torch import fx

from mlir_npu.lowering import early_start as module
from mlir_npu.lowering.compile_region import LARGE
from mlir_npu.lowering.early_start import early_start
from mlir_npu.options import Options
from mlir_npu.runtime.object_cache import VARIABLE


class Pool:
    def __init__(self) -> None:
        self.starts = 0

    def start_beside(self) -> None:
        self.starts += 1


@pytest.fixture
def pool(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    pool = Pool()
    monkeypatch.setattr(module, "POOL", pool)
    return pool


def _graph(calls: int, function=torch.relu) -> fx.GraphModule:
    graph = fx.Graph()
    value = graph.placeholder("x")
    for _ in range(calls):
        value = graph.call_function(function, (value,))
    graph.output(value)
    return fx.GraphModule({}, graph)


DEFAULT = Options()


def _compile(graph_module, options=DEFAULT, shape=(2, 3)) -> None:
    with early_start(graph_module, [torch.empty(shape)], options):
        pass


def test_once_for_the_same_graph(pool):
    for _ in range(2):
        _compile(_graph(LARGE))
    assert pool.starts == 1
    _compile(_graph(LARGE), shape=(4, 3))
    _compile(_graph(LARGE, torch.exp))
    _compile(_graph(LARGE), Options(num_threads=1))
    assert pool.starts == 4


def test_again_without_a_cache_and_after_a_failure(pool):
    for _ in range(2):
        _compile(_graph(LARGE), Options(cache=False))
    assert pool.starts == 2
    for _ in range(2):
        with pytest.raises(KeyError):
            with early_start(_graph(LARGE), [torch.empty(2)], Options()):
                raise KeyError
    assert pool.starts == 4


def test_not_for_what_is_compiled_in_this_process(pool, tmp_path):
    _compile(_graph(LARGE - 1))
    _compile(_graph(LARGE), Options(dump_dir=str(tmp_path)))
    _compile(_graph(LARGE), Options(code_generator=lambda region: None))
    assert pool.starts == 0
