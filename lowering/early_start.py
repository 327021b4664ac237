"""Processes that compile are started while AOTAutograd makes the graph functional.

That is before it is known whether they are needed, so only for graphs that are large, and not where
the cache says that the same was compiled before. It is a guess: those that are started for nothing
end by themselves, and those that are missing are started by the region that needs them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import fx

from mlir_npu.lowering.compile_region import LARGE
from mlir_npu.lowering.region_modules import wanted_modules
from mlir_npu.options import Options
from mlir_npu.runtime.compile_pool import POOL
from mlir_npu.runtime.object_cache import default_cache
from mlir_npu.runtime.toolchain import digest


@contextlib.contextmanager
def early_start(
    graph_module: fx.GraphModule, inputs: Sequence[Any], options: Options
) -> Iterator[None]:
    """Around the compilation of a graph of Dynamo's."""
    calls = [node for node in graph_module.graph.nodes if node.op.startswith("call_")]
    here = options.dump_dir or options.code_generator or wanted_modules() is not None
    if here or len(calls) < LARGE:
        yield
        return
    key = _key(calls, inputs, options) if options.cache else None
    known = key is not None and default_cache().get(key) is not None
    if not known:
        POOL.start_beside()
    yield
    if key is not None and not known:
        default_cache().put(key, b"")


def _key(calls: list[fx.Node], inputs: Sequence[Any], options: Options) -> str:
    """The same for graphs that nearly always become the same code."""
    names = (getattr(node.target, "__name__", str(node.target)) for node in calls)
    tensors = (
        f"{value.dtype} {tuple(value.shape)}" if isinstance(value, torch.Tensor) else repr(value)
        for value in inputs
    )
    return digest("compiled before", repr(options), *names, *tensors)
